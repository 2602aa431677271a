//! What starts traffic: one source a stream of the scenario.

use lasthop_scenario::{Stream, StreamKind};
use lasthop_units::{Seed, Span, Stream as Dice, Time};
use rand::RngExt;

/// A stream and when it acts next.
#[derive(Clone, Debug)]
pub struct Source {
    /// The stream.
    pub stream: Stream,
    /// When it acts next; `None` when it is done.
    pub next: Option<Time>,
    /// UDP packets that it has sent.
    pub sent: u64,
    /// When the interval began in which it acts next.
    interval: Time,
    dice: Dice,
}

impl Source {
    /// A source that acts first at the stream's start, or within an interval of it.
    pub fn new(stream: Stream, seed: Seed) -> Source {
        let dice = seed.stream(&format!("traffic/{}/jitter", stream.number));
        let mut source = Source { stream, next: None, sent: 0, interval: stream.start, dice };
        source.next = source.moment();
        source
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

    /// Steps to the next action.
    pub fn step(&mut self) {
        if let (true, Some(now)) = (self.stream.is_bulk(), self.next) {
            // It begins, and it ends; what happens between is not its doing.
            self.next = (now < self.stream.stop).then_some(self.stream.stop);
            return;
        }
        let Some(every) = self.next.and(self.stream.every()) else {
            self.next = None;
            return;
        };
        self.interval += every;
        self.next = self.moment();
    }
}
