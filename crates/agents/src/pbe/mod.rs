//! PBE-CC on kernel TCP: the sender's congestion control, and what a terminal in a cell tells senders.
//!
//! [`Sender`] registers the congestion control `lasthop_pbe` for the programs of a machine. [`Receiver`] reads the log that a decoder of the
//! cell's control channel writes, decides for every connection of a cgroup what it can have of the cell
//! ([`lasthop_laws::pbe::Receiver`]), and has it told in a TCP option of segments that leave ([`lasthop_wire::tcp::Capacity`]).
//!
//! Everything fails open. A peer that does not know the option never sees it but in a SYN. A connection is the kernel's
//! BBR when its receiver tells nothing or its agent has gone. What was told holds for less than a second without the
//! receiver's agent.

// Without the programs there is nothing to run, only what says so.
#![cfg_attr(not(feature = "bpf"), allow(dead_code))]

mod abi;
#[cfg(not(feature = "bpf"))]
mod absent;
mod carrier;
mod config;
mod error;
mod flows;
mod input;
mod logs;
#[cfg(feature = "bpf")]
mod receiver;
#[cfg(feature = "bpf")]
mod sender;
#[cfg(feature = "bpf")]
mod teller;

#[cfg(not(feature = "bpf"))]
pub use absent::{Receiver, Sender};
pub use config::{NAME, ReceiverConfig, ReceiverSummary, SenderConfig, SenderSummary};
pub use error::Error;
pub(crate) use logs::Carriers;
pub use logs::{Logs, MOST_CARRIERS};
#[cfg(feature = "bpf")]
pub use receiver::{HOLD, Receiver};
#[cfg(feature = "bpf")]
pub use sender::Sender;
