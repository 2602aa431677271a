//! What edge proxy and station share: keys, the sealed session between them, sockets, and the relay between a TCP
//! connection and a stream of the tunnel.
//!
//! ## What is protected
//!
//! Everything that passes between proxy and station but the eight to sixteen octets of header that say which session a
//! datagram belongs to is encrypted and authenticated: data, the addresses that stations ask for, acknowledgements and
//! feedback. Both ends prove that they hold the key which [`keys::pair`] made, by the Noise handshake
//! `Noise_NNpsk0_25519_AESGCM_SHA256` (the Noise protocol framework, revision 34): a key that leaks later does not open what was recorded
//! before. The packet number is the nonce; a window of 2048 numbers refuses repetitions (as RFC 4303 section 3.4.3). Keys
//! are renewed every two minutes ([`keyring`]), and a session outlives its keys.
//!
//! An initiation that was recorded, and is sent again, holds nobody out. It lacks the proxy's challenge of now ([`challenge`]), so
//! that it is answered with one, which costs the proxy no exponentiation and leaves nothing behind. One that is fresh gets
//! the answer that it got before, and keys count once a packet has been opened with them. No clock of the station has a part
//! in this, so none can shut it out by being set back. A sender without a key is not answered at all.
//!
//! Not protected: which hosts speak with each other, when, and how much; the station's number, which an initiation
//! shows; and the way between proxy and server, which is plain TCP as it would be without the proxy. A process that may
//! read the key file can be that station, or the proxy. Datagrams that are held back or reordered are noticed only as
//! losses.

pub mod asking;
pub mod challenge;
mod error;
mod farewell;
pub mod handshake;
pub mod keyring;
pub mod keys;
pub mod link;
pub(crate) mod outgoing;
pub mod path;
pub mod pipe;
pub(crate) mod replay;
pub(crate) mod roaming;
pub mod sealer;

pub use error::Error;
pub use farewell::farewell;

pub use handshake::{Agreed, Initiator, Question};
pub use keyring::Keyring;
pub use keys::Key;
pub use sealer::Sealer;

/// A session of which nothing has been heard for so long is over, with its connections.
///
/// Long enough for a dead spot, a roam or a lift, and as long as QUIC endpoints commonly let a connection idle (RFC 9000 section
/// 10.1 leaves the figure to them, but for three probe timeouts, here 9 s at most). Shorter than the 100 s that TCP's ends must at
/// least hold out (R2, RFC 9293 section 3.8.3), so that they hear of the end before they give up by themselves, and than
/// WireGuard's 180 s, which hold no connections meanwhile.
pub const SILENCE: lasthop_units::Span = lasthop_units::Span::from_secs(30);
