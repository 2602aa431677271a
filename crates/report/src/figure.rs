//! The figures that a run yields: their names, units and which way is better.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// What is said of a figure beside its meaning: one entry of the table of [`Key`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Column {
    /// The name in `result.json` and in a scenario's `measures`; it ends with the unit.
    pub name: &'static str,
    /// A heading for people, without the unit.
    pub label: &'static str,
    /// The unit of the values, as `result.json` states it; `"1"` for a pure number.
    pub unit: &'static str,
    /// The unit that people read, and by what to multiply a value to get there: ratios of events become percentages.
    pub shown: (&'static str, f64),
    /// Decimals in tables; `None` for three significant digits.
    pub decimals: Option<usize>,
    /// Which way is better.
    pub better: Better,
    /// Without what traffic nothing yields it.
    pub needs: Needs,
    /// Where pages list it.
    pub group: Group,
    /// A table shows it unless asked for others.
    pub usual: bool,
}

/// Which of two values of a figure a user would rather have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Better {
    /// The larger.
    Higher,
    /// The smaller.
    Lower,
}

/// Traffic that a figure is taken of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// Any.
    Anything,
    /// Flows that always have more to send.
    Bulk,
    /// The same at several stations: one alone has nobody to be compared with.
    BulkAtSeveral,
    /// Flows of stations that always have more to send.
    Uploads,
    /// UDP at a rate of its own.
    Udp,
    /// Probes.
    Probes,
    /// Fetches.
    Fetches,
}

/// What a figure tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// What people and programs get.
    Served,
    /// What it costs, and what the hop does.
    Cost,
}

/// Most figures are times of which less is better.
const TIME: Column = Column {
    name: "",
    label: "",
    unit: "ms",
    shown: ("ms", 1.0),
    decimals: None,
    better: Better::Lower,
    needs: Needs::Anything,
    group: Group::Served,
    usual: false,
};
/// A share of events or of time, shown in percent.
const SHARE: Column = Column { unit: "1", shown: ("%", 100.0), ..TIME };

const fn named(name: &'static str, label: &'static str, column: Column) -> Column {
    Column { name, label, ..column }
}

const fn counted(unit: &'static str) -> Column {
    Column { unit, shown: (unit, 1.0), group: Group::Cost, ..TIME }
}

