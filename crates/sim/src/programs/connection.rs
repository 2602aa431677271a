//! A TCP connection of the world: both ends, and the applications on them.

use crate::agenda::Component;
use crate::payload::{Address, ProgramId, index};
use lasthop_laws::tcp::Setup;
use lasthop_laws::{Choice, ReceiveWindow, ReceiverSetup, Transport};
use lasthop_radio::AccessClass;
use lasthop_scenario::{REQUEST, Stream, StreamKind};
use lasthop_signals::{HostId, Node};
use lasthop_transport::{self as transport, CellOption, Config, ReceiverFeedback};
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use lasthop_wire::FlowKey;
use lasthop_wire::tcp::TcpHeader;
use rand::Rng;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

/// Which end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The one that accepts it.
    Answerer,
    /// The one that opens it.
    Caller,
}

impl End {
    /// Both of them.
    pub const BOTH: [End; 2] = [End::Answerer, End::Caller];

    /// The other one.
    pub fn other(self) -> End {
        match self {
            End::Answerer => End::Caller,
            End::Caller => End::Answerer,
        }
    }
}

/// The port of whoever answers.
const SERVER_PORT: u16 = 80;
const IPPROTO_TCP: u8 = 6;

/// What the applications do.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum App {
    /// One end sends from the moment the connection stands: all it can, or `size`.
    Bulk {
        /// What is sent in all.
        size: Option<Bytes>,
    },
    /// The caller asks, the other end answers with `size` and closes.
    Fetch {
        /// Payload of the answer.
        size: Bytes,
    },
}

/// What a connection is opened for.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'s> {
    /// Its number among all of the world.
    pub number: usize,
    /// The stream that it belongs to.
    pub stream: &'s Stream,
    /// Links between its hosts.
    pub hops: u32,
    /// The station that it counts for in figures.
    pub node: Node,
    /// What its applications do.
    pub app: App,
    /// The program that serves its ends.
    pub program: ProgramId,
}

/// One connection.
#[derive(Clone)]
pub struct Connection {
    /// The end that accepted it, and the one that opened it.
    ends: [transport::Connection; 2],
    /// Where each end is: the answerer, the caller.
    addresses: [Address; 2],
    /// What wakes each of them.
    pub timers: [Component; 2],
    /// The end that sends the data.
    data: End,
    /// The station that it counts for in figures.
    pub node: Node,
    /// The stream that it belongs to.
    pub stream: usize,
    /// What it is for.
    pub app: App,
    /// Access category of its packets.
    pub class: AccessClass,
    /// When it was opened.
    pub opened: Time,
    /// Its five-tuple in the direction from answerer to caller.
    key: FlowKey,
    /// Its hash, by which queues tell flows apart.
    pub hash: u32,
    /// Payload that the receiving application had received when it last looked.
    pub seen: Bytes,
    /// Whether it goes through the edge proxy.
    pub via: Via,
    /// First departures of the sender's segments: the stream's length then, and when.
    departures: VecDeque<(u64, Time)>,
    departed: u64,
    last_end: Option<u32>,
    /// When the sender sent payload last.
    departed_at: Option<Time>,
    started: bool,
}

/// A station has opened the connection of this number, through the edge proxy.
#[derive(Clone, Copy, Debug)]
pub struct Opened(pub usize);

/// Where the data go on their way.
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
        receive_window: ReceiveWindow,
    },
}

