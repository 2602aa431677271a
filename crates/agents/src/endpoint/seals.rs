//! The codes that follow the datagrams of two ends that share a key.
//! Source:     HMAC-SHA-256 (RFC 2104); keys of a connection from the shared one as RFC 5869 section 2.3 derives them, one block long.
//! Equations:  key of a direction = HMAC(shared key, label | connection | nonce | cookie)
//! Symbols:    nonce, 16 random octets of the sender; cookie, 32 octets of the receiver -> `Open`
//! Deviations: payload is authenticated and not hidden: relays and measurements read it. D is not covered (`lasthop_wire::datagram::sealed`).
//! Validity:   2^64 datagrams each way.     Checked by: endpoint::tests

use crate::tunnel::Key;
use crate::tunnel::replay::Replay;
use lasthop_wire::datagram::{Cookie, Nonce, sealed};
use ring::hmac;

/// Which end this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Sender,
    Receiver,
}

/// What a connection's keys are made of, beside the shared one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Salt {
    pub(super) connection: u32,
    pub(super) nonce: Nonce,
    pub(super) cookie: Cookie,
}

/// One end's codes; without a shared key there are none, and everything passes.
pub(super) struct Seals(Option<Keyed>);

struct Keyed {
    ours: hmac::Key,
    theirs: hmac::Key,
    next: u64,
    seen: Replay,
}

impl Seals {
    pub(super) fn new(shared: Option<&Key>, salt: &Salt, end: End) -> Seals {
        Seals(shared.map(|shared| {
            let shared = hmac::Key::new(hmac::HMAC_SHA256, &shared.0);
            let of = |label: &[u8]| {
                let text = [label, &salt.connection.to_be_bytes(), &salt.nonce, &salt.cookie].concat();
                hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&shared, &text).as_ref())
            };
            let (down, up) = (of(b"lasthop stream, from the sender"), of(b"lasthop stream, from the receiver"));
            let (ours, theirs) = if end == End::Sender { (down, up) } else { (up, down) };
            Keyed { ours, theirs, next: 0, seen: Replay::new() }
        }))
    }

    /// Octets that a datagram grows by.
    pub(super) fn overhead(shared: Option<&Key>) -> usize {
        if shared.is_some() { sealed::SEAL_LEN } else { 0 }
    }

    /// Seals the datagram that begins at `from` in `out`.
    pub(super) fn seal(&mut self, out: &mut Vec<u8>, from: usize) {
        let Some(keyed) = &mut self.0 else { return };
        let number = keyed.next;
        keyed.next += 1;
        sealed::seal(out, from, number, |parts| {
            let mut context = hmac::Context::with_key(&keyed.ours);
            parts.iter().for_each(|part| context.update(part));
            let mut tag = [0; sealed::TAG_LEN];
            tag.copy_from_slice(&context.sign().as_ref()[..sealed::TAG_LEN]);
            tag
        });
    }

    /// The datagram, if the other end made it and it has not come before.
    pub(super) fn open<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let Some(keyed) = &mut self.0 else { return Some(bytes) };
        let sealed = sealed::open(bytes).ok()?;
        if !keyed.seen.is_fresh(sealed.number) {
            return None;
        }
        let mut context = hmac::Context::with_key(&keyed.theirs);
        sealed.covered.iter().for_each(|part| context.update(part));
        let right = context.sign();
        // In the same time wherever they differ.
        let differ = right.as_ref().iter().zip(&sealed.tag).fold(0, |differ, (one, other)| differ | (one ^ other));
        if differ != 0 {
            return None;
        }
        keyed.seen.enter(sealed.number);
        Some(sealed.body)
    }
}
