//! The session with the proxy: its tunnel, and the local connections that go through it.

use super::local::Local;
use crate::service::poll::Poll;
use crate::tunnel::link::Link;
use crate::tunnel::path::Path;
use crate::tunnel::pipe::{Pipe, State, Turns};
use crate::tunnel::sealer::Refused;
use crate::tunnel::{Keyring, Sealer, farewell, outgoing};
use lasthop_laws::tcp::{self, Setup};
use lasthop_transport::tunnel::{AckRule, Config as TunnelConfig, Endpoint, Event};
use lasthop_units::{Bytes, Seed, Span, Time};
use lasthop_wire::proxy::Target;
use lasthop_wire::tunnel::{MAX_PACKET, OpenResult};
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};

/// A session.
pub(super) struct Session {
    pub(super) keys: Keyring,
    pub(super) endpoint: Endpoint,
    pipes: BTreeMap<u32, Pipe>,
    turns: Turns,
    /// Programs that wait for an answer.
    opening: BTreeMap<u32, Local>,
    /// Where connections were led that the proxy does not make.
    pub(super) forbidden: Vec<SocketAddr>,
    /// Connections to services of this machine that are being made for the proxy, and since when.
    serving: BTreeMap<u32, (TcpStream, Time)>,
    pub(super) heard: Time,
    packet: Vec<u8>,
    datagram: Vec<u8>,
    pub(super) closed: bool,
    closed_by_proxy: bool,
    pub(super) connections: u64,
}

impl Session {
    /// A session. `number` is ours for its first keys. `prompt`: what comes is acknowledged at once, since what goes
    /// with acknowledgements is waited for.
    pub(super) fn new(now: Time, number: u32, keys: Keyring, prompt: bool) -> Session {
        let setup = Setup::new(Bytes::new(1500), Seed(u64::from(number)).stream("uplink"));
        let law = lasthop_laws::by_name(tcp::cubic::NAME, setup).expect("a law that there is");
        let acks = if prompt { AckRule::PROMPT } else { AckRule::RARE };
        let mut endpoint = Endpoint::new(TunnelConfig { acks, ..TunnelConfig::station() }).with_law(law);
        // The first packet makes the session count at the proxy.
        endpoint.ping();
        Session {
            keys,
            endpoint,
            pipes: BTreeMap::new(),
            turns: Turns::default(),
            opening: BTreeMap::new(),
            forbidden: Vec::new(),
            serving: BTreeMap::new(),
            heard: now,
            packet: Vec::with_capacity(MAX_PACKET),
            datagram: Vec::new(),
            closed: false,
            closed_by_proxy: false,
            connections: 0,
        }
    }

    /// Goes on with other keys, which the first packet under them makes count at the proxy.
    pub(super) fn go_on(&mut self, now: Time, number: u32, sealer: Sealer) {
        self.keys.renew(now, number, sealer);
        self.heard = now;
        self.endpoint.ping();
    }

    /// Opens a datagram that was sealed with the keys that we number `keys`. Returns when it left the proxy, by that's clock, unless
    /// it says nothing sensible.
    pub(super) fn on_sealed(
        &mut self,
        now: Time,
        keys: u32,
        number: u64,
        sealed: &[u8],
    ) -> Result<Option<Time>, Refused> {
        let mut packet = [0; 2048];
        let (len, _) = self.keys.open(now, keys, number, sealed, &mut packet)?;
        self.heard = now;
        let sent = self.endpoint.on_packet(now, number, &packet[..len]).ok();
        self.closed |= sent.is_none();
        Ok(sent)
    }

    /// Opens a stream for a local program.
    pub(super) fn open(&mut self, local: Local, target: &Target) {
        let stream = self.endpoint.open(&target.host, target.port);
        self.opening.insert(stream, local);
    }

    /// Deals with what has happened. `serve`: ports to which the proxy may bring connections.
    pub(super) fn events(&mut self, now: Time, serve: &[u16], poll: &Poll, token: impl Fn(u32) -> u64) {
        while let Some(event) = self.endpoint.next_event() {
            match event {
                Event::Opened { stream, result } => self.opened(now, stream, result, poll, &token),
                Event::Open { stream, host, port } => {
                    let begun = serving(&host, port, serve).and_then(|socket| {
                        poll.add_edge(&socket, token(stream))?;
                        Ok(socket)
                    });
                    match begun {
                        Ok(socket) => drop(self.serving.insert(stream, (socket, now))),
                        Err(error) => self.endpoint.opened(stream, outgoing::result_of(&error)),
                    }
                }
                Event::Readable(stream) => self.push(now, stream),
                Event::Reset(stream) => {
                    self.opening.remove(&stream).map(|local| local.answer(OpenResult::Failed));
                    self.serving.remove(&stream);
                    if let Some(pipe) = self.pipes.remove(&stream) {
                        pipe.abort();
                    }
                }
                Event::Feedback(_) | Event::Cell(_) => {}
                Event::Closed => (self.closed, self.closed_by_proxy) = (true, true),
            }
        }
    }

