//! What `lasthop send` and `lasthop recv` put into UDP datagrams: packets of ATP, segments of TCP, and what sets a connection up and ends it;
//! and what a mesh's gateways put before the tunnel's.
//!
//! All begin alike, so that a relay finds D without knowing the rest ([`raise_delay`]):
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 1 | version, 1, in the upper four bits; kind in the lower |
//! | 1 | 3 | of ATP: [`crate::atp`]; otherwise zero |
//! | 4 | 4 | D: the largest delay of a hop so far, microseconds; relays raise it |
//!
//! Kinds 0 to 4 are those of [`crate::atp`]; 12 is a datagram of the tunnel between two gateways ([`preamble`]). The others go on with the connection's number at offset 8:
//!
//! | kind | packet | from offset 12 |
//! | --- | --- | --- |
//! | 8 | a segment of TCP | header as RFC 9293 has it, ports and checksum zero; payload |
//! | 9 | [`Open`]: the sender asks for a connection, or shows that it is there; the receiver sends it back | transport 1, variant 1, zero 2, nonce 16, size 8, cookie 32 |
//! | 10 | [`Challenge`]: the receiver asks the sender to show that it is where it says | keyed 1, zero 3, cookie 32 |
//! | 11 | [`Close`]: how a connection ends | reason 1, zero 3, octets 8 |
//!
//! Where both ends have a key, what [`sealed`] describes follows each of them but a challenge and the first `Open`.

pub mod preamble;
pub mod sealed;
mod session;

pub use session::{Challenge, Close, Cookie, NO_COOKIE, Nonce, Open, Reason, Transport, UNKNOWN_SIZE, Variant};

use crate::tcp::{self, TcpHeader};
use crate::{Error, atp, be32, take};
use lasthop_units::Span;

/// Octets of a segment before its TCP header.
pub const SEGMENT_PREFIX: usize = CONNECTION_AT + 4;

const VERSION: u8 = 1;
pub(crate) const DELAY_AT: usize = 4;
const CONNECTION_AT: usize = 8;
/// The greatest kind of [`crate::atp`].
const LAST_OF_ATP: u8 = 4;
const SEGMENT: u8 = 8;
const OPEN: u8 = 9;
const CHALLENGE: u8 = 10;
const CLOSE: u8 = 11;
/// Not of `send` and `recv`.
const TUNNEL: u8 = 12;

/// A datagram that was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Datagram<'a> {
    /// A packet of ATP.
    Atp {
        /// Its header.
        header: atp::Header,
        /// Its payload.
        payload: &'a [u8],
    },
    /// A segment of TCP.
    Segment {
        /// Which connection.
        connection: u32,
        /// D as it has come, whole microseconds.
        delay: Span,
        /// Its header.
        header: TcpHeader,
        /// Its payload.
        payload: &'a [u8],
    },
    /// The sender asks for a connection.
    Open(Open),
    /// The receiver asks back.
    Challenge(Challenge),
    /// A connection ends.
    Close(Close),
}

impl<'a> Datagram<'a> {
    /// Reads a datagram, without the octets that [`sealed::open`] has taken off.
    ///
    /// # Errors
    /// If it is of another version or kind, ends too early or too late, or contradicts itself.
    pub fn decode(bytes: &'a [u8]) -> Result<Datagram<'a>, Error> {
        let [first] = take(bytes, 0).ok_or(Error::Truncated { needed: 1, got: 0 })?;
        if first >> 4 != VERSION {
            return Err(Error::Unknown { what: "version of a datagram", value: u64::from(first >> 4) });
        }
        match first & 15 {
            0..=LAST_OF_ATP => {
                let (header, payload) = atp::Header::decode(bytes)?;
                Ok(Datagram::Atp { header, payload })
            }
            SEGMENT => {
                let (delay, connection) = (delay(bytes)?, be32(bytes, CONNECTION_AT)?);
                let segment = bytes.get(SEGMENT_PREFIX..).unwrap_or_default();
                let (header, len) = tcp::parse(segment)?;
                Ok(Datagram::Segment { connection, delay, header, payload: segment.get(len..).unwrap_or_default() })
            }
            OPEN => Open::decode(bytes).map(Datagram::Open),
            CHALLENGE => Challenge::decode(bytes).map(Datagram::Challenge),
            CLOSE => Close::decode(bytes).map(Datagram::Close),
            kind => Err(Error::Unknown { what: "kind of a datagram", value: u64::from(kind) }),
        }
    }

    /// Appends the octets.
    ///
    /// # Errors
    /// If a segment's options do not fit into its header.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        match self {
            Datagram::Atp { header, payload } => {
                header.encode(out);
                out.extend_from_slice(payload);
            }
            Datagram::Segment { connection, delay, header, payload } => {
                prefix(out, SEGMENT, *delay, *connection);
                tcp::write(out, header)?;
                out.extend_from_slice(payload);
            }
            Datagram::Open(open) => open.encode(out),
            Datagram::Challenge(challenge) => challenge.encode(out),
            Datagram::Close(close) => close.encode(out),
        }
        Ok(())
    }

    /// Which connection it is of.
    pub fn connection(&self) -> u32 {
        match self {
            Datagram::Atp { header, .. } => header.connection,
            Datagram::Segment { connection, .. } => *connection,
            Datagram::Open(open) => open.connection,
            Datagram::Challenge(challenge) => challenge.connection,
            Datagram::Close(close) => close.connection,
        }
    }
}

/// What all but packets of ATP begin with.
fn prefix(out: &mut Vec<u8>, kind: u8, delay: Span, connection: u32) {
    out.extend_from_slice(&[VERSION << 4 | kind, 0, 0, 0]);
    out.extend_from_slice(&micros(delay).to_be_bytes());
    out.extend_from_slice(&connection.to_be_bytes());
}

fn delay(bytes: &[u8]) -> Result<Span, Error> {
    be32(bytes, DELAY_AT).map(|us| Span::from_micros(us.into()))
}

/// Whole microseconds, as many as fit.
fn micros(span: Span) -> u32 {
    u32::try_from(span.as_nanos() / 1000).unwrap_or(u32::MAX)
}

/// What a relay does to a datagram, whatever its kind and whether or not it is sealed: its own delay stands in it if it is the larger one. It
/// looks at the first eight octets alone, and of them at the version: kinds that come later need no other relays. Anything that does not begin as
/// a datagram of ours stays as it is. Returns whether D was raised; the UDP checksum is the caller's.
pub fn raise_delay(bytes: &mut [u8], own: Span) -> bool {
    matches!(raise_to(bytes, micros(own)), Raised::From(_))
}

/// What became of a datagram's D.
pub(crate) enum Raised {
    /// The datagram is none of ours.
    Foreign,
    /// It was as large already.
    Not,
    /// It was this one, in microseconds.
    From(u32),
}

pub(crate) fn raise_to(bytes: &mut [u8], own: u32) -> Raised {
    let ours = bytes.first().is_some_and(|first| first >> 4 == VERSION);
    match be32(bytes, DELAY_AT).ok().filter(|_| ours) {
        None => Raised::Foreign,
        Some(delay) if delay >= own => Raised::Not,
        Some(delay) => {
            bytes[DELAY_AT..CONNECTION_AT].copy_from_slice(&own.to_be_bytes());
            Raised::From(delay)
        }
    }
}

#[cfg(test)]
mod tests;
