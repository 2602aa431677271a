//! Tests of this crate that take minutes (`make test-long`).

mod evidence;
mod host_cubic;
#[path = "../support/mod.rs"]
mod support;
