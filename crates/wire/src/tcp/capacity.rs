//! The option in which a receiver tells of its cell.
//! Source:     RFC 6994 (kind 253 and an experiment identifier). The experiment is Lasthop's own: its identifier is not
//!             registered, and nothing but Lasthop reads it.
//! Equations:  rate = c kbit/s for c < 256;   else 2^(c / 256 - 1) (256 + c mod 256) kbit/s, c / 256 in whole numbers
//! Symbols:    c, a code of twelve bits -> [`LogRate`]
//! Deviations: none.
//! Validity:   1 kbit/s to 8.37 Gbit/s; the nearest code is within 1/512 of a rate from 256 kbit/s on, and within 500
//!             bit/s below. A kernel can read it without floating point.     Checked by: tests::*, tests/integration/props.rs
//!
//! ```text
//!   octet 0     1     2       3       4                  6
//!       +-----+-----+-----+-------+----------+---------+----------+----------+
//!       | 253 |  8  | 0x5042      | C_t (12) | flags 4 | C_f (12) | number 4 |
//!       +-----+-----+-----+-------+----------+---------+----------+----------+
//!   flags: 1 another place is narrower than the cell, 2 begin anew, 4 coarse, 8 zero
//! ```
//! A rate of zero stands for one that is not known yet: a SYN with it says that its sender will tell, or wants to be told.

use lasthop_signals::CellCapacity;
use lasthop_units::Rate;

/// Length of the option with kind and length, a whole number of words.
pub const CAPACITY_LEN: usize = 8;
/// The experiment's identifier. Not registered.
pub(super) const EXPERIMENT: [u8; 2] = 0x5042_u16.to_be_bytes();

/// What one unit of a code stands for, in bits a second.
const UNIT: u64 = 1000;
/// Codes of an octave.
const STEPS: u64 = 256;
const ELSEWHERE: u16 = 1;
const RESTART: u16 = 2;
const COARSE: u16 = 4;

/// A rate in twelve bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct LogRate(u16);

impl LogRate {
    /// The largest code.
    pub const MOST: LogRate = LogRate(0xfff);

    /// The nearest code: zero for a rate of zero only, the largest for all rates that are beyond it.
    pub fn of(rate: Rate) -> LogRate {
        let bps = rate.as_bps();
        let units = (bps / UNIT + u64::from(bps % UNIT >= UNIT / 2)).max(u64::from(bps > 0));
        // Rounding in the octave: halves of a step go up.
        let octave = (u64::BITS - units.leading_zeros()).saturating_sub(STEPS.ilog2() + 1);
        let step = UNIT << octave.min(40);
        let mantissa = if octave == 0 { units } else { bps / step + u64::from(bps % step >= step / 2) };
        // A mantissa that was rounded up to the next octave carries into it.
        let code = if octave == 0 { mantissa } else { STEPS * u64::from(octave) + mantissa };
        LogRate(u16::try_from(code).unwrap_or(u16::MAX).min(Self::MOST.0))
    }

    /// The rate that the code stands for; zero if none is known.
    pub fn rate(self) -> Rate {
        let (octave, rest) = (u64::from(self.0) / STEPS, u64::from(self.0) % STEPS);
        let units = if octave == 0 { rest } else { (STEPS + rest) << (octave - 1) };
        Rate::from_bps(units * UNIT)
    }
}

/// The option.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capacity {
    /// What the transport can have now.
    pub available: LogRate,
    /// Its fair share.
    pub fair: LogRate,
    /// The narrowest place of the path is not the cell.
    pub elsewhere: bool,
    /// The sender is to begin anew.
    pub restart: bool,
    /// The estimate is coarse.
    pub coarse: bool,
    /// Counts the segments that carry the option, modulo 16.
    pub number: u8,
}

impl Capacity {
    /// What is told, in the segment of that number.
    pub fn of(told: &CellCapacity, number: u8) -> Capacity {
        let CellCapacity { available, fair, elsewhere, restart, coarse } = *told;
        let (available, fair) = (LogRate::of(available), LogRate::of(fair));
        Capacity { available, fair, elsewhere, restart, coarse, number: number % 16 }
    }

    /// What it tells.
    pub fn told(&self) -> CellCapacity {
        let Capacity { available, fair, elsewhere, restart, coarse, .. } = *self;
        CellCapacity { available: available.rate(), fair: fair.rate(), elsewhere, restart, coarse }
    }

    /// From the four octets behind the experiment's identifier. All of them mean something.
    pub fn parse([a, b, c, d]: [u8; 4]) -> Capacity {
        let (first, second) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        Capacity {
            available: LogRate(first >> 4),
            fair: LogRate(second >> 4),
            elsewhere: first & ELSEWHERE != 0,
            restart: first & RESTART != 0,
            coarse: first & COARSE != 0,
            number: (second & 0xf) as u8,
        }
    }

    /// Those octets.
    pub fn to_bytes(self) -> [u8; 4] {
        let flag = |set: bool, bit: u16| if set { bit } else { 0 };
        let flags = flag(self.elsewhere, ELSEWHERE) | flag(self.restart, RESTART) | flag(self.coarse, COARSE);
        let [a, b] = (self.available.0 << 4 | flags).to_be_bytes();
        let [c, d] = (self.fair.0 << 4 | u16::from(self.number & 0xf)).to_be_bytes();
        [a, b, c, d]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn code(bps: u64) -> u16 {
        LogRate::of(Rate::from_bps(bps)).0
    }

    #[test]
    fn codes_by_hand() {
        assert_eq!([code(0), code(1), code(1499), code(1500), code(255_400)], [0, 1, 1, 2, 255]);
        // The first octave goes by 1 kbit/s, the second by 2.
        assert_eq!([code(256_000), code(511_499), code(512_000), code(513_000)], [256, 511, 512, 513]);
        // 75.376 Mbit/s: 2^8 * 294.4 kbit/s.
        assert_eq!(code(75_376_000), 9 * 256 + (294 - 256));
        assert_eq!(LogRate(9 * 256 + 38).rate(), Rate::from_bps(294 * 256_000));
        assert_eq!((code(u64::MAX), LogRate::MOST.rate()), (4095, Rate::from_bps(8_372_224_000)));
    }

    #[test]
    fn every_code_stands_for_a_rate_of_its_own() {
        for code in 0..=LogRate::MOST.0 {
            assert_eq!(LogRate::of(LogRate(code).rate()), LogRate(code));
            assert!(code == 0 || LogRate(code).rate() > LogRate(code - 1).rate());
        }
    }

    proptest! {
        #[test]
        fn the_nearest_code_is_near(bps in prop_oneof![1u64..2_000_000, 1u64..8_372_224_000]) {
            let got = LogRate::of(Rate::from_bps(bps)).rate().as_bps();
            let most = if bps < 1000 { 1000 } else { (bps / 512 + 1).max(500) };
            prop_assert!(got.abs_diff(bps) <= most, "{} for {}", got, bps);
        }

        #[test]
        fn an_option_is_read_as_it_was_written(bytes: [u8; 4]) {
            let read = Capacity::parse(bytes);
            // The reserved flag is not kept.
            let [a, b, c, d] = bytes;
            prop_assert_eq!(read.to_bytes(), [a, b & !8, c, d]);
            prop_assert_eq!(Capacity::of(&read.told(), read.number), read);
        }
    }
}
