//! TCP of all hosts: what the kernel is to a program.

use crate::payload::ProgramId;
use crate::programs::connection::{Connection, End};
use lasthop_laws::Choice;
use lasthop_signals::{FlowId, Node};
use std::collections::{BTreeMap, BTreeSet};

/// Every connection of the world, and what is set of those to come.
#[derive(Clone, Default)]
pub(crate) struct Sockets {
    /// The program that serves their ends.
    pub(crate) program: ProgramId,
    pub(crate) connections: Vec<Connection>,
    /// The congestion control of each host.
    pub(crate) laws: Vec<Choice>,
    /// Stations that keep the queues of their connections small.
    pub(crate) small_queues: BTreeSet<Node>,
    /// Stations at which it counts what waits of each connection.
    pub(crate) counted: BTreeSet<Node>,
    /// Whether a host without a route yet will find one over the last hop.
    pub(crate) routes_are_found: bool,
    /// The connection and end that a packet of such a station belongs to, by its flow's hash.
    pub(crate) senders: BTreeMap<(Node, u32), (usize, End)>,
    /// Connections of bulk senders that were not done at the last look.
    pub(crate) sampled: Vec<usize>,
    /// Those an end of which tells of its cell.
    pub(crate) with_feedback: Vec<usize>,
}

/// A connection's flow in figures, by its number.
pub(crate) fn flow_id(number: usize) -> FlowId {
    FlowId(number as u32)
}
