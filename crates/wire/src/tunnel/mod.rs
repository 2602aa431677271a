//! The tunnel between edge proxy and station: what its UDP datagrams hold.
//!
//! All integers are in network order (big-endian), times in nanoseconds. A datagram begins with
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 1 | kind: 1 = initiation, 2 = response, 3 = sealed packet, 4 = challenge |
//! | 1 | 1 | version, 3 |
//! | 2 | 2 | initiation: number of the station; otherwise zero |
//! | 4 | 4 | number by which the *receiver* of the datagram knows the keys; zero in an initiation |
//!
//! An **initiation** (station to proxy) and a **response** (proxy to station) go on with the two messages of the Noise
//! handshake `NNpsk0`, which begins with the eight octets above as its prologue (those of the initiation). Their
//! encrypted payloads are a [`Wish`] and a [`Grant`]. What the handshake protects, and what not, is said where it is made
//! (`lasthop-agents`, `tunnel`).
//!
//! A **challenge** (proxy to station) goes on with 32 octets that the station must put into a new initiation, so that the proxy
//! sees that it is not an old one, and with 32 octets that show that the proxy holds the key: HMAC-SHA256 under the station's
//! key of `lasthop challenge`, the eight octets above, the challenge, and the whole initiation that it answers.
//!
//! A **sealed packet** goes on with
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 8 | 8 | packet number: counts up from 0 in each direction, never repeats, stays below 2^62; the nonce |
//! | 16 | n | the packet, encrypted |
//! | 16 + n | 16 | authentication tag |
//!
//! Packet numbers go on when the keys of a session are renewed.
//!
//! A packet is the sender's clock when it was sealed (8 octets) and any number of [`Frame`]s, one behind the other. A
//! full packet is as long as the path allows ([`PacketSize`]): at most [`MAX_PACKET`] octets, so that over IPv4 it is an IP
//! packet of exactly 1500 octets.

mod cell;
mod feedback;
mod frame;
mod handshake;
mod size;

pub use cell::CELL_LEN;
pub use feedback::FEEDBACK_LEN;
pub use frame::{
    AckRange, Data, Frame, Frames, MAX_ACK_RANGES, MAX_HOST, OpenResult, PathData, ack_len, data_header,
    put_data_header,
};
pub use handshake::{CHALLENGE, Challenge, GRANT, Grant, SessionId, WISH, Wish};
pub use size::{IP_UDP_LEN, IPV6_UDP_LEN, LEAST_DATAGRAM, PacketSize};

use crate::{Error, be16, be32, take};
use lasthop_signals::Node;
use lasthop_units::Time;

/// Octets of a sealed packet before the encrypted part.
pub const SEALED_HEADER: usize = 16;
/// Octets of the authentication tag.
pub const TAG: usize = 16;
/// Octets of the longest UDP payload of the tunnel: 1500 with IPv4 and UDP headers.
pub const MAX_DATAGRAM: usize = 1500 - IP_UDP_LEN;
/// Octets of the longest packet (what is encrypted).
pub const MAX_PACKET: usize = MAX_DATAGRAM - SEALED_HEADER - TAG;
/// Octets of a packet before its first frame: the sender's clock.
pub const PACKET_HEADER: usize = 8;

const VERSION: u8 = 3;
const HEADER: usize = 8;
/// Packet numbers end here, as offsets in streams do: nobody sends so many, and sums do not overflow.
const NUMBERS: u64 = 1 << 62;
const INITIATION: u8 = 1;
const RESPONSE: u8 = 2;
const SEALED: u8 = 3;
const CHALLENGES: u8 = 4;

/// A datagram, taken apart as far as can be done without keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagram<'a> {
    /// A station asks for a session.
    Initiation {
        /// Which station it says it is.
        station: Node,
        /// The handshake's first message.
        message: &'a [u8],
    },
    /// The proxy grants it.
    Response {
        /// The session, by the station's number for it.
        session: u32,
        /// The handshake's second message.
        message: &'a [u8],
    },
    /// The proxy wants to see that an initiation is of now.
    Challenge {
        /// The session that was asked for, by the station's number for it.
        session: u32,
        /// What a new initiation must hold.
        challenge: &'a Challenge,
        /// Shows that the sender holds the key.
        proof: &'a [u8; CHALLENGE],
    },
    /// A packet of a session.
    Sealed {
        /// The keys, by the receiver's number for them.
        session: u32,
        /// The packet's number.
        number: u64,
        /// The encrypted packet with its tag.
        sealed: &'a [u8],
    },
}

