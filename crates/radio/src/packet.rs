//! What crosses a hop.

use lasthop_signals::Node;
use lasthop_units::Bytes;

/// A network-layer packet on its way over one hop.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet<P> {
    /// Network-layer length: IP header and payload, without link-layer headers.
    pub len: Bytes,
    /// The node of this hop that sends it.
    pub src: Node,
    /// The node or nodes of this hop that shall receive it.
    pub dst: Dest,
    /// Its priority on the air.
    pub class: AccessClass,
    /// Equal for packets of one flow: queues that separate flows hash this.
    pub flow_hash: u32,
    /// Explicit congestion notification field; a queue may turn it into [`Ecn::Ce`].
    pub ecn: Ecn,
    /// Carried, never looked into.
    pub payload: P,
}

/// The receiver of a packet on its hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dest {
    /// One node, with acknowledgement and retries.
    Node(Node),
    /// Everybody in reach: sent once, at a basic rate, not acknowledged.
    Group,
}

/// EDCA access category (IEEE 802.11-2020, 10.2.3.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum AccessClass {
    /// AC_BK.
    Background,
    /// AC_BE.
    #[default]
    BestEffort,
    /// AC_VI.
    Video,
    /// AC_VO.
    Voice,
}

/// The ECN field of the IP header (RFC 3168, section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// The transport does not understand ECN.
    #[default]
    NotEct,
    /// ECN-capable, ECT(0).
    Ect0,
    /// ECN-capable, ECT(1).
    Ect1,
    /// Congestion experienced.
    Ce,
}
