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
    /// A scenario: a path from a server to the stations of a last hop, further hosts and cables beside it, what crosses them, and
    /// the laws to compare.
    Scenario {
        /// One line for tables and reports.
        required title: String,
        /// What the scenario shows, and where its parameters come from.
        default("\"\"") description: String,
        /// Where it runs. `--world` on the command line overrides it.
        default("\"default\"") world: World,
        /// How long one run lasts, warm-up included.
        required duration: Quantity<Span>,
        /// The first part of the run, left out of every figure: flows start, windows open and queues fill in it.
        default("\"0 s\"") warm_up: Quantity<Span>,
        /// How many runs, as a number (seeds 1 to n), or the seeds themselves, as a list. Everything random in a run
        /// follows from its seed.
        default("5") seeds: Seeds,
        /// The path between the server and the access point.
        required wire: Wire,
        /// A link of its own between that path and the access point. An edge proxy, in the simulator only, stands before it, so that
        /// what the proxy paces crosses it; without it the proxy stands at the access point.
        optional backhaul: Backhaul,
        /// The last hop: exactly one of `hop.wired`, `hop.wifi`, `hop.cell` and `hop.trace`.
        required hop: Hop,
        /// The stations behind the hop, one `[[station]]` each.
        required station: Vec<Station>,
        /// Further access points on the Wi-Fi channel, one `[[access-point]]` each, with stations of their own.
        /// They are like the hop's own in all that is not said here, and behind the same wire.
        default("[]") access_point: Vec<AccessPoint>,
        /// Other BSSs that share the Wi-Fi channel, one `[[neighbour]]` each. They and the scenario's own BSS hear each
        /// other unless their keys say otherwise.
        default("[]") neighbour: Vec<Neighbour>,
        /// Further hosts on cables, one `[[host]]` each.
        default("[]") host: Vec<Host>,
        /// Cables of their own between hosts, one `[[link]]` each.
        default("[]") link: Vec<Link>,
        /// Routes that come before those of fewest links, one `[[route]]` each.
        default("[]") route: Vec<Route>,
        /// What hosts send each other, one `[[traffic]]` each.
        required traffic: Vec<Traffic>,
        /// The laws to compare, in the order of the report's rows: `[laws."NAME"]`. A sender law that is not in the
        /// table, such as `reno`, can still be asked for by its name on the command line.
        required laws: Named<Law>,
        /// The figures to report, by the names they have in `result.json`. Without it: all that the traffic can yield.
        optional measures: Vec<Measure>,
    }
}

table! {
    /// A full-duplex wired link: in each direction a drop-tail queue, a serialiser and a propagation delay.
    Wire {
        /// Data rate in each direction, at first.
        required rate: Quantity<Rate>,
        /// Propagation delay in each direction: half of what the link adds to the round-trip time.
        required delay: Quantity<Span>,
        /// Packets that may wait at each end, behind the one that is being sent.
        default("\"1000 packets\"") queue: Quantity<Packets>,
        /// Its rate over time: a list of `{ at = "20 s", rate = "20 Mbit/s" }`.
        default("[]") changes: Vec<RateStep>,
        /// Probability with which a packet is damaged on its way, each by itself and in either direction.
        default("0.0") loss: f64,
        /// The most by which a packet comes later than `delay` says: each by a time of its own, but in order.
        default("\"0 s\"") jitter: Quantity<Span>,
    }
}

table! {
    /// The link that leads to the access point, where an edge proxy stands at its other end.
    Backhaul {
        /// Data rate in each direction, at first.
        required rate: Quantity<Rate>,
        /// Propagation delay in each direction.
        default("\"0 s\"") delay: Quantity<Span>,
        /// Packets that may wait at each end, behind the one that is being sent.
        default("\"1000 packets\"") queue: Quantity<Packets>,
        /// Its rate over time: a list of `{ at = "20 s", rate = "20 Mbit/s" }`.
        default("[]") changes: Vec<RateStep>,
        /// Probability with which a packet is damaged on its way, each by itself and in either direction.
        default("0.0") loss: f64,
        /// The most by which a packet comes later than `delay` says: each by a time of its own, but in order.
        default("\"0 s\"") jitter: Quantity<Span>,
    }
}

table! {
    /// One change of a link's rate.
    RateStep {
        /// When, from the start of the run.
        required at: Quantity<Span>,
        /// The data rate in each direction from then on.
        required rate: Quantity<Rate>,
    }
}

table! {
    /// A further host, on cables. It forwards packets between them.
    Host {
        /// Its name, unique among hosts.
        required name: String,
    }
}

