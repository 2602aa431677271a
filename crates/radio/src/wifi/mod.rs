//! An 802.11 channel: DCF and EDCA over a medium of nodes with a relation of audibility.
//!
//! [`Params`] says what there is, [`Params::validate`] makes a [`Plan`] of it, and [`Wifi`] is the hop built from that.

mod air;
mod arf;
mod background;
mod capture;
mod contention;
mod decibel;
mod error;
mod exchange;
mod frame;
mod handover;
mod last_hop;
mod link;
mod medium;
mod minstrel;
mod model;
mod mpdus;
mod outcome;
mod params;
mod phy;
mod plan;
mod rate_control;
mod rates;
mod report;
mod session;
mod snr;
#[cfg(test)]
mod tests;
mod timing;

pub use air::{Air, Hearing, MpduRecord, PpduKind, PpduRecord, Reception, Strength};
pub use decibel::{Db, Dbm};
pub use error::Error;
pub use link::{Fading, Link, PathLoss, Snr};
pub use model::Wifi;
pub use params::{
    Amsdu, Background, Beacons, LinkParams, Load, NodeParams, Params, RateChoice, Reach, ReachMatrix, Role,
};
pub use phy::{Band, GuardInterval, Mcs, Mode, Phy, Profile, Standard, Width};
pub use plan::Plan;
