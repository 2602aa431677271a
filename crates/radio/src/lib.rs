//! Sans-IO models of last hops.
//!
//! A hop model is a passive state machine: it is given packets and the time, and hands back deliveries, drops and
//! what a driver would report. It never asks for the time, so the simulator drives it from an event queue and the lab
//! from the wall clock. `P` is a payload that the model carries and never looks into.

pub mod cables;
pub mod cell;
pub mod duplex;
mod hop;
pub mod last_hop;
mod packet;
pub mod plan;
pub mod queue;
pub mod star;
pub mod trace;
pub mod wifi;
pub mod wired;

pub use hop::{Completion, Drop, Hop, NextEvent, Outbox, Outcome, RxInfo};
pub use last_hop::LastHop;
pub use packet::{AccessClass, Dest, Ecn, Packet};
