//! The relay of a mesh's node: its own delay D, written into the datagrams of ATP that leave where it is larger than what stands there.
#![cfg_attr(not(feature = "bpf"), allow(dead_code))]

#[cfg(feature = "bpf")]
pub mod stamper;

/// Interfaces that one relay serves at most.
pub const MAX_DEVICES: usize = 16;
/// UDP ports that one relay looks at at most.
pub const MAX_PORTS: usize = 8;

/// What the program has counted at an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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