table! {
    /// A cable between two hosts: full duplex, in each direction a drop-tail queue, a serialiser and a propagation delay.
    Link {
        /// The two hosts: names of `[[host]]`s, of stations, `"server"` or `"ap"`.
        required between: Vec<String>,
        /// Data rate in each direction, at first.
        required rate: Quantity<Rate>,
        /// Propagation delay in each direction.
        default("\"0 s\"") delay: Quantity<Span>,
        /// Packets that may wait at each end, behind the one that is being sent.
        default("\"1000 packets\"") queue: Quantity<Packets>,
        /// Its rate over time: a list of `{ at = "20 s", rate = "20 Mbit/s" }`.
        default("[]") changes: Vec<RateStep>,
        /// Probability with which a packet is damaged on its way, each by itself and in either direction.
        default("0.0") loss: f64,
        /// The most by which a packet comes later than `delay` says: each by a time of its own, but in order.
        default("\"0 s\"") jitter: Quantity<Span>,
    }
}

table! {
    /// A static route. Without any, packets take the way of fewest links.
    Route {
        /// The host that forwards.
        required at: String,
        /// The host that packets are for.
        required to: String,
        /// The neighbour of `at` that gets them.
        required via: String,
    }
}

table! {
    /// The last hop.
    Hop {
        /// A wired last hop, to compare with: a cable to each station.
        optional wired: WiredHop,
        /// An 802.11 BSS.
        optional wifi: WifiHop,
        /// An LTE cell.
        optional cell: CellHop,
        /// A link that delivers when a recorded trace says so.
        optional trace: TraceHop,
    }
}

table! {
    /// A wired last hop: a cable to each station, all alike.
    WiredHop {
        /// Data rate of each cable, in each direction, at first.
        required rate: Quantity<Rate>,
        /// Propagation delay in each direction.
        default("\"0 s\"") delay: Quantity<Span>,
        /// The queue of the access point at each cable. Only `fifo` here.
        required queue: Queue,
        /// Packets that may wait at the station, behind the one that is being sent.
        default("\"1000 packets\"") uplink_queue: Quantity<Packets>,
        /// The rate of each cable over time: a list of `{ at = "20 s", rate = "20 Mbit/s" }`.
        default("[]") changes: Vec<RateStep>,
        /// Probability with which a packet is damaged on its way, each by itself and in either direction.
        default("0.0") loss: f64,
        /// The most by which a packet comes later than `delay` says: each by a time of its own, but in order.
        default("\"0 s\"") jitter: Quantity<Span>,
    }
}

table! {
    /// A last hop that delivers when a recorded trace says so, as mahimahi plays it. Each station has a link of its own, all alike.
    TraceHop {
        /// When the link delivers to the station: a file with a time in milliseconds a line, at which up to 1504 bytes leave. Its path is
        /// relative to the scenario, or begins with `$LASTHOP_REFERENCE/`, a folder of traces that the environment names.
        required downlink: DeliveryFile,
        /// When it delivers from the station, likewise.
        required uplink: DeliveryFile,
        /// Propagation delay in each direction.
        default("\"0 s\"") delay: Quantity<Span>,
        /// What waits for the station: `fifo`, `infinite`, `codel` or `pie`.
        required queue: Queue,
        /// What waits at the station, likewise. Without it: the same as `queue`.
        optional uplink_queue: Queue,
    }
}

