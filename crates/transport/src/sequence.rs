//! Sequence numbers without wrap-around.
//!
//! Inside the endpoint a position in the stream is a 64-bit offset that only grows: 0 is the SYN, the first payload
//! octet is 1, the FIN follows the last octet. Only the wire has 32 bits.

/// The numbering of one direction of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbering {
    isn: u32,
}

impl Numbering {
    /// The numbering that begins at the initial sequence number `isn`.
    pub(crate) const fn new(isn: u32) -> Numbering {
        Numbering { isn }
    }

    /// The number that stands for `offset` in a header.
    pub(crate) const fn wire(self, offset: u64) -> u32 {
        // The low 32 bits are exactly what arithmetic modulo 2^32 (RFC 9293, section 3.4) asks for.
        self.isn.wrapping_add(offset as u32)
    }

    /// The offset closest to `near` that `wire` can stand for; `None` if that lies before the SYN.
    pub(crate) const fn offset(self, wire: u32, near: u64) -> Option<u64> {
        let delta = wire.wrapping_sub(self.wire(near)) as i32;
        near.checked_add_signed(delta as i64)
    }
}

/// True if timestamp `a` is older than `b` on a clock of 32 bits (RFC 7323, section 5.2).
pub(crate) const fn timestamp_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_before_the_syn_have_no_offset() {
        let numbering = Numbering::new(5);
        assert_eq!(numbering.offset(4, 0), None);
        assert_eq!(numbering.offset(5, 0), Some(0));
    }

    proptest! {
        #[test]
        fn an_offset_survives_if_the_reference_is_within_2_gb(
            isn: u32, near in 0u64..1 << 40, distance in -(1i64 << 31)..1 << 31,
        ) {
            let numbering = Numbering::new(isn);
            if let Some(offset) = near.checked_add_signed(distance) {
                prop_assert_eq!(numbering.offset(numbering.wire(offset), near), Some(offset));
            }
        }

        #[test]
        fn a_timestamp_is_before_all_of_the_next_two_billion(ts: u32, ahead in 1u32..1 << 31) {
            prop_assert!(timestamp_before(ts, ts.wrapping_add(ahead)));
            prop_assert!(!timestamp_before(ts.wrapping_add(ahead), ts));
        }
    }
}
