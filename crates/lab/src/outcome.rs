//! What a run leaves.

use crate::histogram::Summary;
use crate::lateness::Kind;
use crate::log::{Blocks, Departure, HopLog};
use crate::traffic::bulk::{BIN, BulkLog};
use crate::traffic::carried::CarriedLog;
use crate::traffic::fetch::Fetch;
use crate::traffic::iperf3::Iperf3Log;
use crate::traffic::probe::Probe;
use lasthop_signals::Node;
use lasthop_units::{Rate, Span, Time};
use serde_json::Value;
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
    /// What programs beside the traffic printed to standard error, each line with the program's name.
    pub said: String,
    /// What they say that they have done, by the names of their accounts: added up, or by the names of hosts.
    pub accounts: BTreeMap<String, Value>,
    /// What those of them that log have logged, by the names of their logs.
    pub logs: BTreeMap<String, String>,
    /// The world's beginning on `CLOCK_MONOTONIC`, by which programs log.
    pub origin: Time,
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
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Doubt {
    /// Flows could begin only so long after the world did: the machine was busy with something else.
    LateStart(Span),
    /// One event in a hundred of a kind was later than [`LATEST`].
    Late(Kind, Span),
    /// Interfaces dropped packets by themselves.
    InterfaceDrops(u64),
    /// An interface refused frames of the emulator.
    Refused(u64),
    /// Agents missed driver reports.
    UnreadReports(u64),
    /// A reader of a control channel missed so many subframes.
    UnreadSubframes(u64),
    /// A host's programs did not take datagrams in time: what waited in their sockets was in no model's queue.
    UnreadDatagrams(u64),
    /// Stations' agents did not read so many frames of their monitor interfaces in time: what they reported is not what the radio did.
    UnreadFrames(u64),
    /// What programs say of themselves, or do not say.
    OfPrograms(String),
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
            Doubt::OfPrograms(says) => f.write_str(says),
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