impl Connection {
    /// Opens a connection. Whoever is asked for data by `fetch` answers; otherwise the end that is not a server's calls: the one
    /// that gets the data, or the one that sends them where only that is a station. Each end has the congestion control of its host;
    /// `None` if one of them is not ours.
    pub fn open(now: Time, opening: Opening<'_>, calls: End, senders: &[Choice], seed: Seed) -> Option<Connection> {
        let Opening { number, stream, hops, node, app, program } = opening;
        let Stream { from, to, class, kind, number: stream, .. } = *stream;
        let send_buffer = match kind {
            StreamKind::Bulk { send_buffer, .. } => send_buffer,
            _ => None,
        };
        // Ports from the ephemeral range of RFC 6335; numbers repeat only after 16 384 connections.
        let port = 49_152 + (number % 16_384) as u16;
        let mut numbers = seed.stream(&format!("tcp/{number}/initial-sequence"));
        // `calls` says which end the receiver of the data is.
        let (hosts, data) = match calls {
            End::Caller => ([from, to], End::Answerer),
            End::Answerer => ([to, from], End::Caller),
        };
        let mut config = |host: HostId, local_port, remote_port| Config {
            local_port,
            remote_port,
            initial_seq: numbers.next_u32(),
            send_buffer,
            loss_recovery: senders[host.index()].transport().loss_recovery(),
            ..Config::default()
        };
        let (caller, answerer) = (config(hosts[1], port, SERVER_PORT), config(hosts[0], SERVER_PORT, port));
        let law = |host: HostId, end: &str| {
            let mss = Bytes::new(u64::from(Config::default().mss));
            let random = seed.stream(&format!("tcp/{number}/{end}"));
            senders[host.index()].sender(Setup { hops, ..Setup::new(mss, random) }).ok()
        };
        let key = FlowKey {
            source: address(hosts[0]),
            destination: address(hosts[1]),
            source_port: SERVER_PORT,
            destination_port: port,
            protocol: IPPROTO_TCP,
        };
        // An end tells of its cell if its peer's sender wants to be told.
        let wants = |host: HostId| senders[host.index()].transport() == Transport::ReceiverFeedback;
        let option = |own: HostId, peer: HostId| {
            let law = Some(&senders[peer.index()]).filter(|_| wants(peer)).and_then(Choice::of_receiver);
            let (slot, idle_slots) = (0, None);
            let setup = ReceiverSetup { node, slot, start: now, end: Time::MAX, interval: Span::MAX, idle_slots };
            CellOption::new(law.and_then(|law| law.receiver(setup).ok()), wants(own)).map(Box::new)
        };
        let mut caller = transport::Connection::connect(now, caller, law(hosts[1], "station")?);
        if let Some(option) = option(hosts[1], hosts[0]) {
            caller.carry(option);
        }
        if matches!(app, App::Fetch { .. }) {
            caller.write(REQUEST);
        }
        let mut answerer = transport::Connection::accept(now, answerer, law(hosts[0], "server")?);
        if let Some(option) = option(hosts[0], hosts[1]) {
            answerer.carry(option);
        }
        Some(Connection {
            ends: [answerer, caller],
            addresses: hosts.map(|host| Address { host, program }),
            timers: [Component(0); 2],
            data,
            node,
            stream,
            app,
            class,
            opened: now,
            key,
            hash: key.hash(),
            seen: Bytes::ZERO,
            via: Via::Direct,
            departures: VecDeque::new(),
            departed: 0,
            last_end: None,
            departed_at: None,
            started: false,
        })
    }

    /// One end of it.
    pub fn end(&mut self, end: End) -> &mut transport::Connection {
        &mut self.ends[end as usize]
    }

    /// True while `host` has data of this connection in the network, and for half a second after it sent some.
    pub fn sends_from(&self, host: HostId, now: Time) -> bool {
        const REST: Span = Span::from_millis(500);
        let lately = || self.departed_at.is_some_and(|at| now.since(at) <= REST);
        self.way(self.data).0 == host && (lately() || !self.sender().stats().in_flight.is_zero())
    }

    /// What an end tells the other one of its cell, if it does.
    fn tells_from(&self, end: End) -> Option<&ReceiverFeedback> {
        let end = &self.ends[end as usize];
        end.carried::<CellOption>()?.tells().filter(|_| !end.is_closed())
    }

    /// The end at `host`, if it tells the other one of its cell.
    pub fn end_that_tells(&self, host: HostId) -> Option<End> {
        let tells = |end: &End| self.address(*end).host == host && self.tells_from(*end).is_some();
        End::BOTH.into_iter().find(tells)
    }

