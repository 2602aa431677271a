//! The production side: agents on real interfaces.

pub mod ap;
