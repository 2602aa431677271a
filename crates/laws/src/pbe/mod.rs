//! PBE-CC: a receiver in a cell measures its capacity in the cell's control channel, and the sender goes at it.
//!
//! The receiver ([`Receiver`]) decodes which part of each subframe every user is given. It counts the terminals that
//! share a carrier (`filter`), takes what is its own and its part of what nobody has (`capacity`), and turns that into
//! what TCP can have (`translate`). From the delays of packets (`delay`) it tells whether the cell is the narrowest
//! place at all (`bottleneck`). The sender ([`Pbe`]) paces at what it is told, or, while another place is the
//! narrowest, as BBR would (`cellular`).
//!
//! Of the paper (\[pbe\]) only the part up to its equation 3 was at hand. The filter of users, the translation, the
//! delay threshold, the counts of packets and the drain follow general knowledge of the published paper and public
//! code; they are not checked against the original.
//!
//! Logs of a cell's control channel are looked at with the same code: [`Meter`] says which users share the cell and
//! what it has left, and [`Align`] finds which of its terminals is the own one.

mod align;
mod bottleneck;
mod capacity;
mod cellular;
mod delay;
mod filter;
mod meter;
mod overhead;
mod receiver;
mod sender;
#[cfg(test)]
mod test_cell;
mod translate;

pub use align::{Align, Own, Unfound};
pub use meter::{Cell, CellSnapshot, Class, Meter, Terminal, Totals};
pub use overhead::HEADERS;
pub use receiver::Receiver;
pub use sender::{Pbe, SHARED};

use crate::{Entry, Parameters, Place, Transport, params, words};
use lasthop_units::{Rate, Span};

/// The name of the laws.
pub const NAME: &str = "pbe";
/// The sender's entry in the registry.
pub const LAW: Entry = Entry::sender(
    NAME,
    "PBE-CC (Xie, Yi, Jamieson 2020): the capacity that a receiver measures in its cell; BBR where receivers do not tell.",
    Params::TABLE,
    |settings, setup| Ok(Box::new(Pbe::new(Params::with(settings)?, setup))),
)
.over(Transport::ReceiverFeedback);
/// The receiver's. A connection's receiver has what is set of its sender.
pub const RECEIVER: Entry = Entry::receiver(
    Place::Receiver,
    NAME,
    "PBE-CC's receiver: its capacity in a cell, from what the cell's control channel gives to whom.",
    Params::TABLE,
    |settings, _| Ok(Box::new(Receiver::new(Params::with(settings)?))),
);

/// The parameters that senders look at, by their keys; the others are receivers'.
pub const OF_SENDERS: &[&str] = &["headroom", "keep-probing", "most"];

/// Rounds that deliveries are remembered for.
const ROUNDS: u64 = 10;
/// Segments that may be in flight at least.
const LEAST_SEGMENTS: u64 = 4;
/// How long a subframe is, for which capacities are counted.
const SUBFRAME: Span = Span::from_millis(1);

params! {
    /// What may be set of a connection, at both ends.
    pub struct Params {
        /// How a cell's blocks become TCP capacity.
        translation: Translation = "of-goodput";
        /// Headers over payload, where not measured, and at most.
        overhead: f64 = "0.068", |p| crate::param::from_to(p.overhead, 0.0, 0.5) => "from 0 to 0.5";
        /// Measure it from lengths of blocks and packets. `false`: as published.
        measured_overhead: bool = "true";
        /// Capacity is at least the fair share. `false`: as published.
        least_fair: bool = "true";
        /// Where the bottleneck is elsewhere, a probe that found more is followed by another at
        /// once. `false`: as published.
        keep_probing: bool = "true";
        /// Count only terminals active in more than one subframe with more than four PRBs on
        /// average.
        user_filter: bool = "true";
        /// Time until a failed block comes again; 8 ms in LTE FDD.
        harq_round: Span = "8 ms", |p| p.harq_round <= Span::from_millis(100) => "at most 100 ms";
        /// Delay variation allowed beside three such rounds.
        jitter: Span = "3 ms", |p| p.jitter <= Span::from_millis(100) => "at most 100 ms";
        /// Data in flight beyond a full path, as time at the capacity; one HARQ round keeps the
        /// cell busy. 0: as published.
        headroom: Span = "8 ms", |p| p.headroom <= Span::from_millis(100) => "at most 100 ms";
        /// Largest capacity that is believed (3GPP TS 36.306, category 20).
        most: Rate = "2 Gbit/s", |p| p.most >= Rate::from_mbit(1) => "at least 1 Mbit/s";
    }
}

words! {
    /// How a cell's blocks become TCP capacity.
    pub enum Translation {
        /// C_t = C_p / (1 + overhead + error): both are parts of goodput; a repeated block is
        /// decoded.
        OfGoodput = "of-goodput",
        /// C_t = C_p (1 - overhead - error): both are parts of what the cell carries; a repeated
        /// block fails as often.
        OfPhysical = "of-physical",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_senders_look_at_are_parameters() {
        assert!(OF_SENDERS.iter().all(|key| LAW.param(key).is_some()));
    }
}
