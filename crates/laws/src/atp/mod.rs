//! ATP: a transport for meshes. Its sender goes at the rate of the path's slowest hop.
//!
//! Every node keeps the delay of its own hop ([`HopDelay`]) and stamps it into the packets that it forwards, where it is larger than what stands there.
//! The receiver averages what comes ([`Average`]) and tells the sender once an epoch; the sender takes its inverse for a rate ([`Rate`]).

mod average;
mod hop_delay;
mod rate;

pub use average::Average;
pub use hop_delay::{HopDelay, SHARED};
pub use rate::Rate;

use crate::{Entry, Parameters, Place, Transport, params, words};
use lasthop_units::Span;

/// No receiver tells more often.
pub const SHORTEST_EPOCH: Span = Span::from_millis(40);
/// No receiver tells more rarely while packets come.
pub const LONGEST_EPOCH: Span = Span::from_secs(1);
/// How often a receiver tells, from what a header or a frame says of it: no sender believes a time that no receiver's law can have.
pub fn believed_epoch(told: Span) -> Span {
    told.clamp(SHORTEST_EPOCH, LONGEST_EPOCH)
}

/// No longer D is believed: at a packet in more than that the receiver would fall silent between two. D is not authenticated, and what a
/// damaged or a forged one does is over after as long.
pub const LONGEST_DELAY: Span = Span::from_secs(4);
/// Holes in what has come that are told at once: a report has room for twenty blocks.
pub const HOLES: usize = 16;

/// The name of the laws.
pub const NAME: &str = "atp";
/// The sender's entry in the registry.
pub const LAW: Entry = Entry::sender(
    NAME,
    "ATP (Sundaresan et al. 2005; Zhang, Buck, Zappala 2011): the rate of the path's slowest hop, over a transport of its own.",
    Params::TABLE,
    |settings, _| Ok(Box::new(Rate::new(Params::with(settings)?))),
)
.over(Transport::Atp);
/// The receiver's. A connection's receiver has what is set of its sender.
pub const RECEIVER: Entry = Entry::receiver(
    Place::Receiver,
    NAME,
    "ATP's receiver: the average delay of the path's slowest hop, once an epoch.",
    Params::TABLE,
    |settings, _| Ok(Box::new(Average::new(Params::with(settings)?))),
);

params! {
    /// What may be set of a connection, at both ends.
    pub struct Params {
        /// How often the receiver reports.
        variant: Variant = "adaptive";
        /// Part of the way to the path's rate that a step up takes. 0: the variant's own, 0.2 for
        /// `default`, otherwise 0.5.
        increase: f64 = "0", |p| crate::param::from_to(p.increase, 0.0, 1.0) => "from 0 to 1";
        /// `adaptive`: packets in an epoch.
        packets: u32 = "20", |p| (1..=10_000).contains(&p.packets) => "from 1 to 10000";
        /// `adaptive`: relative change of the average that is reported at once.
        change: f64 = "0.25", |p| crate::param::from_to(p.change, 0.0, 100.0) => "from 0 to 100";
    }
}

impl Params {
    /// True if a receiver tells of what has come apart from what its law tells of the path.
    pub fn reports_apart(&self) -> bool {
        self.variant == Variant::OnChange
    }

    /// The part of the way that a step up takes.
    fn step(&self) -> f64 {
        match self.variant {
            _ if self.increase > 0.0 => self.increase,
            Variant::Default => 0.2,
            Variant::Aggressive | Variant::Adaptive | Variant::OnChange => 0.5,
        }
    }
}

words! {
    /// How often the receiver reports.
    pub enum Variant {
        /// Every second.
        Default = "default",
        /// Every 40 ms.
        Aggressive = "aggressive",
        /// After `packets` packets, and at once when the path changes.
        Adaptive = "adaptive",
        /// When the average has changed by a tenth, or after a second; arrivals are reported every
        /// twenty packets.
        OnChange = "on-change",
    }
}
