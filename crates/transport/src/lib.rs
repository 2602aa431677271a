//! A sans-IO TCP endpoint that a sender law plugs into.
//!
//! A [`Connection`] is one end of a TCP connection as a passive state machine: it is given segments, the time and what
//! the application does, and hands back segments and the moment at which it wants to be called again. Segments are
//! [`lasthop_wire::tcp::TcpHeader`] values: a header and the *length* of a payload. Nobody looks into payload here, so
//! none is carried.
//!
//! What it implements: RFC 9293 data transfer with a three-way handshake and FIN; RFC 7323 window scaling and
//! timestamps; RFC 2018 SACK with RFC 2883 D-SACK; RFC 8985 RACK and tail loss probes on a RFC 6675 scoreboard;
//! RFC 6298 timeouts; delayed ACKs, zero-window probes and a self-sizing receive buffer as Linux has them. It has no
//! congestion window of its own: the [`lasthop_laws::SenderLaw`] is shown what happened and says how much may be in the
//! network and how fast it may leave, and exactly that leaves.
//!
//! The world's loop is: [`Connection::on_segment`] for what arrived, [`Connection::on_timeout`] when
//! [`Connection::next_timeout`] has come, and after either (or after a write) [`Connection::poll_transmit`] until it
//! answers `None`. Segments that are handed over together, before the next `poll_transmit`, are acknowledged together,
//! as a host does with what its network card delivers in one go.

pub mod atp;
mod config;
mod connection;
mod delivery_rate;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod options;
mod pacing;
mod rack;
mod ranges;
mod receiver;
mod receiver_feedback;
mod rtt;
mod scoreboard;
mod send_buffer;
mod sender;
mod sequence;
mod sharing;
mod signal_option;
mod small_queue;
mod stats;
pub mod stream;
pub mod tunnel;
mod window;

pub use config::Config;
pub use connection::Connection;
pub use receiver_feedback::{CellOption, ReceiverFeedback};
pub use sharing::Sharing;
pub use signal_option::SignalOption;
pub use small_queue::SmallQueue;
pub use stats::Stats;
