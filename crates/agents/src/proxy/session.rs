//! One station's session: its tunnel and its connections to servers, kept to what may be held for it ([`Budget`]).

mod cell;
mod rest;

use super::budget::{Budget, Given, Servers, Terms};
use super::config::Doubted;
use super::control::Decided;
use super::server::{Server, State};
use super::window::LEAST;
use crate::service::latency_histogram::LatencyHistogram;
use crate::service::poll::Poll;
use crate::tunnel::challenge::Challenger;
use crate::tunnel::link::Link;
use crate::tunnel::outgoing::{self, Addresses};
use crate::tunnel::path::Path;
use crate::tunnel::pipe::{self, Pipe, Turns};
use crate::tunnel::roaming::Roaming;
use crate::tunnel::sealer::{Refused, Sealer};
use crate::tunnel::{Keyring, farewell};
pub(super) use cell::LINES as CELL_LINES;
use lasthop_laws::{ReceiveWindow, Why};
use lasthop_signals::{Node, Signal, StationFeedback, StreamReport};
use lasthop_transport::tunnel::{Config as TunnelConfig, Endpoint, Event};
use lasthop_units::{Bytes, Rate, Span, Time};
use lasthop_wire::tunnel::{MAX_PACKET, OpenResult};
use rest::{Begins, Rest};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

/// One station's session.
pub(super) struct Session {
    pub(super) station: Node,
    /// Our number for it.
    pub(super) number: u32,
    pub(super) path: Path,
    roaming: Roaming,
    pub(super) keys: Keyring,
    endpoint: Endpoint,
    servers: Servers,
    turns: Turns,
    /// Connections brought to the station that it has not taken yet, and where they were meant to go.
    offered: BTreeMap<u32, SocketAddr>,
    /// Packets to send at once, one behind the other.
    train: Vec<u8>,
    packet: Vec<u8>,
    heard: Time,
    /// The session is over, although it may still be there: the station has closed it, or has sent what no session can go on with.
    pub(super) closed: bool,
    closed_by_station: bool,
    pub(super) last_slot: Option<u32>,
    pub(super) decided: Decided,
    budget: Budget,
    /// Octets of the tunnel's packets that have been sent.
    left: Bytes,
    /// Something waits for its turn.
    pub(super) waiting: bool,
    rest: Rest,
    /// The station tells of its cell, and that decides.
    follows: bool,
    /// When a line on its cell was logged last.
    pub(super) logged: Time,
    pub(super) stats: Stats,
}

/// Counters since the session began, and distributions since the last slot.
#[derive(Debug, Default)]
pub(super) struct Stats {
    pub(super) packets: u64,
    pub(super) octets: u64,
    /// By how much packets left before or after they were due.
    pub(super) pacing: LatencyHistogram,
    /// The largest backlog of the slot, and the bound at that moment.
    pub(super) backlog: Bytes,
    pub(super) bound: Bytes,
    /// Looks of the slot, and those that found the backlog above its bound.
    pub(super) looks: u32,
    pub(super) over: u32,
    pub(super) connections: u64,
    pub(super) doubted: Doubted,
}

/// What a session asks of the proxy.
pub(super) enum Ask {
    /// The addresses of a host for a stream.
    Resolve { stream: u32, host: String, port: u16 },
    /// Here is what the station says.
    Feedback(StationFeedback),
    /// The station tells of its cell: a law that is told of it may serve it.
    Follow,
    /// The station does not serve this.
    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    Refused(SocketAddr),
}

