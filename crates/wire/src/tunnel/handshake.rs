//! What the two messages of a handshake say.
//!
//! An initiation's payload is
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 4 | number by which the station wants the keys to be known |
//! | 4 | 32 | the last challenge that the proxy gave it; zero if there was none |
//! | 36 | 8 | the session with the keys that it wants to renew; zero: a new one |
//!
//! and a response's
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 4 | number by which the proxy wants the keys to be known |
//! | 4 | 1 | 0 = the keys are those of a new session, 1 = of the one that was named |
//!
//! A session is named by the first eight octets of the hash of the handshake that it began with.

use crate::{Error, be32, take};

/// Octets of a challenge.
pub const CHALLENGE: usize = 32;
/// Octets of an initiation's payload.
pub const WISH: usize = 4 + CHALLENGE + 8;
/// Octets of a response's payload.
pub const GRANT: usize = 4 + 1;

/// Octets that only an initiation of now can hold.
pub type Challenge = [u8; CHALLENGE];

/// The name of a session, which both ends know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionId(pub u64);

/// What a station asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Number by which the station wants the keys to be known.
    pub number: u32,
    /// The last challenge.
    pub challenge: Challenge,
    /// The session that shall go on with the keys; `None` for a new one.
    pub continues: Option<SessionId>,
}

/// What a proxy grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Number by which the proxy wants the keys to be known.
    pub number: u32,
    /// The session that was named goes on. If not, the proxy knows no such session (any more).
    pub continued: bool,
}

impl Wish {
    /// As octets.
    pub fn encode(&self) -> [u8; WISH] {
        let mut out = [0; WISH];
        out[..4].copy_from_slice(&self.number.to_be_bytes());
        out[4..4 + CHALLENGE].copy_from_slice(&self.challenge);
        out[4 + CHALLENGE..].copy_from_slice(&self.continues.map_or(0, |id| id.0).to_be_bytes());
        out
    }

    /// From octets.
    ///
    /// # Errors
    /// [`Error::Length`] if there are more or fewer than [`WISH`].
    pub fn decode(bytes: &[u8]) -> Result<Wish, Error> {
        exactly(bytes, WISH, "an initiation's payload")?;
        let id = take(bytes, 4 + CHALLENGE).map_or(0, u64::from_be_bytes);
        let challenge = take(bytes, 4).unwrap_or([0; CHALLENGE]);
        Ok(Wish { number: be32(bytes, 0)?, challenge, continues: (id != 0).then_some(SessionId(id)) })
    }
}

impl Grant {
    /// As octets.
    pub fn encode(&self) -> [u8; GRANT] {
        let [a, b, c, d] = self.number.to_be_bytes();
        [a, b, c, d, u8::from(self.continued)]
    }

    /// From octets.
    ///
    /// # Errors
    /// [`Error::Length`] if there are more or fewer than [`GRANT`]; [`Error::Unknown`] if they say neither yes nor no.
    pub fn decode(bytes: &[u8]) -> Result<Grant, Error> {
        exactly(bytes, GRANT, "a response's payload")?;
        let continued = match bytes[4] {
            0 => false,
            1 => true,
            other => return Err(Error::Unknown { what: "grant", value: other.into() }),
        };
        Ok(Grant { number: be32(bytes, 0)?, continued })
    }
}

fn exactly(bytes: &[u8], len: usize, field: &'static str) -> Result<(), Error> {
    if bytes.len() == len { Ok(()) } else { Err(Error::Length { field, value: bytes.len() }) }
}
