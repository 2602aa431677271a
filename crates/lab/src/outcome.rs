//! What a run leaves.

use crate::histogram::Summary;
use crate::lateness::Kind;
use crate::log::{Blocks, Departure, HopLog};
use crate::traffic::bulk::{BIN, BulkLog};
use crate::traffic::carried::CarriedLog;
use crate::traffic::fetch::Fetch;
use crate::traffic::iperf3::Iperf3Log;
use crate::traffic::probe::Probe;
use lasthop_laws::observation::Slot;
use lasthop_report::{AgentAccount, PbeAccount, RelayAccount, TerminalAccount};
use lasthop_signals::Node;
use lasthop_units::{Rate, Span, Time};
use std::collections::BTreeMap;
use std::fmt;

/// Everything measured in a run, in the run's own time.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What crossed the last hop.
    pub hop: HopLog,
    /// TCP segments with payload that left the server, in their order.
    pub departures: Blocks<Departure>,
    /// What became of each stream, in the specification's order.
    pub streams: Vec<StreamLog>,
    /// How late the emulator was with each kind of event that occurred.
    pub lateness: Vec<(Kind, Summary)>,
    /// True if the emulator ran under SCHED_FIFO.
    pub realtime: bool,
    /// Why the run should not be believed; empty if it may be.
    pub doubts: Vec<Doubt>,
    /// What the agent printed to its standard error; empty without one.
    pub agent_said: String,
    /// What the edge proxy logged; empty without one.
    pub slots: Vec<Slot>,
    /// What the edge proxy and the stations' agents printed to their standard errors.
    pub tunnel_said: String,
    /// The accounts of those agents that gave one, in the order of their access points.
    pub agents: Vec<AgentAccount>,
    /// The accounts of stations' agents that bound windows, in the order of their stations.
    pub terminals: Vec<TerminalAccount>,
    /// What those printed to their standard errors.
    pub terminals_said: String,
    /// The accounts of relays, by the name of their node.
    pub relays: BTreeMap<String, RelayAccount>,
    /// The accounts of PBE-CC's agents as one.
    pub pbe: Option<PbeAccount>,
    /// What those printed to their standard errors.
    pub pbe_said: String,
}

/// One stream's log.
#[allow(clippy::large_enum_variant, reason = "one a stream, and most are the largest")]
#[derive(Clone, Debug)]
pub enum StreamLog {
    /// A bulk transfer by our own sender.
    Bulk(BulkLog),
    /// A bulk transfer by `iperf3`.
    Iperf3(Iperf3Log),
    /// A bulk transfer by programs with a transport of their own.
    Carried(CarriedLog),
    /// Probes.
    Probe(Vec<Probe>),
    /// Datagrams of a UDP load.
    Udp(Vec<Probe>),
    /// Fetches.
    Fetch(Vec<Fetch>),
}

/// Something that happened outside the models.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doubt {
    /// Flows could begin only so long after the world did: the machine was busy with something else.
    LateStart(Span),
    /// One event in a hundred of a kind was later than [`LATEST`].
    Late(Kind, Span),
    /// Interfaces dropped packets by themselves.
    InterfaceDrops(u64),
    /// An interface refused frames of the emulator.
    Refused(u64),
    /// The agent missed driver reports.
    UnreadReports(u64),
    /// A reader of a control channel missed so many subframes.
    UnreadSubframes(u64),
    /// A host's programs did not take datagrams in time: what waited in their sockets was in no model's queue.
    UnreadDatagrams(u64),
    /// Stations' agents did not read so many frames of their monitor interfaces in time: what they reported is not what the radio did.
    UnreadFrames(u64),
    /// So many times the agent heard no fresh driver report for so long that it released all windows.
    DriverSilent(u64),
    /// The agent ended without an account of itself: what it did is not known.
    AgentSilent,
    /// So many agents of stations ended without an account of themselves.
    TerminalsSilent(usize),
    /// So many stations that send had no connection that their agent looked after.
    NotAdopted(usize),
    /// So many agents of PBE-CC ended without an account of themselves.
    PbeSilent(usize),
    /// A station's agent of PBE-CC was too slow for so many packets.
    UnreadArrivals(u64),
    /// So many connections that PBE-CC was to send did not agree on its option.
    NotAgreed(u64),
    /// So many relays ended without an account of themselves.
    RelaysSilent(usize),
    /// So many times a relay no longer heard its node's driver.
    DelayUnknown(u64),
}

