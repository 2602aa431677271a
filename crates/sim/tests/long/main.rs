//! Tests of this crate that take minutes (`make test-long`).

mod backhaul;
mod few_packets;
#[path = "../oal/mod.rs"]
mod oal;
mod oal_learning;
mod out_of_reach;
mod regulated;
#[path = "../support/mod.rs"]
mod support;
