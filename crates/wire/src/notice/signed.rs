//! A notice that says when it was sent, and that its sender knows the network's key.
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 32 | the notice |
//! | 32 | 8 | when it was sent: milliseconds since 1970 by the sender's clock |
//! | 40 | 16 | the first half of HMAC-SHA-256 (RFC 2104) of all before it |
//!
//! The receiver computes the code over [`Signed::covered`] and compares it with [`Signed::tag`] before anything else is
//! believed.

use super::NOTICE_LEN;
use crate::{Error, take};
use lasthop_signals::Notice;

/// Octets of a signed notice.
pub const SIGNED_LEN: usize = COVERED + TAG_LEN;
/// Octets of its code.
pub const TAG_LEN: usize = 16;
/// Octets that the code covers.
const COVERED: usize = NOTICE_LEN + 8;

/// A signed notice that was read; nobody has compared its code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signed<'a> {
    /// What it says.
    pub notice: Notice,
    /// When it was sent, in milliseconds since 1970 by its sender's clock.
    pub sent_ms: u64,
    /// What the code covers.
    pub covered: &'a [u8],
    /// The code.
    pub tag: [u8; TAG_LEN],
}

/// The notice as octets; `sign` makes the code of those before it.
pub fn encode(notice: &Notice, sent_ms: u64, sign: impl FnOnce(&[u8]) -> [u8; TAG_LEN]) -> [u8; SIGNED_LEN] {
    let mut out = [0; SIGNED_LEN];
    out[..NOTICE_LEN].copy_from_slice(&super::encode(notice));
    out[NOTICE_LEN..COVERED].copy_from_slice(&sent_ms.to_be_bytes());
    let tag = sign(&out[..COVERED]);
    out[COVERED..].copy_from_slice(&tag);
    out
}

/// The signed notice that exactly these octets are.
///
/// # Errors
/// If they are fewer or more, or if the notice in them is none.
pub fn decode(bytes: &[u8]) -> Result<Signed<'_>, Error> {
    if bytes.len() > SIGNED_LEN {
        return Err(Error::Length { field: "length of the signed notice", value: bytes.len() });
    }
    let short = Error::Truncated { needed: SIGNED_LEN, got: bytes.len() };
    let (Some(notice), Some(covered)) = (bytes.get(..NOTICE_LEN), bytes.get(..COVERED)) else { return Err(short) };
    let tag = take(bytes, COVERED).ok_or(short)?;
    let sent_ms = take(bytes, NOTICE_LEN).map(u64::from_be_bytes).unwrap_or_default();
    Ok(Signed { notice: super::decode(notice)?, sent_ms, covered, tag })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_signals::MacAddress;
    use lasthop_units::Rate;
    use proptest::prelude::*;

    const NOTICE: Notice = Notice {
        bssid: MacAddress([2, 0, 0, 0, 0, 7]),
        terminal: 9,
        sequence: 1,
        flows: 1,
        rate: Rate::from_bps(1_000_000),
        drains: false,
    };

    #[test]
    fn octets_stand_where_the_table_says() {
        let octets = encode(&NOTICE, 0x0102_0304_0506_0708, |covered| {
            assert_eq!(covered.len(), 40);
            [0xab; TAG_LEN]
        });
        assert_eq!(octets[..32], super::super::encode(&NOTICE));
        assert_eq!(octets[32..41], [1, 2, 3, 4, 5, 6, 7, 8, 0xab]);
        let read = decode(&octets).expect("whole");
        assert_eq!((read.notice, read.sent_ms, read.tag), (NOTICE, 0x0102_0304_0506_0708, [0xab; TAG_LEN]));
        assert_eq!(read.covered, &octets[..40]);
        assert_eq!(decode(&octets[..55]), Err(Error::Truncated { needed: 56, got: 55 }));
        assert!(matches!(decode(&[&octets[..], &[0]].concat()), Err(Error::Length { value: 57, .. })));
    }

    proptest! {
        #[test]
        fn any_octets_are_refused_or_are_those_of_what_was_read(mut bytes in prop::collection::vec(any::<u8>(), 0..60), whole: bool) {
            if whole && bytes.len() >= SIGNED_LEN {
                bytes.truncate(SIGNED_LEN);
                bytes[..NOTICE_LEN].copy_from_slice(&super::super::encode(&NOTICE));
            }
            if let Ok(read) = decode(&bytes) {
                prop_assert_eq!(encode(&read.notice, read.sent_ms, |_| read.tag).to_vec(), bytes);
            }
        }
    }
}
