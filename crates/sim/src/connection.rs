//! A TCP connection of the world: both ends, and the applications on them.

use lasthop_laws::Intake;
use lasthop_laws::tcp::{self, Setup};
use lasthop_radio::AccessClass;
use lasthop_scenario::REQUEST;
use lasthop_signals::Node;
use lasthop_transport::{Config, Connection};
use lasthop_units::{Bytes, Rate, Seed, Time};
use lasthop_wire::FlowKey;
use lasthop_wire::tcp::TcpHeader;
use rand::Rng;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

/// Which end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The sender of the data.
    Server,
    /// The station that asked for it.
    Station,
}

/// The server's port.
const SERVER_PORT: u16 = 80;
const IPPROTO_TCP: u8 = 6;

/// What the applications do.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum App {
    /// The server sends from the moment the connection stands: all it can, or `size`.
    Bulk {
        /// What is sent in all.
        size: Option<Bytes>,
    },
    /// The station asks, the server answers with `size` and closes.
    Fetch {
        /// Payload of the answer.
        size: Bytes,
    },
}

/// One connection.
pub struct Pair {
    /// The end that sends data.
    pub server: Connection,
    /// The end that asked for it.
    pub station: Connection,
    /// Where the station is on the hop.
    pub node: Node,
    /// What it is for.
    pub app: App,
    /// Access category of its packets.
    pub class: AccessClass,
    /// When the station opened it.
    pub opened: Time,
    /// Its five-tuple in the direction of the data.
    pub key: FlowKey,
    /// Its hash, by which queues tell flows apart.
    pub hash: u32,
    /// Payload that the station's application had received when it last looked.
    pub seen: Bytes,
    /// Where the station's end of the TCP connection is.
    pub via: Via,
    /// First departures of the server's segments: the stream's length then, and when.
    departures: VecDeque<(u64, Time)>,
    departed: u64,
    last_end: Option<u32>,
    started: bool,
}

/// How the server reaches the station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Via {
    /// TCP from end to end.
    Direct,
    /// TCP to the edge proxy, the tunnel from there. `asked`: the request has reached the proxy; `passed`: payload that has
    /// reached the station's application.
    Proxy {
        /// The station's request has reached the proxy.
        asked: bool,
        /// Payload that has come out of the tunnel.
        passed: Bytes,
        /// What opens the window of the proxy's end.
        intake: Intake,
    },
}

impl Pair {
    /// Opens connection number `number` from `node`, with the sender law `law` at both ends (the station's end sends next to
    /// nothing); `None` if there is no such law.
    pub fn open(now: Time, number: usize, node: Node, app: App, law: &str, seed: Seed) -> Option<Pair> {
        // Ports from the ephemeral range of RFC 6335; numbers repeat only after 16 384 connections.
        let port = 49_152 + (number % 16_384) as u16;
        let mut numbers = seed.stream(&format!("tcp/{number}/initial-sequence"));
        let mut config = |local_port, remote_port| Config {
            local_port,
            remote_port,
            initial_seq: numbers.next_u32(),
            ..Config::default()
        };
        let (station, server) = (config(port, SERVER_PORT), config(SERVER_PORT, port));
        let law = |end: &str| {
            let mss = Bytes::new(u64::from(Config::default().mss));
            tcp::by_name(law, Setup::new(mss, seed.stream(&format!("tcp/{number}/{end}"))))
        };
        let key = FlowKey {
            source: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
            destination: IpAddr::V4(Ipv4Addr::new(10, 1, (node.0 >> 8) as u8, node.0 as u8)),
            source_port: SERVER_PORT,
            destination_port: port,
            protocol: IPPROTO_TCP,
        };
        let mut station = Connection::connect(now, station, law("station")?);
        if matches!(app, App::Fetch { .. }) {
            station.write(REQUEST);
        }
        let server = Connection::accept(now, server, law("server")?);
        Some(Pair {
            server,
            station,
            node,
            app,
            class: AccessClass::BestEffort,
            opened: now,
            key,
            hash: key.hash(),
            seen: Bytes::ZERO,
            via: Via::Direct,
            departures: VecDeque::new(),
            departed: 0,
            last_end: None,
            started: false,
        })
    }

    /// One end of it.
    pub fn end(&mut self, end: End) -> &mut Connection {
        match end {
            End::Server => &mut self.server,
            End::Station => &mut self.station,
        }
    }

    /// Lets the server's application act on what has happened.
    pub fn serve(&mut self) {
        if self.started || !self.server.is_established() {
            return;
        }
        match self.app {
            App::Bulk { size: None } => self.server.write_forever(),
            App::Bulk { size: Some(size) } => self.server.write(size),
            App::Fetch { .. } if self.server.received() < REQUEST => return,
            App::Fetch { size } => self.server.write(size),
        }
        if !matches!(self.app, App::Bulk { size: None }) {
            self.server.close();
        }
        self.started = true;
    }

    /// Puts the station's end of the connection into the edge proxy.
    pub fn proxied(mut self, now: Time) -> Pair {
        let mss = Bytes::new(u64::from(Config::default().mss));
        self.via = Via::Proxy { asked: false, passed: Bytes::ZERO, intake: Intake::new(mss) };
        // The proxy reads when it can send on.
        self.station.set_read_rate(now, Some(Rate::ZERO));
        self
    }

    /// A segment of the server leaves.
    pub fn departs(&mut self, now: Time, header: &TcpHeader) {
        if header.payload_len == 0 {
            return;
        }
        let end = header.seq.wrapping_add(header.payload_len);
        let before = *self.last_end.get_or_insert(header.seq);
        let new = end.wrapping_sub(before);
        // More than half of the number space ahead is behind: a repetition.
        if new == 0 || new > 1 << 31 {
            return;
        }
        self.last_end = Some(end);
        self.departed += u64::from(new);
        self.departures.push_back((self.departed, now));
    }

    /// When segments left that the application has now received whole.
    pub fn arrived_whole(&mut self, mut each: impl FnMut(Time)) {
        while let Some((_, sent)) = self.departures.front().copied().filter(|(upto, _)| *upto <= self.seen.get()) {
            each(sent);
            self.departures.pop_front();
        }
    }

    /// Payload that has reached the station's application since this was last asked.
    pub fn newly_received(&mut self) -> Bytes {
        let received = match self.via {
            Via::Direct => self.station.received(),
            Via::Proxy { passed, .. } => passed,
        };
        let news = received - self.seen;
        self.seen = received;
        news
    }

    /// True once a transfer of limited size has arrived whole.
    pub fn is_complete(&self) -> bool {
        match self.app {
            App::Bulk { size: None } => false,
            App::Bulk { size: Some(size) } | App::Fetch { size } => self.seen >= size,
        }
    }
}
