//! The session with another gateway: its tunnel, the connections of local programs that go through it, and those that are made for the other.

use crate::endpoint::own_delay::{OwnDelay, held};
use crate::service::poll::Poll;
use crate::station::local::Local;
use crate::tunnel::challenge::Challenger;
use crate::tunnel::link::Link;
use crate::tunnel::outgoing::{self, Addresses, Attempt};
use crate::tunnel::path::Path;
use crate::tunnel::pipe::{Pipe, State, Turns, fail_when_closed};
use crate::tunnel::roaming::Roaming;
use crate::tunnel::sealer::Refused;
use crate::tunnel::{Keyring, SILENCE, Sealer, farewell};
use lasthop_laws::atp::{Average, Params, Rate, Variant};
use lasthop_signals::Node;
use lasthop_transport::tunnel::{Config as TunnelConfig, Endpoint, Event};
use lasthop_units::{Span, Time};
use lasthop_wire::proxy::Target;
use lasthop_wire::tunnel::{MAX_PACKET, OpenResult};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{SocketAddr, TcpStream};

/// A session.
pub(super) struct Session {
    /// Number of the key that both have.
    pub(super) node: Node,
    /// Ours, by which its sockets are told from others'.
    number: u32,
    pub(super) path: Path,
    /// Where the other end may have gone, if it is the one that calls.
    roaming: Option<Roaming>,
    pub(super) keys: Keyring,
    pub(super) endpoint: Endpoint,
    pipes: BTreeMap<u32, Pipe>,
    turns: Turns,
    /// Local programs that wait for an answer.
    opening: BTreeMap<u32, Local>,
    /// Streams of the other end for which the host is being looked up or connected to.
    resolving: BTreeSet<u32>,
    attempts: BTreeMap<u32, Attempt>,
    /// Where connections were led that the other end does not make.
    pub(super) forbidden: Vec<SocketAddr>,
    pub(super) heard: Time,
    pinged: Time,
    packet: Vec<u8>,
    train: Vec<u8>,
    /// The session is over, although the other end may still be there.
    pub(super) closed: bool,
    closed_by_other: bool,
    pub(super) counts: Counts,
}

/// What has passed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) connections: u64,
    pub(super) served: u64,
    pub(super) packets: u64,
}

/// The other end wants a connection to a host.
pub(super) struct Ask {
    pub(super) stream: u32,
    pub(super) host: String,
    pub(super) port: u16,
}

/// How a session begins.
pub(super) struct Beginning {
    pub(super) node: Node,
    pub(super) number: u32,
    /// Where the other end is.
    pub(super) at: SocketAddr,
    pub(super) keys: Keyring,
    /// It was called, not we.
    pub(super) calls: bool,
    pub(super) variant: Variant,
}

/// Octets of memory beyond which the host's own queue is given no more (as in [`crate::endpoint`]).
const HELD: usize = 160 << 10;
/// Full datagrams in one train.
const MOST_TRAIN: usize = 40;
/// Packets sent before anything else is looked at.
const MOST_AT_ONCE: usize = 256;
/// How often the calling gateway asks for a sign of life.
const PING: Span = Span::from_millis(500);

impl Session {
    pub(super) fn new(now: Time, beginning: Beginning) -> Session {
        let Beginning { node, number, at, keys, calls, variant } = beginning;
        let params = Params { variant, ..Params::default() };
        let (sender, receiver) = (Rate::new(params.clone()), Average::new(params));
        let tunnel = Endpoint::new(TunnelConfig::gateway(calls));
        let mut endpoint = tunnel.with_path_pace(Box::new(sender), Box::new(receiver));
        if calls {
            // The first packet makes the session count there.
            endpoint.ping();
        }
        Session {
            node,
            number,
            path: Path::over_mesh(at),
            roaming: (!calls).then(Roaming::default),
            keys,
            endpoint,
            pipes: BTreeMap::new(),
            turns: Turns::default(),
            opening: BTreeMap::new(),
            resolving: BTreeSet::new(),
            attempts: BTreeMap::new(),
            forbidden: Vec::new(),
            heard: now,
            pinged: now,
            packet: Vec::with_capacity(MAX_PACKET),
            train: Vec::new(),
            closed: false,
            closed_by_other: false,
            counts: Counts::default(),
        }
    }

