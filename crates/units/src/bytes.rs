//! Amounts of data.

use crate::amount::amount;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A number of octets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Bytes(u64);

amount!(Bytes);

impl Bytes {
    /// Nothing.
    pub const ZERO: Bytes = Bytes(0);
    /// More than any queue holds.
    pub const MAX: Bytes = Bytes(u64::MAX);

    /// `n` octets.
    pub const fn new(n: u64) -> Bytes {
        Bytes(n)
    }

    /// The count of octets.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The count of bits.
    pub const fn bits(self) -> u64 {
        self.0.saturating_mul(8)
    }

    /// `self` scaled by a dimensionless gain, rounded down; negative and NaN give zero.
    pub fn scale(self, gain: f64) -> Bytes {
        Bytes((self.0 as f64 * gain) as u64)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n @ 0..10_000 => write!(f, "{n} B"),
            n @ 10_000..10_000_000 => write!(f, "{} kB", n as f64 / 1e3),
            n => write!(f, "{} MB", n as f64 / 1e6),
        }
    }
}
