//! Units that the compiler checks, quantities as people write them, statistics that need no storage, random streams that have
//! names, and counts in words.
//!
//! This is the ground floor: it knows nothing of networks. Every room above passes [`Time`], [`Span`],
//! [`Rate`] and [`Bytes`] instead of bare numbers; raw integers appear only where data enters or leaves
//! (files, sockets, BPF maps), and there the field name carries the unit.

mod amount;
pub mod brief;
mod bytes;
mod count;
mod named;
pub mod quantity;
mod rate;
mod seed;
pub mod serialise;
pub mod stats;
mod time;

pub use bytes::Bytes;
pub use count::count;
pub use rate::Rate;
pub use seed::{Seed, Stream};
pub use time::{Span, Time};