    /// Goes on with other keys, which the first packet under them makes count there if we have asked for them.
    pub(super) fn go_on(&mut self, now: Time, number: u32, sealer: Sealer) {
        self.keys.renew(now, number, sealer);
        if self.roaming.is_none() {
            self.heard = now;
            self.endpoint.ping();
        }
    }

    /// True if it is not over, and something was heard within this time.
    pub(super) fn is_heard(&self, now: Time, within: Span) -> bool {
        !self.closed && now.since(self.heard) <= within
    }

    /// Opens a datagram that was sealed with the keys that we number `keys`, and has come `from` there with this D.
    pub(super) fn on_sealed(
        &mut self,
        now: Time,
        (keys, number, sealed): (u32, u64, &[u8]),
        (from, delay): (SocketAddr, Span),
        challenger: &Challenger,
    ) -> Result<(), Refused> {
        // Nothing that comes later brings it back.
        if self.closed {
            return Err(Refused::Unknown);
        }
        let mut packet = [0; 2048];
        let (len, highest) = self.keys.open(now, keys, number, sealed, &mut packet)?;
        self.heard = now;
        self.closed |= self.endpoint.on_stamped_packet(now, number, &packet[..len], delay).is_err();
        let answer = self.endpoint.take_path_answer();
        if let Some(roaming) = self.roaming.as_mut().filter(|_| highest) {
            roaming.look(now, (self.node, from), answer, challenger, &mut self.path);
        }
        Ok(())
    }

    /// Opens a stream for a local program.
    pub(super) fn open(&mut self, local: Local, target: &Target) {
        if local.is_silent() {
            fail_when_closed(&local.socket, true);
        }
        let stream = self.endpoint.open(&target.host, target.port);
        self.opening.insert(stream, local);
    }

    /// Deals with what has happened; `asks` gets what others must do.
    pub(super) fn events(&mut self, now: Time, poll: &Poll, asks: &mut Vec<Ask>) {
        while let Some(event) = self.endpoint.next_event() {
            match event {
                Event::Opened { stream, result } => self.opened(now, stream, result, poll),
                Event::Open { stream, host, port } => {
                    self.resolving.insert(stream);
                    asks.push(Ask { stream, host, port });
                }
                Event::Readable(stream) => self.push(now, stream),
                Event::Reset(stream) => {
                    self.opening.remove(&stream).map(|local| local.answer(OpenResult::Failed));
                    self.resolving.remove(&stream);
                    self.attempts.remove(&stream);
                    if let Some(pipe) = self.pipes.remove(&stream) {
                        pipe.abort();
                    }
                }
                // An end that paces by the path's delay gets no reports of slots or cells.
                Event::Feedback(_) | Event::Cell(_) => {}
                Event::Closed => (self.closed, self.closed_by_other) = (true, true),
            }
        }
        self.endpoint.delays();
        self.give_up_attempts(now, poll);
        if self.roaming.is_none() && now.since(self.pinged) >= PING {
            self.pinged = now;
            self.endpoint.ping();
        }
    }

    fn opened(&mut self, now: Time, stream: u32, result: OpenResult, poll: &Poll) {
        let Some(local) = self.opening.remove(&stream) else { return };
        if result == OpenResult::Forbidden {
            self.forbidden.extend(local.diverted);
        }
        let (socket, said) = local.answer(result);
        if result != OpenResult::Connected {
            return self.endpoint.reset(stream);
        }
        if self.begin(now, stream, socket, poll, true) {
            self.counts.connections += 1;
            self.endpoint.write(stream, &said, now);
            self.push(now, stream);
        }
    }

    /// A stream has its connection; false if that cannot be used.
    fn begin(&mut self, now: Time, stream: u32, socket: TcpStream, poll: &Poll, watch: bool) -> bool {
        let made = Pipe::new(socket).and_then(|pipe| {
            if watch {
                poll.add_edge(&pipe, token(self.number, stream))?;
            }
            Ok(pipe.fail_when_killed())
        });
        match made {
            Ok(pipe) => {
                self.pipes.insert(stream, pipe);
                self.push(now, stream);
                true
            }
            Err(_) => {
                self.endpoint.reset(stream);
                false
            }
        }
    }

