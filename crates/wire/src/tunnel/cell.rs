//! What a terminal in a cell tells, as octets: the second kind of feedback.
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 1 | flags: 1 = another place is narrower than the cell, 2 = begin anew, 4 = coarse |
//! | 1 | 4 | C_t in kbit/s: what can be had now; 0: not known |
//! | 5 | 4 | C_f in kbit/s: the fair share |
//!
//! It says what the option of TCP says ([`crate::tcp::Capacity`]). That has a number, by which what was overtaken is known; here the packet's
//! number does it. Round trips follow from the acknowledgement that stands in the same packet, and delays of the way to the terminal from
//! the clock in every packet that comes there: neither needs an echo.

use crate::{Error, be32, take};
use lasthop_signals::CellCapacity;
use lasthop_units::Rate;

/// Octets behind the frame's kind.
pub const CELL_LEN: usize = 1 + 4 + 4;

/// What a unit of a rate is, in bit/s.
const UNIT: u64 = 1000;
const ELSEWHERE: u8 = 1;
const RESTART: u8 = 2;
const COARSE: u8 = 4;

pub(super) fn encode(out: &mut Vec<u8>, told: &CellCapacity) {
    let flag = |set: bool, bit: u8| if set { bit } else { 0 };
    out.push(flag(told.elsewhere, ELSEWHERE) | flag(told.restart, RESTART) | flag(told.coarse, COARSE));
    out.extend_from_slice(&units(told.available).to_be_bytes());
    out.extend_from_slice(&units(told.fair).to_be_bytes());
}

/// The nearest number of units: zero for a rate of zero alone, the largest for all that are beyond it.
fn units(rate: Rate) -> u32 {
    let bps = rate.as_bps();
    let nearest = bps / UNIT + u64::from(bps % UNIT >= UNIT / 2);
    u32::try_from(nearest.max(u64::from(bps > 0))).unwrap_or(u32::MAX)
}

/// What is told in exactly [`CELL_LEN`] octets.
pub(super) fn decode(bytes: &[u8]) -> Result<CellCapacity, Error> {
    let [flags] = take(bytes, 0).ok_or(Error::Truncated { needed: CELL_LEN, got: bytes.len() })?;
    if flags & !(ELSEWHERE | RESTART | COARSE) != 0 {
        return Err(Error::Unknown { what: "flags of a cell", value: flags.into() });
    }
    let rate = |at| be32(bytes, at).map(|units| Rate::from_bps(u64::from(units) * UNIT));
    Ok(CellCapacity {
        available: rate(1)?,
        fair: rate(5)?,
        elsewhere: flags & ELSEWHERE != 0,
        restart: flags & RESTART != 0,
        coarse: flags & COARSE != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_rounded_to_a_kilobit_and_never_to_nothing() {
        let read = |bps| {
            let mut out = Vec::new();
            encode(&mut out, &CellCapacity { available: Rate::from_bps(bps), ..CellCapacity::UNKNOWN });
            assert_eq!(out.len(), CELL_LEN);
            decode(&out).expect("written here").available.as_bps()
        };
        let most = u64::from(u32::MAX) * 1000;
        let given = [0, 1, 1499, 1500, 75_376_400, most + 1, u64::MAX];
        assert_eq!(given.map(read), [0, 1000, 1000, 2000, 75_376_000, most, most]);
    }

    #[test]
    fn octets_by_hand() {
        let told = CellCapacity {
            available: Rate::from_mbit(40),
            fair: Rate::from_mbit(20),
            elsewhere: true,
            restart: false,
            coarse: true,
        };
        let mut out = Vec::new();
        encode(&mut out, &told);
        // 40 000 and 20 000.
        assert_eq!(out, [5, 0, 0, 0x9c, 0x40, 0, 0, 0x4e, 0x20]);
        assert_eq!(decode(&out), Ok(told));
        out[0] = 8;
        assert_eq!(decode(&out), Err(Error::Unknown { what: "flags of a cell", value: 8 }));
        assert!(decode(&out[..8]).is_err() && decode(&[]).is_err());
    }
}
