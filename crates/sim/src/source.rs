//! What starts traffic: one source a stream of the scenario.

use lasthop_scenario::{Stream, StreamKind};
use lasthop_units::{Span, Time};

/// A stream and when it acts next.
#[derive(Clone, Debug)]
pub struct Source {
    /// The stream.
    pub stream: Stream,
    /// When it acts next; `None` when it is done.
    pub next: Option<Time>,
}

impl Source {
    /// A source whose first action comes `phase` of its interval after the stream's start (0 to 1). Streams that repeat
    /// would otherwise all act at the same moments, which no real ones do.
    pub fn new(stream: Stream, phase: f64) -> Source {
        let first = stream.start + interval(&stream).unwrap_or(Span::ZERO).scale(phase);
        Source { stream, next: (first < stream.stop).then_some(first) }
    }

    /// Steps to the next action.
    pub fn step(&mut self) {
        let next = self.next.zip(interval(&self.stream)).map(|(now, every)| now + every);
        self.next = next.filter(|next| *next < self.stream.stop);
    }
}

fn interval(stream: &Stream) -> Option<Span> {
    match stream.kind {
        StreamKind::Bulk { .. } => None,
        StreamKind::Probe { every, .. } | StreamKind::Fetch { every, .. } => Some(every),
    }
}
