//! Routing protocols of meshes, sans-IO: packets and the time go in, packets and routes come out.

#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod olsr;
