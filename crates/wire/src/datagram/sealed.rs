//! What follows a datagram between two ends that share a key: it shows that nobody else made it, and that it has not
//! come before.
//!
//! | from the end | size | field |
//! | --- | --- | --- |
//! | 24 | 8 | number: greater in each datagram of one end than in all before |
//! | 16 | 16 | the first half of HMAC-SHA-256 (RFC 2104) of [`Sealed::covered`] |
//!
//! The code covers everything before it but D (octets 4 to 7), which relays change. What is sent is not hidden.

use super::DELAY_AT;
use crate::{Error, take};

/// Octets that follow.
pub const SEAL_LEN: usize = NUMBER_LEN + TAG_LEN;
/// Octets of the code.
pub const TAG_LEN: usize = 16;
const NUMBER_LEN: usize = 8;
const DELAY_END: usize = DELAY_AT + 4;

/// A datagram that was taken apart; nobody has compared its code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sealed<'a> {
    /// The datagram.
    pub body: &'a [u8],
    /// Its number.
    pub number: u64,
    /// What the code covers: octets before D, and octets behind it up to the code.
    pub covered: [&'a [u8]; 2],
    /// The code.
    pub tag: [u8; TAG_LEN],
}

/// Appends number and code to the datagram that begins at `from` in `out`, eight octets long at least; `sign` makes the code of the two parts
/// that it covers.
pub fn seal(out: &mut Vec<u8>, from: usize, number: u64, sign: impl FnOnce([&[u8]; 2]) -> [u8; TAG_LEN]) {
    out.extend_from_slice(&number.to_be_bytes());
    let whole = out.get(from..).unwrap_or_default();
    let tag = sign([whole.get(..DELAY_AT).unwrap_or_default(), whole.get(DELAY_END..).unwrap_or_default()]);
    out.extend_from_slice(&tag);
}

/// Takes a datagram apart.
///
/// # Errors
/// If it is too short.
pub fn open(bytes: &[u8]) -> Result<Sealed<'_>, Error> {
    let short = Error::Truncated { needed: DELAY_END + SEAL_LEN, got: bytes.len() };
    let tag_at = bytes.len().checked_sub(TAG_LEN).filter(|at| *at >= DELAY_END + NUMBER_LEN).ok_or(short)?;
    let number_at = tag_at - NUMBER_LEN;
    Ok(Sealed {
        body: &bytes[..number_at],
        number: take(bytes, number_at).map(u64::from_be_bytes).ok_or(short)?,
        covered: [&bytes[..DELAY_AT], &bytes[DELAY_END..tag_at]],
        tag: take(bytes, tag_at).ok_or(short)?,
    })
}
