//! What starts traffic: one source a stream of the scenario.

use lasthop_scenario::{Stream, StreamKind};
use lasthop_units::Time;

/// A stream and when it acts next.
#[derive(Clone, Debug)]
pub struct Source {
    /// The stream.
    pub stream: Stream,
    /// When it acts next; `None` when it is done.
    pub next: Option<Time>,
    /// UDP packets that it has sent.
    pub sent: u64,
}

impl Source {
    /// A source that acts first at the stream's start.
    pub fn new(stream: Stream) -> Source {
        Source { stream, next: (stream.start < stream.stop).then_some(stream.start), sent: 0 }
    }

    /// Steps to the next action.
    pub fn step(&mut self) {
        if let (StreamKind::Udp { rate: None, .. }, Some(now)) = (self.stream.kind, self.next) {
            // It begins, and it ends; what happens between is not its doing.
            self.next = (now < self.stream.stop).then_some(self.stream.stop);
            return;
        }
        let next = self.next.zip(self.stream.every()).map(|(now, every)| now + every);
        self.next = next.filter(|next| *next < self.stream.stop);
    }
}
