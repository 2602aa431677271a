//! A link that delivers when a recorded trace says so, each direction by a trace of its own: what a station of a cellular
//! network saw of its cell.
//! Source:     mahimahi's `mm-link` (Netravali et al., USENIX ATC 2015); its rules were found by experiment.
//! Equations:  an opportunity at t serves up to 1504 bytes of what came before t, a packet counting its length + 4;
//!             arrival = time of the opportunity that serves the packet's last byte + delay
//! Deviations: none but in time: mahimahi cuts arrivals to whole milliseconds of the system's clock and starts each direction's
//!             trace when its process starts; here both begin with the run. A packet longer than an opportunity takes several,
//!             where mahimahi ends.
//! Validity:   rates up to some Gbit/s.     Checked by: tests::*, `crates/sim/tests/integration/recorded.rs`
//!
//! What an opportunity does not carry is lost: a link with an empty queue at t gains nothing later. A packet that is
//! served in part goes on in the next opportunity and no longer counts against the queue's limit.

mod last_hop;
mod line;
mod peak;
mod queue;
mod shown;
#[cfg(test)]
mod tests;

pub use last_hop::Plan;

use crate::duplex::{Backlog, Duplex};
use crate::queue::LinkKind;
use crate::star::{CENTRE, Star};
use crate::{Dest, Drop, NextEvent, Outbox, Packet};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use lasthop_wire::delivery::DeliveryTrace;
use line::Line;

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// When it delivers.
    pub trace: DeliveryTrace,
    /// What waits for it.
    pub queue: LinkKind,
    /// From the opportunity that serves a packet's last byte to its arrival.
    pub delay: Span,
    /// The receiving end is shown its opportunities, as [`lasthop_signals::Signal::Subframe`]s of a cell in which it is alone.
    pub shown: bool,
}

/// A link between two nodes.
#[derive(Clone, Debug)]
pub struct Link<P> {
    ends: [Node; 2],
    lines: [Line<P>; 2],
}

impl<P> Link<P> {
    /// A link from `a` to `b` described by `ab`, and back by `ba`. Its queues draw from the streams of `seed` that bear `name`.
    pub fn new(a: Node, b: Node, ab: &Params, ba: &Params, seed: Seed, name: &str) -> Link<P> {
        let line = |params: &Params, direction| Line::new(params.clone(), seed.stream(&format!("{name}/{direction}")));
        Link { ends: [a, b], lines: [line(ab, "there"), line(ba, "back")] }
    }

    /// A link from [`CENTRE`] to each of `stations`, all alike.
    pub fn star(stations: u16, down: &Params, up: &Params, seed: Seed) -> Star<Link<P>> {
        Star::of((1..=stations).map(|n| Link::new(CENTRE, Node(n), down, up, seed, &format!("radio/trace/{n}"))))
    }

    fn direction(&self, from: Node) -> Option<usize> {
        self.ends.iter().position(|end| *end == from)
    }
}

impl<P> Duplex<P> for Link<P> {
    fn offer<O: Outbox<P>>(&mut self, now: Time, packet: Packet<P>, out: &mut O) {
        self.run_to(now, out);
        let Some(from) = self.direction(packet.src) else {
            return out.dropped(now, packet, Drop::Unreachable);
        };
        if matches!(packet.dst, Dest::Node(to) if to != self.ends[1 - from]) {
            return out.dropped(now, packet, Drop::Unreachable);
        }
        self.lines[from].enqueue(now, packet, out);
    }

    fn run_to<O: Outbox<P>>(&mut self, now: Time, out: &mut O) {
        // The two directions share nothing, so each may run to `now` by itself.
        for (from, line) in self.lines.iter_mut().enumerate() {
            line.advance(now, self.ends[1 - from], out);
        }
    }
}

impl<P> Backlog for Link<P> {
    fn backlog(&self, from: Node) -> (usize, Bytes) {
        self.direction(from).map_or((0, Bytes::ZERO), |i| self.lines[i].backlog())
    }

    fn oldest(&self, from: Node) -> Option<Time> {
        self.lines[self.direction(from)?].oldest()
    }

    fn rate(&mut self, now: Time, from: Node) -> Rate {
        self.direction(from).map_or(Rate::ZERO, |i| self.lines[i].rate(now))
    }
}

impl<P> NextEvent for Link<P> {
    fn next_event(&self) -> Option<Time> {
        self.lines.iter().filter_map(Line::next_event).min()
    }
}
