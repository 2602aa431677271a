//! The host's own TCP: what its connections do.
//!
//! [`Sockets`] lists the TCP sockets of a network namespace with their inner state. It needs no privilege.

mod error;
mod sockets;

pub use error::HostError;
pub use sockets::Sockets;
