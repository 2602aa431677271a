//! Which queue an access point has.

use super::{Kind, PieParams};
use lasthop_units::{Bytes, Span};

/// The access point's queue towards the stations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HopQueue {
    /// Of a hop on which it has one for all stations.
    Stations(Kind),
    /// Of each station's own recorded link.
    Trace(LinkKind),
}

/// A queue discipline of a recorded link, and its limits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LinkKind {
    /// Takes everything. Only what is sent bounds it.
    Infinite,
    /// Refuses what comes when it is full.
    DropTail(Limit),
    /// CoDel, which drops at the head.
    Codel {
        /// Sojourn time that it tolerates as standing.
        target: Span,
        /// How long that must be exceeded before it acts.
        interval: Span,
        /// Packets that it holds.
        packets: usize,
        /// Mark what can be marked instead of dropping it.
        ecn: bool,
    },
    /// PIE, which drops at the tail.
    Pie(PieParams),
}

/// How much a queue holds; the packet in service does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// So many packets.
    Packets(usize),
    /// So many bytes, four more a packet than its network-layer length.
    Bytes(Bytes),
}
