//! Data rates.

use crate::amount::amount;
use crate::{Bytes, Span};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Bits per second. Zero is legal and means "nothing may pass".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Rate(u64);

const NS_PER_S: u128 = 1_000_000_000;

amount!(Rate);

impl Rate {
    /// Nothing passes.
    pub const ZERO: Rate = Rate(0);
    /// Faster than any link.
    pub const MAX: Rate = Rate(u64::MAX);

    /// `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Rate {
        Rate(bps)
    }

    /// `mbit` megabits (10^6 bits) per second.
    pub const fn from_mbit(mbit: u64) -> Rate {
        Rate(mbit * 1_000_000)
    }

    /// The rate that carries `amount` in `span`, rounded down; `None` if `span` is zero.
    pub fn of(amount: Bytes, span: Span) -> Option<Rate> {
        let bit_ns = u128::from(amount.get()) * 8 * NS_PER_S;
        let bps = bit_ns.checked_div(u128::from(span.as_nanos()))?;
        Some(Rate(u64::try_from(bps).unwrap_or(u64::MAX)))
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Megabits (10^6 bits) per second.
    pub fn as_mbit_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// How long `amount` occupies a link of this rate, rounded up; `None` if the rate is zero and there is
    /// something to send, or if the answer exceeds [`Span::MAX`].
    pub fn time_for(self, amount: Bytes) -> Option<Span> {
        if amount.is_zero() {
            return Some(Span::ZERO);
        }
        if self.0 == 0 {
            return None;
        }
        // Below 2 GB the product fits 64 bits, and 64-bit division is several times faster.
        let ns = match amount.get().checked_mul(8_000_000_000) {
            Some(bit_ns) => bit_ns.div_ceil(self.0),
            None => {
                let bit_ns = u128::from(amount.get()) * 8 * NS_PER_S;
                u64::try_from(bit_ns.div_ceil(u128::from(self.0))).ok()?
            }
        };
        Some(Span::from_nanos(ns))
    }

    /// How much passes in `span`, rounded down.
    pub fn bytes_in(self, span: Span) -> Bytes {
        let bytes = u128::from(self.0) * u128::from(span.as_nanos()) / (8 * NS_PER_S);
        Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// `self` scaled by a dimensionless gain, rounded down; negative and NaN give zero.
    pub fn scale(self, gain: f64) -> Rate {
        Rate((self.0 as f64 * gain) as u64)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n @ 0..1_000 => write!(f, "{n} bit/s"),
            n @ 1_000..1_000_000 => write!(f, "{} kbit/s", n as f64 / 1e3),
            n @ 1_000_000..1_000_000_000 => write!(f, "{} Mbit/s", n as f64 / 1e6),
            n => write!(f, "{} Gbit/s", n as f64 / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_full_frame_at_100_mbit_takes_120_microseconds() {
        assert_eq!(Rate::from_mbit(100).time_for(Bytes::new(1500)), Some(Span::from_micros(120)));
    }

    #[test]
    fn a_blocked_link_never_finishes() {
        assert_eq!(Rate::ZERO.time_for(Bytes::new(1)), None);
        assert_eq!(Rate::ZERO.time_for(Bytes::ZERO), Some(Span::ZERO));
    }

    proptest! {
        #[test]
        fn time_for_is_the_least_time_in_which_the_bytes_pass(bps in 1u64..10_000_000_000, n in 1u64..10_000_000) {
            let rate = Rate::from_bps(bps);
            let time = rate.time_for(Bytes::new(n)).expect("rate is not zero");
            prop_assert!(rate.bytes_in(time) >= Bytes::new(n));
            prop_assert!(rate.bytes_in(time - Span::from_nanos(1)) < Bytes::new(n));
        }
    }
}
