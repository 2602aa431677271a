//! The access point's agent: lowers the receive windows that stations advertise, as a law decides.
//!
//! [`run()`] loads the eBPF rewriter, attaches it to the wireless interface, gives up its privileges, and then, for every
//! report of the driver, tells the law of the flows and of the hop and writes the decided windows into the rewriter's
//! map. Everything fails open: when the driver falls silent every window is released, in steps; when the agent stops or
//! hangs, its heartbeat does, and within the age limit everything passes untouched; when it is killed, the kernel
//! detaches its TCX links.
//!
//! Not covered, by nature: QUIC and other transports that encrypt their windows, TCP inside tunnels, UDP, connections
//! that began before the agent, and packets that hardware carries past the hook, where the agent refuses
//! to begin ([`bypasses`]) and to go on. Their queues can only be kept short at the queue.

// Without the programs there is nothing to run, only what says so.
#![cfg_attr(not(feature = "bpf"), allow(dead_code))]

pub mod abi;
#[cfg(not(feature = "bpf"))]
mod absent;
mod agent;
mod config;
mod consistency;
mod error;
#[cfg(feature = "bpf")]
mod events;
#[cfg(feature = "bpf")]
pub mod kernel;
mod log;
mod news;
mod offload;
#[cfg(feature = "bpf")]
mod offload_monitor;
mod passing;
mod probe;
#[cfg(feature = "bpf")]
mod run;
#[cfg(feature = "bpf")]
mod sources;
mod stations;
pub mod status;
mod table;
mod watch;

#[cfg(not(feature = "bpf"))]
pub use absent::{clean, run, run_with};
pub use agent::Tally;
pub use config::{Config, Summary};
pub use consistency::Contradiction;
pub use error::Error;
pub use offload::{Bypass, find as bypasses};
pub use probe::{Check, Found, probe, probe_offload};
#[cfg(feature = "bpf")]
pub use run::{attached, clean, run, run_with};