table! {
    /// An 802.11 BSS: an access point and its stations on one channel. All of them hear each other, unless a station is
    /// `hidden-from` others. Further access points may be on other channels.
    WifiHop {
        /// The BSS uses the PHY and MAC of this amendment.
        required standard: Standard,
        /// 802.11g: which of its rates access point and stations have, and a rate control chooses from. Without it:
        /// `"ofdm"`.
        optional rate_set: RateSet,
        /// Number of the primary channel. It decides the band, and so the short interframe space, and that no node
        /// hears the `[[access-point]]`s and neighbours of other channels. Without it: 1 for 802.11g, 36 for the
        /// others.
        optional channel: u64,
        /// Channel width: 20 MHz for a and g, 20 or 40 MHz for n and for ax at 2.4 GHz, 20 to 160 MHz for ac and ax.
        default("\"20 MHz\"") width: Quantity<Hertz>,
        /// OFDM guard interval: 800 ns; the short one of n and ac, 400 ns; the long ones of ax, 1.6 us and 3.2 us.
        default("\"800 ns\"") guard_interval: Quantity<Span>,
        /// Time between beacons, a multiple of the 802.11 time unit of 1024 us.
        default("\"102.4 ms\"") beacon_interval: Quantity<Span>,
        /// Failed attempts after which a frame is given up (dot11ShortRetryLimit).
        default("7") retry_limit: u64,
        /// From a frame's last bit until the node's own network stack has what it carried, and can answer it or send it on. In the
        /// simulator only: the hosts of the lab take their own time. Linux was measured to take 20 us (`scripts/host-delay`). At `"0 s"`, as in
        /// ns-3, an answer waits in the gap before the node's own acknowledgement, and goes without a backoff.
        default("\"0 s\"") host_delay: Quantity<Span>,
        /// Most MPDUs in one A-MPDU; the BlockAck window of n and ac allows 64, that of ax 256. Without it: 64.
        /// Standards without aggregation send one.
        optional max_ampdu: u64,
        /// 802.11n, ac and ax: longest A-MSDU, 3839 B, and with ac and ax 7935 B or 11454 B. Packets share an MPDU up to this
        /// length, and are acknowledged or lost together. Without it: one packet an MPDU.
        optional max_amsdu: Quantity<Bytes>,
        /// With `max-amsdu`: most packets in one. Without it: as many as its length allows.
        optional amsdu_packets: u64,
        /// Access point and stations announce data PSDUs that are longer than this by RTS and CTS. Without it: none.
        optional rts_threshold: Quantity<Bytes>,
        /// Transmit power with antennas, for stations with a `distance` or a `walk`.
        default("\"100 mW\"") tx_power: Quantity<Watts>,
        /// Exponent of the path loss, likewise: 2 in free space, 3 to 4 through walls.
        default("3.0") path_loss_exponent: f64,
        /// Noise figure of the receivers, likewise.
        default("\"7 dB\"") noise_figure: Quantity<Decibels>,
        /// The queue of the access point towards the stations.
        required queue: Queue,
        /// Packets that may wait at each station for the uplink: short for a `station-queue` of kind `fifo` with this limit.
        default("\"1000 packets\"") uplink_queue: Quantity<Packets>,
        /// In place of `uplink-queue`: the queue of each station that has no `queue` of its own, towards its access point.
        optional station_queue: Queue,
        /// Access points keep the group frames (broadcast, multicast) of their stations to
        /// themselves. Otherwise they send them out again to all of their stations. Only group
        /// frames are held back: packets from one station to another go through the access point as
        /// a router, and pass either way.
        default("false") client_isolation: bool,
        /// Makes a mesh of the hop: access point and stations, which stand at their `position`s, hear each other by
        /// distance and forward each other's packets. The access point is the gateway to the wire; it sends as the first station
        /// does, and its queue is `queue`.
        optional mesh: Mesh,
        /// What is different on single links, one `[[hop.wifi.link]]` each: rate, losses, signal-to-noise ratio.
        default("[]") link: Vec<WifiLink>,
        /// Whether a frame may survive those that it overlaps with. A receiver takes a frame up that is 4 dB above all else, and
        /// decodes what its error model leaves at the ratio of its power to noise and to the others' power. Powers follow from the
        /// signal-to-noise ratios of stations and links, and in a mesh from positions; what has none destroys what it overlaps with,
        /// and is destroyed. Otherwise all frames are lost wherever more than one is heard.
        default("false") capture: bool,
    }
}

table! {
    /// The way from one node of a Wi-Fi hop to another. What is not said here is as without this table: on a link with a
    /// station that station's keys hold, between nodes of a mesh the transmitter's.
    WifiLink {
        /// The transmitter: a station, an access point, or `"ap"` for the hop's own.
        required from: String,
        /// The receiver.
        required to: String,
        /// Whether it holds from `to` to `from` as well.
        default("false") both: bool,
        /// 802.11n, ac and ax: spatial streams. Without it: 1.
        optional nss: u64,
        /// 802.11n, ac and ax: MCS of the data frames.
        optional mcs: u64,
        /// 802.11a and g: data rate of the data frames.
        optional rate: Quantity<Rate>,
        /// Probability that one MPDU is lost to noise, between 0 and 1.
        optional mpdu_error_rate: f64,
        /// Mean signal-to-noise ratio over the channel, from which losses follow. Between nodes that exchange no frames it says how
        /// much one disturbs the other, for `capture`.
        optional snr: Quantity<Decibels>,
        /// In place of `snr`, over time: as of a station.
        optional snr_trace: Trace<SnrStep>,
    }
}

