//! The tunnel: its session, and the handshakes that begin it and renew its keys ([`Asking`]).

use super::config::Summary;
use super::session::Session;
use crate::tunnel::asking::{Asking, Running};
use crate::tunnel::keys::Key;
use crate::tunnel::link::Link;
use crate::tunnel::path::Path;
use crate::tunnel::{Keyring, SILENCE};
use lasthop_signals::Node;
use lasthop_units::{Span, Time};
use lasthop_wire::tunnel::{CHALLENGE, Challenge};
use std::io;

/// What leads to the proxy.
pub(super) struct Tunnel {
    asking: Asking,
    session: Option<Box<Session>>,
    /// Sessions acknowledge at once.
    prompt: bool,
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

impl Tunnel {
    /// Nothing yet. `first`: the number of the first keys. `prompt`: see [`Session::new`].
    pub(super) fn new(node: Node, key: Key, renew: Span, first: u32, prompt: bool) -> Tunnel {
        Tunnel { asking: Asking::new(node, key, renew, first), session: None, prompt }
    }

    /// The session, if there is one.
    pub(super) fn session(&mut self) -> Option<&mut Session> {
        self.session.as_deref_mut()
    }

    /// Takes a response's message.
    pub(super) fn on_response(&mut self, now: Time, number: u32, message: &[u8], summary: &mut Summary) -> Answered {
        let Some(agreed) = self.asking.on_response(number, message) else { return Answered::Refused };
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
                self.session = Some(Box::new(Session::new(now, number, keys, self.prompt)));
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
        let session = self.session.as_ref().map(|session| session.keys.id());
        self.asking.on_challenge(now, session, number, challenge, proof)
    }

    /// Ends a session that is over, and sends an initiation if it is time for one.
    pub(super) fn look(&mut self, now: Time, link: &Link, path: &mut Path, summary: &mut Summary) -> io::Result<()> {
        if self.session.as_ref().is_some_and(|session| session.closed || now.since(session.heard) > SILENCE) {
            self.end(now, link, path, summary);
        }
        match self.asking.look(now, running(self.session.as_deref())) {
            Some(datagram) => link.send_train(path, datagram),
            None => Ok(()),
        }
    }

    /// Ends the session, and tells the proxy.
    pub(super) fn end(&mut self, now: Time, link: &Link, path: &mut Path, summary: &mut Summary) {
        if let Some(session) = &mut self.session {
            session.farewell(now, link, path);
        }
        // It asked for a session to go on that is no more.
        self.asking.anew();
        self.close_books(summary);
    }

    /// Nobody has answered where we have asked so far: the next initiation leaves at once.
    pub(super) fn ask_anew(&mut self) {
        self.asking.anew();
    }

    /// When [`Tunnel::look`] has something to do at the latest.
    pub(super) fn next_wake(&self) -> Time {
        let asks = self.asking.next_wake(running(self.session.as_deref()));
        asks.min(self.session.as_ref().map_or(Time::MAX, |session| session.heard + SILENCE))
    }

    fn close_books(&mut self, summary: &mut Summary) {
        if let Some(session) = self.session.take() {
            summary.connections += session.connections;
            summary.packets += session.endpoint.arrived().0;
            session.end();
        }
    }
}

fn running(session: Option<&Session>) -> Option<Running<'_>> {
    session.map(|session| Running { heard: session.heard, keys: &session.keys })
}
