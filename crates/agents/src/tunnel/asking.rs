//! The end that asks for keys: the handshakes that begin a session and renew its keys.
//!
//! A handshake goes on beside the session, which stays as it is until the other end has answered: by going on with it under other
//! keys, or by saying that it knows no such session.

use super::keys::Key;
use super::{Agreed, Initiator, Keyring};
use lasthop_signals::Node;
use lasthop_units::{Span, Time};
use lasthop_wire::tunnel::{CHALLENGE, Challenge, SessionId, Wish};

/// Asks for keys, again and again until there is an answer.
pub struct Asking {
    node: Node,
    key: Key,
    /// Keys are renewed when they are as old as this.
    renew: Span,
    handshake: Option<Handshake>,
    /// The number of the next keys.
    number: u32,
    /// The last that the other end gave us.
    challenge: Challenge,
}

/// The session that goes on meanwhile.
#[derive(Clone, Copy)]
pub struct Running<'a> {
    /// When something was last heard in it.
    pub heard: Time,
    /// Its keys.
    pub keys: &'a Keyring,
}

struct Handshake {
    initiator: Initiator,
    since: Time,
    sent: Option<Time>,
}

/// An initiation without an answer is sent again after this…
const RESEND: Span = Span::from_millis(300);
/// …and after this a new one is made.
const ANEW: Span = Span::from_secs(5);
/// Another end that has been silent for so long may have been started again: it is asked. Two pings have had no answer then.
const PATIENCE: Span = Span::from_secs(1);

impl Asking {
    /// Nothing yet. `first`: the number of the first keys.
    pub fn new(node: Node, key: Key, renew: Span, first: u32) -> Asking {
        Asking { node, key, renew, handshake: None, number: first, challenge: [0; CHALLENGE] }
    }

    /// Takes the message of a response to the keys that we number so; `None` if it answers nothing that was asked.
    pub fn on_response(&mut self, number: u32, message: &[u8]) -> Option<Agreed> {
        let handshake = self.handshake.as_mut().filter(|one| one.initiator.wish().number == number)?;
        let agreed = handshake.initiator.finish(message).ok()?;
        self.handshake = None;
        Some(agreed)
    }

    /// Takes a challenge; false if it answers nothing that was asked. `session`: the one that shall go on.
    pub fn on_challenge(
        &mut self,
        now: Time,
        session: Option<SessionId>,
        number: u32,
        challenge: &Challenge,
        proof: &[u8; CHALLENGE],
    ) -> bool {
        let asked = self.handshake.as_ref();
        if !asked.is_some_and(|one| one.initiator.is_challenged(number, challenge, proof)) {
            return false;
        }
        self.challenge = *challenge;
        self.handshake = Some(self.ask(now, session));
        true
    }

    /// An initiation, if it is time to send one.
    pub fn look(&mut self, now: Time, session: Option<Running<'_>>) -> Option<&[u8]> {
        let old = self.handshake.as_ref().is_none_or(|one| now.since(one.since) > ANEW);
        if self.asks_at(session) > now {
            // An answer that is late is as good.
            self.handshake.take_if(|_| old);
            return None;
        }
        if old {
            self.handshake = Some(self.ask(now, session.map(|session| session.keys.id())));
        }
        let handshake = self.handshake.as_mut()?;
        if handshake.sent.is_some_and(|sent| now.since(sent) < RESEND) {
            return None;
        }
        handshake.sent = Some(now);
        Some(handshake.initiator.datagram())
    }

    /// Forgets what was asked so far: nobody answers where that was, or it was for a session that is no more. The next initiation leaves at once.
    pub fn anew(&mut self) {
        self.handshake = None;
    }

    /// When [`Asking::look`] has something to do.
    pub fn next_wake(&self, session: Option<Running<'_>>) -> Time {
        let sent = self.handshake.as_ref().and_then(|one| one.sent);
        self.asks_at(session).max(sent.map_or(Time::ZERO, |sent| sent + RESEND))
    }

    /// From when on the other end is asked for keys.
    fn asks_at(&self, session: Option<Running<'_>>) -> Time {
        let Some(Running { heard, keys }) = session else { return Time::ZERO };
        match keys.wants_renewal(Time::ZERO, Span::MAX) {
            true => Time::ZERO,
            false => (heard + PATIENCE).min(keys.renewal(self.renew)),
        }
    }

    fn ask(&mut self, now: Time, continues: Option<SessionId>) -> Handshake {
        let number = self.number;
        self.number = self.number.wrapping_add(1);
        let wish = Wish { number, challenge: self.challenge, continues };
        Handshake { initiator: Initiator::new(self.node, &self.key, wish), since: now, sent: None }
    }
}
