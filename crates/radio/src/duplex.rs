//! A link between two nodes.

use crate::{NextEvent, Outbox, Packet};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Rate, Time};

/// What waits for a link.
pub trait Backlog: NextEvent {
    /// Packets that wait to leave `from`, the one being sent included, and their network-layer bytes.
    fn backlog(&self, from: Node) -> (usize, Bytes);
    /// When the oldest of those packets was enqueued; `None` if none waits.
    fn oldest(&self, from: Node) -> Option<Time>;
    /// What the link is capable of from `from` at `now`: its PHY rate.
    fn rate(&mut self, now: Time, from: Node) -> Rate;
}

/// A link between two nodes, as a star needs it.
pub trait Duplex<P>: Backlog {
    /// As [`crate::Hop::enqueue`].
    fn offer<O: Outbox<P>>(&mut self, now: Time, packet: Packet<P>, out: &mut O);
    /// As [`crate::Hop::advance`].
    fn run_to<O: Outbox<P>>(&mut self, now: Time, out: &mut O);
}
