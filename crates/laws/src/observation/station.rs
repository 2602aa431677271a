//! Lines of a station's agent.

use lasthop_signals::StationFeedback;
use lasthop_units::Time;
use serde::{Deserialize, Serialize};

/// One slot: what the law has told of it, and delays in more detail.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Account {
    /// End of the slot.
    #[serde(rename = "t_ns")]
    pub at: Time,
    /// What was told.
    #[serde(flatten)]
    pub told: StationFeedback,
    /// Packets a frame, in the mean.
    pub mean_packets: Option<f64>,
    /// Frames that the monitor interface showed and that were not read in time, since the agent began.
    pub monitor_missed: Option<u64>,
    /// Delays of the tunnel's packets from the proxy on.
    pub hop_delay: Delays,
    /// Delays of data from its server on.
    pub data_delay: Delays,
    /// By how much the proxy's clock is taken to be ahead, in microseconds.
    pub clock_ahead_us: Option<f64>,
    /// How far that may be from the truth.
    pub clock_error_us: Option<f64>,
}

/// A distribution of delays, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Delays {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean_us: Option<f64>,
    /// Their median.
    pub p50_us: Option<f64>,
    /// Their 95th percentile.
    pub p95_us: Option<f64>,
    /// Their 99th percentile.
    pub p99_us: Option<f64>,
    /// The largest.
    pub max_us: Option<f64>,
}
