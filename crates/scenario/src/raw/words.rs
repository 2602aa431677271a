//! The words that stand for choices.

use crate::read::{At, Context, Read, Value, word, words};
use lasthop_radio::{AccessClass, wifi};
use lasthop_report::Key;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

words! {
    /// Where a scenario runs.
    World {
        /// The lab as root, else the simulator.
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
    /// Which rates of 802.11g the stations of a BSS have. In either set the slot is short, and nobody is protected: there is no
    /// 802.11b station.
    RateSet {
        /// ERP-OFDM only: 6 to 54 Mbit/s. Group frames and beacons go out at 6 Mbit/s.
        Ofdm = "ofdm",
        /// All rates of an ERP (IEEE 802.11-2020, 18.1.2): DSSS and CCK with the long preamble (1, 2, 5.5 and 11 Mbit/s) beside
        /// ERP-OFDM. Group frames and beacons go out at 1 Mbit/s; the space after a damaged frame (EIFS) counts an Ack at
        /// 1 Mbit/s. Most access points have them as they
        /// ship, and so has ns-3.
        Erp = "erp",
    }
}

words! {
    /// Where the routes of a mesh's nodes come from.
    MeshRouting {
        /// They are the shortest by hops from the beginning on.
        Static = "static",
        /// The nodes find them by OLSR (RFC 3626, with its times). Its packets cross the hop as group frames: in the
        /// simulator only. There is no way to anybody in the first seconds.
        Olsr = "olsr",
    }
}

words! {
    /// A queue discipline.
    QueueKind {
        /// One queue for all stations, drop-tail: the classic access point. A frame takes up packets for the head packet's receiver from
        /// anywhere in the queue.
        Fifo = "fifo",
        /// One drop-tail queue a station, served in turn.
        RoundRobin = "round-robin",
        /// FQ-CoDel for each station, airtime fairness between stations and airtime queue limits, as Linux mac80211 has
        /// them since 6.16: the modern access point.
        FqCodelAirtime = "fq-codel-airtime",
        /// One FQ-CoDel queueing discipline for all stations, above a drop-tail queue in the driver: access points before
        /// mac80211 had queues of its own, such as those of OpenWrt 15.05 with ath9k.
        FqCodel = "fq-codel",
        /// `[hop.trace]`: one queue that takes everything.
        Infinite = "infinite",
        /// `[hop.trace]`: one queue with CoDel (RFC 8289).
        Codel = "codel",
        /// `[hop.trace]`: one queue with PIE (RFC 8033).
        Pie = "pie",
    }
}

words! {
    /// A sort of traffic.
    TrafficKind {
        /// A TCP transfer that always has more to send.
        Bulk = "bulk",
        /// Small UDP packets at a fixed interval: their delay is what a call or a game feels.
        Probe = "probe",
        /// UDP packets at a constant rate: a load that does not listen, as the paper's simulations use; or at the rate that a
        /// regulator allows.
        Udp = "udp",
        /// A short TCP transfer that the receiver asks for, each on a connection of its own, begun at a fixed interval: the time
        /// it takes is what a page load feels.
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
    /// How well two radios hear each other, from the beginning of the run to its end: no distance and no `walk` changes it.
    Reach(wifi::Reach) {
        /// Frames are decoded if nothing else is heard meanwhile.
        "decodes" => wifi::Reach::Decodes,
        /// The medium is sensed busy, but nothing is decoded.
        "senses" => wifi::Reach::Senses,
        /// Too weak to be sensed, strong enough to destroy what is received meanwhile: hidden.
        "interferes" => wifi::Reach::Interferes,
        /// Not at all.
        "none" => wifi::Reach::None,
    }
}

words! {
    /// What chooses the rate of each frame.
    RateControl {
        /// Nobody: the MCS or rate that the station is given.
        Fixed = "fixed",
        /// What carries most at the signal-to-noise ratio of the moment, as if the sender knew it.
        Ideal = "ideal",
        /// A sampler that learns from acknowledgements, as Linux's minstrel_ht does.
        Minstrel = "minstrel",
        /// Auto rate fallback (WaveLAN-II): a rate up after ten acknowledged frames, one down after two failures. 802.11a
        /// and g.
        Arf = "arf",
        /// Adaptive ARF: after a failed step up, the next comes later. 802.11a and g.
        Aarf = "aarf",
    }
}

words! {
    /// Which stations are given the resource blocks of a cell.
    CellScheduler {
        /// First the one that can have most, measured by what it had lately: stations with equal channels have whole subframes in turn.
        ProportionalFair = "proportional-fair",
        /// All for which something waits, equal parts of each subframe as far as they need them.
        RoundRobin = "round-robin",
    }
}

words! {
    /// Traffic to terminals of a cell that are no stations.
    CellLoad {
        /// One terminal that is sent bursts of data.
        Data = "data",
        /// Terminals that are there for one block of signalling each, in four PRB pairs: most of those that a control channel shows.
        Control = "control",
    }
}

words! {
    /// How the lengths of bursts are distributed.
    BurstSizes {
        /// Exponentially about their mean.
        Exponential = "exponential",
        /// All alike.
        Fixed = "fixed",
    }
}

words! {
    /// Tables of channel qualities and schemes (3GPP TS 36.213).
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
        /// No direct path: the gain is exponentially distributed.
        Rayleigh = "rayleigh",
        /// A direct path, `k` times as strong as all others together.
        Rician = "rician",
    }
}

foreign_words! {
    /// An EDCA access category (IEEE 802.11-2020, 10.2.3.2), contending with the parameters that the standard gives access points and
    /// stations by default. 802.11a and g have only one.
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
