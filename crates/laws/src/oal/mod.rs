//! Rate allocation on the access point, enforced by rewriting receive windows (OAL).
//!
//! [`AccessPoint`] reads the driver's counters and what the rewriter has learned of each flow. [`predictor`] says whether
//! the hop is about to lose, [`capacity`] what it can carry, [`share`] how much of it each flow gets, [`window`] which
//! receive window makes a flow take that much.
//!
//! A predictor may learn: [`features`] are what it knows at a moment, [`evidence`] tells from passing headers what was lost, [`label`]
//! joins the two into items, [`trainer`] makes a [`tree`] of them, and [`learned`] predicts with the newest.
//! Where training is to be done by another process, items go there as [`lesson`]s.

pub mod air;
pub mod capacity;
pub mod drain;
pub mod evidence;
pub mod features;
pub mod label;
pub mod learned;
pub mod lesson;
pub mod map;
pub mod predictor;
pub mod rwnd;
pub mod share;
pub mod trainer;
pub mod tree;
pub mod window;

mod access_point;
mod params;
mod ranges;

use crate::{Entry, Parameters, Place};
pub use access_point::AccessPoint;

pub use params::{CapacityRule, Params, Prediction, Weights, WindowRule};

/// The name of the law.
pub const NAME: &str = "oal";
/// Its entry in the registry.
pub const LAW: Entry = Entry::hop(
    Place::AccessPoint,
    NAME,
    "On-AP learning: advertised windows from the shares of the hop's capacity.",
    Params::TABLE,
    |settings| Ok(Box::new(AccessPoint::new(Params::with(settings)?)?)),
);