    fn opened(&mut self, now: Time, stream: u32, result: OpenResult, poll: &Poll, token: &impl Fn(u32) -> u64) {
        let Some(local) = self.opening.remove(&stream) else { return };
        if result == OpenResult::Forbidden {
            self.forbidden.extend(local.diverted);
        }
        let (socket, said) = local.answer(result);
        if result != OpenResult::Connected {
            self.endpoint.reset(stream);
            return;
        }
        let Ok(pipe) = Pipe::new(socket) else { return self.endpoint.reset(stream) };
        let watched = poll.add_edge(&pipe, token(stream));
        self.connections += u64::from(watched.is_ok());
        self.pipes.insert(stream, pipe);
        match watched {
            Ok(()) => {
                self.endpoint.write(stream, &said, now);
                self.push(now, stream);
            }
            Err(_) => self.break_off(stream),
        }
    }

    /// A connection to a service of this machine has been made, or has not.
    fn served(&mut self, now: Time, stream: u32, socket: TcpStream) {
        let failed = socket.take_error().unwrap_or_else(Some);
        match failed.map_or_else(|| Pipe::new(socket), Err) {
            Ok(pipe) => {
                self.connections += 1;
                self.endpoint.opened(stream, OpenResult::Connected);
                self.pipes.insert(stream, pipe);
                self.push(now, stream);
            }
            Err(error) => self.endpoint.opened(stream, outgoing::result_of(&error)),
        }
    }

    pub(super) fn on_ready(&mut self, now: Time, stream: u32, readable: bool, writable: bool) {
        if writable && let Some((socket, _)) = self.serving.remove(&stream) {
            return self.served(now, stream, socket);
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
            Ok(()) if pipe.state() == State::Done => drop(self.pipes.remove(&stream)),
            Ok(()) => {}
            Err(_) => self.break_off(stream),
        }
    }

    fn break_off(&mut self, stream: u32) {
        self.endpoint.reset(stream);
        if let Some(pipe) = self.pipes.remove(&stream) {
            pipe.abort();
        }
    }

    /// Reads what can leave, and sends what may leave now.
    pub(super) fn service(&mut self, now: Time, link: &Link, path: &mut Path, scratch: &mut [u8]) -> io::Result<()> {
        let late = |(stream, (_, since)): (&u32, &(TcpStream, Time))| (now.since(*since) > PATIENCE).then_some(*stream);
        let late: Vec<u32> = self.serving.iter().filter_map(late).collect();
        for stream in late {
            self.serving.remove(&stream);
            self.endpoint.opened(stream, OpenResult::TimedOut);
        }
        path.look(now, || link.address());
        self.endpoint.set_packet_size(path.size());
        self.endpoint.on_timeout(now);
        loop {
            self.pull(now, scratch);
            let Some(departure) = self.endpoint.poll_transmit(now, &mut self.packet) else { return Ok(()) };
            self.datagram.clear();
            // Without keys it is lost.
            if self.keys.seal(now, departure.number, &self.packet, &mut self.datagram) {
                link.send_train(path, &self.datagram)?;
            }
        }
    }

    /// Tells the proxy that the session is over, unless it said so itself.
    pub(super) fn farewell(&mut self, now: Time, link: &Link, path: &mut Path) {
        if self.closed_by_proxy {
            return;
        }
        farewell(now, &mut self.endpoint, &mut self.keys, link, path);
    }

    fn pull(&mut self, now: Time, scratch: &mut [u8]) {
        let broken = self.turns.pull(now, &mut self.endpoint, &mut self.pipes, |pipe| Some(pipe), scratch);
        broken.into_iter().for_each(|stream| self.break_off(stream));
        self.pipes.retain(|_, pipe| pipe.state() != State::Done);
    }

    /// The session is over: programs see that their connections have failed.
    pub(super) fn end(self) {
        self.opening.into_values().for_each(|local| drop(local.answer(OpenResult::NetworkUnreachable)));
        self.pipes.into_values().for_each(Pipe::abort);
    }
}

/// A connection to a service of this machine that is being made, if it may be.
fn serving(host: &str, port: u16, serve: &[u16]) -> io::Result<TcpStream> {
    let forbidden = || io::Error::from(io::ErrorKind::PermissionDenied);
    let address: std::net::IpAddr = host.parse().map_err(|_| forbidden())?;
    // What cannot be bound is not an address of this machine.
    if !serve.contains(&port) || UdpSocket::bind((address, 0)).is_err() {
        return Err(forbidden());
    }
    let to = SocketAddr::new(address, port);
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    match socket.connect(&to.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket.into()),
    }
}

/// A service of this machine that has more callers than it takes answers when it has taken some: its kernel asks again after one second,
/// and after two and four more.
const PATIENCE: Span = Span::from_secs(10);
