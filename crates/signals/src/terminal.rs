//! What a terminal knows of its own connections, and what terminals tell each other.

use crate::{FlowId, MacAddress};
use lasthop_units::{Bytes, Rate, Span};

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
    /// Its smoothed mean deviation.
    pub deviation: Span,
    /// The smallest of the connection.
    pub min_rtt: Option<Span>,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// The congestion window.
    pub cwnd: Bytes,
    /// Payload in the network now.
    pub in_flight: Bytes,
    /// Payload that has been delivered since the connection began, as far as the sender knows (Linux's `tcpi_delivered`).
    pub delivered: Bytes,
    /// Octets of it that wait in the terminal itself, headers included (Linux's `sk_wmem_alloc`); `None` if that is not known.
    pub queued: Option<Bytes>,
    /// Where it leads: connections with the same number share their path. Any number will do.
    pub destination: u64,
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
    /// What they deliver together, of those that are held back by their windows alone; zero if it tells nothing of that.
    pub rate: Rate,
    /// It empties its part of the hop now, and its neighbours should too.
    pub drains: bool,
}

/// How an upload of a terminal goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Upload {
    /// What it delivers, if it is held back by its window alone.
    pub rate: Option<Rate>,
    /// It is held back for a moment, to empty the hop.
    pub drains: bool,
}
