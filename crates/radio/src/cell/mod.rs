//! An LTE cell: a base station that gives its stations parts of one or more FDD carriers, a millisecond at a time.
//!
//! [`Params`] says what there is, [`Params::validate`] makes a [`Plan`] of it, and [`Cell`] is the hop built from that.

mod background;
mod carriers;
pub mod codewords;
mod decoder;
mod error;
mod handover;
mod harq;
mod last_hop;
mod link;
pub mod mcs;
mod model;
mod numbers;
mod params;
mod report;
mod rlc;
mod scheduler;
mod station;
pub mod tbs;
mod terminal;

pub use error::Error;
pub use link::Link;
pub use model::Cell;
pub use numbers::MOST_CARRIERS;
pub use params::{Aggregation, Background, Bursts, Params, Plan, Scheduler};
pub use station::{BlockError, DecoderErrors, Handovers, StationParams, Step, UPLINK};
