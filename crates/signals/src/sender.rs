//! What a transport sender sees of its own connection.

use lasthop_units::{Bytes, Rate, Span, Time};

/// A segment that has just left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent {
    /// Payload of the segment.
    pub len: Bytes,
    /// Unacknowledged payload in the network, this segment included (RFC 6675 "pipe").
    pub in_flight: Bytes,
    /// True if these bytes were sent before.
    pub retransmission: bool,
    /// True if nothing was in flight before this segment: the connection restarts from idle.
    pub from_idle: bool,
}

/// An ACK, digested by the connection's scoreboard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ack {
    /// Payload reported delivered for the first time, cumulatively or by SACK.
    pub newly_delivered: Bytes,
    /// Payload by which the cumulative acknowledgement advanced.
    pub newly_acked: Bytes,
    /// Payload newly marked lost while processing this ACK.
    pub newly_lost: Bytes,
    /// RTT sample; `None` if the ACK covers only retransmitted data (Karn's rule) or nothing new.
    pub rtt: Option<Span>,
    /// Smallest RTT of the connection.
    pub min_rtt: Option<Span>,
    /// RFC 6298 smoothed RTT after this sample.
    pub srtt: Option<Span>,
    /// Payload in the network before this ACK was processed.
    pub prior_in_flight: Bytes,
    /// Payload in the network after this ACK was processed.
    pub in_flight: Bytes,
    /// Payload delivered since the connection began, this ACK included.
    pub delivered: Bytes,
    /// Delivery rate sample (draft-ietf-ccwg-bbr, appendix on delivery rate estimation); `None` if not measurable.
    pub delivery: Option<DeliverySample>,
    /// Maximum segment payload.
    pub mss: Bytes,
    /// True if cwnd, not the application or the receive window, held the sender back in the last round.
    pub cwnd_limited: bool,
    /// True while in fast recovery or after a timeout, until everything outstanding then is acknowledged.
    pub in_recovery: bool,
}

/// How fast the network delivered between two ACKs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeliverySample {
    /// Delivered payload over the longer of send and ACK interval.
    pub rate: Rate,
    /// The interval that the rate was measured over.
    pub interval: Span,
    /// `Ack::delivered` at the moment the newest acknowledged segment was sent: marks round trips.
    pub prior_delivered: Bytes,
    /// When that segment was sent.
    pub sent_at: Time,
    /// True if the application, not the network, may have set the rate.
    pub app_limited: bool,
}

/// A segment that counts as lost from now on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lost {
    /// When the copy that was lost left.
    pub sent_at: Time,
    /// Payload of the segment.
    pub len: Bytes,
}

/// A loss event: the sender enters recovery, or its timer expired.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// Payload in the network when the event was noticed, before anything was marked lost.
    pub prior_in_flight: Bytes,
    /// Payload in the network after marking.
    pub in_flight: Bytes,
    /// Payload newly marked lost.
    pub lost: Bytes,
    /// Payload delivered since the connection began.
    pub delivered: Bytes,
    /// Maximum segment payload.
    pub mss: Bytes,
}
