//! The production side: agents on real interfaces.

pub mod ap;
#[cfg(test)]
mod documented;
pub mod endpoint;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod gateway;
pub mod host;
pub mod learn;
pub mod monitor;
pub mod olsr;
pub mod pbe;
pub mod proxy;
pub mod relay;
pub mod service;
pub mod station;
pub mod transparent;
pub mod tunnel;
