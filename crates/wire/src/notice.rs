//! What a terminal that sends tells its neighbours in a UDP datagram, as octets.
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 4 | magic, `LHTN` |
//! | 4 | 1 | version, 1 |
//! | 5 | 1 | 1 if it drains, otherwise 0 |
//! | 6 | 2 | connections through which it sends |
//! | 8 | 6 | BSSID |
//! | 14 | 2 | 0 |
//! | 16 | 8 | the terminal's number |
//! | 24 | 4 | sequence number |
//! | 28 | 4 | what its connections deliver, in kbit/s; all ones: that or more |
//!
//! Numbers are in network order. The fields are explained at [`Notice`].

pub mod signed;

use crate::{Error, be16, be32, take};
use lasthop_signals::{MacAddress, Notice};
use lasthop_units::Rate;

/// Octets of a notice.
pub const NOTICE_LEN: usize = 32;

const MAGIC: u32 = u32::from_be_bytes(*b"LHTN");
const VERSION: u8 = 1;

/// The notice as octets.
pub fn encode(notice: &Notice) -> [u8; NOTICE_LEN] {
    let mut out = [0; NOTICE_LEN];
    out[..4].copy_from_slice(&MAGIC.to_be_bytes());
    out[4] = VERSION;
    out[5] = notice.drains.into();
    out[6..8].copy_from_slice(&notice.flows.to_be_bytes());
    out[8..14].copy_from_slice(&notice.bssid.0);
    out[16..24].copy_from_slice(&notice.terminal.to_be_bytes());
    out[24..28].copy_from_slice(&notice.sequence.to_be_bytes());
    let kbit = u32::try_from(notice.rate.as_bps() / 1000).unwrap_or(u32::MAX);
    out[28..].copy_from_slice(&kbit.to_be_bytes());
    out
}

/// The notice that exactly these octets are.
///
/// # Errors
/// If they are fewer or more, of another format or version, or if what must be zero is not.
pub fn decode(bytes: &[u8]) -> Result<Notice, Error> {
    if bytes.len() < NOTICE_LEN {
        return Err(Error::Truncated { needed: NOTICE_LEN, got: bytes.len() });
    }
    if bytes.len() > NOTICE_LEN {
        return Err(Error::Length { field: "length of the notice", value: bytes.len() });
    }
    let magic = be32(bytes, 0)?;
    if magic != MAGIC {
        return Err(Error::Unknown { what: "magic of a notice", value: magic.into() });
    }
    let [version, flags] = [bytes[4], bytes[5]];
    if version != VERSION {
        return Err(Error::Unknown { what: "version of a notice", value: version.into() });
    }
    let reserved = u64::from(flags & !1) << 16 | u64::from(be16(bytes, 14)?);
    if reserved != 0 {
        return Err(Error::Unknown { what: "reserved octets of a notice", value: reserved });
    }
    let short = Error::Truncated { needed: NOTICE_LEN, got: bytes.len() };
    Ok(Notice {
        bssid: MacAddress(take(bytes, 8).ok_or(short)?),
        terminal: take(bytes, 16).map(u64::from_be_bytes).ok_or(short)?,
        sequence: be32(bytes, 24)?,
        flows: be16(bytes, 6)?,
        rate: Rate::from_bps(u64::from(be32(bytes, 28)?) * 1000),
        drains: flags == 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOTICE: Notice = Notice {
        bssid: MacAddress([2, 0, 0, 0, 0, 7]),
        terminal: 0x0102_0304_0506_0708,
        sequence: 0x0a0b_0c0d,
        flows: 3,
        rate: Rate::from_bps(0x0102_0304 * 1000),
        drains: true,
    };

    #[test]
    fn octets_stand_where_the_table_says() {
        let octets = encode(&NOTICE);
        assert_eq!(octets[..8], *b"LHTN\x01\x01\x00\x03");
        assert_eq!(octets[8..16], [2, 0, 0, 0, 0, 7, 0, 0]);
        assert_eq!(octets[16..], [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 1, 2, 3, 4]);
        assert_eq!(decode(&octets), Ok(NOTICE));
    }

    #[test]
    fn what_is_no_notice_is_refused() {
        let octets = encode(&NOTICE);
        assert_eq!(decode(&octets[..31]), Err(Error::Truncated { needed: 32, got: 31 }));
        assert!(matches!(decode(&[&octets[..], &[0]].concat()), Err(Error::Length { value: 33, .. })));
        for at in [0, 4, 5, 14, 15] {
            let mut other = octets;
            other[at] ^= 0x40;
            assert!(matches!(decode(&other), Err(Error::Unknown { .. })), "octet {at}");
        }
    }

    proptest! {
        #[test]
        fn any_octets_are_refused_or_are_those_of_what_was_read(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(notice) = decode(&bytes) {
                prop_assert_eq!(encode(&notice).to_vec(), bytes);
            }
        }

        #[test]
        fn any_notice_survives(terminal: u64, sequence: u32, flows: u16, bssid: [u8; 6], kbit: u32, drains: bool) {
            let rate = Rate::from_bps(u64::from(kbit) * 1000);
            let notice = Notice { bssid: MacAddress(bssid), terminal, sequence, flows, rate, drains };
            prop_assert_eq!(decode(&encode(&notice)), Ok(notice));
        }
    }
}
