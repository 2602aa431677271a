//! What files say of a Wi-Fi hop, its stations and its neighbours.

use crate::quantity::{Decibels, Hertz, Metres, Packets, Watts};
use crate::queue::Queue;
use crate::read::{At, Context, Quantity, Read, Trace, Value};
use crate::read::{foreign_words, inline_schema, number, step, table, word, words};
use crate::traffic::table::Class;
use lasthop_radio::wifi;
use lasthop_units::{Bytes, Rate, Span};
use schemars::json_schema;

table! {
    /// An 802.11 BSS. All nodes hear each other, unless `hidden-from` or `mesh` says otherwise.
    WifiHop {
        /// Amendment whose PHY and MAC the BSS uses.
        required standard: Standard,
        /// 802.11g: rates of all nodes. Default: `"ofdm"`.
        optional rate_set: RateSet,
        /// Primary channel: decides band and SIFS. Other channels are not heard. Default: 1 for
        /// 802.11g, otherwise 36.
        optional channel: u64,
        /// 20 MHz (a, g), 20 or 40 MHz (n, ax at 2.4 GHz), 20 to 160 MHz (ac, ax).
        default("\"20 MHz\"") width: Quantity<Hertz>,
        /// 800 ns; n and ac also 400 ns; ax also 1.6 us and 3.2 us.
        default("\"800 ns\"") guard_interval: Quantity<Span>,
        /// A multiple of 1024 us.
        default("\"102.4 ms\"") beacon_interval: Quantity<Span>,
        /// Failed attempts before a frame is given up (dot11ShortRetryLimit).
        default("7") retry_limit: u64,
        /// Simulator: from a frame's last bit to the network stack; about 20 us on Linux. At `"0
        /// s"`, as in ns-3, an answer needs no backoff.
        default("\"0 s\"") host_delay: Quantity<Span>,
        /// Most MPDUs in an A-MPDU, up to 64 (n, ac) or 256 (ax); a and g send one. Default: 64.
        optional max_ampdu: u64,
        /// n, ac, ax: longest A-MSDU, 3839 B, with ac and ax also 7935 B or 11454 B. Its packets
        /// are lost together. Default: one packet an MPDU.
        optional max_amsdu: Quantity<Bytes>,
        /// With `max-amsdu`: most packets in one. Default: no limit but length.
        optional amsdu_packets: u64,
        /// Data PSDUs longer than this are sent with RTS/CTS. Default: none.
        optional rts_threshold: Quantity<Bytes>,
        /// For `distance` and `walk`: transmit power, antennas included.
        default("\"100 mW\"") tx_power: Quantity<Watts>,
        /// For `distance` and `walk`: 2 in free space, 3 to 4 through walls.
        default("3.0") path_loss_exponent: f64,
        /// For `distance` and `walk`: noise figure.
        default("\"7 dB\"") noise_figure: Quantity<Decibels>,
        /// The access point's queue towards the stations.
        required queue: Queue,
        /// Packets at each station: short for a `fifo` `station-queue`.
        default("\"1000 packets\"") uplink_queue: Quantity<Packets>,
        /// In place of `uplink-queue`: queue of stations without a `queue` of their own.
        optional station_queue: Queue,
        /// Access points do not repeat their stations' group frames (broadcast, multicast).
        default("false") client_isolation: bool,
        /// Makes a mesh of the hop. The access point is the gateway and sends as the first station
        /// does.
        optional mesh: Mesh,
        /// Differences on single links.
        default("[]") link: Vec<WifiLink>,
        /// Overlapping frames may survive: a receiver takes up one 4 dB above all else and decodes
        /// it by SINR. Powers follow from SNRs, in a mesh from positions; frames without one are
        /// lost and destroy others.
        default("false") capture: bool,
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

table! {
    /// Ranges within a mesh.
    Mesh {
        /// Distance within which nodes decode each other's frames.
        required range: Quantity<Metres>,
        /// Distance within which nodes sense each other's frames, and their frames collide.
        /// Default: `range`.
        optional carrier_sense_range: Quantity<Metres>,
        /// Distance within which frames destroy each other unsensed. Default:
        /// `carrier-sense-range`.
        optional interference_range: Quantity<Metres>,
        /// Coordinates of the access point.
        default("[\"0 m\", \"0 m\"]") position: Vec<Quantity<Metres>>,
        /// With `hop.wifi.capture`: fading of every link, independent in each direction.
        optional fading: Fading,
        /// Where routes come from.
        default("\"static\"") routing: MeshRouting,
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

table! {
    /// One direction between two Wi-Fi nodes. Other keys are the station's; between mesh nodes,
    /// the transmitter's.
    WifiLink {
        /// Transmitter: a station, an access point, or `"ap"`.
        required from: String,
        /// Receiver.
        required to: String,
        /// It also holds from `to` to `from`.
        default("false") both: bool,
        /// n, ac, ax: spatial streams. Default: 1.
        optional nss: u64,
        /// n, ac, ax: MCS of data frames.
        optional mcs: u64,
        /// a, g: data rate of data frames.
        optional rate: Quantity<Rate>,
        /// Probability that an MPDU is lost to noise, 0 to 1.
        optional mpdu_error_rate: f64,
        /// Mean SNR, from which losses follow; under `capture` also the disturbance between nodes
        /// that exchange no frames.
        optional snr: Quantity<Decibels>,
        /// In place of `snr`, over time; CSV columns `at_s,snr_db`.
        optional snr_trace: Trace<SnrStep>,
    }
}

table! {
    /// Keys of a station that only mean something on Wi-Fi.
    WifiStation {
        /// Its `[[access-point]]`. Default: the hop's own.
        optional access_point: String,
        /// n, ac, ax: spatial streams. Default: 1.
        optional nss: u64,
        /// MCS of frames to it, for each stream: 0 to 7 (n), 0 to 9 (ac), 0 to 11 (ax).
        optional mcs: u64,
        /// In place of `mcs`, over time; CSV columns `at_s,mcs`.
        optional mcs_trace: Trace<McsStep>,
        /// a, g: data rate of frames to it.
        optional rate: Quantity<Rate>,
        /// Wi-Fi: probability that an MPDU is lost to noise, 0 to 1; collisions come on top.
        default("0") mpdu_error_rate: f64,
        /// Wi-Fi: replaces `mcs`, `mcs-trace` or `rate`. `ideal` and `minstrel` use all MCS of up
        /// to `nss` streams, `arf` and `aarf` the rates of a and g.
        default("\"fixed\"") rate_control: RateControl,
        /// Wi-Fi: mean SNR, both ways; MPDUs are lost by it (NIST error model). Without it,
        /// `snr-trace`, `distance` and `walk`, only by `mpdu-error-rate`.
        optional snr: Quantity<Decibels>,
        /// In place of `snr`, over time; CSV columns `at_s,snr_db`.
        optional snr_trace: Trace<SnrStep>,
        /// In place of `snr`: distance from the access point (log-distance path loss).
        optional distance: Quantity<Metres>,
        /// In place of `distance`, over time, at constant speed between points; CSV columns
        /// `at_s,distance_m`. Changes SNR, not who hears whom.
        optional walk: Trace<WalkPoint>,
        /// Mesh: its two coordinates.
        optional position: Vec<Quantity<Metres>>,
        /// Mesh with `capture`, in place of `position`: straight walk at constant speed between
        /// points. Changes SNR; ranges are those of the nearest approach.
        optional path: Vec<PathPoint>,
        /// Block fading about the mean SNR.
        optional fading: Fading,
        /// Stations, neighbours and access points (`"ap"`: the hop's) that neither hear it nor are
        /// heard by it.
        default("[]") hidden_from: Vec<String>,
        /// Uplink queue, in place of `station-queue` or `uplink-queue`.
        optional queue: Queue,
        /// Wi-Fi lab: interface `mon0` shows every data frame its radio decodes, damaged ones too,
        /// with radiotap headers.
        default("false") monitor: bool,
        /// Wi-Fi simulator: a TCP connection keeps only 8 to 20 ms of packets in the station, as
        /// in Linux.
        default("false") tcp_small_queues: bool,
    }
}

step! {
    /// Mean SNR from `at` on.
    SnrStep {
        /// The mean SNR from then on.
        snr: Quantity<Decibels>,
    } columns "at_s,snr_db", such as "2.5,18.5", by |text| number(text, "dB")
}

step! {
    /// Distance from the access point at `at`.
    WalkPoint {
        /// Distance from the access point then.
        distance: Quantity<Metres>,
    } columns "at_s,distance_m", such as "2.5,8", by |text| number(text, "m")
}

table! {
    /// Block fading: the power gain holds for the coherence time, then is drawn anew.
    Fading {
        /// Its distribution.
        default("\"rayleigh\"") kind: FadingKind,
        /// How long a gain holds: about 30 ms at walking pace and 5 GHz.
        default("\"30 ms\"") coherence: Quantity<Span>,
        /// `rician`: direct path over all others. Default: 4.
        optional k: f64,
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

step! {
    /// MCS from `at` on.
    McsStep {
        /// The MCS from then on.
        mcs: u64,
    } columns "at_s,mcs", such as "2.5,4", by |text| text.parse().map_err(|_| format!("`{text}` is not an MCS"))
}

table! {
    /// Coordinates at `at`.
    PathPoint {
        /// When, since the run began.
        required at: Quantity<Span>,
        /// Its two coordinates then.
        required position: Vec<Quantity<Metres>>,
    }
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

table! {
    /// A background BSS: a transmitter and a receiver. With an older standard it decodes control
    /// frames of the scenario's BSS, of data frames only the duration.
    Neighbour {
        /// Unique among neighbours.
        required name: String,
        /// Primary channel, that of an access point. Default: the hop's own.
        optional channel: u64,
        /// Must work in the channel's band. Default: the scenario's.
        optional standard: Standard,
        /// Channel width. Default: the scenario's; 20 MHz with own `standard`.
        optional width: Quantity<Hertz>,
        /// Guard interval. Default: the scenario's; 800 ns with own `standard`.
        optional guard_interval: Quantity<Span>,
        /// n, ac, ax: spatial streams. Default: 1.
        optional nss: u64,
        /// n, ac, ax: its MCS.
        optional mcs: u64,
        /// a, g: its data rate.
        optional rate: Quantity<Rate>,
        /// What it offers while active.
        required load: Load,
        /// Network-layer packet length.
        default("\"1500 B\"") packet: Quantity<Bytes>,
        /// Access category.
        default("\"best-effort\"") class: Class,
        /// Data PSDUs longer than this are sent with RTS/CTS. Default: none.
        optional rts_threshold: Quantity<Bytes>,
        /// How well its nodes and the access points hear each other.
        default("\"decodes\"") reach_ap: Reach,
        /// How well its nodes and the stations hear each other.
        default("\"decodes\"") reach_stations: Reach,
        /// Stations, neighbours and access points (`"ap"`: the hop's) that neither hear it nor are
        /// heard by it.
        default("[]") hidden_from: Vec<String>,
        /// When it sends. Default: always.
        optional active: Vec<Interval>,
        /// In place of `active`: it becomes active once a period.
        optional period: Quantity<Span>,
        /// With `period`: how long it is active.
        optional active_for: Quantity<Span>,
        /// With `period`: when first. Default: 0 s.
        optional first: Quantity<Span>,
    }
}

table! {
    /// A time of activity.
    Interval {
        /// Its begin, since the run began.
        required from: Quantity<Span>,
        /// Its end, since the run began.
        required until: Quantity<Span>,
    }
}

table! {
    /// A further access point behind the same wire, with its own agent or regulator. Other keys
    /// are those of `hop.wifi`.
    AccessPoint {
        /// Unique among access points.
        required name: String,
        /// Primary channel, overlapping no other in use. Nodes of different channels do not hear
        /// each other. Default: the hop's.
        optional channel: u64,
        /// How well it and the hop's access point hear each other.
        default("\"decodes\"") reach_ap: Reach,
        /// Stations, neighbours and access points (`"ap"`: the hop's) that neither hear it nor are
        /// heard by it.
        default("[]") hidden_from: Vec<String>,
    }
}

/// What a neighbour offers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    Saturated,
    Rate(Rate),
}

impl Read for Load {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
        match value.get_ref().as_str() {
            Some("saturated") => Some(Load::Saturated),
            Some(text) if text.starts_with(|c: char| c.is_alphabetic()) => {
                word(value, at, cx, [("saturated", Load::Saturated)].into_iter())
            }
            _ => Quantity::read(value, at, cx).map(|Quantity(rate)| Load::Rate(rate)),
        }
    }
}

inline_schema!(Load, generator => json_schema!({
    "title": "a data rate, or \"saturated\"",
    "anyOf": [{ "const": "saturated" }, Quantity::<Rate>::json_schema(generator)],
    "examples": ["20 Mbit/s", "saturated"],
}));
