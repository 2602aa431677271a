//! Tests of this crate that take minutes (`make test-long`).

mod reproduced;
