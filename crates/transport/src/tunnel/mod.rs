//! The tunnel between edge proxy and station: streams over paced datagrams, as a passive state machine.
//!
//! An [`Endpoint`] is one end of a session. It multiplexes byte streams, acknowledges with ranges, repeats what was
//! lost, holds the other side's windows, and lets packets leave no faster than it is told: by a rate that somebody else
//! sets for the hop ([`Endpoint::set_pacing`]), by a [`lasthop_laws::SenderLaw`] of its own, by one that is told of the other end's cell
//! ([`Endpoint::follow_cell`]), or by what packets bring of
//! the delay of a mesh's slowest hop ([`Endpoint::with_path_pace`]). It knows neither sockets nor keys nor clocks: it is given opened packets and the time, and hands back packets to be sealed.
//!
//! The world's loop is: [`Endpoint::on_packet`] for what arrived, [`Endpoint::on_timeout`] when
//! [`Endpoint::next_timeout`] has come, [`Endpoint::write`] as much as [`Endpoint::wants`] says, and then
//! [`Endpoint::poll_transmit`] until it answers `None`. Reading no more from a source than is wanted *now* is what keeps
//! the queue out of this machine's memory.
//!
//! What the other end can make an [`Endpoint`] hold is bounded, whatever it sends: see [`Config::budget`].
//!
//! Source:     RFC 9000 and RFC 9002 for the mechanisms (packet numbers that never repeat, acknowledgement ranges, loss
//!             by packet and time threshold, probe timeouts); RFC 6298 for the timer's base.
//! Deviations: one kind of packet, one packet number space; no congestion window of its own; acknowledgements by [`AckRule`]
//!             rather than for every second packet, because each costs the hop a channel access; after a probe
//!             timeout nothing but probes leaves until something is acknowledged (`path_pace` has neither).
//! Validity:   a path that seldom reorders by more than three packets (802.11 delivers in order).
//! Checked by: tests/integration/tunnel.rs (exact delivery for any loss, duplication and order), tests/integration/credit.rs, tests/memory.rs,
//!             sent_packets::tests::*, pacer::tests::*

mod arrivals;
mod by_cell;
mod by_path;
mod cell;
mod clock;
mod control;
mod credit;
mod endpoint;
mod frames;
mod pacer;
mod path_pace;
mod recv_half;
mod send_half;
mod sent_packets;
mod stream;
mod streams;
mod transmit;

pub use arrivals::AckRule;
pub use cell::CellFigures;
pub use clock::ClockOffset;
pub use endpoint::{Backlog, Config, Delay, Endpoint, Event, Violation};
pub use path_pace::PathFigures;
pub use transmit::Departure;