table! {
    /// An LTE cell (FDD): a base station that gives its stations parts of one or more carriers, a millisecond at a time. It has a queue for
    /// each station.
    CellHop {
        /// The carriers: the bandwidth of each, 1.4, 3, 5, 10, 15 or 20 MHz, or a number of PRB pairs, 6 to 110. A station has its
        /// `primary-carrier` from the beginning and gets those that follow it in turn.
        required carriers: Vec<Bandwidth>,
        /// How resource blocks are shared out.
        default("\"proportional-fair\"") scheduler: CellScheduler,
        /// `proportional-fair`: time constant of the average by which a station is measured (default 99 ms, as in ns-3).
        optional fairness_window: Quantity<Span>,
        /// Whether what does not divide evenly is given away as well: the last resource block group of a carrier, where it is short, and
        /// with `round-robin` the groups that remain after equal shares. ns-3 leaves both unused.
        default("true") use_remainder: bool,
        /// What the base station holds for each station: a packet that does not fit is dropped.
        default("\"750 kB\"") queue: Quantity<Bytes>,
        /// Data rate of each station's uplink, a line of its own: by default what LTE was made to reach over 20 MHz.
        default("\"50 Mbit/s\"") uplink_rate: Quantity<Rate>,
        /// Delay of each station's uplink: by default what LTE was made to keep in a cell without load.
        default("\"5 ms\"") uplink_delay: Quantity<Span>,
        /// Packets that may wait at each station for the uplink.
        default("\"1000 packets\"") uplink_queue: Quantity<Packets>,
        /// A station gets the next carrier when it is given at least this share of the PRBs of those that it has. How much waits for it does
        /// not matter.
        default("0.8") activate_share: f64,
        /// How long that share is measured.
        default("\"100 ms\"") activate_window: Quantity<Span>,
        /// From then to the carrier's first subframe (3GPP TS 36.133, 7.7.2).
        default("\"24 ms\"") activation_delay: Quantity<Span>,
        /// A station loses its last carrier when it was given nothing there for so long (sCellDeactivationTimer).
        default("\"320 ms\"") deactivate_after: Quantity<Span>,
        /// For stations with an `rsrp-trace`: noise figure of their receivers (default as in 3GPP TR 36.942).
        default("\"9 dB\"") noise_figure: Quantity<Decibels>,
        /// Likewise: by how much noise and other cells' signals together are above the noise, anywhere in the cell.
        default("\"3 dB\"") interference_margin: Quantity<Decibels>,
        /// Terminals that the cell serves beside the stations, one `[[hop.cell.background]]` each.
        default("[]") background: Vec<CellBackground>,
    }
}

table! {
    /// Traffic of a cell to terminals that are no stations.
    CellBackground {
        /// What it is.
        required kind: CellLoad,
        /// Mean number of bursts, or of terminals with signalling, in a second. They come as a Poisson process.
        required per_second: f64,
        /// On which carrier, counted from 1.
        default("1") carrier: u64,
        /// Channel quality of its terminals, 1 to 15.
        default("10") cqi: u64,
        /// `data`: how long bursts are, or their mean (default 100 kB).
        optional size: Quantity<Bytes>,
        /// `data`: how their lengths are distributed (default `exponential`).
        optional sizes: BurstSizes,
        /// `data`: as of a station (default 0).
        optional bit_error_rate: f64,
        /// `data`: layers that it receives at once, 1 to 4 (default 1).
        optional layers: u64,
        /// `data`: the tables that it uses (default `"64qam"`).
        optional modulation: Modulation,
    }
}

table! {
    /// Which nodes hear each other in a mesh.
    Mesh {
        /// How far apart two nodes may be that decode each other's frames.
        required range: Quantity<Metres>,
        /// How far apart two nodes may be that sense each other's frames as a busy medium, so that their frames destroy
        /// each other. Without it: `range`.
        optional carrier_sense_range: Quantity<Metres>,
        /// How far apart two nodes may be that destroy each other's frames though they do not sense them. Without it:
        /// `carrier-sense-range`.
        optional interference_range: Quantity<Metres>,
        /// Where the access point stands: two coordinates.
        default("[\"0 m\", \"0 m\"]") position: Vec<Quantity<Metres>>,
        /// With `hop.wifi.capture`: fading of every link around the mean that follows from where its ends stand. Each link fades by itself,
        /// and in each direction.
        optional fading: Fading,
        /// Where the nodes' routes come from.
        default("\"static\"") routing: MeshRouting,
    }
}

