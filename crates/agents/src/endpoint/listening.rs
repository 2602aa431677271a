//! The receiving end, from a question of somebody unknown to the last answer: one connection at a time.
//! Source:     cookies as RFC 9000 section 8.1 has them ([`crate::tunnel::challenge`]).
//! Deviations: none.
//! Validity:   whatever comes, memory is that of one connection, [`ANSWERS`] answers and [`USED`] nonces.
//! Checked by: endpoint::tests

use super::LINGER;
use super::choice;
use super::error::Failure;
use super::seals::{End, Salt, Seals};
use crate::tunnel::Key;
use crate::tunnel::challenge::{Challenger, VALIDITY};
use lasthop_signals::Node;
use lasthop_transport::stream::{Figures, StreamReceiver};
use lasthop_units::{Span, Time};
use lasthop_wire::datagram::{Challenge, Close, Datagram, NO_COOKIE, Nonce, Open, Reason};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Answers to strangers that wait to be sent.
const ANSWERS: usize = 64;
/// Connections that are remembered while their cookies are good; no more are taken in that time.
const USED: usize = 1024;

/// What has happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// One has begun, from this address, by this transport or variant; its size if the sender knows it.
    Begun(SocketAddr, &'static str, Option<u64>),
    /// Everything has come: to be answered with [`Listening::kept`] or [`Listening::cannot_keep`].
    Complete,
    /// The sender knows that everything was kept, or had time enough to hear it.
    Over,
    /// It has ended before that.
    Failed(Failure),
}

/// The receiving end, without a socket.
pub struct Listening {
    key: Option<Key>,
    challenger: Challenger,
    patience: Span,
    datagram: usize,
    session: Option<Session>,
    used: VecDeque<(Time, Nonce)>,
    answers: VecDeque<(SocketAddr, Vec<u8>)>,
    events: VecDeque<Event>,
    /// Datagrams that were refused: not of a connection, forged, or repeated.
    refused: u64,
}

struct Session {
    peer: SocketAddr,
    open: Open,
    seals: Seals,
    stream: Box<dyn StreamReceiver>,
    heard: Time,
    /// Everything has come and was read, and the application has been told.
    complete: bool,
    /// What the application says of it.
    verdict: Option<Reason>,
    /// An answer to the sender's question leaves.
    due: Option<Reason>,
    /// The sender's `Open` leaves as its answer: the connection is there.
    echo: bool,
    octets: u64,
}

impl Listening {
    /// Nobody has called yet. `secret`: 32 random octets of this process.
    pub fn new(secret: [u8; 32], key: Option<Key>, patience: Span, datagram: usize) -> Listening {
        Listening {
            key,
            challenger: Challenger::new(secret),
            patience,
            datagram,
            session: None,
            used: VecDeque::new(),
            answers: VecDeque::new(),
            events: VecDeque::new(),
            refused: 0,
        }
    }

    /// The next thing that has happened.
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Moves what has come in order into `out`.
    pub fn read(&mut self, now: Time, out: &mut [u8]) -> usize {
        let Some(session) = &mut self.session else { return 0 };
        let count = session.stream.read(now, out);
        session.octets += count as u64;
        count
    }

    /// The application has kept everything.
    pub fn kept(&mut self, now: Time) {
        self.decide(now, Reason::Kept);
    }

    /// The application cannot keep what comes.
    pub fn cannot_keep(&mut self, now: Time) {
        self.decide(now, Reason::Failed);
    }

    /// This end was told to stop.
    pub fn stop(&mut self, now: Time) {
        self.decide(now, Reason::Stopped);
    }

    fn decide(&mut self, now: Time, reason: Reason) {
        if let Some(session) = self.session.as_mut().filter(|session| session.verdict.is_none()) {
            (session.verdict, session.due, session.heard) = (Some(reason), Some(reason), now);
        }
    }

    /// What there is to tell of the present stream.
    pub fn figures(&self) -> Option<Figures> {
        self.session.as_ref().map(|session| session.stream.figures())
    }

    /// Datagrams that were refused so far.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// A datagram has come.
    pub fn on_datagram(&mut self, now: Time, from: SocketAddr, bytes: &[u8]) {
        if let Some(session) = self.session.as_mut().filter(|session| session.peer == from) {
            let datagram = session.seals.open(bytes).and_then(|body| Datagram::decode(body).ok());
            if let Some(datagram) = datagram.filter(|datagram| datagram.connection() == session.open.connection) {
                session.heard = now;
                self.on_own(now, &datagram);
                return;
            }
        }
        if self.on_stranger(now, from, bytes).is_none() {
            self.refused += 1;
        }
    }

    fn on_own(&mut self, now: Time, datagram: &Datagram<'_>) {
        let Some(session) = &mut self.session else { return };
        // Whatever comes once the application has spoken: the sender has not heard it.
        session.due = session.verdict;
        match datagram {
            Datagram::Close(Close { reason: Reason::Over, .. }) if session.verdict.is_some() => self.finish(),
            Datagram::Close(Close { reason: Reason::Stopped, .. }) if session.verdict.is_none() => {
                self.fail(Failure::Stopped);
            }
            Datagram::Open(open) => session.echo |= open.nonce == session.open.nonce,
            Datagram::Close(_) | Datagram::Challenge(_) => {}
            data => session.stream.on_datagram(now, data),
        }
    }

