//! The tables of a scenario file as they are written. Their doc comments are the reference page and the JSON Schema.

mod laws;
mod power;
mod values;
mod words;

pub(crate) use laws::{Agent, Part, Picked, Regulator, Senders};
pub(crate) use power::Dbm;
pub(crate) use values::{Bandwidth, DeliveryFile, Load, Seeds};
pub(crate) use words::{
    BurstSizes, CellLoad, CellScheduler, Class, FadingKind, Measure, Modulation, QueueKind, RateControl, RateSet,
    Reach, TrafficKind,
};
pub use words::{MeshRouting, Program, Standard, World};

use crate::quantity::{Decibels, Hertz, Metres, Packets, Watts};
use crate::read::{Named, Quantity, Trace, table};
use lasthop_units::{Bytes, Rate, Span};

table! {
    /// Hosts and cables, a last hop, traffic, and the laws to compare.
    Scenario {
        /// One line for tables and reports.
        required title: String,
        /// What it shows, and where its parameters come from.
        default("\"\"") description: String,
        /// Where it runs. `--world` overrides it.
        default("\"default\"") world: World,
        /// Length of one run, warm-up included.
        required duration: Quantity<Span>,
        /// First part of the run, left out of every figure.
        default("\"0 s\"") warm_up: Quantity<Span>,
        /// Number of runs (seeds 1 to n), or list of seeds; at most 1000.
        default("5") seeds: Seeds,
        /// The path between server and access point.
        required wire: Wire,
        /// A link between `wire` and access point.
        optional backhaul: Backhaul,
        /// The last hop: exactly one of `hop.wired`, `hop.wifi`, `hop.cell` and `hop.trace`.
        required hop: Hop,
        /// The stations behind the hop.
        required station: Vec<Station>,
        /// Further access points of the Wi-Fi hop.
        default("[]") access_point: Vec<AccessPoint>,
        /// Other BSSs that share the Wi-Fi channel.
        default("[]") neighbour: Vec<Neighbour>,
        /// Further hosts on cables.
        default("[]") host: Vec<Host>,
        /// Cables between hosts.
        default("[]") link: Vec<Link>,
        /// Routes that override those of fewest links.
        default("[]") route: Vec<Route>,
        /// What hosts send each other.
        required traffic: Vec<Traffic>,
        /// The laws to compare, in the report's order. The command line also takes other sender
        /// laws by name.
        required laws: Named<Law>,
        /// Figures to report. Default: all that the traffic yields.
        optional measures: Vec<Measure>,
    }
}

table! {
    /// A full-duplex wired link: each direction has a drop-tail queue, a serialiser and a
    /// propagation delay.
    Wire {
        /// Data rate in each direction, at first.
        required rate: Quantity<Rate>,
        /// Propagation delay in each direction.
        required delay: Quantity<Span>,
        /// Packets that may wait at each end, beside the one being sent.
        default("\"1000 packets\"") queue: Quantity<Packets>,
        /// Its rate over time.
        default("[]") changes: Vec<RateStep>,
        /// Probability that a packet is damaged, each independently, in either direction.
        default("0.0") loss: f64,
        /// Largest delay added to a packet, drawn for each; order is kept.
        default("\"0 s\"") jitter: Quantity<Span>,
    }
}

table! {
    /// The link to the access point. In the simulator the edge proxy stands at its other end,
    /// without it at the access point.
    Backhaul {
        /// Data rate in each direction, at first.
        required rate: Quantity<Rate>,
        /// Propagation delay in each direction.
        default("\"0 s\"") delay: Quantity<Span>,
        /// Packets that may wait at each end, beside the one being sent.
        default("\"1000 packets\"") queue: Quantity<Packets>,
        /// Its rate over time.
        default("[]") changes: Vec<RateStep>,
        /// Probability that a packet is damaged, each independently, in either direction.
        default("0.0") loss: f64,
        /// Largest delay added to a packet, drawn for each; order is kept.
        default("\"0 s\"") jitter: Quantity<Span>,
    }
}

table! {
    /// Rate in each direction from `at` on.
    RateStep {
        /// When, since the run began.
        required at: Quantity<Span>,
        /// Data rate in each direction from then on.
        required rate: Quantity<Rate>,
    }
}

table! {
    /// A host on cables, with a unique name. It forwards packets.
    Host {
        /// Unique among hosts.
        required name: String,
    }
}

table! {
    /// A cable between two hosts.
    Link {
        /// The two hosts: `[[host]]`s, stations, `"server"` or `"ap"`.
        required between: Vec<String>,
        /// Data rate in each direction, at first.
        required rate: Quantity<Rate>,
        /// Propagation delay in each direction.
        default("\"0 s\"") delay: Quantity<Span>,
        /// Packets that may wait at each end, beside the one being sent.
        default("\"1000 packets\"") queue: Quantity<Packets>,
        /// Its rate over time.
        default("[]") changes: Vec<RateStep>,
        /// Probability that a packet is damaged, each independently, in either direction.
        default("0.0") loss: f64,
        /// Largest delay added to a packet, drawn for each; order is kept.
        default("\"0 s\"") jitter: Quantity<Span>,
    }
}