    /// The addresses of a stream's host are known, as far as the other end may be connected to them.
    pub(super) fn on_addresses(&mut self, now: Time, stream: u32, addresses: Vec<SocketAddr>, poll: &Poll) {
        // It may have been given up meanwhile.
        if self.resolving.remove(&stream) {
            self.connect(now, stream, Addresses::new(now, addresses), poll);
        }
    }

    /// A stream is not to be.
    pub(super) fn refuse(&mut self, stream: u32, result: OpenResult) {
        if self.resolving.remove(&stream) {
            self.endpoint.opened(stream, result);
        }
    }

    fn connect(&mut self, now: Time, stream: u32, addresses: Addresses, poll: &Poll) {
        let watched = addresses.connect(now, |_| Ok(())).and_then(|attempt| {
            let watched = poll.add_edge(&attempt.socket, token(self.number, stream));
            watched.map(|()| attempt).map_err(|error| outgoing::result_of(&error))
        });
        match watched {
            Ok(attempt) => drop(self.attempts.insert(stream, attempt)),
            Err(result) => self.endpoint.opened(stream, result),
        }
    }

    fn connected(&mut self, now: Time, stream: u32, attempt: Attempt, poll: &Poll) {
        let Attempt { socket, left, .. } = attempt;
        match socket.take_error() {
            Ok(None) => {
                self.endpoint.opened(stream, OpenResult::Connected);
                self.counts.served += u64::from(self.begin(now, stream, socket, poll, false));
            }
            Ok(Some(error)) | Err(error) => self.fall_back(now, stream, left, outgoing::result_of(&error), poll),
        }
    }

    /// An address has failed, or does not answer, and that is the `result` unless there are others.
    fn fall_back(&mut self, now: Time, stream: u32, left: Addresses, result: OpenResult, poll: &Poll) {
        match left.go_on(now) {
            true => self.connect(now, stream, left, poll),
            false => self.endpoint.opened(stream, result),
        }
    }

    fn give_up_attempts(&mut self, now: Time, poll: &Poll) {
        let late = |(stream, attempt): (&u32, &Attempt)| (now > attempt.until).then_some(*stream);
        let late: Vec<u32> = self.attempts.iter().filter_map(late).collect();
        for stream in late {
            if let Some(attempt) = self.attempts.remove(&stream) {
                self.fall_back(now, stream, attempt.left, OpenResult::TimedOut, poll);
            }
        }
    }

    /// A connection's socket has something to tell.
    pub(super) fn on_ready(&mut self, now: Time, stream: u32, readable: bool, writable: bool, poll: &Poll) {
        if writable && let Some(attempt) = self.attempts.remove(&stream) {
            return self.connected(now, stream, attempt, poll);
        }
        if let Some(pipe) = self.pipes.get_mut(&stream) {
            pipe.on_ready(readable, writable);
            if writable {
                self.push(now, stream);
            }
        }
    }

    fn push(&mut self, now: Time, stream: u32) {
        let Some(pipe) = self.pipes.get_mut(&stream) else { return };
        match pipe.push(now, &mut self.endpoint, stream) {
            Ok(()) => self.finish_if_done(stream),
            Err(_) => self.break_off(stream),
        }
    }

    fn finish_if_done(&mut self, stream: u32) {
        if self.pipes.get(&stream).is_some_and(|pipe| pipe.state() == State::Done)
            && let Some(pipe) = self.pipes.remove(&stream)
        {
            pipe.finish();
        }
    }

    fn break_off(&mut self, stream: u32) {
        self.endpoint.reset(stream);
        if let Some(pipe) = self.pipes.remove(&stream) {
            pipe.abort();
        }
    }

    fn pull(&mut self, now: Time, scratch: &mut [u8]) {
        let broken = self.turns.pull(now, &mut self.endpoint, &mut self.pipes, |pipe| Some(pipe), scratch);
        broken.into_iter().for_each(|stream| self.break_off(stream));
        let done = |(stream, pipe): (&u32, &Pipe)| (pipe.state() == State::Done).then_some(*stream);
        let done: Vec<u32> = self.pipes.iter().filter_map(done).collect();
        done.into_iter().for_each(|stream| self.finish_if_done(stream));
    }