/// Declares the figures: the doc comment is what pages and schemas say of one.
macro_rules! figures {
    ($( $(#[doc = $doc:literal])* $key:ident = $column:expr; )*) => {
        /// One figure. The order is that of tables.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Key {
            $( $(#[doc = $doc])* $key, )*
        }

        impl Key {
            /// Every figure, in table order.
            pub const ALL: [Key; [$(stringify!($key)),*].len()] = [$(Key::$key),*];
            const COLUMNS: [Column; Key::ALL.len()] = [$($column),*];
            const MEANINGS: [&'static [&'static str]; Key::ALL.len()] = [$(&[$($doc),*]),*];
        }
    };
}

figures! {
    /// In-order payload of all bulk flows that reached applications.
    Throughput = Column {
        better: Better::Higher, needs: Needs::Bulk, usual: true, group: Group::Served,
        ..named("throughput_mbit_s", "Throughput", counted("Mbit/s"))
    };
    /// Its part towards stations, if there are uploads too.
    ThroughputDown = Column {
        better: Better::Higher, needs: Needs::Uploads, usual: true, group: Group::Served,
        ..named("throughput_down_mbit_s", "Throughput down", counted("Mbit/s"))
    };
    /// Its part from stations.
    ThroughputUp = Column {
        better: Better::Higher, needs: Needs::Uploads, usual: true, group: Group::Served,
        ..named("throughput_up_mbit_s", "Throughput up", counted("Mbit/s"))
    };
    /// Throughput of a bulk flow while it lasted, mean over flows.
    FlowRate = Column {
        better: Better::Higher, needs: Needs::Bulk, ..named("flow_rate_mbit_s", "Flow rate", counted("Mbit/s"))
    };
    /// Bulk senders' round-trip time, mean over samples (the lab: smoothed, every 10 ms).
    RttMean = Column { needs: Needs::Bulk, ..named("rtt_mean_ms", "RTT, mean", TIME) };
    /// Bulk senders' smoothed round-trip time every 10 ms, 95th percentile.
    RttP95 = Column { needs: Needs::Bulk, ..named("rtt_p95_ms", "RTT, p95", TIME) };
    /// Bulk senders' RTTVAR (RFC 6298, as Linux reports it), mean over samples (the lab: every 10
    /// ms).
    RttVariationMean =
        Column { needs: Needs::Bulk, ..named("rtt_variation_mean_ms", "RTT variation, mean", TIME) };
    /// One-way delay of downlink packets, access point's queue to delivery at the station, mean.
    HopDelayMean = Column { usual: true, ..named("hop_delay_mean_ms", "Hop delay, mean", TIME) };
    /// Its 95th percentile.
    HopDelayP95 = Column { usual: true, ..named("hop_delay_p95_ms", "Hop delay, p95", TIME) };
    /// Its 99th percentile.
    HopDelayP99 = Column { usual: true, ..named("hop_delay_p99_ms", "Hop delay, p99", TIME) };
    /// With uploads: one-way delay of stations' packets, station's queue to delivery at the access
    /// point, mean.
    UplinkDelayMean = Column { needs: Needs::Uploads, ..named("uplink_delay_mean_ms", "Uplink delay, mean", TIME) };
    /// Its 95th percentile.
    UplinkDelayP95 = Column {
        needs: Needs::Uploads, usual: true, ..named("uplink_delay_p95_ms", "Uplink delay, p95", TIME)
    };
    /// One-way delay of probes, 95th percentile; a lost one counts as infinitely late (RFC 7679,
    /// section 5.1).
    ProbeDelayP95 = Column {
        needs: Needs::Probes, usual: true, ..named("probe_delay_p95_ms", "Probe delay, p95", TIME)
    };
    /// Time from opening a connection to the last byte of a small object, median; fetches cut off
    /// by the run's end are censored (Kaplan and Meier, 1958).
    FetchP50 = Column { needs: Needs::Fetches, usual: true, ..named("fetch_p50_ms", "Fetch, median", TIME) };
    /// Its 95th percentile.
    FetchP95 = Column { needs: Needs::Fetches, usual: true, ..named("fetch_p95_ms", "Fetch, p95", TIME) };
    /// Interarrival jitter of probes (RFC 3550, section 6.4.1), mean.
    Jitter = Column { needs: Needs::Probes, usual: true, ..named("jitter_ms", "Jitter", TIME) };
    /// Segments sent again over all segments of the bulk senders.
    RetransmissionRatio = Column {
        needs: Needs::Bulk, usual: true, group: Group::Cost,
        ..named("retransmission_ratio", "Retransmissions", SHARE)
    };
    /// Bulk senders' entries into fast recovery per MB that reached applications (simulator only).
    Recoveries = Column { needs: Needs::Bulk, ..named("recoveries_per_mb", "Recoveries a MB", counted("1/MB")) };
    /// Jain's index over stations' bulk throughput: 1 if equal, 1/n if one of n got everything;
    /// absent with one station.
    Jain = Column {
        shown: ("", 1.0), decimals: Some(3), better: Better::Higher, needs: Needs::BulkAtSeveral, usual: true,
        ..named("jain", "Jain index", SHARE)
    };
    /// Sum of natural logarithms of bulk flows' throughputs in kbit/s, each at least 1 kbit/s.
    LogUtility = Column {
        shown: ("", 1.0), decimals: Some(2), better: Better::Higher, needs: Needs::BulkAtSeveral,
        ..named("log_utility_ln", "Log utility (ln)", SHARE)
    };
    /// The same with logarithms to base 10.
    LogUtility10 = Column {
        shown: ("", 1.0), decimals: Some(2), better: Better::Higher, needs: Needs::BulkAtSeveral,
        ..named("log_utility_log10", "Log utility (log10)", SHARE)
    };
    /// Share of bulk flows that got less than a tenth of an equal share.
    StarvedShare = Column {
        needs: Needs::BulkAtSeveral, ..named("starved_share", "Starved flows", SHARE)
    };
    /// Longest time that a bulk flow delivered no byte to its application.
    StallMax = Column { needs: Needs::Bulk, ..named("stall_max_ms", "Longest stall", TIME) };
    /// Lost probes over lost and arrived ones; those on their way at the end do not count.
    ProbeLossRatio = Column { needs: Needs::Probes, ..named("probe_loss_ratio", "Probe loss", SHARE) };
    /// Payload that arrived of UDP at a rate of its own.
    UdpThroughput = Column {
        better: Better::Higher, needs: Needs::Udp, usual: true,
        ..named("udp_throughput_mbit_s", "UDP, received", counted("Mbit/s"))
    };
    /// One-way delay of UDP packets at a rate of their own, 95th percentile; a lost one counts as
    /// infinitely late.
    UdpDelayP95 = Column { needs: Needs::Udp, usual: true, ..named("udp_delay_p95_ms", "UDP delay, p95", TIME) };
    /// Lost UDP packets over lost and arrived ones; those on their way at the end do not count.
    UdpLossRatio = Column { needs: Needs::Udp, usual: true, ..named("udp_loss_ratio", "UDP loss", SHARE) };
    /// Their interarrival jitter (RFC 3550, section 6.4.1), mean.
    UdpJitter = Column { needs: Needs::Udp, ..named("udp_jitter_ms", "UDP jitter", TIME) };
    /// From a segment's or UDP packet's first departure at its source to its last byte, in order,
    /// at the application, mean.
    EndDelayMean = named("end_delay_mean_ms", "Server to application, mean", TIME);
    /// Its 95th percentile.
    EndDelayP95 = named("end_delay_p95_ms", "Server to application, p95", TIME);
    /// Packets in a frame (A-MPDU or lone MPDU) to a station, mean over frames, then stations.
    Aggregation = Column {
        better: Better::Higher, ..named("aggregation_packets", "Aggregation, mean", counted("packets"))
    };
    /// Standard deviation of packets in a frame, mean over stations.
    AggregationSd = named("aggregation_sd_packets", "Aggregation, sd", counted("packets"));
    /// Time between frames to a station, mean over stations.
    FrameInterval = Column { group: Group::Cost, ..named("frame_interval_ms", "Frame interval", TIME) };
    /// Share of time that frames to stations were on the air, without contention and
    /// acknowledgement.
    Airtime = Column { group: Group::Cost, ..named("airtime_share", "Airtime of frames", SHARE) };
    /// Downlink packets lost on the hop, in queue or after all retries, per million.
    Losses = named("losses_per_million", "Losses on the hop", counted("per million"));
    /// Data frames a second from all stations to the access point.
    UplinkFrames = named("uplink_frames_per_s", "Uplink frames", counted("per second"));
}

impl Key {
    /// What the table says of it.
    pub const fn column(self) -> &'static Column {
        &Key::COLUMNS[self as usize]
    }

    /// What it means, in a sentence or two.
    pub fn meaning(self) -> String {
        crate::doc::prose(Key::MEANINGS[self as usize])
    }

    /// The figure with this name in `result.json`.
    pub fn by_name(name: &str) -> Option<Key> {
        Key::ALL.into_iter().find(|key| key.name() == name)
    }

    /// The figures that a table shows unless asked for others, as far as there is something to say of them
    /// ([`crate::Summary::columns`]).
    pub fn usual() -> Vec<Key> {
        Key::ALL.into_iter().filter(|key| key.column().usual).collect()
    }

    /// The name in `result.json`.
    pub const fn name(self) -> &'static str {
        self.column().name
    }

    /// A heading for people, without the unit.
    pub const fn label(self) -> &'static str {
        self.column().label
    }

    /// The unit of the values, as `result.json` states it; `"1"` for a pure number.
    pub const fn unit(self) -> &'static str {
        self.column().unit
    }

    /// Which way is better.
    pub const fn better(self) -> Better {
        self.column().better
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Key, D::Error> {
        let name = String::deserialize(from)?;
        Key::by_name(&name).ok_or_else(|| D::Error::custom(format!("there is no figure `{name}`")))
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
    fn a_figure_is_written_and_read_by_its_name() {
        for (place, key) in Key::ALL.into_iter().enumerate() {
            let written = serde_json::to_value(key).expect("a name");
            assert_eq!(written, serde_json::json!(key.name()));
            assert_eq!((serde_json::from_value::<Key>(written).ok(), key as usize), (Some(key), place));
            assert!(key.meaning().ends_with('.'), "{key}: {}", key.meaning());
        }
        let error = serde_json::from_value::<Key>(serde_json::json!("speed")).expect_err("no figure");
        assert_eq!(error.to_string(), "there is no figure `speed`");
    }

    #[test]
    fn a_value_that_is_not_finite_is_absent() {
        assert_eq!(Figure::exact(f64::NAN), Figure::Absent("came out as NaN".to_string()));
        assert_eq!(Figure::at_least(f64::INFINITY).value(), None);
        assert_eq!(Figure::exact(0.0).value(), Some(0.0));
    }
}
