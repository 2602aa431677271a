//! The sending end of a connection, from its first question to its last answer.
//!
//! States: asking for a cookie -> opening (the cookie is there, nothing else has come) -> open -> asking whether everything was kept -> over.

use super::error::Failure;
use super::seals::{End, Salt, Seals};
use super::{AGAIN, ASK};
use crate::tunnel::Key;
use lasthop_transport::stream::{Figures, StreamSender};
use lasthop_units::{Span, Time};
use lasthop_wire::datagram::{Challenge, Close, Datagram, NO_COOKIE, Nonce, Open, Reason, Transport};

/// A cookie that nothing has followed for so long was damaged, or forged, or has become too old: another one is asked for.
const COOKIE_AGE: Span = Span::from_secs(3);

/// What a call is made with.
pub struct Call {
    /// The connection's number.
    pub connection: u32,
    /// Random octets, new for each connection.
    pub nonce: Nonce,
    /// What carries the stream.
    pub transport: Transport,
    /// Octets that the stream will have.
    pub size: u64,
    /// The key that the receiver has too.
    pub key: Option<Key>,
    /// How long to wait for an answer.
    pub patience: Span,
}

/// The sending end, without a socket.
pub struct Calling {
    call: Call,
    stream: Box<dyn StreamSender>,
    /// Those of the cookie that was known last: their numbers run on where it comes again.
    seals: Seals,
    sealed_for: [u8; 32],
    /// The receiver's cookie, and since when it is known.
    cookie: Option<(Time, [u8; 32])>,
    /// The other end has been heard since there is a cookie.
    open: bool,
    /// When `Open` leaves again if nothing else does.
    again: Time,
    /// When it was heard last: it answers each `Open`, and what is sent.
    heard: Time,
    written: u64,
    closed: bool,
    /// When it is asked next whether everything was kept.
    ask: Option<Time>,
    /// What leaves before anything else.
    last_words: Option<Reason>,
    end: Option<Result<(), Failure>>,
}

impl Calling {
    /// A call that begins now. `stream` is the sending end of its stream.
    pub fn new(now: Time, call: Call, stream: Box<dyn StreamSender>) -> Calling {
        let seals = Seals::new(None, &Salt { connection: 0, nonce: call.nonce, cookie: NO_COOKIE }, End::Sender);
        Calling {
            call,
            stream,
            seals,
            sealed_for: NO_COOKIE,
            cookie: None,
            open: false,
            again: now,
            heard: now,
            written: 0,
            closed: false,
            ask: None,
            last_words: None,
            end: None,
        }
    }

