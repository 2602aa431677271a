//! The tunnel: its session, and the handshakes that begin it and renew its keys.
//!
//! A handshake goes on beside the session, which stays as it is until the proxy has answered: by going on with it under other
//! keys, or by saying that it knows no such session, which ends this one's connections at once.

use super::config::Summary;
use super::session::Session;
use crate::tunnel::keys::Key;
use crate::tunnel::link::Link;
use crate::tunnel::path::Path;
use crate::tunnel::{Initiator, Keyring, SILENCE};
use lasthop_signals::Node;
use lasthop_units::{Span, Time};
use lasthop_wire::tunnel::{CHALLENGE, Challenge, Wish};
use std::io;

/// What leads to the proxy.
pub(super) struct Tunnel {
    node: Node,
    key: Key,
    /// Keys are renewed when they are as old as this.
    renew: Span,
    session: Option<Box<Session>>,
    handshake: Option<Handshake>,
    /// The number of the next keys.
    number: u32,
    /// The last that the proxy gave us.
    challenge: Challenge,
}

struct Handshake {
    initiator: Initiator,
    since: Time,
    sent: Option<Time>,
}

/// What came of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// It answers nothing that was asked.
    Refused,
    /// The session goes on with other keys.
    GoesOn,
    /// There is a new session.
    Begun,
}

/// An initiation without an answer is sent again after this…
const RESEND: Span = Span::from_millis(300);
/// …and after this a new one is made.
const ANEW: Span = Span::from_secs(5);
/// A proxy that has been silent for so long may have been started again: it is asked. Two pings have had no answer then.
const PATIENCE: Span = Span::from_secs(1);

impl Tunnel {
    /// Nothing yet. `first`: the number of the first keys.
    pub(super) fn new(node: Node, key: Key, renew: Span, first: u32) -> Tunnel {
        Tunnel { node, key, renew, session: None, handshake: None, number: first, challenge: [0; CHALLENGE] }
    }

    /// The session, if there is one.
    pub(super) fn session(&mut self) -> Option<&mut Session> {
        self.session.as_deref_mut()
    }

    /// Takes a response's message.
    pub(super) fn on_response(&mut self, now: Time, number: u32, message: &[u8], summary: &mut Summary) -> Answered {
        let Some(handshake) = self.handshake.as_mut().filter(|one| one.initiator.wish().number == number) else {
            return Answered::Refused;
        };
        let Ok(agreed) = handshake.initiator.finish(message) else { return Answered::Refused };
        self.handshake = None;
        match self.session.as_mut().filter(|_| agreed.continued) {
            Some(session) => {
                session.go_on(now, number, agreed.sealer);
                summary.renewals += 1;
                Answered::GoesOn
            }
            None => {
                // Whoever held the other end of the old session is no more.
                self.close_books(summary);
                let keys = Keyring::new(now, agreed.id, number, agreed.sealer);
                self.session = Some(Box::new(Session::new(now, number, keys)));
                summary.sessions += 1;
                Answered::Begun
            }
        }
    }

    /// Takes a challenge; false if it answers nothing that was asked.
    pub(super) fn on_challenge(
        &mut self,
        now: Time,
        number: u32,
        challenge: &Challenge,
        proof: &[u8; CHALLENGE],
    ) -> bool {
        let asked = self.handshake.as_ref();
        if !asked.is_some_and(|one| one.initiator.is_challenged(number, challenge, proof)) {
            return false;
        }
        self.challenge = *challenge;
        self.handshake = Some(self.ask(now));
        true
    }

    /// Ends a session that is over, and sends an initiation if it is time for one.
    pub(super) fn look(&mut self, now: Time, link: &Link, path: &mut Path, summary: &mut Summary) -> io::Result<()> {
        if self.session.as_ref().is_some_and(|session| session.closed || now.since(session.heard) > SILENCE) {
            self.end(now, link, path, summary);
        }
        let old = self.handshake.as_ref().is_none_or(|one| now.since(one.since) > ANEW);
        if self.asks_at() > now {
            // An answer that is late is as good.
            self.handshake.take_if(|_| old);
            return Ok(());
        }
        if old {
            self.handshake = Some(self.ask(now));
        }
        let Some(handshake) = &mut self.handshake else { return Ok(()) };
        if handshake.sent.is_none_or(|sent| now.since(sent) >= RESEND) {
            handshake.sent = Some(now);
            link.send_train(path, handshake.initiator.datagram())?;
        }
        Ok(())
    }

    /// Ends the session, and tells the proxy.
    pub(super) fn end(&mut self, now: Time, link: &Link, path: &mut Path, summary: &mut Summary) {
        if let Some(session) = &mut self.session {
            session.farewell(now, link, path);
        }
        // It asked for a session to go on that is no more.
        self.handshake = None;
        self.close_books(summary);
    }

    /// Nobody has answered where we have asked so far: the next initiation leaves at once.
    pub(super) fn ask_anew(&mut self) {
        self.handshake = None;
    }

    /// When [`Tunnel::look`] has something to do at the latest.
    pub(super) fn next_wake(&self) -> Time {
        let sent = self.handshake.as_ref().and_then(|one| one.sent);
        let asks = self.asks_at().max(sent.map_or(Time::ZERO, |sent| sent + RESEND));
        asks.min(self.session.as_ref().map_or(Time::MAX, |session| session.heard + SILENCE))
    }

    /// From when on the proxy is asked for keys.
    fn asks_at(&self) -> Time {
        let Some(session) = &self.session else { return Time::ZERO };
        match session.keys.wants_renewal(Time::ZERO, Span::MAX) {
            true => Time::ZERO,
            false => (session.heard + PATIENCE).min(session.keys.renewal(self.renew)),
        }
    }

    fn ask(&mut self, now: Time) -> Handshake {
        let number = self.number;
        self.number = self.number.wrapping_add(1);
        let continues = self.session.as_ref().map(|session| session.keys.id());
        let wish = Wish { number, challenge: self.challenge, continues };
        Handshake { initiator: Initiator::new(self.node, &self.key, wish), since: now, sent: None }
    }

    fn close_books(&mut self, summary: &mut Summary) {
        if let Some(session) = self.session.take() {
            summary.connections += session.connections;
            summary.packets += session.endpoint.arrived().0;
            session.end();
        }
    }
}
