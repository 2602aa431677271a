//! What starts traffic: one source a stream of the scenario.

use lasthop_scenario::Stream;
use lasthop_units::Time;

/// A stream and when it acts next.
#[derive(Clone, Debug)]
pub struct Source {
    /// The stream.
    pub stream: Stream,
    /// When it acts next; `None` when it is done.
    pub next: Option<Time>,
}

impl Source {
    /// A source that acts first at the stream's start.
    pub fn new(stream: Stream) -> Source {
        Source { stream, next: (stream.start < stream.stop).then_some(stream.start) }
    }

    /// Steps to the next action.
    pub fn step(&mut self) {
        let next = self.next.zip(self.stream.every()).map(|(now, every)| now + every);
        self.next = next.filter(|next| *next < self.stream.stop);
    }
}
