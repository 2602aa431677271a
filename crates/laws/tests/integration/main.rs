//! What the crate promises, tried from outside: one program for all of it.

mod aggregation_backhaul;
mod aggregation_captures;
mod aggregation_loop;
mod aggregation_shared;
mod allocation_optimum;
mod conformance;
mod dci;
mod hop_conformance;
mod oal_props;
mod rwnd_captures;
mod rwnd_props;
