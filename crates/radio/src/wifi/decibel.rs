//! Ratios and powers in decibels.

/// A ratio in decibels.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Db(pub f64);

impl Db {
    /// As a plain ratio.
    pub fn linear(self) -> f64 {
        10f64.powf(self.0 / 10.0)
    }
}

/// A power against one milliwatt.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Dbm(pub f64);