table! {
    /// `at` forwards packets for `to` to its neighbour `via`, in place of the path of fewest
    /// links.
    Route {
        /// The host that forwards.
        required at: String,
        /// The destination.
        required to: String,
        /// The neighbour of `at` that gets the packets.
        required via: String,
    }
}

table! {
    /// The last hop: exactly one of these.
    Hop {
        /// A cable to each station, for comparison.
        optional wired: WiredHop,
        /// An 802.11 BSS.
        optional wifi: WifiHop,
        /// An LTE cell.
        optional cell: CellHop,
        /// A link that follows a recorded trace.
        optional trace: TraceHop,
    }
}

table! {
    /// A cable to each station, all alike.
    WiredHop {
        /// Data rate in each direction, at first.
        required rate: Quantity<Rate>,
        /// Propagation delay in each direction.
        default("\"0 s\"") delay: Quantity<Span>,
        /// The access point's queue at each cable; only `fifo`.
        required queue: Queue,
        /// Packets that may wait at the station, beside the one being sent.
        default("\"1000 packets\"") uplink_queue: Quantity<Packets>,
        /// Its rate over time.
        default("[]") changes: Vec<RateStep>,
        /// Probability that a packet is damaged, each independently, in either direction.
        default("0.0") loss: f64,
        /// Largest delay added to a packet, drawn for each; order is kept.
        default("\"0 s\"") jitter: Quantity<Span>,
    }
}

table! {
    /// For each station a link that delivers when a recorded trace says so, as in mahimahi.
    TraceHop {
        /// Trace towards the station: a time in ms a line, at which up to 1504 bytes leave.
        /// Relative to the scenario, or `$LASTHOP_REFERENCE/…`.
        required downlink: DeliveryFile,
        /// Trace from the station, likewise.
        required uplink: DeliveryFile,
        /// Propagation delay in each direction.
        default("\"0 s\"") delay: Quantity<Span>,
        /// Queue towards the station: `fifo`, `infinite`, `codel` or `pie`.
        required queue: Queue,
        /// Queue at the station. Default: as `queue`.
        optional uplink_queue: Queue,
    }
}

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
    /// An LTE cell (FDD): the base station has a queue for each station and schedules carriers
    /// each millisecond.
    CellHop {
        /// Bandwidths: 1.4, 3, 5, 10, 15 or 20 MHz, or 6 to 110 PRB pairs. A station has its
        /// `primary-carrier` and gets the next ones in turn.
        required carriers: Vec<Bandwidth>,
        /// How resource blocks are shared out.
        default("\"proportional-fair\"") scheduler: CellScheduler,
        /// `proportional-fair`: time constant of the rate average. Default: 99 ms, as in ns-3.
        optional fairness_window: Quantity<Span>,
        /// Also assign a carrier's short last resource block group and, with `round-robin`, groups
        /// left from equal shares; ns-3 does neither.
        default("true") use_remainder: bool,
        /// Bytes queued for each station; drop-tail.
        default("\"750 kB\"") queue: Quantity<Bytes>,
        /// Data rate of each station's own uplink.
        default("\"50 Mbit/s\"") uplink_rate: Quantity<Rate>,
        /// Delay of each station's uplink.
        default("\"5 ms\"") uplink_delay: Quantity<Span>,
        /// Packets that may wait at each station.
        default("\"1000 packets\"") uplink_queue: Quantity<Packets>,
        /// A station gets the next carrier when assigned this share of its PRBs.
        default("0.8") activate_share: f64,
        /// Time over which that share is measured.
        default("\"100 ms\"") activate_window: Quantity<Span>,
        /// From then to the carrier's first subframe (3GPP TS 36.133, 7.7.2).
        default("\"24 ms\"") activation_delay: Quantity<Span>,
        /// A station loses its last carrier after no assignment for so long
        /// (sCellDeactivationTimer).
        default("\"320 ms\"") deactivate_after: Quantity<Span>,
        /// For `rsrp-trace`: receivers' noise figure (3GPP TR 36.942).
        default("\"9 dB\"") noise_figure: Quantity<Decibels>,
        /// For `rsrp-trace`: noise plus interference of other cells, over noise.
        default("\"3 dB\"") interference_margin: Quantity<Decibels>,
        /// Terminals served beside the stations.
        default("[]") background: Vec<CellBackground>,
    }
}

