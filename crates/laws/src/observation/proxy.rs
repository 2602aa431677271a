//! Lines of the edge proxy.

use super::Observation;
use crate::Why;
use lasthop_signals::{Node, StationFeedback};
use lasthop_units::{Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// One slot that a station has told of: what the law saw of it and decided, and what the proxy did meanwhile.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Slot {
    /// When the account was taken in.
    #[serde(rename = "t_ns")]
    pub at: Time,
    /// The station's number of the slot.
    pub slot: u32,
    /// Which station.
    pub station: Node,
    /// The law's name, or `fixed`.
    pub law: String,
    /// What the law knows of the station.
    #[serde(flatten)]
    pub seen: Observation,
    /// The rate decided, in packets of 1500 octets a second (x).
    pub x_pps: f64,
    /// The same rate; whole IP packets count.
    #[serde(rename = "rate_bps")]
    pub rate: Rate,
    /// The law's reason.
    pub why: Why,
    /// The station's account of the slot.
    pub station_report: StationFeedback,
    /// Accounts that were refused since the session began.
    pub refused_reports: u64,
    /// Why the last of them was.
    pub refused_why: Option<String>,
    /// What was sent.
    #[serde(flatten)]
    pub carried: Carried,
}

/// What a session has carried since the line before, and its path.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Carried {
    /// Packets of the tunnel, sent since the session began, repetitions included.
    pub sent_packets: u64,
    /// Their length as IP packets, in octets.
    pub sent_bytes: u64,
    /// At the last look data waited for its turn.
    pub waiting: bool,
    /// The most that was found waiting in the proxy since the line before, in octets.
    pub backlog_bytes: u64,
    /// The bound on that, as it was at that moment, in octets.
    pub bound_bytes: u64,
    /// Share of the looks since the line before that found more than the bound.
    pub over_bound: f64,
    /// By how much packets left before or after they were due, since the line before: median, in microseconds.
    pub pacing_error_us_p50: Option<f64>,
    /// 99th percentile.
    pub pacing_error_us_p99: Option<f64>,
    /// Octets of connections that were sent and not acknowledged.
    pub unacknowledged_bytes: u64,
    /// Length of full IP packets to the station.
    pub packet_bytes: usize,
    /// Packets that the kernel did not take since the session began.
    pub unsent_packets: u64,
    /// Least round trip of the tunnel in the session.
    #[serde(rename = "min_rtt_ns")]
    pub min_rtt: Option<Span>,
    /// Smoothed round trip.
    #[serde(rename = "srtt_ns")]
    pub srtt: Option<Span>,
    /// Packets found lost since the session began.
    pub lost_packets: u64,
    /// Connections that are open through the tunnel.
    pub streams: usize,
}