impl<'a> Datagram<'a> {
    /// Takes a UDP payload apart.
    ///
    /// # Errors
    /// [`Error::Truncated`]; [`Error::Unknown`] for another kind or version, or a packet number that nobody counts up to.
    pub fn parse(bytes: &'a [u8]) -> Result<Datagram<'a>, Error> {
        let needed = HEADER;
        let [kind, version] = take(bytes, 0).ok_or(Error::Truncated { needed, got: bytes.len() })?;
        if version != VERSION {
            return Err(Error::Unknown { what: "version of the tunnel", value: version.into() });
        }
        let session = be32(bytes, 4)?;
        match kind {
            INITIATION => Ok(Datagram::Initiation { station: Node(be16(bytes, 2)?), message: &bytes[HEADER..] }),
            RESPONSE => Ok(Datagram::Response { session, message: &bytes[HEADER..] }),
            SEALED => {
                let needed = SEALED_HEADER + TAG + PACKET_HEADER;
                if bytes.len() < needed {
                    return Err(Error::Truncated { needed, got: bytes.len() });
                }
                let number = u64::from_be_bytes(take(bytes, 8).expect("checked above"));
                if number >= NUMBERS {
                    return Err(Error::Unknown { what: "packet number", value: number });
                }
                Ok(Datagram::Sealed { session, number, sealed: &bytes[SEALED_HEADER..] })
            }
            CHALLENGES => {
                let short = Error::Truncated { needed: HEADER + 2 * CHALLENGE, got: bytes.len() };
                let (challenge, rest) = bytes[HEADER..].split_first_chunk().ok_or(short)?;
                let proof = rest.first_chunk().ok_or(short)?;
                Ok(Datagram::Challenge { session, challenge, proof })
            }
            kind => Err(Error::Unknown { what: "kind of tunnel datagram", value: kind.into() }),
        }
    }
}

/// The first octets of an initiation; the handshake's first message follows. They are its prologue, too.
pub fn initiation_header(station: Node) -> [u8; HEADER] {
    let [high, low] = station.0.to_be_bytes();
    [INITIATION, VERSION, high, low, 0, 0, 0, 0]
}

/// The first octets of a response to the session that the station numbers so; the handshake's second message follows.
pub fn response_header(session: u32) -> [u8; HEADER] {
    let [a, b, c, d] = session.to_be_bytes();
    [RESPONSE, VERSION, 0, 0, a, b, c, d]
}

/// The first octets of a challenge for the session that the station numbers so.
pub fn challenge_header(session: u32) -> [u8; HEADER] {
    let [a, b, c, d] = session.to_be_bytes();
    [CHALLENGES, VERSION, 0, 0, a, b, c, d]
}

/// The first octets of a sealed packet.
pub fn sealed_header(session: u32, number: u64) -> [u8; SEALED_HEADER] {
    let mut header = [0; SEALED_HEADER];
    header[..2].copy_from_slice(&[SEALED, VERSION]);
    header[4..8].copy_from_slice(&session.to_be_bytes());
    header[8..].copy_from_slice(&number.to_be_bytes());
    header
}

/// The sender's clock and the frames of an opened packet.
///
/// # Errors
/// [`Error::Truncated`].
pub fn open_packet(packet: &[u8]) -> Result<(Time, Frames<'_>), Error> {
    let clock = take(packet, 0).ok_or(Error::Truncated { needed: PACKET_HEADER, got: packet.len() })?;
    Ok((Time::from_nanos(u64::from_be_bytes(clock)), Frames::new(&packet[PACKET_HEADER..])))
}

/// The octets with which a packet begins.
pub fn packet_header(sent_at: Time) -> [u8; PACKET_HEADER] {
    sent_at.as_nanos().to_be_bytes()
}
