//! Tests of this crate that take minutes (`make test-long`).

#[path = "../harness/mod.rs"]
mod harness;
mod hostile_long;
