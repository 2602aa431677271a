//! Streams with content over any of our transports: what sockets need beside the state machines that know lengths alone.
//!
//! A [`StreamSender`] and a [`StreamReceiver`] are the two ends of one stream, passive as everything here: `on_datagram` for what came, `on_timeout`
//! when `next_timeout` has come, `poll_transmit` after either, or after a write or a read, until it answers false. How a connection comes to be,
//! reliability and rate are apart: set-up and authentication are the world's, [`crate::atp`] and [`crate::Connection`] send again what was
//! lost, and a law sets the pace. A new transport is a law, header fields, and two implementations of these traits (docs/how-to/build-a-transport.md).

mod atp;
mod content;
mod tcp;

pub use atp::{AtpReceiver, AtpSender};
pub use tcp::{TcpReceiver, TcpSender};

use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::datagram::Datagram;

/// What both ends of a stream are: one party to an exchange of datagrams.
pub trait Party: Send {
    /// A datagram of this connection has come.
    fn on_datagram(&mut self, now: Time, datagram: &Datagram<'_>);

    /// Appends a datagram that leaves now to `out`; false if none does.
    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> bool;

    /// When `on_timeout` is to be called if nothing comes before.
    fn next_timeout(&self) -> Option<Time>;

    /// Acts on what is due.
    fn on_timeout(&mut self, now: Time);

    /// What there is to tell of it.
    fn figures(&self) -> Figures;
}

/// The end of a stream that sends.
pub trait StreamSender: Party {
    /// Takes as many octets as there is room for, and says how many those are. None after `close`.
    fn write(&mut self, bytes: &[u8]) -> usize;

    /// The stream ends with what was written.
    fn close(&mut self);

    /// True once the peer has everything up to the end.
    fn is_done(&self) -> bool;

    /// Octets that were written and have not been in a packet yet.
    fn unsent(&self) -> u64;

    /// Since when the peer asks for what it is said to have: the stream cannot be completed. `None` unless that is so.
    fn contradicted(&self) -> Option<Time>;

    /// D of the own interface from now on; zero if it is not known.
    fn set_own_delay(&mut self, delay: Span);

    /// D that the connection's first datagram met, before any of the stream left.
    fn set_first_delay(&mut self, delay: Span);
}

/// The end of a stream that receives.
pub trait StreamReceiver: Party {
    /// Moves what has come in order into `out`, up to its length, and says how much that is.
    fn read(&mut self, now: Time, out: &mut [u8]) -> usize;

    /// True once everything up to the end has come and was read.
    fn is_done(&self) -> bool;
}

/// What an end has to tell of its stream.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Figures {
    /// Payload that the peer has acknowledged, or that has come in order.
    pub delivered: Bytes,
    /// Packets with payload that were sent, those sent again included.
    pub packets: u64,
    /// Those among them that were sent again.
    pub resent: u64,
    /// D as the receiver has averaged it, or as it came last; `None` before anything is known.
    pub delay: Option<Span>,
    /// Packets a second that the law allows; `None` if it sets no pace, or none yet.
    pub rate: Option<f64>,
    /// The round trip, if one was measured.
    pub round_trip: Option<Span>,
}
