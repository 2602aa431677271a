//! The relay of a mesh's node: its own delay D, written into the datagrams of ATP that leave where it is larger than what stands there.
//!
//! [`Relay::open`] attaches a program to the egress of the interfaces, opens the source of D, and gives its privileges up. [`Relay::run`] keeps D
//! as `lasthop_laws::atp::HopDelay` has it, and tells the program every 5 ms what it is, and until when that holds. Everything fails
//! open: D of a relay that dies, or stands still, holds for no longer than the age limit, and the kernel detaches the programs of one that dies.
//!
//! Other protocols that act at every hop are handlers of packets: [`PerHop`].
#![cfg_attr(not(feature = "bpf"), allow(dead_code))]

#[cfg(not(feature = "bpf"))]
mod absent;
mod config;
mod error;
#[cfg(feature = "bpf")]
mod handler;
#[cfg(feature = "bpf")]
pub mod measure;
#[cfg(feature = "bpf")]
mod nfqueue;
mod per_hop;
#[cfg(feature = "bpf")]
mod run;
#[cfg(feature = "bpf")]
mod source;
#[cfg(feature = "bpf")]
pub mod stamper;

#[cfg(not(feature = "bpf"))]
pub use absent::{Relay, clean};
pub use config::{Config, Device, PORT, Source, Summary};
pub use error::Error;
pub use per_hop::{Handled, MarkCe, PerHop, Verdict};
#[cfg(feature = "bpf")]
pub use run::{Relay, clean};

use serde::Serialize;

/// Interfaces that one relay serves at most.
pub const MAX_DEVICES: usize = 16;
/// UDP ports that one relay looks at at most.
pub const MAX_PORTS: usize = 8;

/// What the program has counted at an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counters {
    /// Datagrams that are ours.
    pub seen: u64,
    /// Of them, those in which D was raised.
    pub stamped: u64,
    /// Of them, those that left while no D was known.
    pub stale: u64,
    /// Datagrams of the relay's ports that are not ours.
    pub other: u64,
    /// Packets marked as having experienced congestion.
    pub marked: u64,
}

/// What the kernel's tracepoints have shown of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Measured {
    /// Packets that the driver was done with; of those that are still to be segmented, their segments.
    #[serde(rename = "measured")]
    pub done: u64,
    /// Packets that were dropped before the driver had them.
    pub dropped: u64,
    /// Completions that count for nothing, since another processor was writing the averages.
    pub missed: u64,
}