table! {
    /// Traffic to terminals that are no stations.
    CellBackground {
        /// What it is.
        required kind: CellLoad,
        /// Mean bursts, or signalling terminals, a second (Poisson).
        required per_second: f64,
        /// The carrier, counted from 1.
        default("1") carrier: u64,
        /// CQI of its terminals, 1 to 15.
        default("10") cqi: u64,
        /// `data`: length of a burst, or its mean. Default: 100 kB.
        optional size: Quantity<Bytes>,
        /// `data`: distribution of burst lengths. Default: `exponential`.
        optional sizes: BurstSizes,
        /// `data`: as of a station. Default: 0.
        optional bit_error_rate: f64,
        /// `data`: layers received at once, 1 to 4. Default: 1.
        optional layers: u64,
        /// `data`: its tables. Default: `"64qam"`.
        optional modulation: Modulation,
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

table! {
    /// A queue of an access point or station.
    Queue {
        /// The discipline.
        required kind: QueueKind,
        /// Most packets. Default: 1000 for `fifo`, `codel`, `pie` and, each station,
        /// `round-robin`; 8192 for `fq-codel-airtime`, as mac80211; 1024 for `fq-codel`, the
        /// driver's apart.
        optional limit: Quantity<Packets>,
        /// `fifo` of `[hop.trace]`, in place of `limit`: most bytes, a packet counting 4 more than
        /// its length.
        optional bytes: Quantity<Bytes>,
        /// `fq-codel-airtime`, `fq-codel`: bytes a flow may send in its turn. Default: 300 B, as
        /// mac80211.
        optional quantum: Quantity<Bytes>,
        /// `fq-codel-airtime`, `fq-codel`, `codel`: standing delay accepted (default 20 ms, 5 ms,
        /// 5 ms). `pie`: delay steered to (default 15 ms).
        optional target: Quantity<Span>,
        /// `fq-codel-airtime`, `fq-codel`, `codel`: time above `target` before CoDel drops.
        /// Default: 100 ms.
        optional interval: Quantity<Span>,
        /// `fq-codel-airtime`: airtime of a station's turn. Default: 256 us, as mac80211.
        optional airtime_quantum: Quantity<Span>,
        /// `fq-codel-airtime`, `fq-codel`, `codel`, `pie`: mark ECN-capable packets instead of
        /// dropping. Default: true; `codel` and `pie` false.
        optional ecn: bool,
        /// `fq-codel-airtime`: memory of waiting packets (1500 B take 2304 B). Default: 16 MiB
        /// (ac), 4 MiB (others), as mac80211.
        optional memory: Quantity<Bytes>,
        /// `fq-codel-airtime`: airtime queue limits bound what the hardware holds. Default: true.
        optional aql: bool,
        /// `fq-codel-airtime`: airtime in hardware below which a station may always add. Default:
        /// 5 ms.
        optional aql_low: Quantity<Span>,
        /// `fq-codel-airtime`: airtime in hardware below which a station may add while all hold
        /// less than `aql-total`. Default: 12 ms.
        optional aql_high: Quantity<Span>,
        /// `fq-codel-airtime`: airtime of all stations from which `aql-low` applies. Default: 24
        /// ms.
        optional aql_total: Quantity<Span>,
        /// `fq-codel-airtime`: aggregates of an access class in hardware, that on the air
        /// included. 0: only airtime limits; firmware aggregates (ath10k, mt76). Default: 2, as
        /// ath9k.
        optional hardware_aggregates: u64,
        /// `fq-codel-airtime`: target 50 ms, interval 300 ms, no marks for stations that expect
        /// less than 6 Mbit/s times the number of stations, as Linux 4.8 to 6.15. Default: false.
        optional relax_slow: bool,
        /// `fq-codel`: packets of an access class in the driver, unacknowledged included. Default:
        /// 123, as ath9k.
        optional driver_queue: Quantity<Packets>,
    }
}

table! {
    /// A station.
    Station {
        /// Unique in the scenario: letters, digits and `-`, at most 32.
        required name: String,
        /// Its `[[access-point]]`. Default: the hop's own.
        optional access_point: String,
        /// How many, named `NAME-1`, `NAME-2` and so on; traffic to `NAME` goes to each.
        default("1") count: u64,
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
        /// Cell: CQI, 1 to 15, or 0 for out of range; decides modulation and coding.
        optional cqi: u64,
        /// Cell: in place of `cqi`, over time; CSV columns `at_s,cqi`.
        optional cqi_trace: Trace<CqiStep>,
        /// Cell: in place of `cqi`, RSRP over time, linear between points; CSV columns
        /// `at_s,rsrp_dbm`. The CQI follows by noise and `interference-margin`, as in ns-3.
        optional rsrp_trace: Trace<RsrpStep>,
        /// Cell: times of handover to an equal cell. Undelivered data are sent again; RNTI
        /// changes, only the primary carrier stays.
        optional handovers: Vec<Quantity<Span>>,
        /// Cell: pause in both directions at a handover. Default: 50 ms.
        optional handover_interruption: Quantity<Span>,
        /// Cell: bit error probability p. A block of L bits fails with 1 - (1 - p)^L; up to 3
        /// repeats, 8 ms apart, each fail a tenth as often. Typical: 1e-6 to 5e-6. Default: 0.
        optional bit_error_rate: f64,
        /// Cell: layers received at once, 1 to 4 (one block on 1, otherwise two). Default: 1.
        optional layers: u64,
        /// Cell: its tables. Default: `"64qam"`.
        optional modulation: Modulation,
        /// Cell: first carrier, counted from 1. Default: 1.
        optional primary_carrier: u64,
        /// Cell: carriers it can use, from its primary one on, cyclically. Default: all.
        optional carriers: u64,
        /// Cell: probability that its decoder misses an assignment; its data arrive all the same.
        /// Default: 0.
        optional missed_dci: f64,
        /// Cell: probability, each subframe and carrier, that its decoder sees a random false
        /// assignment. Default: 0.
        optional false_dci: f64,
    }
}

table! {
    /// CQI from `at` on.
    CqiStep {
        /// When, since the run began.
        required at: Quantity<Span>,
        /// The CQI from then on.
        required cqi: u64,
    }
}

table! {
    /// Power of the reference signals at `at`.
    RsrpStep {
        /// When, since the run began.
        required at: Quantity<Span>,
        /// Power of the reference signals then, such as `"-95 dBm"`.
        required rsrp: Dbm,
    }
}

table! {
    /// MCS from `at` on.
    McsStep {
        /// When, since the run began.
        required at: Quantity<Span>,
        /// The MCS from then on.
        required mcs: u64,
    }
}

table! {
    /// Mean SNR from `at` on.
    SnrStep {
        /// When, since the run began.
        required at: Quantity<Span>,
        /// The mean SNR from then on.
        required snr: Quantity<Decibels>,
    }
}

table! {
    /// Distance from the access point at `at`.
    WalkPoint {
        /// When, since the run began.
        required at: Quantity<Span>,
        /// Distance from the access point then.
        required distance: Quantity<Metres>,
    }
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
    /// A stream between two hosts. Connections are opened by the station; between two stations or
    /// two wired hosts, by the receiver.
    Traffic {
        /// What it is.
        required kind: TrafficKind,
        /// Source: `"server"`, `"ap"`, a station, a `[[host]]`, or `"each"` station.
        default("\"server\"") from: String,
        /// Receiver: as `from`.
        required to: String,
        /// Wi-Fi: access category of packets both ways; sockets of the lab set its DSCP. A proxy's
        /// tunnel is best effort.
        default("\"best-effort\"") class: Class,
        /// When it begins.
        default("\"0 s\"") start: Quantity<Span>,
        /// When it ends. Default: with the run.
        optional stop: Quantity<Span>,
        /// `probe`, `udp`: UDP payload (default 64 B, 1472 B). `fetch`: bytes each time (default
        /// 100 kB). `bulk`: bytes in all (default unlimited).
        optional size: Quantity<Bytes>,
        /// `udp`: network-layer rate. Without it as the regulator allows: in the simulator, from
        /// the server, with a regulator in every law.
        optional rate: Quantity<Rate>,
        /// `udp` with a rate: packets exactly one interval apart, not at a random moment of each.
        /// Default: false.
        optional periodic: bool,
        /// `probe`, `fetch`: interval between beginnings. Default: 20 ms and 1 s.
        optional every: Quantity<Span>,
        /// `bulk`: parallel TCP connections. Default: 1.
        optional flows: u64,
        /// `bulk`: the lab's sender program. Default: `own`.
        optional program: Program,
        /// `bulk` with `program = "own"`: socket send buffer, overhead counted as in Linux.
        /// Default: in the lab the kernel's (4 MiB), in the simulator unlimited.
        optional send_buffer: Quantity<Bytes>,
    }
}

table! {
    /// What senders, access point, proxy and stations run.
    Law {
        /// Congestion control of TCP senders: a word, a table with `law` and parameters, or one by
        /// host, `{ default = "cubic", sofa = "bbr" }` (`server`, access points, stations).
        /// `"kernel:NAME"` is the lab kernel's. Default: as a `part` says.
        optional sender: Senders,
        /// The access point's queue under this law, in place of the hop's.
        optional queue: Queue,
        /// The agent on the access point, which rewrites receive windows; `{}` for its defaults.
        /// Default: none.
        optional agent: Agent,
        /// n, ac, ax: the edge proxy, which ends the servers' TCP connections and paces traffic to
        /// each station; `{}` for its defaults. Default: none.
        optional regulator: Regulator,
        /// Laws in full, for what the keys above cannot say.
        default("[]") part: Vec<Part>,
    }
}