/// The 99th percentile of lateness up to which a run counts.
pub const LATEST: Span = Span::from_millis(1);

impl Outcome {
    /// Delays of packets that reached `station` over the last hop between `from` and `to`, with the time of arrival.
    pub fn hop_delays(&self, station: Node, from: Time, to: Time) -> impl Iterator<Item = (Time, Span)> + '_ {
        let wanted = move |at: Time, to_node: Node| to_node == station && at >= from && at < to;
        self.hop.crossings.iter().filter(move |c| wanted(c.at, c.to)).map(|c| (c.at, c.delay))
    }

    /// Payload that bulk transfer `stream` received a second between `from` and `to`; `None` for another kind of
    /// stream or an empty interval. For `iperf3` it is that of the whole test, since its intervals begin at a moment
    /// that it does not tell.
    pub fn goodput(&self, stream: usize, from: Time, to: Time) -> Option<Rate> {
        match self.streams.get(stream)? {
            StreamLog::Bulk(log) => {
                let bin = |at: Time| (at.as_nanos() / BIN.as_nanos()) as usize;
                let bins = log.received.iter().skip(bin(from)).take(bin(to).saturating_sub(bin(from)));
                Rate::of(bins.copied().sum(), to.since(from))
            }
            StreamLog::Iperf3(log) => Some(log.goodput),
            StreamLog::Carried(log) => {
                let inside = log.received.iter().filter(|bin| {
                    let start = log.start + bin.start;
                    start >= from && start + bin.length <= to
                });
                Rate::of(inside.map(|bin| bin.payload).sum(), to.since(from))
            }
            StreamLog::Probe(_) | StreamLog::Udp(_) | StreamLog::Fetch(_) => None,
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::LateStart(span) => write!(f, "flows began {span} late: the machine was busy"),
            Doubt::Late(kind, p99) => {
                write!(f, "1 % of {} were more than {p99} late (limit {LATEST})", kind.plural())
            }
            Doubt::InterfaceDrops(n) => write!(f, "interfaces dropped {n} packets that no model dropped"),
            Doubt::Refused(n) => write!(f, "interfaces refused {n} frames"),
            Doubt::DriverSilent(n) => write!(f, "the driver fell silent {n} times, and the agent released all windows"),
            Doubt::AgentSilent => write!(f, "the agent gave no account of itself"),
            Doubt::TerminalsSilent(n) => write!(f, "the agents of {n} stations gave no account of themselves"),
            Doubt::NotAdopted(n) => write!(f, "the agents of {n} stations looked after no connection"),
            Doubt::PbeSilent(n) => write!(f, "{n} agents of PBE-CC gave no account of themselves"),
            Doubt::UnreadArrivals(n) => {
                write!(f, "stations' agents were too slow for {n} packets: the machine was busy")
            }
            Doubt::NotAgreed(n) => write!(f, "{n} connections of PBE-CC did not agree on its option"),
            Doubt::RelaysSilent(n) => write!(f, "the relays of {n} nodes gave no account of themselves"),
            Doubt::DelayUnknown(n) => write!(f, "relays lost their drivers {n} times, and wrote no delays meanwhile"),
            Doubt::UnreadReports(n) => write!(f, "the agent missed {n} driver reports"),
            Doubt::UnreadSubframes(n) => write!(f, "a reader of a station's control channel missed {n} subframes"),
            Doubt::UnreadFrames(n) => {
                write!(f, "stations' agents did not read {n} frames of their monitors in time: the machine was busy")
            }
            Doubt::UnreadDatagrams(n) => {
                write!(f, "hosts' programs did not take {n} datagrams in time: the machine was busy")
            }
        }
    }
}