    /// True while an end of it tells the other one of its cell.
    pub fn tells(&self) -> bool {
        End::BOTH.into_iter().any(|end| self.tells_from(end).is_some())
    }

    /// What the end at `host` tells the other one of its cell, if it does.
    pub fn told_from(&self, host: HostId) -> Option<&ReceiverFeedback> {
        self.tells_from(self.end_that_tells(host)?)
    }

    /// The end that sends the data.
    pub fn data(&self) -> End {
        self.data
    }

    /// That end's connection.
    pub fn sender(&self) -> &transport::Connection {
        &self.ends[self.data as usize]
    }

    /// The other end's connection.
    pub fn receiver(&mut self) -> &mut transport::Connection {
        self.end(self.data.other())
    }

    /// From which host to which the packets of an end go.
    pub fn way(&self, end: End) -> (HostId, HostId) {
        (self.address(end).host, self.address(end.other()).host)
    }

    /// Where an end is.
    pub fn address(&self, end: End) -> Address {
        self.addresses[end as usize]
    }

    /// The timer of an end.
    pub fn timer_of(&self, end: End) -> Component {
        self.timers[end as usize]
    }

    /// What the program of an end knows its timer by: the connection's number, and which end.
    pub fn timer(number: usize, end: End) -> u32 {
        index(2 * number + end as usize)
    }

    /// The connection and end of a timer.
    pub fn end_of(timer: u32) -> (usize, End) {
        (timer as usize / 2, if timer.is_multiple_of(2) { End::Answerer } else { End::Caller })
    }

    /// The end that gets what `from` sends.
    pub fn end_that_gets(&self, from: HostId) -> End {
        if from == self.addresses[0].host { End::Caller } else { End::Answerer }
    }

    /// The five-tuple of what `from` sends.
    pub fn key(&self, from: HostId) -> FlowKey {
        if from == self.addresses[0].host { self.key } else { self.key.reversed() }
    }

    /// Lets the sending application act on what has happened.
    pub fn serve(&mut self) {
        if self.started || !self.sender().is_established() {
            return;
        }
        let (app, sender) = (self.app, self.end(self.data));
        match app {
            App::Bulk { size: None } => sender.write_forever(),
            App::Bulk { size: Some(size) } => sender.write(size),
            App::Fetch { .. } if sender.received() < REQUEST => return,
            App::Fetch { size } => sender.write(size),
        }
        if !matches!(app, App::Bulk { size: None }) {
            sender.close();
        }
        self.started = true;
    }

    /// The sending application of a bulk transfer ends: what it has sent is all there is.
    pub fn stop(&mut self) {
        let (data, sent) = (self.data, Bytes::new(self.departed));
        self.app = App::Bulk { size: Some(sent) };
        if self.started {
            self.end(data).stop();
        }
    }

    /// Puts the caller's end of the connection into the edge proxy at `edge`.
    pub fn proxied(mut self, now: Time, edge: Address) -> Connection {
        let mss = Bytes::new(u64::from(Config::default().mss));
        self.via = Via::Proxy { asked: false, passed: Bytes::ZERO, receive_window: ReceiveWindow::new(mss) };
        // The proxy reads when it can send on.
        self.end(End::Caller).set_read_rate(now, Some(Rate::ZERO));
        self.addresses[1] = edge;
        self
    }

    /// A segment of the sender leaves.
    pub fn departs(&mut self, now: Time, header: &TcpHeader) {
        if header.payload_len == 0 {
            return;
        }
        self.departed_at = Some(now);
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

    /// Payload that has reached the receiving application since this was last asked.
    pub fn newly_received(&mut self) -> Bytes {
        let received = match self.via {
            Via::Direct => self.receiver().received(),
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

/// The address of a host: the server of the short form is 10.0.0.1, stations are 10.1.x.y by their number.
fn address(host: HostId) -> IpAddr {
    let [high, low] = host.0.saturating_sub(1).to_be_bytes();
    match host.0 {
        0 => Ipv4Addr::new(10, 0, 0, 1).into(),
        _ => Ipv4Addr::new(10, 1, high, low).into(),
    }
}