impl Session {
    pub(super) fn new(now: Time, station: Node, number: u32, peer: SocketAddr, keys: Keyring, terms: Terms) -> Session {
        Session {
            station,
            number,
            path: Path::new(peer),
            roaming: Roaming::default(),
            keys,
            endpoint: Endpoint::new(TunnelConfig::proxy()),
            servers: Servers::new(),
            turns: Turns::default(),
            offered: BTreeMap::new(),
            train: Vec::new(),
            packet: Vec::with_capacity(MAX_PACKET),
            heard: now,
            closed: false,
            closed_by_station: false,
            last_slot: None,
            decided: Decided { rate: Rate::ZERO, why: Why::Unmanaged },
            budget: Budget::new(terms),
            left: Bytes::ZERO,
            waiting: false,
            rest: Rest::default(),
            follows: false,
            logged: Time::ZERO,
            stats: Stats::default(),
        }
    }

    /// Opens a datagram that was sealed with the keys that we number `keys`, and follows a station that has moved ([`Roaming`]).
    pub(super) fn on_sealed(
        &mut self,
        now: Time,
        keys: u32,
        number: u64,
        sealed: &[u8],
        from: SocketAddr,
        challenger: &Challenger,
    ) -> Result<(), Refused> {
        // Nothing that comes later brings it back.
        if self.closed {
            return Err(Refused::Unknown);
        }
        let mut packet = [0; 2048];
        let (len, highest) = self.keys.open(now, keys, number, sealed, &mut packet)?;
        self.heard = now;
        self.closed |= self.endpoint.on_packet(now, number, &packet[..len]).is_err();
        let answer = self.endpoint.take_path_answer();
        if highest {
            self.roaming.look(now, (self.station, from), answer, challenger, &mut self.path);
        }
        Ok(())
    }

    /// Asks whether the station is where its newest packets came from.
    fn challenge(&mut self, now: Time, link: &Link) -> io::Result<()> {
        if let Some((to, data)) = self.roaming.question() {
            let number = self.endpoint.challenge_path(now, data, &mut self.packet);
            let mut datagram = Vec::new();
            if self.keys.seal(now, number, &self.packet, &mut datagram) {
                let mut path = Path::new(to);
                link.send_train(&mut path, &datagram)?;
                self.path.count(&path);
            }
        }
        Ok(())
    }

    /// True if it is not over, and something was heard of its station within this time.
    pub(super) fn is_heard(&self, now: Time, within: Span) -> bool {
        !self.closed && now.since(self.heard) <= within
    }

    /// Takes a decision of the proxy's law over, unless another one decides.
    pub(super) fn pace(&mut self, now: Time, decided: Decided) {
        if self.follows {
            return;
        }
        self.decided = decided;
        self.limit(now);
    }

    /// What has happened, as far as others must do something about it.
    pub(super) fn asks(&mut self, now: Time, ask: &mut Vec<Ask>) {
        while let Some(event) = self.endpoint.next_event() {
            match event {
                Event::Open { stream, host, port } => {
                    self.servers.insert(stream, Server::resolving());
                    ask.push(Ask::Resolve { stream, host, port });
                }
                // Streams of ours: the station takes the connection, or does not.
                Event::Opened { stream, result } => {
                    let to = self.offered.remove(&stream);
                    if result != OpenResult::Connected {
                        self.break_off(stream);
                        // One that does not answer may do so when the next one calls.
                        ask.extend(to.filter(|_| result == OpenResult::Forbidden).map(Ask::Refused));
                    }
                }
                Event::Readable(stream) => self.push(now, stream),
                Event::Reset(stream) => {
                    self.offered.remove(&stream);
                    if let Some(Server { state: State::Up(pipe), .. }) = self.servers.remove(&stream) {
                        pipe.abort();
                    }
                }
                Event::Feedback(feedback) => {
                    let newer = self.last_slot.is_none_or(|last| feedback.is_newer_than(last));
                    if feedback.station == self.station && newer {
                        self.last_slot = Some(feedback.slot);
                        match feedback.doubt(self.endpoint.numbers()) {
                            None => ask.push(Ask::Feedback(feedback)),
                            Some(why) => self.stats.doubted.add(why),
                        }
                    }
                }
                Event::Cell(_) => ask.push(Ask::Follow),
                Event::Closed => (self.closed, self.closed_by_station) = (true, true),
            }
        }
        // Delays are the station's to tell: packets towards us are few.
        self.endpoint.delays();
    }

