//! What edge proxy and station share: keys, the sealed session between them, sockets, and the relay between a TCP
//! connection and a stream of the tunnel.
//!
//! ## What is protected
//!
//! Everything that passes between proxy and station but the eight to sixteen octets of header that say which session a
//! datagram belongs to is encrypted and authenticated: data, the addresses that stations ask for, acknowledgements and
//! feedback. Both ends prove that they hold the key which [`keys::pair`] made, by the Noise handshake
//! `Noise_NNpsk0_25519_AESGCM_SHA256` (the Noise protocol framework, revision 34): a key that leaks later does not open what was recorded
//! before. The packet number is the nonce; a window of 2048 numbers refuses repetitions (as RFC 4303 section 3.4.3), and
//! the initiation of an earlier session, sent again, brings up nothing: a session counts once a packet of it has been
//! opened.
//!
//! Not protected: who speaks with whom, when, and how much; the station's number, which an initiation shows; and the
//! way between proxy and server, which is plain TCP as it would be without the proxy. Somebody who may read the key
//! file can be that station, or the proxy. Datagrams that are held back or reordered are noticed only as losses.

pub mod clock;
mod error;
pub mod handshake;
pub mod keys;
pub mod link;
pub mod log;
pub mod path;
pub mod pipe;
mod replay;
pub mod sealer;
pub mod spread;

pub use error::Error;
pub use handshake::{Initiator, respond};
pub use keys::Key;
pub use lasthop_system::{files, poll, punctual, wakeful};
pub use sealer::Sealer;
