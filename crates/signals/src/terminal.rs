//! What a terminal knows of its own connections, and what terminals tell each other.

use crate::{FlowId, MacAddress};
use lasthop_units::{Bytes, Span};

/// A closed interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds<T> {
    /// The least allowed.
    pub lower: T,
    /// The most allowed; not below `lower`.
    pub upper: T,
}

/// A TCP connection through which a terminal sends, as its kernel tells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketReport {
    /// Which.
    pub flow: FlowId,
    /// Smoothed round-trip time; `None` before the first sample.
    pub rtt: Option<Span>,
    /// The smallest of the connection.
    pub min_rtt: Option<Span>,
    /// Payload of a full segment.
    pub mss: Bytes,
}

/// What a terminal that sends tells its neighbours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// The BSS that it belongs to.
    pub bssid: MacAddress,
    /// Its number, drawn at random when it started.
    pub terminal: u64,
    /// Counts its notices.
    pub sequence: u32,
    /// Connections through which it sends.
    pub flows: u16,
}
