//! When a stream of the scenario acts.

use crate::agenda::Component;
use crate::context::Context;
use crate::payload::{Address, Payload, ProgramId, packet, udp_packet};
use lasthop_scenario::{Stream, StreamKind};
use lasthop_units::{Bytes, Seed, Span, Stream as Dice, Time};
use rand::RngExt;

/// A stream and when it acts next.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The stream.
    pub(crate) stream: Stream,
    /// Its place among all streams.
    pub(crate) place: usize,
    /// When it acts next; `None` when it is done.
    next: Option<Time>,
    /// When the interval began in which it acts next.
    interval: Time,
    dice: Dice,
    timer: Component,
}

impl Source {
    /// A source that acts first at the stream's start, or within an interval of it.
    pub(crate) fn new(stream: Stream, place: usize, seed: Seed) -> Source {
        let dice = seed.stream(&format!("traffic/{}/jitter", stream.number));
        let mut source = Source { stream, place, next: None, interval: stream.start, dice, timer: Component(0) };
        source.next = source.moment();
        source
    }

    /// Takes the timer of its program's actions.
    pub(crate) fn begin(&mut self, context: &mut Context, own: ProgramId) {
        self.timer = context.timer(own, 0);
        context.agenda.set(self.timer, self.next);
    }

    /// Sends a UDP packet with so much payload to the program `own` at the stream's other end.
    pub(crate) fn send(&self, context: &mut Context, own: ProgramId, size: Bytes) {
        let Stream { from, to, class, .. } = self.stream;
        // Any number will do for a hash, as long as it differs from stream to stream.
        let hash = (self.place as u32).wrapping_mul(0x9e37_79b9);
        let content = Payload::Udp { sent: context.now, packet: None };
        let to = Address { host: to, program: own };
        context.send(from, packet((from, to), udp_packet(size), class, hash, content));
    }

    /// The moment of the present interval; `None` if the stream is over by then.
    fn moment(&mut self) -> Option<Time> {
        let wait = match (self.stream.kind, self.stream.every()) {
            (StreamKind::Udp { rate: Some(_), periodic: false, .. }, Some(every)) => {
                every.scale(self.dice.random::<f64>())
            }
            _ => Span::ZERO,
        };
        Some(self.interval + wait).filter(|moment| *moment < self.stream.stop)
    }

    /// It acts: sets the timer of its next action.
    pub(crate) fn step(&mut self, context: &mut Context) {
        self.next = match (self.next, self.stream.every()) {
            // It begins, and it ends; what happens between is not its doing.
            (Some(now), _) if self.stream.is_bulk() => (now < self.stream.stop).then_some(self.stream.stop),
            (Some(_), Some(every)) => {
                self.interval += every;
                self.moment()
            }
            _ => None,
        };
        context.agenda.set(self.timer, self.next);
    }
}
