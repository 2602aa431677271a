//! What nodes of the last hop have received, until their hosts have it.
//!
//! A radio acknowledges a frame by itself, after a short interframe space of 10 or 16 us. Its host hears of the frame later, by an
//! interrupt, so that what answers the frame finds the medium busy and draws a backoff. A host that took no time would have its
//! answer ready in that gap, and would send it without one.

use crate::payload::Datagram;
use lasthop_radio::Packet;
use lasthop_signals::Node;
use lasthop_units::{Span, Time};
use std::collections::VecDeque;

/// Packets that wait, the first to be handed up in front.
#[derive(Clone)]
pub(crate) struct Received {
    delay: Span,
    waiting: VecDeque<(Time, Node, Packet<Datagram>)>,
}

impl Received {
    /// With `delay` from a frame's end until the host has what it carried.
    pub(crate) fn new(delay: Span) -> Received {
        Received { delay, waiting: VecDeque::new() }
    }

    /// Holds what a node has received at `at`, which is no earlier than the last time. Answers when the first that waits is due.
    ///
    /// # Errors
    /// The packet itself where hosts take no time.
    pub(crate) fn hold(&mut self, at: Time, to: Node, packet: Packet<Datagram>) -> Result<Time, Packet<Datagram>> {
        if self.delay.is_zero() {
            return Err(packet);
        }
        self.waiting.push_back((at + self.delay, to, packet));
        Ok(self.next().expect("one was just put there"))
    }

    /// The next packet that is due by `now`, and the node that received it.
    pub(crate) fn take(&mut self, now: Time) -> Option<(Node, Packet<Datagram>)> {
        self.next().filter(|due| *due <= now)?;
        self.waiting.pop_front().map(|(_, to, packet)| (to, packet))
    }

    /// When the next is due.
    pub(crate) fn next(&self) -> Option<Time> {
        self.waiting.front().map(|(due, ..)| *due)
    }
}
