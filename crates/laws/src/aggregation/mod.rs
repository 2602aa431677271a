//! The aggregation regulator: full rate with a short queue, by holding the size of A-MPDUs at a set point.

pub mod meter;
