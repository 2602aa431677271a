//! The figures that a run yields: their names, units and which way is better.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One figure. The serialised name carries the unit and is what `result.json` uses; the order here is the order of
/// tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Key {
    /// In-order payload of bulk flows that reached the applications, over the measuring window, all stations together.
    #[serde(rename = "throughput_mbit_s")]
    Throughput,
    /// Mean one-way delay over the hop: arrival at its queue to delivery at the station, all traffic.
    #[serde(rename = "hop_delay_mean_ms")]
    HopDelayMean,
    /// 95th percentile of the same.
    #[serde(rename = "hop_delay_p95_ms")]
    HopDelayP95,
    /// 99th percentile of the same.
    #[serde(rename = "hop_delay_p99_ms")]
    HopDelayP99,
    /// 95th percentile of the probes' one-way delay, end to end; a lost probe ranks as infinitely late (RFC 7679,
    /// section 5.1).
    #[serde(rename = "probe_delay_p95_ms")]
    ProbeDelayP95,
    /// Median time to fetch one object; one that the run's end cut off counts as longer (Kaplan and Meier, 1958).
    #[serde(rename = "fetch_p50_ms")]
    FetchP50,
    /// 95th percentile of the same.
    #[serde(rename = "fetch_p95_ms")]
    FetchP95,
    /// Interarrival jitter of the probe streams (RFC 3550, section 6.4.1), averaged over the window and the stations.
    #[serde(rename = "jitter_ms")]
    Jitter,
    /// Retransmitted segments of bulk flows over all that they sent.
    #[serde(rename = "retransmission_ratio")]
    RetransmissionRatio,
    /// Jain's fairness index over the stations' bulk throughput.
    #[serde(rename = "jain")]
    Jain,
    /// Longest time that any bulk flow went without delivering a byte.
    #[serde(rename = "stall_max_ms")]
    StallMax,
    /// Probes that never arrived, over all that were sent.
    #[serde(rename = "probe_loss_ratio")]
    ProbeLossRatio,
    /// Mean time from the departure of a segment or UDP packet at the server to the arrival of its last byte, in order, at
    /// the application: wire, proxy, hop and repairs. Bytes that were sent again count from their first departure.
    #[serde(rename = "end_delay_mean_ms")]
    EndDelayMean,
    /// 95th percentile of the same.
    #[serde(rename = "end_delay_p95_ms")]
    EndDelayP95,
    /// Mean packets in a frame (A-MPDU or lone MPDU) to a station.
    #[serde(rename = "aggregation_packets")]
    Aggregation,
    /// Standard deviation of the packets in a frame.
    #[serde(rename = "aggregation_sd_packets")]
    AggregationSd,
    /// Mean time between frames to the same station (what the aggregation regulator calls μ_N/x).
    #[serde(rename = "frame_interval_ms")]
    FrameInterval,
    /// Share of the time that frames to stations were on the air, without contention and answers.
    #[serde(rename = "airtime_share")]
    Airtime,
    /// Downlink packets that the hop lost, in its queue or on the air, a million that entered it.
    #[serde(rename = "losses_per_million")]
    Losses,
    /// Data frames from stations to the access point, a second, all stations together: acknowledgements of TCP or of the proxy's
    /// tunnel, mostly. Each costs an access to the channel.
    #[serde(rename = "uplink_frames_per_s")]
    UplinkFrames,
}

/// Which of two values of a figure a user would rather have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Better {
    /// The larger.
    Higher,
    /// The smaller.
    Lower,
}

impl Key {
    /// Every figure, in table order.
    pub const ALL: [Key; 20] = [
        Key::Throughput,
        Key::HopDelayMean,
        Key::HopDelayP95,
        Key::HopDelayP99,
        Key::ProbeDelayP95,
        Key::FetchP50,
        Key::FetchP95,
        Key::Jitter,
        Key::RetransmissionRatio,
        Key::Jain,
        Key::StallMax,
        Key::ProbeLossRatio,
        Key::EndDelayMean,
        Key::EndDelayP95,
        Key::Aggregation,
        Key::AggregationSd,
        Key::FrameInterval,
        Key::Airtime,
        Key::Losses,
        Key::UplinkFrames,
    ];

