//! Rate allocation on the access point, enforced by rewriting receive windows (OAL).
//!
//! [`AccessPoint`] reads the driver's counters and what the rewriter has learned of each flow. [`predictor`] says whether
//! the hop is about to lose, [`capacity`] what it can carry, [`share`] who gets how much of it, [`window`] which receive
//! window makes a flow take that much.

pub mod capacity;
pub mod predictor;
pub mod rwnd;
pub mod share;
pub mod window;

mod access_point;
mod params;

use crate::{Entry, Parameters, Place};
pub use access_point::AccessPoint;

pub use params::{CapacityRule, Params, Weights, WindowRule};

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