    /// The addresses of a stream's host are known.
    pub(super) fn on_addresses(&mut self, now: Time, stream: u32, addresses: Vec<SocketAddr>, poll: &Poll) {
        self.connect(now, stream, Addresses::new(now, addresses), poll);
    }

    /// Connects a stream to its host at these addresses.
    fn connect(&mut self, now: Time, stream: u32, addresses: Addresses, poll: &Poll) {
        let first = self.budget.first_window(now, self.decided.rate, &self.servers);
        let Some(server) = self.servers.get_mut(&stream) else { return };
        let watched = Server::connect(now, addresses, first).and_then(|state| {
            if let State::Connecting { socket, .. } = &state {
                poll.add_edge(socket, token(self.number, stream)).map_err(|error| outgoing::result_of(&error))?;
            }
            Ok(state)
        });
        match watched {
            Ok(state) => *server = Server::new(state, first),
            Err(result) => self.refuse(stream, result),
        }
    }

    /// A stream that is not to be.
    pub(super) fn refuse(&mut self, stream: u32, result: OpenResult) {
        self.servers.remove(&stream);
        self.endpoint.opened(stream, result);
    }

    /// Gives the station a connection that was made to it. The caller has been told of a window of one segment.
    ///
    /// # Errors
    /// If the connection cannot be watched: then it is broken off at both ends.
    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    pub(super) fn offer(&mut self, pipe: Pipe, to: SocketAddr, poll: &Poll) -> io::Result<()> {
        let stream = self.endpoint.open(&to.ip().to_string(), to.port());
        if let Err(error) = poll.add_edge(&pipe, token(self.number, stream)) {
            self.endpoint.reset(stream);
            pipe.abort();
            return Err(error);
        }
        self.servers.insert(stream, Server::new(State::Up(pipe), LEAST));
        self.offered.insert(stream, to);
        self.stats.connections += 1;
        Ok(())
    }

    /// A connection's socket has something to tell.
    pub(super) fn on_ready(&mut self, now: Time, stream: u32, readable: bool, writable: bool, poll: &Poll) {
        let Some(server) = self.servers.get_mut(&stream) else { return };
        match &mut server.state {
            State::Resolving => {}
            State::Connecting { .. } if writable => self.connected(now, stream, poll),
            State::Connecting { .. } => {}
            State::Up(pipe) => {
                pipe.on_ready(readable, writable);
                if writable {
                    self.push(now, stream);
                }
            }
        }
    }

    fn connected(&mut self, now: Time, stream: u32, poll: &Poll) {
        let Some(mut server) = self.servers.remove(&stream) else { return };
        let State::Connecting { socket, left, .. } = server.state else { return };
        let failed = match socket.take_error() {
            Ok(None) => None,
            Ok(Some(error)) | Err(error) => Some(error),
        };
        let made = match failed {
            None => Pipe::new(socket),
            Some(error) => Err(error),
        };
        match made {
            Ok(pipe) => {
                server.state = State::Up(pipe);
                self.servers.insert(stream, server);
                self.stats.connections += 1;
                self.endpoint.opened(stream, OpenResult::Connected);
                self.push(now, stream);
            }
            Err(error) => self.fall_back(now, stream, left, outgoing::result_of(&error), poll),
        }
    }

    /// An address has failed, or does not answer, and that is the `result` unless there are others.
    fn fall_back(&mut self, now: Time, stream: u32, left: Addresses, result: OpenResult, poll: &Poll) {
        if !left.go_on(now) {
            return self.refuse(stream, result);
        }
        self.servers.insert(stream, Server::resolving());
        self.connect(now, stream, left, poll);
    }

    fn push(&mut self, now: Time, stream: u32) {
        let Some(pipe) = self.servers.get_mut(&stream).and_then(Server::pipe) else { return };
        match pipe.push(now, &mut self.endpoint, stream) {
            Ok(()) => self.close_if_done(stream),
            Err(_) => self.break_off(stream),
        }
    }

