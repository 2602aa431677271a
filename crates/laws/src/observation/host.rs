//! Lines of a host's agent.

use crate::Why;
use lasthop_signals::FlowId;
use lasthop_units::Time;
use serde::{Deserialize, Serialize};

/// One look at the host's uploads, and what was decided of them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Look {
    /// When.
    #[serde(rename = "t_ns")]
    pub at: Time,
    /// Terminals that send, this one included, by what was heard in the last second.
    pub terminals: u32,
    /// The terminals empty the hop together now.
    pub drains: bool,
    /// Notices heard since the agent began, and datagrams that had no influence.
    pub heard: u64,
    /// Datagrams that had no influence.
    pub refused: u64,
    /// The uploads.
    pub uploads: Vec<Upload>,
}

/// A connection that the host sends through.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Upload {
    /// Its number.
    pub flow: FlowId,
    /// This end, as `address:port`.
    pub local: String,
    /// The other end.
    pub peer: String,
    /// Its smoothed round trip.
    pub rtt_us: Option<f64>,
    /// The least of the connection.
    pub min_rtt_us: Option<f64>,
    /// Its window.
    pub cwnd_packets: u32,
    /// The window at which slow start ends.
    pub ssthresh_packets: Option<u32>,
    /// Segments in the network.
    pub in_flight_packets: u32,
    /// The least window allowed.
    pub lower_packets: Option<u32>,
    /// The largest window allowed.
    pub upper_packets: Option<u32>,
    /// Why.
    pub why: Why,
}
