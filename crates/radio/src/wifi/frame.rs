//! Lengths of MAC frames.
//! Source:     IEEE 802.11-2020: 9.2.4 and 9.3.2.1 (data), 9.3.2.2 (A-MSDU), 9.3.1.7 (BlockAckReq), 9.7 (A-MPDU);
//!             IEEE 802 LLC/SNAP.
//! Deviations: no HT control field, no encryption (CCMP would add 16 octets).

use super::phy::Standard;
use lasthop_units::Bytes;

/// BlockAckReq: frame control, duration, RA, TA, BAR control, starting sequence, FCS.
pub(super) const BLOCK_ACK_REQ: Bytes = Bytes::new(24);
/// MPDU delimiter.
const DELIMITER: u32 = 4;
/// Frame control, duration, three addresses, sequence control, FCS.
const HEADER: u32 = 28;
const QOS_CONTROL: u32 = 2;
const LLC_SNAP: u32 = 8;
/// Destination, source and length of an A-MSDU subframe.
const SUBFRAME_HEADER: u32 = 14;

/// A group frame: never QoS, never aggregated.
pub(super) fn group(len: u32) -> u32 {
    HEADER + LLC_SNAP + len
}

/// How a PSDU is built.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Framing {
    /// What a data MPDU adds to its packet.
    overhead: u32,
    /// What a lone MPDU adds: VHT and HE send it as an S-MPDU, with a delimiter.
    single: u32,
}

impl Framing {
    pub fn new(standard: Standard) -> Framing {
        let qos = if standard.is_qos() { QOS_CONTROL } else { 0 };
        let single = if matches!(standard, Standard::Dot11ac | Standard::Dot11ax(_)) { DELIMITER } else { 0 };
        Framing { overhead: HEADER + qos + LLC_SNAP, single }
    }

    /// A data MPDU that carries a packet of `len`.
    pub fn mpdu(&self, len: u32) -> u32 {
        self.overhead + len
    }

    /// Header and FCS of an MPDU.
    pub fn header(&self) -> u32 {
        self.overhead - LLC_SNAP
    }

    /// An MPDU of `mpdu` octets that holds `packets`, with one more packet of `len`: an A-MSDU, with all subframes but
    /// the last padded to four octets.
    pub fn join(&self, mpdu: u32, packets: u16, len: u32) -> u32 {
        let body = mpdu - self.header();
        let subframes = if packets == 1 { SUBFRAME_HEADER + body } else { body };
        self.header() + subframes.next_multiple_of(4) + SUBFRAME_HEADER + LLC_SNAP + len
    }

    /// A PSDU of one MPDU.
    pub fn single(&self, mpdu: u32) -> u32 {
        self.single + mpdu
    }

    /// An A-MPDU of `psdu` octets with one more MPDU: the last subframe so far is padded to four octets.
    pub fn append(&self, psdu: u32, mpdu: u32) -> u32 {
        psdu.next_multiple_of(4) + DELIMITER + mpdu
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subframes_of_1500_octet_packets_are_1544_octets_apart() {
        let framing = Framing::new(Standard::Dot11ac);
        let mpdu = framing.mpdu(1500);
        assert_eq!((mpdu, framing.single(mpdu)), (1538, 1542));
        let two = framing.append(framing.append(0, mpdu), mpdu);
        assert_eq!(two, 1544 + 1542);
        assert_eq!(Framing::new(Standard::Dot11g).mpdu(1500), 1536);
    }

    #[test]
    fn an_a_msdu_of_two_packets_of_1500_octets_has_3046_octets() {
        // 14 + 8 + 1500 = 1522, two of padding, and 1522 again.
        let framing = Framing::new(Standard::Dot11ac);
        let two = framing.join(framing.mpdu(1_500), 1, 1_500);
        assert_eq!((framing.header(), two), (30, 30 + 3_046));
        assert_eq!(framing.join(two, 2, 40), 30 + 3_048 + 62);
    }
}
