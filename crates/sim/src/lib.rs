//! The virtual-time world: deterministic, and as fast as one core allows.
//!
//! [`run`] simulates one law of a scenario under one seed. Equal inputs give equal records, byte for byte: the order of
//! events is total ([`Agenda`]), and every component draws from a random stream of its own name.

pub mod hook;
pub mod host;

mod access_point;
mod agenda;
mod context;
mod net;
mod payload;
mod program;
mod programs;
mod received;
mod record;
mod run;
mod saturate;
mod sockets;
mod world;

pub use access_point::Agent;
pub use agenda::{Agenda, Component};
pub use payload::{Datagram, Message, Payload, ProgramId, TUNNEL_PAYLOAD, Tunnel};
pub use record::record;
pub use run::{Agents, SimError, build, build_with, drive, run};
pub use saturate::Could;
pub use world::World;
