//! Routing protocols of meshes, sans-IO: packets and the time go in, packets and routes come out.

pub mod olsr;