table! {
    /// A further access point on the channel. Stations join it by their key `access-point`. Under a law with an agent or a
    /// regulator it has one of its own, which knows nothing of the others.
    AccessPoint {
        /// Its name, unique among access points.
        required name: String,
        /// Its primary channel and its stations', which must not overlap with another that is used: nodes of different channels do not
        /// hear each other. Without it: the hop's own.
        optional channel: u64,
        /// How well it and the hop's own access point hear each other.
        default("\"decodes\"") reach_ap: Reach,
        /// Names of stations, neighbours and other access points that neither hear it nor are heard by it. `"ap"` is the
        /// hop's own.
        default("[]") hidden_from: Vec<String>,
    }
}

table! {
    /// How an access point queues packets towards its stations, or a station towards its access point.
    Queue {
        /// The discipline.
        required kind: QueueKind,
        /// Most packets in the queue: in all for `fifo`, `codel` and `pie` (default 1000), `fq-codel-airtime` (default 8192, as in Linux
        /// mac80211) and `fq-codel` (default 1024, as in OpenWrt 15.05, those in the driver apart), for each station with
        /// `round-robin` (default 1000).
        optional limit: Quantity<Packets>,
        /// `fifo` of `[hop.trace]`, in place of `limit`: most bytes in the queue, a packet counting four more than its length.
        optional bytes: Quantity<Bytes>,
        /// `fq-codel-airtime` and `fq-codel`: bytes a flow may send in its turn (default 300 B, as in Linux mac80211).
        optional quantum: Quantity<Bytes>,
        /// `fq-codel-airtime`, `fq-codel` and `codel`: standing delay that CoDel accepts (default 20 ms, as in Linux mac80211, and 5 ms for
        /// the others). `pie`: the delay that it steers to (default 15 ms).
        optional target: Quantity<Span>,
        /// `fq-codel-airtime`, `fq-codel` and `codel`: how long the delay may stay above the target before CoDel drops (default 100 ms).
        optional interval: Quantity<Span>,
        /// `fq-codel-airtime`: airtime a station may use in its turn (default 256 us, Linux mac80211's weight of 256).
        optional airtime_quantum: Quantity<Span>,
        /// `fq-codel-airtime`, `fq-codel`, `codel` and `pie`: whether packets that can carry a mark are marked rather than dropped (default
        /// true, false for `codel` and `pie`, as in Linux).
        optional ecn: bool,
        /// `fq-codel-airtime`: memory of the waiting packets, counted as Linux counts it, 2304 B for one of 1500 B
        /// (default 16 MiB for ac, 4 MiB for the others, as in Linux mac80211).
        optional memory: Quantity<Bytes>,
        /// `fq-codel-airtime`: whether airtime queue limits bound what the radio's hardware holds (default true).
        optional aql: bool,
        /// `fq-codel-airtime`: airtime in hardware below which a station may always add to it (default 5 ms).
        optional aql_low: Quantity<Span>,
        /// `fq-codel-airtime`: airtime in hardware below which a station may add to it while all of them together hold
        /// less than `aql-total` (default 12 ms).
        optional aql_high: Quantity<Span>,
        /// `fq-codel-airtime`: airtime in hardware of all stations from which `aql-low` applies to each (default 24 ms).
        optional aql_total: Quantity<Span>,
        /// `fq-codel-airtime`: aggregates in the hardware of an access class, the one on the air included (default 2, as
        /// ath9k keeps). 0: as many packets as the airtime limits let through, which the firmware aggregates by itself
        /// (as with ath10k and mt76).
        optional hardware_aggregates: u64,
        /// `fq-codel-airtime`: target 50 ms, interval 300 ms and no marks for a station with an expected throughput
        /// below 6 Mbit/s times the number of stations, as Linux had it from 4.8 to 6.15 (default false).
        optional relax_slow: bool,
        /// `fq-codel`: packets that the driver holds of an access class, unacknowledged ones included (default 123, as ath9k
        /// does).
        optional driver_queue: Quantity<Packets>,
    }
}

