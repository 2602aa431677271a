//! The Internet checksum.
//! Source:     RFC 1071 (definition), RFC 1624 equation 3 (incremental update), RFC 9293 section 3.1 (pseudo-header).
//! Equations:  HC' = ~(~HC + ~m + m'), 16-bit one's-complement sums with end-around carry.
//! Symbols:    HC -> `checksum`, m -> `old`, m' -> `new`.
//! Deviations: none.     Validity: any words.
//! Checked by: tests below (RFC 1624's worked example), `tests/integration/props.rs` (update equals recomputation).

use std::net::IpAddr;

/// One's-complement sum of 16-bit words, not yet complemented. An odd last octet counts as a word's high half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u32);

impl Sum {
    /// Adds `bytes` as big-endian words. Only the last slice added may have an odd length.
    pub fn bytes(mut self, bytes: &[u8]) -> Sum {
        let (words, odd) = bytes.as_chunks::<2>();
        for word in words {
            self = self.word(u16::from_be_bytes(*word));
        }
        match odd {
            [last] => self.word(u16::from_be_bytes([*last, 0])),
            _ => self,
        }
    }

    /// Adds one word.
    pub fn word(self, word: u16) -> Sum {
        // Folding every time keeps the sum below 2^17, so that no length overflows it.
        let sum = self.0 + u32::from(word);
        Sum((sum & 0xffff) + (sum >> 16))
    }

    /// Adds an address.
    pub fn address(self, address: IpAddr) -> Sum {
        match address {
            IpAddr::V4(a) => self.bytes(&a.octets()),
            IpAddr::V6(a) => self.bytes(&a.octets()),
        }
    }

    /// The checksum: the complement of the folded sum.
    pub fn finish(self) -> u16 {
        !fold(self.0)
    }
}

/// The checksum of a TCP or UDP segment under its pseudo-header. Computed over a segment that carries its checksum it
/// gives 0 if that is right.
pub fn transport(source: IpAddr, destination: IpAddr, protocol: u8, segment: &[u8]) -> u16 {
    // The upper-layer length is 32 bits wide in IPv6 (RFC 8200 section 8.1); in IPv4 its upper word is 0.
    let len = u32::try_from(segment.len()).unwrap_or(u32::MAX);
    Sum::default()
        .address(source)
        .address(destination)
        .word((len >> 16) as u16)
        .word(len as u16)
        .word(u16::from(protocol))
        .bytes(segment)
        .finish()
}

/// The checksum after one of the words that it covers has changed from `old` to `new` (RFC 1624, equation 3).
pub const fn update(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(!checksum as u32 + !old as u32 + new as u32)
}

const fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_1624_section_4_example() {
        // HC = 0xdd2f, the word 0x5555 becomes 0x3285; equation 3 gives 0x0000 where RFC 1141's gave 0xffff.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn worked_window_change() {
        // Worked by hand: window 1000 becomes 391.
        assert_eq!(update(0x1234, 0x03e8, 0x0187), 0x1495);
    }

    #[test]
    fn a_carry_of_the_first_fold_comes_around_too() {
        // The words 0 and 0xffff become 1 and 0xffff: ~0 + ~0 + 1 = 0x1ffff, which folds to 0x10000 and then to 1.
        assert_eq!(update(0x0000, 0x0000, 0x0001), 0xfffe);
        assert_eq!(Sum::default().word(0x0001).word(0xffff).finish(), 0xfffe);
    }

    #[test]
    fn rfc_1071_section_3_example() {
        let sum = Sum::default().bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.finish(), !0xddf2);
    }

    #[test]
    fn an_odd_octet_is_padded_with_zero() {
        assert_eq!(Sum::default().bytes(&[0xab]).finish(), Sum::default().bytes(&[0xab, 0]).finish());
    }
}
