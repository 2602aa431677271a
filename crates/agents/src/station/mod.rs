//! The station's agent: gives local programs connections through the tunnel, and tells the proxy how its frames arrive.
//!
//! Programs reach it as a proxy on this machine (SOCKS5 or HTTP CONNECT, on the same port), or through forwarded ports; in
//! transparent mode their connections are led to it without their knowing.
//! Once a slot it reports the frames that it received: those that a monitor interface shows, or, without one, those that
//! the arrival times of packets suggest ([`lasthop_laws::aggregation::timestamps`]). A station in a cell tells of that instead, with every acknowledgement
//! ([`Config::cell`]).

mod cell;
mod config;
#[cfg(feature = "bpf")]
pub(crate) mod diversion;
pub(crate) mod doors;
mod error;
mod frames;
pub(crate) mod local;
mod log;
mod run;
pub(crate) mod search;
mod session;
pub(crate) mod silence_reporter;
mod slots;
mod tunnel;

pub use config::{Config, Forward, Summary};
pub use error::Error;
pub use run::{Station, run};
