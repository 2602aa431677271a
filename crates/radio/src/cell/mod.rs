//! An LTE cell: what its tables say. The hop itself is not there yet.

pub mod mcs;
pub mod tbs;
