//! Streams over UDP and the kernel's network stack, by any of our transports: what `lasthop send` and `lasthop recv` are made of.
//!
//! An [`Outbound`] is the sending end of one stream, an [`Inbound`] listens and is the receiving end of one stream at a time. Both are sockets
//! that never block: `write` and `read` take what they can, `step` lets datagrams come and go until something has happened or a moment has
//! come, and `as_fd` is for programs that wait for other files too. The state machines behind them ([`Calling`],
//! [`Listening`]) own no socket and no clock.
//!
//! ## A connection's life
//!
//! The sender asks (`Open`) and the receiver answers with a cookie, of which it keeps nothing: any number of such questions costs it no memory,
//! and its answers are shorter than they are. An `Open` with a good cookie comes from a host that receives at that
//! address, and, where there is a key, is sealed with it; only that makes a connection. A receiver has one at a time,
//! and tells others that it is busy. An `Open` that was recorded makes no second one: the receiver remembers those that
//! it has taken for as long as their cookies are good. A cookie rather than an authenticated first packet alone: a host
//! that replays such a packet, or any host where there is no key, would otherwise get memory for addresses that are not
//! its own. The cookie costs a round trip once.
//!
//! In the end the sender asks whether the receiver's application has kept everything, and ends well only if it says so.

mod calling;
mod choice;
mod digest;
mod error;
mod inbound;
mod listening;
mod outbound;
pub(crate) mod own_delay;
mod seals;

#[cfg(test)]
mod tests;

pub use calling::{Call, Calling};
pub use choice::{Law, laws};
pub use digest::Digest;
pub use error::{Failure, StreamError};
pub use inbound::{Inbound, InboundOptions};
pub use listening::{Event, Listening};
pub use outbound::{Outbound, OutboundOptions};

use lasthop_units::Span;

/// For so long an end waits for the other one before it gives up, if nobody says otherwise.
pub const PATIENCE: Span = Span::from_secs(15);
/// How often a sender that sends nothing else shows that it is there.
const AGAIN: Span = Span::from_secs(1);
/// How often it asks whether everything was kept, and for how long a receiver that has said so waits for a sign that it was heard.
const ASK: Span = Span::from_millis(200);
const LINGER: Span = Span::from_secs(3);
