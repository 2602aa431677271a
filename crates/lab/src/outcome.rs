//! What a run leaves.

use crate::histogram::Summary;
use crate::log::HopLog;
use crate::traffic::bulk::{BIN, BulkLog};
use crate::traffic::fetch::Fetch;
use crate::traffic::iperf3::Iperf3Log;
use crate::traffic::probe::Probe;
use lasthop_signals::Node;
use lasthop_units::{Bytes, Rate, Span, Time};
use std::fmt;

/// Everything measured in a run. Times count from the moment the hops came to life; traffic began at
/// [`Outcome::began`].
#[derive(Clone, Debug)]
pub struct Outcome {
    /// When the first flow could start.
    pub began: Time,
    /// When traffic ended.
    pub ended: Time,
    /// What crossed the last hop.
    pub hop: HopLog,
    /// One entry a bulk download, in the specification's order.
    pub bulk: Vec<FlowLog>,
    /// All probes, by station and time.
    pub probes: Vec<Probe>,
    /// All fetches, by station and time.
    pub fetches: Vec<Fetch>,
    /// How late the emulator handed packets over.
    pub lateness: Summary,
    /// True if the emulator ran under SCHED_FIFO.
    pub realtime: bool,
    /// Why the run should not be believed; empty if it may be.
    pub doubts: Vec<Doubt>,
}

/// One bulk download's log.
#[derive(Clone, Debug)]
pub enum FlowLog {
    /// By our own sender.
    Own(BulkLog),
    /// By `iperf3`.
    Iperf3(Iperf3Log),
}

/// Something that happened outside the models.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doubt {
    /// One packet in a hundred was handed over later than [`LATEST`].
    Late(Span),
    /// Interfaces dropped packets by themselves.
    InterfaceDrops(u64),
    /// An interface refused frames of the emulator.
    Refused(u64),
    /// The agent missed driver reports.
    UnreadReports(u64),
}

/// The 99th percentile of lateness up to which a run counts.
pub const LATEST: Span = Span::from_millis(1);

impl Outcome {
    /// Delays of packets that reached `station` over the last hop between `from` and `to`.
    pub fn hop_delays(&self, station: Node, from: Time, to: Time) -> impl Iterator<Item = (Time, Span)> + '_ {
        let wanted = move |at: Time, to_node: Node| to_node == station && at >= from && at < to;
        self.hop.crossings.iter().filter(move |c| wanted(c.at, c.to)).map(|c| (c.at, c.delay))
    }

    /// Payload that download `flow` received a second between `from` and `to`; `None` for an unknown flow or an empty
    /// interval. `iperf3`'s intervals count from the flow's own start, which it does not tell exactly: for it, the rate
    /// is that of its whole test.
    pub fn goodput(&self, flow: usize, from: Time, to: Time) -> Option<Rate> {
        match self.bulk.get(flow)? {
            FlowLog::Own(log) => {
                let bin = |at: Time| (at.as_nanos() / BIN.as_nanos()) as usize;
                let bins = log.received.iter().skip(bin(from)).take(bin(to).saturating_sub(bin(from)));
                Rate::of(bins.copied().sum(), to.since(from))
            }
            FlowLog::Iperf3(log) => Some(log.goodput),
        }
    }

    /// Payload sent and payload retransmitted by download `flow`, retransmissions included in the first; `None` where
    /// the program does not tell.
    pub fn sent_and_retransmitted(&self, flow: usize) -> Option<(Bytes, Bytes)> {
        match self.bulk.get(flow)? {
            FlowLog::Own(log) => Some((log.last.sent, log.last.retransmitted)),
            FlowLog::Iperf3(_) => None,
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::Late(p99) => write!(f, "1 % of packets were more than {p99} late (limit {LATEST})"),
            Doubt::InterfaceDrops(n) => write!(f, "interfaces dropped {n} packets that no model dropped"),
            Doubt::Refused(n) => write!(f, "interfaces refused {n} frames"),
            Doubt::UnreadReports(n) => write!(f, "the agent missed {n} driver reports"),
        }
    }
}
