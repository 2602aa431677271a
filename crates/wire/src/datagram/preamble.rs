//! What stands before a datagram of the tunnel ([`crate::tunnel`]) on its way over a mesh: D, where relays look for it.
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 1 | version, 1, in the upper four bits; kind, 12, in the lower |
//! | 1 | 3 | zero |
//! | 4 | 4 | D: the largest delay of a hop so far, microseconds; relays raise it |
//! | 8 | | a datagram of the tunnel, whole |
//!
//! The tunnel's keys cover what follows, and not this: relays have none of them.

use super::session::zeros;
use super::{DELAY_AT, TUNNEL, VERSION, delay, micros};
use crate::{Error, take};
use lasthop_units::Span;

/// Octets before the tunnel's own.
pub const PREAMBLE: usize = DELAY_AT + 4;

/// The octets before a datagram that leaves with D = `delay`. Times beyond 2^32 - 1 us become that.
pub fn preamble(delay: Span) -> [u8; PREAMBLE] {
    let [a, b, c, d] = micros(delay).to_be_bytes();
    [VERSION << 4 | TUNNEL, 0, 0, 0, a, b, c, d]
}

/// D as it has come, and the tunnel's datagram.
///
/// # Errors
/// If there are no eight octets, or they are not those of kind 12 and this version.
pub fn strip(bytes: &[u8]) -> Result<(Span, &[u8]), Error> {
    let [first] = take(bytes, 0).ok_or(Error::Truncated { needed: PREAMBLE, got: 0 })?;
    if first != VERSION << 4 | TUNNEL {
        return Err(Error::Unknown { what: "beginning of a tunnel's datagram on a mesh", value: u64::from(first) });
    }
    let inner = bytes.get(PREAMBLE..).ok_or(Error::Truncated { needed: PREAMBLE, got: bytes.len() })?;
    zeros(bytes, 1..DELAY_AT)?;
    Ok((delay(bytes)?, inner))
}

#[cfg(test)]
mod tests {
    use super::super::{Datagram, raise_delay};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn octets_stand_where_the_table_says() {
        assert_eq!(preamble(Span::from_micros(0x0102_0304)), [0x1c, 0, 0, 0, 1, 2, 3, 4]);
        assert_eq!(preamble(Span::MAX)[4..], [255; 4]);
    }

    #[test]
    fn a_relay_raises_d_as_in_any_other_datagram() {
        let mut bytes = [preamble(Span::from_micros(5)).as_slice(), b"sealed"].concat();
        assert!(!raise_delay(&mut bytes, Span::from_micros(5)));
        assert!(raise_delay(&mut bytes, Span::from_millis(3)));
        assert_eq!(strip(&bytes), Ok((Span::from_millis(3), b"sealed".as_slice())));
    }

    #[test]
    fn what_is_none_of_a_tunnel_is_refused() {
        let right = preamble(Span::ZERO);
        for (at, octet) in [(0, 0x1b), (0, 0x2c), (0, 3), (1, 1), (2, 1), (3, 1)] {
            let mut wrong = right;
            wrong[at] = octet;
            assert!(strip(&wrong).is_err(), "octet {at} = {octet:#x}");
        }
        assert!((0..PREAMBLE).all(|len| strip(&right[..len]).is_err()));
        assert_eq!(strip(&right), Ok((Span::ZERO, [].as_slice())), "what follows is the tunnel's to judge");
        // `send` and `recv` have no such kind.
        assert!(Datagram::decode(&right).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(us: u32, inner in proptest::collection::vec(any::<u8>(), 0..40)) {
            let bytes = [preamble(Span::from_micros(us.into())).as_slice(), &inner].concat();
            prop_assert_eq!(strip(&bytes), Ok((Span::from_micros(us.into()), inner.as_slice())));
        }

        #[test]
        fn octets_of_any_kind_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok((delay, inner)) = strip(&bytes) {
                prop_assert_eq!([preamble(delay).as_slice(), inner].concat(), bytes);
            }
        }
    }
}
