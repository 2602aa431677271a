//! An LTE cell: a base station that gives its stations parts of one or more FDD carriers, a millisecond at a time.
//!
//! [`Params`] says what there is, [`Params::validate`] makes a [`Plan`] of it, and [`Cell`] is the hop built from that.

mod background;
mod carriers;
mod harq;
pub mod mcs;
mod model;
mod params;
mod rlc;
mod scheduler;
pub mod tbs;
mod terminal;

pub use model::Cell;
pub use params::{
    Aggregation, Background, BlockError, Bursts, Error, MOST_CARRIERS, Params, Plan, Scheduler, StationParams, Step,
    UPLINK,
};
