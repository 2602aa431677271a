//! The host's own TCP: what its connections do, and how large the windows of its uploads may be.
//!
//! [`Sockets`] lists the TCP sockets of a network namespace with their inner state. It needs no privilege. [`Host`] is the
//! agent of a terminal: it looks at the host's uploads, tells other terminals of the same access point that it sends, and keeps
//! windows within the bounds that a law decides. Everything fails open: bounds hold for less than a second without the agent.
//!
//! Not covered, by nature: QUIC and other transports in user space, connections that began before the agent, those of
//! programs in other cgroups or network namespaces, and those over another congestion control than CUBIC.

// Without the programs there is nothing to run, only what says so.
#![cfg_attr(not(feature = "bpf"), allow(dead_code))]

#[cfg(not(feature = "bpf"))]
mod absent;
mod bss;
mod config;
mod error;
#[cfg(feature = "bpf")]
mod guard;
#[cfg(feature = "bpf")]
mod log;
mod neighbours;
mod network;
#[cfg(feature = "bpf")]
mod run;
mod sockets;
mod uploads;

#[cfg(not(feature = "bpf"))]
pub use absent::Host;
pub use config::{Cast, Config, Summary, Way};
pub use error::HostError;
#[cfg(feature = "bpf")]
pub use guard::Guard;
pub use neighbours::{NOTICE_PORT, Refused};
#[cfg(feature = "bpf")]
pub use run::{HOLD, Host};
pub use sockets::Sockets;