    /// Takes as many octets as there is room for.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let count = self.stream.write(bytes);
        self.written += count as u64;
        count
    }

    /// The stream ends with what was written.
    pub fn close(&mut self) {
        self.closed = true;
        self.stream.close();
    }

    /// Gives up, and tells the other end.
    pub fn stop(&mut self) {
        if self.end.is_none() {
            (self.end, self.last_words) = (Some(Err(Failure::Stopped)), Some(Reason::Stopped));
        }
    }

    /// How it has ended, once it has.
    pub fn end(&self) -> Option<&Result<(), Failure>> {
        self.end.as_ref()
    }

    /// True once the other end has taken the connection.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Octets that were written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Octets that were written and have not been in a packet yet.
    pub fn unsent(&self) -> u64 {
        self.stream.unsent()
    }

    /// What there is to tell of the stream.
    pub fn figures(&self) -> Figures {
        self.stream.figures()
    }

    /// D of the own interface from now on; zero if it is not known.
    pub fn set_own_delay(&mut self, delay: Span) {
        self.stream.set_own_delay(delay);
    }

    /// A datagram has come from the other end's address.
    pub fn on_datagram(&mut self, now: Time, bytes: &[u8]) {
        if self.end.is_some() {
            return;
        }
        if let Ok(Datagram::Challenge(challenge)) = Datagram::decode(bytes)
            && challenge.connection == self.call.connection
        {
            self.on_challenge(now, &challenge);
            return;
        }
        if self.cookie.is_none() {
            return;
        }
        let Some(Ok(datagram)) = self.seals.open(bytes).map(Datagram::decode) else { return };
        if datagram.connection() != self.call.connection {
            return;
        }
        (self.open, self.heard) = (true, now);
        match datagram {
            Datagram::Close(close) => self.on_close(&close),
            other => self.stream.on_datagram(now, &other),
        }
    }

    fn on_challenge(&mut self, now: Time, challenge: &Challenge) {
        // One that was overtaken would undo what the other end has taken already.
        if self.cookie.is_some() {
            return;
        }
        match (challenge.keyed, &self.call.key) {
            (true, None) => self.end = Some(Err(Failure::WantsKey)),
            (false, Some(_)) => self.end = Some(Err(Failure::NoKey)),
            (_, key) => {
                let Call { connection, nonce, .. } = self.call;
                if self.sealed_for != challenge.cookie {
                    let salt = Salt { connection, nonce, cookie: challenge.cookie };
                    self.seals = Seals::new(key.as_ref(), &salt, End::Sender);
                    self.sealed_for = challenge.cookie;
                }
                // The first question met nodes that were as idle as the stream will find them.
                self.stream.set_first_delay(challenge.delay);
                self.cookie = Some((now, challenge.cookie));
                self.again = now;
            }
        }
    }

    fn on_close(&mut self, close: &Close) {
        let sent = self.written;
        let failure = match close.reason {
            // The application's word counts, whatever of the transport's last packets was lost.
            Reason::Kept if self.closed => {
                self.last_words = Some(Reason::Over);
                let same = close.octets == sent;
                self.end = Some(if same { Ok(()) } else { Err(Failure::Differs { kept: close.octets, sent }) });
                return;
            }
            Reason::Busy => Failure::Busy,
            Reason::Stopped => Failure::Stopped,
            Reason::Failed => Failure::CannotKeep,
            Reason::Kept | Reason::Sent | Reason::Over => return,
        };
        // The other end need not wait for a sign that it was heard.
        if matches!(failure, Failure::Stopped | Failure::CannotKeep) {
            self.last_words = Some(Reason::Over);
        }
        self.end = Some(Err(failure));
    }

    /// Appends a datagram that leaves now to `out`; false if none does.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> bool {
        let from = out.len();
        if let Some(reason) = self.last_words.take() {
            return self.cookie.is_some() && self.send_close(reason, out, from);
        }
        if self.end.is_some() {
            return false;
        }
        if self.again <= now && self.ask.is_none() {
            self.again = now + AGAIN;
            self.send_open(out, from);
            return true;
        }
        if self.cookie.is_none() {
            return false;
        }
        if self.ask.is_some_and(|at| at <= now) {
            self.ask = Some(now + ASK);
            return self.send_close(Reason::Sent, out, from);
        }
        if !self.stream.poll_transmit(now, out) {
            return false;
        }
        if self.open {
            self.again = now + AGAIN;
        }
        self.seals.seal(out, from);
        true
    }

    fn send_open(&mut self, out: &mut Vec<u8>, from: usize) {
        let Call { connection, nonce, transport, size, .. } = self.call;
        let cookie = self.cookie.map_or(NO_COOKIE, |(_, cookie)| cookie);
        let open = Open { connection, delay: Span::ZERO, transport, nonce, size, cookie };
        Datagram::Open(open).encode(out).expect("it has no options");
        if self.cookie.is_some() {
            self.seals.seal(out, from);
        }
    }

    fn send_close(&mut self, reason: Reason, out: &mut Vec<u8>, from: usize) -> bool {
        let close = Close { connection: self.call.connection, reason, octets: self.written };
        Datagram::Close(close).encode(out).expect("it has no options");
        self.seals.seal(out, from);
        true
    }

    /// When `on_timeout` is to be called if nothing comes before.
    pub fn next_timeout(&self) -> Option<Time> {
        if self.end.is_some() {
            return self.last_words.map(|_| Time::ZERO);
        }
        let again = self.ask.is_none().then_some(self.again);
        let stream = self.stream.next_timeout().filter(|_| self.cookie.is_some() && self.ask.is_none());
        let patience = self.heard + self.call.patience;
        [again, self.ask, stream, Some(patience)].into_iter().flatten().min()
    }

    /// Acts on what is due. To be followed by `poll_transmit`.
    pub fn on_timeout(&mut self, now: Time) {
        if self.end.is_some() {
            return;
        }
        if now.since(self.heard) >= self.call.patience {
            let patience = self.call.patience;
            self.end = Some(Err(if self.open { Failure::Silent(patience) } else { Failure::NoAnswer(patience) }));
            return;
        }
        if self.stream.contradicted().is_some_and(|since| now.since(since) >= self.call.patience) {
            (self.end, self.last_words) = (Some(Err(Failure::Contradicted)), Some(Reason::Stopped));
            return;
        }
        if self.cookie.is_some_and(|(since, _)| !self.open && now.since(since) >= COOKIE_AGE) {
            (self.cookie, self.again) = (None, now);
        }
        if self.cookie.is_some() {
            self.stream.on_timeout(now);
        }
        if self.stream.is_done() && self.ask.is_none() {
            self.ask = Some(now);
        }
    }
}
