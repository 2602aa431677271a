//! The OLSR agent of a mesh's node: packets at UDP port 698 of one interface, and routes in the kernel's main table.
//!
//! [`Agent::open`] binds the sockets, removes what a killed agent has left, and gives up all rights but CAP_NET_ADMIN, which changes
//! routes. Routes have the protocol number [`PROTOCOL`] and the metric [`METRIC`], so they are told from others', and no other route is
//! ever replaced. They are removed at the end.
//!
//! OLSR has no authentication: whoever is on the link can draw routes to itself. Destinations are therefore taken only from one network
//! ([`Config::within`]), that of the interface if nothing else is said.

mod config;
mod error;
mod interface;
mod kernel;
mod run;
mod sockets;

pub use config::{Config, Prefix, PrefixError, Summary};
pub use error::Error;
pub use kernel::{METRIC, PROTOCOL};
pub use run::{Agent, Change};
