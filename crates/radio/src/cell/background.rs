//! Traffic that the cell makes up by itself: bursts to terminals that are no nodes, and signalling to terminals that come and go.
//! Source:     Xie et al. 2020, section 4.2.1: most terminals that a control channel shows are there for one subframe, with four PRB pairs.
//! Equations:  gaps are exponentially distributed
//! Deviations: a burst comes whole, as from a fast wire, and waits whole, however many wait before it: its terminal's buffer has no end. Signalling is never damaged; a terminal that finds no room waits for the next subframe.
//! Checked by: tests/integration/cell.rs

use super::numbers::uniform;
use super::params::{Background, Bursts};
use lasthop_units::{Seed, Span, Stream, Time};

/// A source of bursts or of signalling.
#[derive(Clone, Debug)]
pub(super) struct Source {
    kind: Background,
    /// Which terminal gets its bursts.
    terminal: usize,
    /// When it acts next.
    pub next: Time,
    stream: Stream,
}

/// What a source does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// So many octets come for a terminal.
    Burst { terminal: usize, octets: u64 },
    /// A terminal must be told something.
    Signal,
}

impl Source {
    /// The source `index`. Its bursts go to `terminal`.
    pub fn new(kind: Background, index: usize, terminal: usize, seed: Seed) -> Source {
        let mut stream = seed.stream(&format!("cell/background{index}"));
        let next = Time::ZERO + gap(kind.rate(), &mut stream);
        Source { kind, terminal, next, stream }
    }

    /// What it is.
    pub fn kind(&self) -> Background {
        self.kind
    }

    /// It acts, and says what it does.
    pub fn act(&mut self) -> Act {
        let act = match self.kind {
            Background::Control { .. } => Act::Signal,
            Background::Data { bursts, .. } => {
                let octets = match bursts {
                    Bursts::Fixed(size) => size.get(),
                    Bursts::Exponential(mean) => mean.scale(exponential(&mut self.stream)).get().max(1),
                };
                Act::Burst { terminal: self.terminal, octets }
            }
        };
        self.next += gap(self.kind.rate(), &mut self.stream);
        act
    }
}

/// Exponentially distributed about 1.
fn exponential(stream: &mut Stream) -> f64 {
    -uniform(stream).ln()
}

fn gap(rate: f64, stream: &mut Stream) -> Span {
    Span::from_secs_f64(exponential(stream) / rate)
}
