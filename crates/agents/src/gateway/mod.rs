//! A gateway of a mesh: carries TCP connections to another gateway over ATP, on the tunnel's streams and keys.
//!
//! Programs come in by the station's doors (SOCKS5, HTTP CONNECT, forwarded ports, transparent mode); the other gateway makes their
//! connections. Both ends are alike, but one calls and the other is called; only the called one needs an address that
//! stays.
//!
//! How fast packets leave is decided by the delay D of the way's slowest hop ([`lasthop_laws::atp`]): relays raise it in the octets
//! before every datagram ([`lasthop_wire::datagram::preamble`]), and so does this end for its own interface.
//!
//! ## What a key is for
//!
//! One pair of gateways. The gateway that calls with a key takes no calls with it: the handshake's messages look alike
//! to both ends, and a host on the path could otherwise lead a gateway's call back to itself.
//!
//! ## When it ends, or is killed
//!
//! Its sockets are set so that the kernel resets their connections when it closes them, however that comes about: no program takes what has
//! come so far for everything. The other gateway drops its half after [`crate::tunnel::SILENCE`], or when it is called anew.

mod config;
mod network;
mod run;
mod session;
mod session_log;

pub use config::{Config, Peer, Summary};
pub use network::Network;
pub use run::{Gateway, run};