table! {
    /// A station of the last hop.
    Station {
        /// Its name, unique in the scenario: letters, digits and `-`, at most 32.
        required name: String,
        /// Wi-Fi: the name of the `[[access-point]]` that it belongs to. Without it: the hop's own.
        optional access_point: String,
        /// How many stations like this there are. With more than one, their names are `NAME-1`, `NAME-2` and so on, and
        /// traffic to `NAME` is traffic to each of them.
        default("1") count: u64,
        /// 802.11n, ac and ax: spatial streams. Without it: 1.
        optional nss: u64,
        /// 802.11n, ac and ax: MCS of the frames to it, 0 to 7 for n, 0 to 9 for ac and 0 to 11 for ax, counted for each
        /// stream.
        optional mcs: u64,
        /// 802.11n, ac and ax: MCS of the frames to it over time, in place of `mcs`: a list of `{ at = "2 s", mcs = 4 }`, the
        /// first at 0 s, or the path of a CSV file with the columns `at_s,mcs`, relative to the scenario.
        optional mcs_trace: Trace<McsStep>,
        /// 802.11a and g: data rate of the frames to it.
        optional rate: Quantity<Rate>,
        /// Wi-Fi: probability that one MPDU is lost to noise, between 0 and 1. Collisions come on top.
        default("0") mpdu_error_rate: f64,
        /// Wi-Fi: what chooses the rate. `ideal` and `minstrel` choose among all MCS of up to `nss` streams, `arf` and
        /// `aarf` among the rates of 802.11a and g; none of them takes `mcs`, `mcs-trace` or `rate`.
        default("\"fixed\"") rate_control: RateControl,
        /// Wi-Fi: mean signal-to-noise ratio over the channel, both ways. MPDUs are then lost by it (NIST error model);
        /// without it and the next three keys, only by `mpdu-error-rate`.
        optional snr: Quantity<Decibels>,
        /// In place of `snr`, over time: a list of `{ at = "2 s", snr = "18 dB" }`, the first at 0 s, or the path of a CSV file
        /// with the columns `at_s,snr_db`, relative to the scenario.
        optional snr_trace: Trace<SnrStep>,
        /// In place of `snr`: distance from the access point, from which it follows by log-distance path loss.
        optional distance: Quantity<Metres>,
        /// In place of `distance`, over time: a list of `{ at = "2 s", distance = "8 m" }`, the first at 0 s, or the path of a
        /// CSV file with the columns `at_s,distance_m`, relative to the scenario; in between the station walks at constant
        /// speed. What changes is its signal-to-noise ratio, and with it its losses and the rate that a rate control
        /// chooses; which nodes hear it does not: `hidden-from` and the `reach` keys hold for the whole run.
        optional walk: Trace<WalkPoint>,
        /// In a mesh: where it stands, as two coordinates.
        optional position: Vec<Quantity<Metres>>,
        /// In a mesh with `capture`, in place of `position`: where it walks, as a list of `{ at = "20 s", position = ["5 m", "10 m"] }`, the first at
        /// 0 s; in between at constant speed in a straight line. What changes is its signal-to-noise ratios; which
        /// nodes hear it at all, by `range` and the other ranges, is as where the two come nearest to each other.
        optional path: Vec<PathPoint>,
        /// Block fading about the mean signal-to-noise ratio.
        optional fading: Fading,
        /// Wi-Fi: names of stations, neighbours and access points that neither hear it nor are heard by it. It is then
        /// hidden from them: they send while it does, and the access point receives neither. `"ap"` is the hop's own.
        default("[]") hidden_from: Vec<String>,
        /// Wi-Fi: its queue towards its access point, in place of `station-queue` or `uplink-queue`.
        optional queue: Queue,
        /// Wi-Fi, in the lab: whether it has a monitor interface, `mon0`, on which its radio shows every data frame that it
        /// decodes, others' and damaged ones too, as radiotap and 802.11 frames.
        default("false") monitor: bool,
        /// Wi-Fi, in the simulator: whether each TCP connection keeps only some 8 to 20 ms of its own packets waiting in the station, as
        /// Linux does on Wi-Fi (TCP small queues), rather than its whole window. In the lab the kernel does what it does.
        default("false") tcp_small_queues: bool,
        /// Cell: its channel quality indicator, 1 to 15, or 0 for out of range; it decides the modulation and coding scheme of the blocks to
        /// it.
        optional cqi: u64,
        /// Cell: in place of `cqi`, over time: a list of `{ at = "2 s", cqi = 9 }`, the first at 0 s, or the path of a CSV file with the columns
        /// `at_s,cqi`, relative to the scenario.
        optional cqi_trace: Trace<CqiStep>,
        /// Cell: in place of `cqi`, the power of the cell's reference signals (RSRP) over time: a list of `{ at = "2 s", rsrp = "-95 dBm" }`, the
        /// first at 0 s, or the path of a CSV file with the columns `at_s,rsrp_dbm`, relative to the scenario; in between it changes evenly.
        /// The quality follows from it by noise, `interference-margin` and the efficiency that ns-3 reckons with.
        optional rsrp_trace: Trace<RsrpStep>,
        /// Cell: when it is handed over to another cell, a list of times. The other cell is like this one. What has not arrived is sent there
        /// again; the station has another RNTI and its primary carrier only.
        optional handovers: Vec<Quantity<Span>>,
        /// Cell: how long nothing is sent to it at a handover, and nothing leaves it (default 50 ms; 3GPP TR 36.881 has 49.5 ms as typical, cited from memory).
        optional handover_interruption: Quantity<Span>,
        /// Cell: probability p that a bit is wrong, so that a block of L bits fails with probability 1 - (1 - p)^L, and is repeated 8 ms later, up to
        /// three times; each repeat fails a tenth as often. Some 1e-6 to 5e-6 in use (default 0).
        optional bit_error_rate: f64,
        /// Cell: layers that it receives at once, 1 to 4: one block on one layer, two blocks on more (default 1).
        optional layers: u64,
        /// Cell: the tables that it uses (default `"64qam"`).
        optional modulation: Modulation,
        /// Cell: on which of the carriers, counted from 1, it begins (default 1).
        optional primary_carrier: u64,
        /// Cell: how many of the carriers it can use: its primary one and those that follow it, after the last the first. Without it: all.
        optional carriers: u64,
        /// Cell: probability with which it misses an assignment on the control channel, each by itself (default 0). It is sent its own all the
        /// same: what errs is the decoder that watches everybody's.
        optional missed_dci: f64,
        /// Cell: probability with which it sees one assignment that is none, for each subframe and carrier: of a random RNTI, with random PRBs
        /// and a random MCS (default 0).
        optional false_dci: f64,
    }
}

