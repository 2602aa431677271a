//! The host's own TCP: what its connections do, and how large the windows of its uploads may be.
//!
//! [`Sockets`] lists the TCP sockets of a network namespace with their inner state. It needs no privilege. [`Watch`] looks at them again
//! and again, and tells what each connection did meanwhile and what held it back ([`Limit`]). [`CaCounter`] counts what is over before
//! anybody looks. A [`Filter`] chooses connections; [`FIELDS`] is what programs read of them.
//!
//! [`Host`] is the agent of a terminal: it looks at the host's uploads, tells other terminals of the same access point that it sends,
//! and keeps windows within the bounds that a law decides. Everything fails open: bounds hold for less than a second without the
//! agent. It cannot bound QUIC and other transports in user space, connections that began before it, those of programs
//! in other cgroups or network namespaces, and those over another congestion control than CUBIC.

// Without the programs there is nothing to run, only what says so.
#![cfg_attr(not(feature = "bpf"), allow(dead_code))]

#[cfg(not(feature = "bpf"))]
mod absent;
mod bss;
mod ca_entries;
mod config;
mod error;
mod fields;
mod filter;
#[cfg(feature = "bpf")]
mod guard;
mod limit;
#[cfg(feature = "bpf")]
mod log;
mod neighbours;
mod network;
#[cfg(test)]
mod readings;
#[cfg(feature = "bpf")]
mod run;
mod sockets;
mod uploads;
mod watch;

#[cfg(not(feature = "bpf"))]
pub use absent::Host;
pub use ca_entries::{CaCounter, CaEntries};
pub use config::{Config, Summary, Way};
pub use error::Error;
pub use fields::{FIELDS, Field, Kind, SCHEMA, Value};
pub use filter::{Filter, FilterError};
#[cfg(feature = "bpf")]
pub use guard::Guard;
pub use limit::Limit;
pub use neighbours::{Destination, NOTICE_PORT, Refused};
#[cfg(feature = "bpf")]
pub use run::{HOLD, Host};
pub use sockets::Sockets;
pub use watch::{Reading, Recent, Totals, Watch};

use crate::service::{self, privileges};

/// Leaves the calling thread with nothing but what reading the counter's map needs (CAP_BPF, before Linux 5.19).
///
/// # Errors
/// [`service::Error::Privileges`].
pub fn drop_privileges() -> Result<(), service::Error> {
    privileges::drop_all_but(&[privileges::BPF])
}
