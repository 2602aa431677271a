//! The production side: agents on real interfaces.

pub mod ap;
pub mod monitor;
pub mod proxy;
mod remedy;
pub mod station;
pub mod transparent;
pub mod tunnel;