table! {
    /// One step of a CQI trace.
    CqiStep {
        /// When it begins, from the start of the run.
        required at: Quantity<Span>,
        /// The channel quality indicator from then on.
        required cqi: u64,
    }
}

table! {
    /// One point of an RSRP trace.
    RsrpStep {
        /// When, from the start of the run.
        required at: Quantity<Span>,
        /// The power of the reference signals then, such as `"-95 dBm"`.
        required rsrp: Dbm,
    }
}

table! {
    /// One step of an MCS trace.
    McsStep {
        /// When it begins, from the start of the run.
        required at: Quantity<Span>,
        /// The MCS from then on.
        required mcs: u64,
    }
}

table! {
    /// One step of an SNR trace.
    SnrStep {
        /// When it begins, from the start of the run.
        required at: Quantity<Span>,
        /// The mean signal-to-noise ratio from then on.
        required snr: Quantity<Decibels>,
    }
}

table! {
    /// One point of a walk.
    WalkPoint {
        /// When the station is there, from the start of the run.
        required at: Quantity<Span>,
        /// How far from the access point that is.
        required distance: Quantity<Metres>,
    }
}

table! {
    /// One point of the path of a mesh's node.
    PathPoint {
        /// When the node is there, from the start of the run.
        required at: Quantity<Span>,
        /// Where that is, as two coordinates.
        required position: Vec<Quantity<Metres>>,
    }
}

table! {
    /// Block fading: the power gain holds for the coherence time, then is drawn anew.
    Fading {
        /// Its distribution.
        default("\"rayleigh\"") kind: FadingKind,
        /// How long a gain holds: some 30 ms at walking pace and 5 GHz.
        default("\"30 ms\"") coherence: Quantity<Span>,
        /// `rician`: the direct path over all others (default 4).
        optional k: f64,
    }
}

