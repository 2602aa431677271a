//! How a connection is set up and how it ends.

use super::{CHALLENGE, CLOSE, CONNECTION_AT, OPEN, delay, prefix};
use crate::{Error, be32, take};
use lasthop_units::Span;

/// Random octets of a sender, new for each connection.
pub type Nonce = [u8; 16];
/// What only a host that receives at an address can know.
pub type Cookie = [u8; 32];

/// The cookie of a sender that has got none yet.
pub const NO_COOKIE: Cookie = [0; 32];
/// The size of a stream with an end that nobody knows yet.
pub const UNKNOWN_SIZE: u64 = u64::MAX;

const BODY_AT: usize = CONNECTION_AT + 4;
const OPEN_LEN: usize = BODY_AT + 60;
const CHALLENGE_LEN: usize = BODY_AT + 36;
const CLOSE_LEN: usize = BODY_AT + 12;

/// What carries the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// ATP with feedback as the variant has it.
    Atp(Variant),
    /// TCP as hosts have it today, in datagrams.
    Tcp,
}

/// How often the receiver of ATP tells; the numbers are those of the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    /// Every second.
    Default = 0,
    /// Every 40 ms.
    Aggressive = 1,
    /// As often as twenty packets come.
    Adaptive = 2,
    /// When the path changes; what has come is told apart from that.
    OnChange = 3,
}

impl Variant {
    const ALL: [Variant; 4] = [Variant::Default, Variant::Aggressive, Variant::Adaptive, Variant::OnChange];
}

impl Transport {
    fn octets(self) -> [u8; 2] {
        match self {
            Transport::Atp(variant) => [0, variant as u8],
            Transport::Tcp => [1, 0],
        }
    }

    fn of(octets: [u8; 2]) -> Result<Transport, Error> {
        match octets {
            [0, variant] => {
                let unknown = Error::Unknown { what: "variant of ATP", value: u64::from(variant) };
                Variant::ALL.get(usize::from(variant)).copied().map(Transport::Atp).ok_or(unknown)
            }
            [1, 0] => Ok(Transport::Tcp),
            [other, _] => Err(Error::Unknown { what: "transport", value: u64::from(other) }),
        }
    }
}

/// The sender asks for a connection: first without a cookie, then with the one that a [`Challenge`] brought, until the receiver has sent it
/// back, and again whenever it has sent nothing else for a second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Open {
    /// The connection's number, drawn by the sender.
    pub connection: u32,
    /// D so far.
    pub delay: Span,
    /// What is to carry the stream.
    pub transport: Transport,
    /// Makes the keys of each connection others than those of all before.
    pub nonce: Nonce,
    /// Octets that the stream will have; [`UNKNOWN_SIZE`] if that is not known. For showing progress alone.
    pub size: u64,
    /// The receiver's cookie, or [`NO_COOKIE`].
    pub cookie: Cookie,
}

impl Open {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        prefix(out, OPEN, self.delay, self.connection);
        out.extend_from_slice(&self.transport.octets());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&self.nonce);
        out.extend_from_slice(&self.size.to_be_bytes());
        out.extend_from_slice(&self.cookie);
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Open, Error> {
        whole(bytes, OPEN_LEN, "length of an opening")?;
        zeros(bytes, 1..4)?;
        zeros(bytes, BODY_AT + 2..BODY_AT + 4)?;
        Ok(Open {
            connection: be32(bytes, CONNECTION_AT)?,
            delay: delay(bytes)?,
            transport: Transport::of(part(bytes, BODY_AT)?)?,
            nonce: part(bytes, BODY_AT + 4)?,
            size: u64::from_be_bytes(part(bytes, BODY_AT + 20)?),
            cookie: part(bytes, BODY_AT + 28)?,
        })
    }
}

/// The receiver has kept nothing of an [`Open`] without a good cookie, and sends one. It is shorter than what it answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Challenge {
    /// The connection's number.
    pub connection: u32,
    /// D so far: it leaves with that of the [`Open`] that it answers.
    pub delay: Span,
    /// The receiver has a key, and takes only what is sealed with it.
    pub keyed: bool,
    /// The cookie.
    pub cookie: Cookie,
}

impl Challenge {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        prefix(out, CHALLENGE, self.delay, self.connection);
        out.extend_from_slice(&[u8::from(self.keyed), 0, 0, 0]);
        out.extend_from_slice(&self.cookie);
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Challenge, Error> {
        whole(bytes, CHALLENGE_LEN, "length of a challenge")?;
        zeros(bytes, 1..4)?;
        zeros(bytes, BODY_AT + 1..BODY_AT + 4)?;
        let [keyed] = part(bytes, BODY_AT)?;
        if keyed > 1 {
            return Err(Error::Unknown { what: "mark of a keyed receiver", value: u64::from(keyed) });
        }
        let (connection, delay) = (be32(bytes, CONNECTION_AT)?, delay(bytes)?);
        Ok(Challenge { connection, delay, keyed: keyed == 1, cookie: part(bytes, BODY_AT + 4)? })
    }
}

/// Why a connection ends, or what one end asks the other in its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The sender has sent everything, and asks whether the receiver's application has kept it.
    Sent = 0,
    /// The receiver's application has kept everything.
    Kept = 1,
    /// One end was told to stop.
    Stopped = 2,
    /// The receiver serves another sender.
    Busy = 3,
    /// The receiver's application cannot keep what comes.
    Failed = 4,
    /// The sender has an answer to what it asked; nothing more follows.
    Over = 5,
}

impl Reason {
    const ALL: [Reason; 6] = [Reason::Sent, Reason::Kept, Reason::Stopped, Reason::Busy, Reason::Failed, Reason::Over];
}

/// A connection ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Close {
    /// The connection's number.
    pub connection: u32,
    /// Why.
    pub reason: Reason,
    /// Octets of the stream that were sent, or kept.
    pub octets: u64,
}

impl Close {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        prefix(out, CLOSE, Span::ZERO, self.connection);
        out.extend_from_slice(&[self.reason as u8, 0, 0, 0]);
        out.extend_from_slice(&self.octets.to_be_bytes());
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Close, Error> {
        whole(bytes, CLOSE_LEN, "length of a closing")?;
        zeros(bytes, 1..4)?;
        zeros(bytes, BODY_AT + 1..BODY_AT + 4)?;
        let [reason] = part(bytes, BODY_AT)?;
        let unknown = Error::Unknown { what: "reason of a closing", value: u64::from(reason) };
        Ok(Close {
            connection: be32(bytes, CONNECTION_AT)?,
            reason: *Reason::ALL.get(usize::from(reason)).ok_or(unknown)?,
            octets: u64::from_be_bytes(part(bytes, BODY_AT + 4)?),
        })
    }
}

fn whole(bytes: &[u8], len: usize, field: &'static str) -> Result<(), Error> {
    match bytes.len() {
        short if short < len => Err(Error::Truncated { needed: len, got: short }),
        long if long > len => Err(Error::Length { field, value: long }),
        _ => Ok(()),
    }
}

pub(super) fn zeros(bytes: &[u8], range: std::ops::Range<usize>) -> Result<(), Error> {
    let other = bytes.get(range).unwrap_or_default().iter().find(|octet| **octet != 0);
    other.map_or(Ok(()), |octet| Err(Error::Unknown { what: "octet that is to be zero", value: u64::from(*octet) }))
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Error> {
    take(bytes, at).ok_or(Error::Truncated { needed: at + N, got: bytes.len() })
}
