//! What the crate promises, tried from outside: one program for all of it.

mod leavings;
#[path = "../../../../tests/src/machine.rs"]
#[allow(dead_code, reason = "each test here needs the machine alone")]
mod machine;
mod monitor;
mod sanity;
mod starts;
