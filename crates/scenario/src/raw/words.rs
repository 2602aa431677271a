//! The words that stand for choices.

use crate::read::{At, Context, Read, Value, word, words};
use lasthop_radio::{AccessClass, wifi};
use lasthop_report::Key;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

words! {
    /// Where a scenario runs.
    World {
        /// The lab as root, otherwise the simulator.
        Default = "default",
        /// The simulator: virtual time, own TCP.
        Sim = "sim",
        /// The lab: wall-clock time, the kernel's TCP, an emulated hop.
        Lab = "lab",
    }
}

words! {
    /// An amendment of IEEE 802.11.
    Standard {
        /// OFDM at 5 GHz, 6 to 54 Mbit/s.
        A = "802.11a",
        /// ERP-OFDM at 2.4 GHz, 6 to 54 Mbit/s.
        G = "802.11g",
        /// HT, with A-MPDU aggregation.
        N = "802.11n",
        /// VHT, with A-MPDU aggregation.
        Ac = "802.11ac",
        /// HE, single-user PPDUs, with A-MPDU aggregation; at 2.4 or 5 GHz.
        Ax = "802.11ax",
    }
}

words! {
    /// Rates of an 802.11g BSS. Short slot and no protection: there is no 802.11b station.
    RateSet {
        /// ERP-OFDM: 6 to 54 Mbit/s; group frames and beacons at 6 Mbit/s.
        Ofdm = "ofdm",
        /// All rates of an ERP (IEEE 802.11-2020, 18.1.2): also 1, 2, 5.5 and 11 Mbit/s, long
        /// preamble; group frames, beacons and the Ack in the EIFS at 1 Mbit/s. As most access
        /// points, and ns-3.
        Erp = "erp",
    }
}

words! {
    /// Where a mesh's routes come from.
    MeshRouting {
        /// Shortest by hops, from the beginning.
        Static = "static",
        /// OLSR (RFC 3626) over group frames, in the simulator only; no routes in the first
        /// seconds.
        Olsr = "olsr",
    }
}

words! {
    /// A queue discipline.
    QueueKind {
        /// One drop-tail queue for all stations: the classic access point. A frame takes packets
        /// for the head packet's receiver from anywhere in it.
        Fifo = "fifo",
        /// A drop-tail queue for each station, served in turn.
        RoundRobin = "round-robin",
        /// FQ-CoDel for each station, airtime fairness and airtime queue limits, as in mac80211
        /// since Linux 6.16: the modern access point.
        FqCodelAirtime = "fq-codel-airtime",
        /// One FQ-CoDel qdisc for all stations above a drop-tail driver queue, as in OpenWrt 15.05
        /// with ath9k.
        FqCodel = "fq-codel",
        /// `[hop.trace]`: an unlimited queue.
        Infinite = "infinite",
        /// `[hop.trace]`: CoDel (RFC 8289).
        Codel = "codel",
        /// `[hop.trace]`: PIE (RFC 8033).
        Pie = "pie",
    }
}

words! {
    /// A kind of traffic.
    TrafficKind {
        /// A TCP transfer that always has more to send.
        Bulk = "bulk",
        /// Small UDP packets at a fixed interval: the delay of a call or a game.
        Probe = "probe",
        /// UDP packets at a constant rate, or as a regulator allows.
        Udp = "udp",
        /// Short TCP transfers requested by the receiver at a fixed interval, each on a connection
        /// of its own: the time of a page load.
        Fetch = "fetch",
    }
}

words! {
    /// A sender program of the lab.
    Program {
        /// Lasthop's own sender over a kernel socket.
        Own = "own",
        /// `iperf3`.
        Iperf3 = "iperf3",
    }
}

/// A figure of the report, by its name there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure(pub Key);

impl Read for Measure {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
        word(value, at, cx, Key::ALL.into_iter().map(|key| (key.name(), Measure(key))))
    }
}

