//! ATP: payload one way, feedback the other, without acknowledgements of single packets and without a retransmission timer.
//!
//! The [`Sender`] goes at the rate that its law sets; what is lost it learns from the blocks that the [`Receiver`] reports once an epoch. Both are
//! passive state machines as [`crate::Connection`] is: `on_packet` for what came, `on_timeout` when `next_timeout` has come, `poll_transmit` after
//! either until it answers `None`. Payload has a length and no content.

mod receiver;
mod reports;
mod sender;

pub use receiver::Receiver;
pub use sender::{Counters, Sender};

use lasthop_units::Bytes;
use lasthop_wire::atp::Header;

/// A packet: its header, and how long its payload is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Its header.
    pub header: Header,
    /// Octets of payload.
    pub payload: u16,
}

/// Payload of a full packet: with the header, UDP and IPv4 it is 1500 octets long.
pub const PAYLOAD: u16 = 1500 - 20 - 8 - lasthop_wire::atp::HEADER_LEN as u16;

impl Packet {
    /// Octets of header and payload: what UDP carries.
    pub fn len(&self) -> Bytes {
        Bytes::new(self.header.len() as u64 + u64::from(self.payload))
    }

    /// Never: a packet has a header.
    pub fn is_empty(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