    /// The name in `result.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Key::Throughput => "throughput_mbit_s",
            Key::HopDelayMean => "hop_delay_mean_ms",
            Key::HopDelayP95 => "hop_delay_p95_ms",
            Key::HopDelayP99 => "hop_delay_p99_ms",
            Key::ProbeDelayP95 => "probe_delay_p95_ms",
            Key::FetchP50 => "fetch_p50_ms",
            Key::FetchP95 => "fetch_p95_ms",
            Key::Jitter => "jitter_ms",
            Key::RetransmissionRatio => "retransmission_ratio",
            Key::Jain => "jain",
            Key::StallMax => "stall_max_ms",
            Key::ProbeLossRatio => "probe_loss_ratio",
            Key::EndDelayMean => "end_delay_mean_ms",
            Key::EndDelayP95 => "end_delay_p95_ms",
            Key::Aggregation => "aggregation_packets",
            Key::AggregationSd => "aggregation_sd_packets",
            Key::FrameInterval => "frame_interval_ms",
            Key::Airtime => "airtime_share",
            Key::Losses => "losses_per_million",
            Key::UplinkFrames => "uplink_frames_per_s",
        }
    }

    /// A heading for people, without the unit.
    pub const fn label(self) -> &'static str {
        match self {
            Key::Throughput => "Throughput",
            Key::HopDelayMean => "Hop delay, mean",
            Key::HopDelayP95 => "Hop delay, p95",
            Key::HopDelayP99 => "Hop delay, p99",
            Key::ProbeDelayP95 => "Probe delay, p95",
            Key::FetchP50 => "Fetch, median",
            Key::FetchP95 => "Fetch, p95",
            Key::Jitter => "Jitter",
            Key::RetransmissionRatio => "Retransmissions",
            Key::Jain => "Jain index",
            Key::StallMax => "Longest stall",
            Key::ProbeLossRatio => "Probe loss",
            Key::EndDelayMean => "Server to application, mean",
            Key::EndDelayP95 => "Server to application, p95",
            Key::Aggregation => "Aggregation, mean",
            Key::AggregationSd => "Aggregation, sd",
            Key::FrameInterval => "Frame interval",
            Key::Airtime => "Airtime of frames",
            Key::Losses => "Losses on the hop",
            Key::UplinkFrames => "Uplink frames",
        }
    }

    /// The unit of the values, as `result.json` states it; `"1"` for a pure number.
    pub const fn unit(self) -> &'static str {
        match self {
            Key::Throughput => "Mbit/s",
            Key::HopDelayMean
            | Key::HopDelayP95
            | Key::HopDelayP99
            | Key::ProbeDelayP95
            | Key::FetchP50
            | Key::FetchP95
            | Key::Jitter
            | Key::StallMax
            | Key::EndDelayMean
            | Key::EndDelayP95
            | Key::FrameInterval => "ms",
            Key::Aggregation | Key::AggregationSd => "packets",
            Key::Losses => "per million",
            Key::UplinkFrames => "per second",
            Key::RetransmissionRatio | Key::Jain | Key::ProbeLossRatio | Key::Airtime => "1",
        }
    }

    /// Which way is better.
    pub const fn better(self) -> Better {
        match self {
            Key::Throughput | Key::Jain | Key::Aggregation => Better::Higher,
            _ => Better::Lower,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The value of one figure in one run, in the unit of its [`Key`].
#[derive(Clone, PartialEq, Debug)]
pub enum Figure {
    /// Measured; always finite.
    Exact(f64),
    /// The true value is at least this: some of what was measured had not ended when the run did. Always finite.
    AtLeast(f64),
    /// Not measured, and why.
    Absent(String),
}

impl Figure {
    /// `value`, or an explanation if it is not a finite number.
    pub fn exact(value: f64) -> Figure {
        if value.is_finite() { Figure::Exact(value) } else { Figure::Absent(format!("came out as {value}")) }
    }

    /// At least `value`, or an explanation if it is not a finite number.
    pub fn at_least(value: f64) -> Figure {
        if value.is_finite() { Figure::AtLeast(value) } else { Figure::Absent(format!("came out as {value}")) }
    }

    /// Not measured because of `why`.
    pub fn absent(why: impl Into<String>) -> Figure {
        Figure::Absent(why.into())
    }

    /// `value` if there is one, else absent because of `why`.
    pub fn or_absent(value: Option<f64>, why: &str) -> Figure {
        value.map_or_else(|| Figure::absent(why), Figure::exact)
    }

    /// The number, if there is one.
    pub fn value(&self) -> Option<f64> {
        match self {
            Figure::Exact(value) | Figure::AtLeast(value) => Some(*value),
            Figure::Absent(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_serialised_name_is_the_documented_one() {
        for key in Key::ALL {
            assert_eq!(serde_json::to_value(key).expect("a name"), serde_json::json!(key.name()));
        }
        assert!(Key::ALL.is_sorted(), "table order is the order of the enum");
    }

    #[test]
    fn a_value_that_is_not_finite_is_absent() {
        assert_eq!(Figure::exact(f64::NAN), Figure::Absent("came out as NaN".to_string()));
        assert_eq!(Figure::at_least(f64::INFINITY).value(), None);
        assert_eq!(Figure::exact(0.0).value(), Some(0.0));
    }
}
