//! Amounts of data.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

/// A number of octets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Bytes(u64);

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

    /// `self` less `other`, or zero.
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }

    /// `self` scaled by a dimensionless gain, rounded down; negative and NaN give zero.
    pub fn scale(self, gain: f64) -> Bytes {
        Bytes((self.0 as f64 * gain) as u64)
    }

    /// True for an amount of zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    /// Panics in debug builds if `other` is larger; use [`Bytes::saturating_sub`] where that may happen.
    fn sub(self, other: Bytes) -> Bytes {
        debug_assert!(self >= other, "negative amount: {self:?} - {other:?}");
        self.saturating_sub(other)
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Bytes) {
        *self = *self - other;
    }
}

impl Mul<u64> for Bytes {
    type Output = Bytes;
    fn mul(self, times: u64) -> Bytes {
        Bytes(self.0.saturating_mul(times))
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(amounts: I) -> Bytes {
        amounts.fold(Bytes::ZERO, Add::add)
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
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
