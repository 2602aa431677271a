//! Tests of this crate that take minutes (`make test-long`).

#[path = "../common/mod.rs"]
mod common;
mod ns3;
#[path = "../validation/mod.rs"]
mod validation;