    fn close_if_done(&mut self, stream: u32) {
        let done = |server: &mut Server| server.pipe().is_some_and(|pipe| pipe.state() == pipe::State::Done);
        if self.servers.get_mut(&stream).is_some_and(done) {
            self.servers.remove(&stream);
        }
    }

    fn break_off(&mut self, stream: u32) {
        self.endpoint.reset(stream);
        self.offered.remove(&stream);
        if let Some(Server { state: State::Up(pipe), .. }) = self.servers.remove(&stream) {
            pipe.abort();
        }
    }

    /// Sends what may leave now.
    pub(super) fn send(&mut self, now: Time, link: &Link) -> io::Result<()> {
        self.challenge(now, link)?;
        self.path.look(now, || link.address());
        let size = self.path.size();
        self.endpoint.set_packet_size(size);
        self.endpoint.on_timeout(now);
        let mut due_now = Vec::new();
        // At rates beyond this machine's there would always be another one, and nobody would look at what arrives.
        for _ in 0..MOST_AT_ONCE {
            let Some(departure) = self.endpoint.poll_transmit(now, &mut self.packet) else { break };
            // Only full datagrams may stand before another one in a train.
            let whole = self.train.len().is_multiple_of(size.datagram());
            if !whole || self.train.len() >= MOST_TRAIN * size.datagram() {
                self.depart(link, &mut due_now)?;
            }
            // Without keys it is lost, and the session ends when the other side has been silent for long enough.
            if !self.keys.seal(now, departure.number, &self.packet, &mut self.train) {
                continue;
            }
            self.left += Bytes::new(self.packet.len() as u64);
            self.stats.packets += 1;
            self.stats.octets += size.ip_len(Sealer::sealed_len(self.packet.len())) as u64;
            due_now.extend(departure.due);
        }
        self.depart(link, &mut due_now)
    }

    fn depart(&mut self, link: &Link, due: &mut Vec<Time>) -> io::Result<()> {
        if self.train.is_empty() {
            return Ok(());
        }
        let left = crate::service::clock::now();
        due.drain(..).for_each(|due| self.stats.pacing.add(if left > due { left - due } else { due - left }));
        let sent = link.send_train(&mut self.path, &self.train);
        self.train.clear();
        sent
    }

    /// Reads what can leave soon. Not before the packets that are due have left: to read makes the kernel acknowledge, and what
    /// that sets off may take longer than packets are apart.
    pub(super) fn pull(&mut self, now: Time, scratch: &mut [u8]) {
        let broken = self.turns.pull(now, &mut self.endpoint, &mut self.servers, Server::pipe, scratch);
        broken.into_iter().for_each(|stream| self.break_off(stream));
        self.endpoint.fed(now);
    }

    /// Looks after what needs no hurry: windows, servers that do not answer, connections that are done.
    pub(super) fn housekeep(&mut self, now: Time, poll: &Poll) {
        let late: Vec<u32> = self.servers.iter().filter(|(_, s)| s.is_late(now)).map(|(stream, _)| *stream).collect();
        for stream in late {
            if let Some(Server { state: State::Connecting { left, .. }, .. }) = self.servers.remove(&stream) {
                self.fall_back(now, stream, left, OpenResult::TimedOut, poll);
            }
        }
        self.servers.values_mut().for_each(|server| server.look(now));
        self.limit(now);
        let streams: Vec<u32> = self.servers.keys().copied().collect();
        streams.into_iter().for_each(|stream| self.close_if_done(stream));
    }

    /// What the law is to be told of it: that something has begun to wait for the station, or that nothing has for a while. To be asked once in
    /// every look.
    pub(super) fn begins(&mut self, now: Time) -> Option<Signal> {
        let begins = self.rest.look(now, self.waiting, self.stats.packets).filter(|_| !self.follows)?;
        Some(match begins {
            Begins::Wait => Signal::Stream(StreamReport { waiting: true, ..self.report() }),
            Begins::Rest => Signal::Idle(self.station),
        })
    }

