//! The host's own TCP: what its connections do.
//!
//! [`Sockets`] lists the TCP sockets of a network namespace with their inner state. It needs no privilege. [`Watch`] looks at them again
//! and again, and tells what each connection did meanwhile and what held it back ([`Limit`]). [`CaCounter`] counts what is over before
//! anybody looks. A [`Filter`] chooses connections; [`FIELDS`] is what programs read of them.

mod ca_entries;
mod error;
mod fields;
mod filter;
mod limit;
#[cfg(test)]
mod readings;
mod sockets;
mod watch;

pub use ca_entries::{CaCounter, CaEntries};
pub use error::HostError;
pub use fields::{FIELDS, Field, Kind, SCHEMA, Value};
pub use filter::{Filter, FilterError};
pub use limit::Limit;
pub use sockets::Sockets;
pub use watch::{Reading, Recent, Totals, Watch};

use crate::ap::privileges;

/// Leaves the calling thread with nothing but what reading the counter's map needs (CAP_BPF, before Linux 5.19).
///
/// # Errors
/// [`HostError::Privileges`].
pub fn drop_privileges() -> Result<(), HostError> {
    privileges::drop_all_but(&[privileges::BPF]).map_err(|error| HostError::Privileges(Box::new(error)))
}
