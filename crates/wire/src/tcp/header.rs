//! The header as endpoints, middle boxes and laws see it: fields in host order, options decoded.

use super::Capacity;

/// A TCP header and the length of what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpHeader {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number of the first payload octet (of the SYN, if set).
    pub seq: u32,
    /// Next sequence number expected, if [`Flags::ACK`] is set.
    pub ack: u32,
    /// Control bits.
    pub flags: Flags,
    /// The window field as on the wire: not yet scaled.
    pub window: u16,
    /// Options.
    pub options: TcpOptions,
    /// Payload octets that follow the header.
    pub payload_len: u32,
}

impl TcpHeader {
    /// Sequence space that the segment occupies: its payload, and one each for SYN and FIN.
    pub fn sequence_len(&self) -> u32 {
        self.payload_len + u32::from(self.flags.contains(Flags::SYN)) + u32::from(self.flags.contains(Flags::FIN))
    }

    /// The sequence number after the segment.
    pub fn end_seq(&self) -> u32 {
        self.seq.wrapping_add(self.sequence_len())
    }
}

/// Control bits (RFC 9293, section 3.1; ECE and CWR: RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x04);
    /// Push.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement field is significant.
    pub const ACK: Flags = Flags(0x10);
    /// The urgent pointer is significant.
    pub const URG: Flags = Flags(0x20);
    /// ECN echo.
    pub const ECE: Flags = Flags(0x40);
    /// Congestion window reduced.
    pub const CWR: Flags = Flags(0x80);

    /// True if every bit of `other` is set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if any bit of `other` is set.
    pub const fn intersects(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }
}

impl std::ops::BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// The options that matter to endpoints and to the receive-window rewriter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TcpOptions {
    /// Maximum segment size (kind 2), SYN segments only.
    pub mss: Option<u16>,
    /// Window scale shift (kind 3, RFC 7323), SYN segments only. As on the wire: may exceed 14.
    pub window_scale: Option<u8>,
    /// SACK permitted (kind 4, RFC 2018), SYN segments only.
    pub sack_permitted: bool,
    /// Timestamps (kind 8, RFC 7323).
    pub timestamps: Option<Timestamps>,
    /// SACK blocks (kind 5, RFC 2018).
    pub sack: SackBlocks,
    /// What the receiver tells of its cell (kind 253, an experiment of RFC 6994).
    pub capacity: Option<Capacity>,
    /// True if an option is present that forbids touching the header or makes its window mean something else:
    /// TCP-MD5 (kind 19), TCP-AO (kind 29), MPTCP (kind 30).
    pub hands_off: bool,
}

/// The timestamps option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub val: u32,
    /// TSecr: the newest TSval that the sender of this segment has accepted.
    pub ecr: u32,
}

/// One SACK block: sequence numbers `left` (included) to `right` (excluded) have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub left: u32,
    /// The sequence number after its last.
    pub right: u32,
}

/// Up to four SACK blocks, all that fit into a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [SackBlock; 4],
    count: u8,
}

impl SackBlocks {
    /// None.
    pub const EMPTY: SackBlocks = SackBlocks { blocks: [SackBlock { left: 0, right: 0 }; 4], count: 0 };

    /// Adds a block; ignored when there are four already, as the option has no room for a fifth.
    pub fn push(&mut self, block: SackBlock) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.count)) {
            *slot = block;
            self.count += 1;
        }
    }

    /// The blocks, in the order in which they stand in the option.
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.count)]
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}
