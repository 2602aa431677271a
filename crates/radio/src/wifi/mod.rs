//! An 802.11 channel: DCF and EDCA over a medium of nodes with a who-hears-whom relation.

mod error;
mod params;
mod phy;
#[allow(dead_code)] // the model that uses all of it follows
mod plan;

pub use error::Error;
pub use params::{Background, Beacons, Load, NodeParams, Params, Profile, RateChoice, Reach, ReachMatrix, Role};
pub use phy::{Band, GuardInterval, Mcs, Mode, Standard, Width};
pub use plan::Plan;
