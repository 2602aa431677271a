//! Explicit congestion notification (RFC 3168).

use crate::checksum;

/// The ECN field: the two low bits of the traffic class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECN-capable transport, code point 1 (L4S: RFC 9331).
    Ect1,
    /// ECN-capable transport, code point 0.
    Ect0,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// From the low two bits of a traffic class octet.
    pub const fn from_bits(traffic_class: u8) -> Ecn {
        match traffic_class & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// The two bits.
    pub const fn bits(self) -> u8 {
        match self {
            Ecn::NotEct => 0,
            Ecn::Ect1 => 1,
            Ecn::Ect0 => 2,
            Ecn::Ce => 3,
        }
    }

    /// True if the sender reacts to CE, so that marking may take the place of dropping.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }
}

/// Marks an IP packet (no link-layer header) as having experienced congestion, mending IPv4's header checksum. False,
/// and the packet untouched, if its transport is not ECN-capable or these are not the bytes of an IP packet. A packet
/// that is marked already counts as marked.
pub fn mark_ce(packet: &mut [u8]) -> bool {
    match packet {
        // Version and IHL, traffic class, total length, identification, fragment, TTL and protocol, checksum.
        [first, class, _, _, _, _, _, _, _, _, sum_high, sum_low, ..] if *first >> 4 == 4 => {
            if !Ecn::from_bits(*class).is_capable() {
                return false;
            }
            let old = u16::from_be_bytes([*first, *class]);
            *class |= Ecn::Ce.bits();
            let new = u16::from_be_bytes([*first, *class]);
            let sum = checksum::update(u16::from_be_bytes([*sum_high, *sum_low]), old, new);
            [*sum_high, *sum_low] = sum.to_be_bytes();
            true
        }
        // The traffic class straddles the first two octets: ECN is bits 4 and 5 of the second.
        [first, second, ..] if *first >> 4 == 6 => {
            if !Ecn::from_bits(*second >> 4).is_capable() {
                return false;
            }
            *second |= Ecn::Ce.bits() << 4;
            true
        }
        _ => false,
    }
}
