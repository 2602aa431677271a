//! What an endpoint has done so far.

use lasthop_units::{Bytes, Span};
use lasthop_wire::tcp_info::CaState;

/// Counters and gauges of one end of a connection, in the manner of Linux `TCP_INFO`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Segments that carried payload or FIN, retransmissions included.
    pub segments_sent: u64,
    /// Those among them that repeated earlier ones.
    pub segments_retransmitted: u64,
    /// Payload sent, retransmissions included.
    pub bytes_sent: Bytes,
    /// Payload that was sent again.
    pub bytes_retransmitted: Bytes,
    /// Segments without payload that were sent: acknowledgements, window updates, probes.
    pub acks_sent: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Those that were found to be spurious, and undone.
    pub undone_timeouts: u64,
    /// Times that fast recovery was entered.
    pub recoveries: u64,
    /// Where loss recovery is now. There is no reduction without loss here, so never [`CaState::Cwr`].
    pub ca_state: CaState,
    /// Tail loss probes sent.
    pub tail_probes: u64,
    /// Zero-window probes sent.
    pub window_probes: u64,
    /// Duplicate segments that arrived.
    pub duplicates_received: u64,
    /// The law's upper bound on what may be in the network now; the maximum if it sets none.
    pub cwnd: Bytes,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Payload that has reached the peer, selectively acknowledged payload included.
    pub delivered: Bytes,
    /// Payload in the network now (RFC 6675 "pipe").
    pub in_flight: Bytes,
    /// Smoothed RTT.
    pub srtt: Option<Span>,
    /// Its smoothed mean deviation.
    pub rttvar: Span,
    /// Smallest RTT of the connection.
    pub min_rtt: Option<Span>,
    /// Round trips measured.
    pub round_trips: u64,
    /// Their sum.
    pub round_trip_sum: Span,
    /// Sum of the mean deviation after each of them (Linux's `tcpi_rttvar`).
    pub deviation_sum: Span,
    /// Current retransmission timeout, backoff included.
    pub rto: Span,
    /// The receive window that the peer (or a box on the way) advertised last.
    pub peer_window: Bytes,
    /// How long the receive window alone held the sender back.
    pub rwnd_limited: Span,
}