    /// Reads what can leave, and sends what may leave now; false if the host's own queue takes no more for now. `least`: what D of our own
    /// interface is at least.
    pub(super) fn send(
        &mut self,
        now: Time,
        link: &Link,
        (own, least): (&mut OwnDelay, Span),
        scratch: &mut [u8],
    ) -> io::Result<bool> {
        let delay = own.delay(now).max(least);
        self.path.set_own_delay(delay);
        self.path.look(now, || link.address());
        self.endpoint.set_own_delay(delay);
        self.endpoint.set_packet_size(self.path.size());
        self.challenge(now, link)?;
        self.endpoint.on_timeout(now);
        let full = self.path.size().datagram();
        for _ in 0..MOST_AT_ONCE {
            if held(link) > HELD {
                self.depart(now, link, own)?;
                return Ok(false);
            }
            self.pull(now, scratch);
            let Some(departure) = self.endpoint.poll_transmit(now, &mut self.packet) else { break };
            // Only full datagrams may stand before another one in a train.
            if !self.train.len().is_multiple_of(full) || self.train.len() >= MOST_TRAIN * full {
                self.depart(now, link, own)?;
            }
            let before = self.train.len();
            self.path.preface(&mut self.train);
            // Without keys it is lost, and the session ends when the other side has been silent for long enough.
            match self.keys.seal(now, departure.number, &self.packet, &mut self.train) {
                true => self.counts.packets += 1,
                false => self.train.truncate(before),
            }
        }
        self.depart(now, link, own)?;
        Ok(true)
    }

    fn depart(&mut self, now: Time, link: &Link, own: &mut OwnDelay) -> io::Result<()> {
        if self.train.is_empty() {
            return Ok(());
        }
        let datagrams = self.train.len().div_ceil(self.path.size().datagram());
        let looked = own.begin(now, link, datagrams as u64);
        let sent = link.send_train(&mut self.path, &self.train);
        if looked {
            own.end(link);
        }
        self.train.clear();
        sent
    }

    /// Asks whether the calling gateway is where its newest packets came from.
    fn challenge(&mut self, now: Time, link: &Link) -> io::Result<()> {
        if let Some((to, data)) = self.roaming.as_mut().and_then(Roaming::question) {
            let number = self.endpoint.challenge_path(now, data, &mut self.packet);
            let (mut path, mut datagram) = (Path::over_mesh(to), Vec::new());
            path.preface(&mut datagram);
            if self.keys.seal(now, number, &self.packet, &mut datagram) {
                link.send_train(&mut path, &datagram)?;
                self.path.count(&path);
            }
        }
        Ok(())
    }

    /// When a packet is due by the pace.
    pub(super) fn next_departure(&self, now: Time) -> Option<Time> {
        self.endpoint.next_departure(now)
    }

    /// When it must be looked after at the latest, if nothing is due before.
    pub(super) fn next_timer(&self) -> Time {
        let attempts = self.attempts.values().map(|attempt| attempt.until + Span::from_nanos(1));
        let ping = self.roaming.is_none().then(|| self.pinged + PING);
        // What has ended is looked at at once.
        let over = if self.closed { Time::ZERO } else { self.heard + SILENCE };
        attempts.chain(ping).chain(self.endpoint.next_timer()).fold(over, Time::min)
    }

    /// Tells the other end that the session is over, unless it said so itself.
    pub(super) fn farewell(&mut self, now: Time, link: &Link) {
        if !self.closed_by_other {
            farewell(now, &mut self.endpoint, &mut self.keys, link, &mut self.path);
        }
    }

    /// The session is over: programs and servers see that their connections have failed.
    pub(super) fn end(&mut self) {
        let opening = std::mem::take(&mut self.opening);
        opening.into_values().for_each(|local| refuse(local, OpenResult::NetworkUnreachable));
        std::mem::take(&mut self.pipes).into_values().for_each(Pipe::abort);
        self.attempts.clear();
    }
}

/// Tells a local program that it is not connected; a program without such a message is reset.
pub(super) fn refuse(local: Local, result: OpenResult) {
    let silent = local.is_silent();
    let (socket, _) = local.answer(result);
    fail_when_closed(&socket, silent);
}

/// How a connection's socket is told from others.
pub(super) fn token(session: u32, stream: u32) -> u64 {
    u64::from(session) << 32 | u64::from(stream)
}