impl JsonSchema for Measure {
    fn schema_name() -> Cow<'static, str> {
        "Measure".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let word = |key: Key| serde_json::json!({ "const": key.name(), "description": key.meaning() });
        let words: Vec<serde_json::Value> = Key::ALL.into_iter().map(word).collect();
        json_schema!({ "description": "A figure of the report.", "oneOf": words })
    }
}

/// Declares the words for an enum of another room.
macro_rules! foreign_words {
    ($(#[doc = $doc:literal])* $name:ident($type:ty) { $( $(#[doc = $word_doc:literal])* $word:literal => $value:expr, )* }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name(pub $type);

        impl Read for $name {
            fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
                word(value, at, cx, [$(($word, $name($value))),*].into_iter())
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "description": crate::read::prose(&[$($doc),*]),
                    "oneOf": [$({ "const": $word, "description": crate::read::prose(&[$($word_doc),*]) }),*],
                })
            }
        }
    };
}

foreign_words! {
    /// How well two radios hear each other during the whole run; no `walk` changes it.
    Reach(wifi::Reach) {
        /// Frames are decoded if nothing else is heard.
        "decodes" => wifi::Reach::Decodes,
        /// The medium is sensed busy, nothing is decoded.
        "senses" => wifi::Reach::Senses,
        /// Not sensed, but destroys what is received meanwhile: hidden.
        "interferes" => wifi::Reach::Interferes,
        /// Not at all.
        "none" => wifi::Reach::None,
    }
}

words! {
    /// What chooses the rate of each frame.
    RateControl {
        /// The station's MCS or rate.
        Fixed = "fixed",
        /// The best at the SNR of the moment, as if known.
        Ideal = "ideal",
        /// Sampling by acknowledgements, as Linux's minstrel_ht.
        Minstrel = "minstrel",
        /// 802.11a and g: auto rate fallback (WaveLAN-II): up after ten acknowledged frames, down
        /// after two failures.
        Arf = "arf",
        /// 802.11a and g: adaptive ARF: after a failed step up, the next comes later.
        Aarf = "aarf",
    }
}

words! {
    /// How a cell's resource blocks are assigned.
    CellScheduler {
        /// First to the highest achievable rate over recent rate; equal channels get whole
        /// subframes in turn.
        ProportionalFair = "proportional-fair",
        /// Equal parts of each subframe to all with data, as far as needed.
        RoundRobin = "round-robin",
    }
}

words! {
    /// Traffic to terminals that are no stations.
    CellLoad {
        /// One terminal that gets bursts of data.
        Data = "data",
        /// Terminals with one signalling block each, in four PRB pairs.
        Control = "control",
    }
}

words! {
    /// Distribution of burst lengths.
    BurstSizes {
        /// Exponential.
        Exponential = "exponential",
        /// All alike.
        Fixed = "fixed",
    }
}

words! {
    /// CQI and MCS tables (3GPP TS 36.213).
    Modulation {
        /// Up to 64QAM.
        Qam64 = "64qam",
        /// Up to 256QAM.
        Qam256 = "256qam",
    }
}

words! {
    /// How a channel fades.
    FadingKind {
        /// No direct path: exponentially distributed gain.
        Rayleigh = "rayleigh",
        /// A direct path, `k` times all others.
        Rician = "rician",
    }
}

foreign_words! {
    /// An EDCA access category with the standard's default parameters (IEEE 802.11-2020,
    /// 10.2.3.2); 802.11a and g have one.
    Class(AccessClass) {
        /// AC_BK: DSCP CS1 in the lab (RFC 8325, low-priority data).
        "background" => AccessClass::Background,
        /// AC_BE: DSCP 0.
        "best-effort" => AccessClass::BestEffort,
        /// AC_VI: DSCP AF41 (multimedia conferencing).
        "video" => AccessClass::Video,
        /// AC_VO: DSCP EF (telephony).
        "voice" => AccessClass::Voice,
    }
}