    /// What is not of the present connection can only ask for one; `None` if it does not.
    fn on_stranger(&mut self, now: Time, from: SocketAddr, bytes: &[u8]) -> Option<()> {
        // The first question is never sealed, the second where there is a key.
        if let Ok(Datagram::Open(open)) = Datagram::decode(bytes)
            && open.cookie == NO_COOKIE
        {
            let Open { connection, delay, .. } = open;
            let cookie = self.challenger.challenge(now, Node(connection as u16), from);
            let challenge = Challenge { connection, delay, keyed: self.key.is_some(), cookie };
            self.answer(from, &Datagram::Challenge(challenge), None);
            return Some(());
        }
        let body = match &self.key {
            Some(_) => lasthop_wire::datagram::sealed::open(bytes).ok()?.body,
            None => bytes,
        };
        let Ok(Datagram::Open(open)) = Datagram::decode(body) else { return None };
        if !self.challenger.is_fresh(now, Node(open.connection as u16), from, &open.cookie) {
            return None;
        }
        let salt = Salt { connection: open.connection, nonce: open.nonce, cookie: open.cookie };
        let mut seals = Seals::new(self.key.as_ref(), &salt, End::Receiver);
        seals.open(bytes)?;
        while self.used.front().is_some_and(|(at, _)| now.since(*at) > VALIDITY) {
            self.used.pop_front();
        }
        if self.used.iter().any(|(_, nonce)| *nonce == open.nonce) {
            return None;
        }
        if self.session.is_some() || self.used.len() >= USED {
            let close = Close { connection: open.connection, reason: Reason::Busy, octets: 0 };
            self.answer(from, &Datagram::Close(close), Some(&mut seals));
            return Some(());
        }
        self.used.push_back((now, open.nonce));
        let seed = u64::from_be_bytes(open.nonce[..8].try_into().expect("a nonce has 16 octets"));
        let datagram = self.datagram - Seals::overhead(self.key.as_ref());
        let stream = choice::receiver(now, open.connection, open.transport, seed, datagram);
        let size = (open.size != lasthop_wire::datagram::UNKNOWN_SIZE).then_some(open.size);
        self.events.push_back(Event::Begun(from, choice::name_of(open.transport), size));
        self.session = Some(Session {
            peer: from,
            open,
            seals,
            stream,
            heard: now,
            complete: false,
            verdict: None,
            due: None,
            echo: true,
            octets: 0,
        });
        Some(())
    }

    fn answer(&mut self, to: SocketAddr, datagram: &Datagram<'_>, seals: Option<&mut Seals>) {
        // A flood is answered as far as the network takes the answers.
        if self.answers.len() >= ANSWERS {
            return;
        }
        let mut out = Vec::new();
        datagram.encode(&mut out).expect("it has no options");
        if let Some(seals) = seals {
            seals.seal(&mut out, 0);
        }
        self.answers.push_back((to, out));
    }

    /// Appends a datagram that leaves now to `out`, and says where to; `None` if none does.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<SocketAddr> {
        if let Some((to, bytes)) = self.answers.pop_front() {
            out.extend_from_slice(&bytes);
            return Some(to);
        }
        let session = self.session.as_mut()?;
        let (from, peer) = (out.len(), session.peer);
        if let Some(reason) = session.due.take() {
            let close = Close { connection: session.open.connection, reason, octets: session.octets };
            Datagram::Close(close).encode(out).expect("it has no options");
        } else if std::mem::take(&mut session.echo) {
            Datagram::Open(session.open).encode(out).expect("it has no options");
        } else if !session.stream.poll_transmit(now, out) {
            return None;
        }
        session.seals.seal(out, from);
        Some(peer)
    }

    /// When `on_timeout` is to be called if nothing comes before.
    pub fn next_timeout(&self) -> Option<Time> {
        let session = self.session.as_ref()?;
        // Nothing is due of the sender while the application has the word.
        let patience = match session.verdict {
            Some(_) => Some(LINGER),
            None => (!session.complete).then_some(self.patience),
        };
        let silence = patience.map(|patience| session.heard + patience);
        session.stream.next_timeout().into_iter().chain(silence).min()
    }

    /// Acts on what is due. To be followed by `poll_transmit`, and to be called after `read`, too.
    pub fn on_timeout(&mut self, now: Time) {
        let Some(session) = &mut self.session else { return };
        session.stream.on_timeout(now);
        if session.stream.is_done() && !session.complete && session.verdict.is_none() {
            session.complete = true;
            self.events.push_back(Event::Complete);
        }
        let silent = now.since(session.heard);
        match session.verdict {
            Some(_) if silent >= LINGER => self.finish(),
            None if silent >= self.patience && !session.complete => self.fail(Failure::Silent(self.patience)),
            _ => {}
        }
    }

    fn finish(&mut self) {
        self.session = None;
        self.events.push_back(Event::Over);
    }

    fn fail(&mut self, why: Failure) {
        self.session = None;
        self.events.push_back(Event::Failed(why));
    }
}
