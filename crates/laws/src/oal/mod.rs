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

pub use access_point::AccessPoint;
pub use params::{CapacityRule, Params, Weights, WindowRule};
