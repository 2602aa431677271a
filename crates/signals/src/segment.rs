//! What a middle box sees of a TCP segment that passes: as much of its header as tells what was lost behind the box.

use crate::{FlowId, Node};

/// A TCP segment that passes a middle box; segments with SYN or RST are not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Which flow.
    pub flow: FlowId,
    /// The station on its wireless side.
    pub station: Node,
    /// Which way it goes.
    pub way: Way,
    /// Sequence number of its first payload octet.
    pub seq: u32,
    /// Payload octets.
    pub len: u32,
    /// TCP segments that it was when it was sent: more than one where the kernel has merged them (GRO). 0 counts as one.
    pub count: u16,
    /// Next sequence number that its sender expects.
    pub ack: u32,
    /// Its SACK blocks, in the order of the option: a first one that repeats what has been acknowledged names a duplicate (RFC 2883).
    pub sack: SackRanges,
}

/// Direction of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the wire to the station.
    Down,
    /// From the station to the wire.
    Up,
}

/// Up to four ranges of sequence numbers, each `left` (included) to `right` (excluded): all that fit into a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SackRanges {
    ranges: [(u32, u32); 4],
    count: u8,
}

impl SackRanges {
    /// None.
    pub const EMPTY: SackRanges = SackRanges { ranges: [(0, 0); 4], count: 0 };

    /// Adds a range; ignored when there are four already.
    pub fn push(&mut self, left: u32, right: u32) {
        if let Some(slot) = self.ranges.get_mut(usize::from(self.count)) {
            *slot = (left, right);
            self.count += 1;
        }
    }

    /// The ranges, in their order.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.ranges[..usize::from(self.count).min(self.ranges.len())]
    }
}

impl FromIterator<(u32, u32)> for SackRanges {
    fn from_iter<I: IntoIterator<Item = (u32, u32)>>(ranges: I) -> SackRanges {
        let mut all = SackRanges::EMPTY;
        ranges.into_iter().for_each(|(left, right)| all.push(left, right));
        all
    }
}