table! {
    /// A background BSS on the same channel: one transmitter that sends to one receiver of its own beside it. With an
    /// older standard it is a legacy neighbour: it decodes the control frames of the scenario's BSS, and of data frames only
    /// how long they last.
    Neighbour {
        /// Its name, unique among neighbours.
        required name: String,
        /// Its primary channel; it must be that of an access point, for a BSS elsewhere is not heard. Without it: that of the hop's own.
        optional channel: u64,
        /// Its standard; it must work in the band of the channel. Without it: the scenario's.
        optional standard: Standard,
        /// Its channel width. Without it: the scenario's; 20 MHz with a standard of its own.
        optional width: Quantity<Hertz>,
        /// Its guard interval. Without it: the scenario's; 800 ns with a standard of its own.
        optional guard_interval: Quantity<Span>,
        /// 802.11n, ac and ax: its spatial streams. Without it: 1.
        optional nss: u64,
        /// 802.11n, ac and ax: its MCS.
        optional mcs: u64,
        /// 802.11a and g: its data rate.
        optional rate: Quantity<Rate>,
        /// What it offers to the channel while it is active: a data rate, or `"saturated"`.
        required load: Load,
        /// Network-layer length of its packets.
        default("\"1500 B\"") packet: Quantity<Bytes>,
        /// Access category of its packets.
        default("\"best-effort\"") class: Class,
        /// It announces data PSDUs that are longer than this by RTS and CTS. Without it: none.
        optional rts_threshold: Quantity<Bytes>,
        /// How well its nodes and the access points hear each other.
        default("\"decodes\"") reach_ap: Reach,
        /// How well its nodes and the stations hear each other.
        default("\"decodes\"") reach_stations: Reach,
        /// Names of stations, access points and other neighbours that neither hear it nor are heard by it.
        default("[]") hidden_from: Vec<String>,
        /// When it is active: a list of `{ from = "2 s", until = "4 s" }`. Without this and `period`: always.
        optional active: Vec<Interval>,
        /// In place of `active`: it becomes active once every period.
        optional period: Quantity<Span>,
        /// With `period`: how long it is active in each period.
        optional active_for: Quantity<Span>,
        /// With `period`: when it becomes active first (default 0 s).
        optional first: Quantity<Span>,
    }
}

table! {
    /// A stretch of the run.
    Interval {
        /// Its begin.
        required from: Quantity<Span>,
        /// Its end.
        required until: Quantity<Span>,
    }
}

table! {
    /// A stream of traffic between two hosts. A station opens the connections to a wired host; between two stations, or two wired
    /// hosts, the receiver does.
    Traffic {
        /// What it is.
        required kind: TrafficKind,
        /// Name of the host that has the data: `"server"`, a station, a `[[host]]`, `"ap"`, or `"each"` for one such
        /// stream from every station.
        default("\"server\"") from: String,
        /// Name of the host that receives it, or `"each"` for one such stream to every station.
        required to: String,
        /// Wi-Fi: access category of its packets, both ways. In the lab the sockets at both ends mark them with its DSCP. An
        /// edge proxy's tunnel is best effort whatever it carries.
        default("\"best-effort\"") class: Class,
        /// When it begins.
        default("\"0 s\"") start: Quantity<Span>,
        /// When it ends. Without it: with the run.
        optional stop: Quantity<Span>,
        /// `probe`: UDP payload of each packet (default 64 B). `fetch`: what is fetched each time (default 100 kB).
        /// `bulk`: what is sent in all (default: as much as goes). `udp`: UDP payload of each packet (default 1472 B).
        optional size: Quantity<Bytes>,
        /// `udp`: network-layer rate. Without it: as fast as the law's regulator allows, in every law.
        optional rate: Quantity<Rate>,
        /// `udp` with a rate: packets leave exactly one interval apart. Without it each leaves at a random moment of its own
        /// interval, since equal sources that keep step let a full queue prefer one of them for good (default false).
        optional periodic: bool,
        /// `probe` and `fetch`: time from one to the next (default 20 ms and 1 s).
        optional every: Quantity<Span>,
        /// `bulk`: TCP connections in parallel (default 1).
        optional flows: u64,
        /// `bulk`: the program that sends in the lab (default `own`).
        optional program: Program,
        /// `bulk` over TCP with `program = "own"`: what a sender may have written and not have acknowledged, memory overhead included as
        /// Linux counts it, a quarter at low rates. Without it: in the lab what the kernel allows, 4 MiB, in the simulator everything.
        optional send_buffer: Quantity<Bytes>,
    }
}

table! {
    /// A set-up: what the senders run, and what runs beside them on access point, proxy and stations.
    Law {
        /// Congestion control of TCP senders: one word for all of them; a table with `law` and the law's parameters; or a
        /// table by host, `{ default = "cubic", sofa = "bbr" }`, each a word or such a table. Hosts are `server`, and the
        /// names of access points and stations. Without it: a `part` says what all senders run.
        optional sender: Senders,
        /// Queue of the access point under this law, in place of the hop's.
        optional queue: Queue,
        /// The agent on the access point, which rewrites receive windows. Without it: none. `agent = {}` is the agent with its
        /// law's defaults.
        optional agent: Agent,
        /// The edge proxy between server and access point, which ends the servers' TCP connections and paces what it
        /// carries on to each station. Without it: none. `regulator = {}` is the aggregation regulator with its defaults. Only with standards
        /// that aggregate: 802.11n, ac and ax.
        optional regulator: Regulator,
        /// Laws in full, one `[[laws."NAME".part]]` each: what the keys above cannot say.
        default("[]") part: Vec<Part>,
    }
}