    /// Closes windows as far as the bound on what waits here demands.
    fn limit(&mut self, now: Time) {
        let follows = self.take_over(now);
        let rate = self.decided.rate;
        let gives = self.budget.look(now, rate, self.left, &mut self.servers);
        self.watch(gives.bound);
        if !follows {
            let under_way = ReceiveWindow::under_way(rate, self.endpoint.min_rtt().unwrap_or(Span::ZERO));
            self.endpoint.set_pacing(now, rate, under_way);
        }
        for server in self.servers.values_mut() {
            let Given { open, limit, room, quiet, takes_back } = gives.to(now, server);
            let (queued, rtt) = (server.queued, server.round_trip());
            let State::Up(pipe) = &mut server.state else { continue };
            pipe.apart = takes_back;
            pipe.lead = rtt / 2 + gives.share.rate().time_for(Bytes::new(queued)).unwrap_or(Span::ZERO);
            if quiet {
                server.window.lull(limit);
            }
            server.window.retracts = gives.terms.retracts;
            server.window.set(pipe.socket(), open, (limit, room), queued);
            if std::mem::take(&mut server.news) {
                server.window.acknowledge(pipe.socket());
            }
        }
    }

    /// Looks at what waits here, and whether that is more than may.
    fn watch(&mut self, bound: Bytes) {
        let queued: u64 = self.servers.values().map(|server| server.queued).sum();
        let unsent = self.endpoint.backlog().unsent;
        let held = unsent + Bytes::new(queued);
        self.waiting = queued > 0 || !unsent.is_zero();
        self.stats.looks += 1;
        self.stats.over += u32::from(held > bound);
        if held > self.stats.backlog {
            (self.stats.backlog, self.stats.bound) = (held, bound);
        }
    }

    /// A line of the log has been written: what the next one is of begins.
    pub(super) fn begin_line(&mut self, now: Time) {
        self.logged = now;
        self.stats.pacing.clear();
        (self.stats.looks, self.stats.over, self.stats.backlog) = (0, 0, Bytes::ZERO);
    }

    /// When the session must be serviced next if no packet is due.
    pub(super) fn next_timer(&self) -> Option<Time> {
        self.endpoint.next_timer()
    }

    /// When the next packet of the session is due by its pace.
    pub(super) fn next_departure(&self, now: Time) -> Option<Time> {
        self.endpoint.next_departure(now)
    }

    /// What the law is told of the stream to the station.
    pub(super) fn report(&self) -> StreamReport {
        StreamReport {
            station: self.station,
            packets: self.stats.packets,
            bytes: Bytes::new(self.stats.octets),
            waiting: self.waiting,
        }
    }

    /// Tells the station that the session is over, unless it said so itself.
    pub(super) fn farewell(&mut self, now: Time, link: &Link) {
        if self.closed_by_station {
            return;
        }
        farewell(now, &mut self.endpoint, &mut self.keys, link, &mut self.path);
    }

    /// The session is over: servers see that their connections have failed, not that they have ended.
    pub(super) fn end(&mut self) {
        for (_, server) in std::mem::take(&mut self.servers) {
            if let State::Up(pipe) = server.state {
                pipe.abort();
            }
        }
    }

    pub(super) fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    pub(super) fn backlog(&self) -> Bytes {
        self.endpoint.backlog().total()
    }
}

/// Packets sent before anything else is looked at.
const MOST_AT_ONCE: usize = 256;
/// Full datagrams in one train.
const MOST_TRAIN: usize = 40;

/// How a connection's socket is told from others.
pub(super) fn token(session: u32, stream: u32) -> u64 {
    u64::from(session) << 32 | u64::from(stream)
}

#[cfg(test)]
pub(super) mod tests;
