//! The edge proxy and the stations' agents: when they are woken, and what they exchange.

use crate::agenda::Component;
use crate::context::Context;
use crate::payload::{Address, Datagram, Payload, ProgramId, Tunnel, index, packet, tunnel_packet, udp_packet};
use crate::program::{Heard, Program};
use crate::programs::connection::{Connection, End, Opened, Via};
use crate::programs::proxy::{Departure, Proxy, Stream};
use crate::programs::station::Agent;
use crate::programs::tcp;
use lasthop_laws::aggregation::flow_of;
use lasthop_laws::{ReceiveWindow, Share};
use lasthop_radio::AccessClass;
use lasthop_report::Segments;
use lasthop_scenario::Scenario;
use lasthop_signals::{FlowId, HostId, Node};
use lasthop_units::{Bytes, Span, Time};
use std::num::NonZeroU32;

/// The proxies, the agents, and their places in the agenda.
#[derive(Clone)]
pub(crate) struct Edge {
    /// One for each access point.
    proxies: Vec<Proxy>,
    agents: Vec<Agent>,
    /// Where they stand.
    address: Address,
    /// The first of its timers: those of the laws. Then each station has two, pacer and agent.
    first: Component,
    /// Connections of each station with data that is still to come.
    open: Vec<usize>,
    /// UDP streams that have begun.
    loads: Vec<Load>,
}

/// A UDP stream that goes as fast as its station's proxy allows.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// The program that its packets are for.
    pub(crate) program: ProgramId,
    pub(crate) flow: FlowId,
    /// Payload of a packet.
    pub(crate) size: Bytes,
    pub(crate) class: AccessClass,
    /// Packets that it has sent.
    pub(crate) sent: u64,
}

/// What such a stream's program tells.
#[derive(Clone, Debug)]
pub(crate) enum Offer {
    /// The stream to this station begins.
    Begins(Node, Load),
    /// It ends.
    Ends(Node, FlowId),
}

/// A request that never came is asked again after this.
const ASK_AGAIN: Span = Span::from_millis(200);
/// Timers from this number on are its own; those below are of connections.
const OWN: u32 = 1 << 31;

impl Edge {
    /// Proxies that stand at `host`, and the agents of all stations.
    pub(crate) fn new(proxies: Vec<Proxy>, agents: Vec<Agent>, host: HostId) -> Edge {
        let open = vec![0; agents.len()];
        Edge { proxies, agents, address: Address::nobody(host), first: Component(0), open, loads: Vec::new() }
    }

    /// The agent of a station.
    fn agent(&mut self, station: Node) -> &mut Agent {
        &mut self.agents[place(station)]
    }

    /// The law of the proxy at place `home`.
    fn law(&self, home: usize) -> Component {
        Component(self.first.0 + home as u32)
    }

    fn pacer(&self, station: Node) -> Component {
        Component(self.first.0 + (self.proxies.len() + 2 * place(station)) as u32)
    }

    fn waker(&self, station: Node) -> Component {
        Component(self.pacer(station).0 + 1)
    }

    /// A timer of its own is due.
    fn wake_own(&mut self, context: &mut Context, place: usize) {
        let now = context.now;
        let Some(number) = place.checked_sub(self.proxies.len()) else {
            self.proxies[place].wake(now);
            return self.rates_changed(context, place);
        };
        let station = Scenario::station_node(number / 2);
        if number.is_multiple_of(2) {
            return self.depart(context, station);
        }
        let agent = self.agent(station);
        let (ack, feedback) = agent.wake(now);
        let next = agent.next_event();
        context.agenda.set(self.waker(station), Some(next));
        // The account is sent twice: losing it would cost a slot, and it is small.
        let copies = feedback.map_or(0, |_| 2);
        let accounts = feedback.into_iter().cycle().take(copies).map(|account| Tunnel::Feedback(Box::new(account)));
        ack.into_iter().chain(accounts).for_each(|tunnel| self.send_up(context, station, tunnel));
    }

    /// A tunnel packet leaves a station.
    fn send_up(&self, context: &mut Context, station: Node, tunnel: Tunnel) {
        let (len, from) = (tunnel_packet(&tunnel), context.host_of(station));
        let content = Payload::Tunnel(tunnel);
        context.send(from, packet((from, self.address), len, AccessClass::BestEffort, hash(station), content));
    }

    /// A station asks the proxy for a connection, and again until it has one.
    fn ask(&self, context: &mut Context, number: usize) {
        let connection = &context.sockets.connections[number];
        let station = connection.node;
        context.agenda.set(connection.timer_of(End::Caller), Some(context.now + ASK_AGAIN));
        self.send_up(context, station, Tunnel::Open { connection: index(number) });
    }

    /// The proxy's end of a connection is due, or has got something.
    fn pump(&mut self, context: &mut Context, number: usize) {
        tcp::arrivals(context, number);
        self.take(context, number);
        tcp::transmit(context, number, End::Caller);
    }

    /// A tunnel packet of a station has reached the proxy.
    fn at_proxy(&mut self, context: &mut Context, station: Node, tunnel: Tunnel) {
        let (home, now) = (context.access_points.home(station), context.now);
        match tunnel {
            Tunnel::Ack { next, missing, .. } => {
                self.proxies[home].acknowledged(now, station, next, &missing);
                self.set_pacer(context, station);
            }
            Tunnel::Feedback(feedback) => {
                self.proxies[home].feedback(now, &feedback);
                self.rates_changed(context, home);
            }
            Tunnel::Open { connection } => {
                let number = connection as usize;
                if let Via::Proxy { asked: asked @ false, .. } = &mut context.sockets.connections[number].via {
                    *asked = true;
                    self.open[place(station)] += 1;
                    self.pump(context, number);
                }
            }
            Tunnel::Data { .. } => {}
        }
    }

    /// A tunnel packet has reached a station.
    fn at_station(&mut self, context: &mut Context, station: Node, tunnel: Tunnel) {
        let Tunnel::Data { number, connection, len, .. } = tunnel else { return };
        let (connection, len) = (connection as usize, Bytes::new(u64::from(len)));
        let mut news: Vec<usize> = Vec::new();
        let connections = &mut context.sockets.connections;
        let agent = self.agent(station);
        let ack = agent.data(context.now, number, (connection, len), |connection, len| {
            if let Via::Proxy { passed, .. } = &mut connections[connection].via {
                *passed += len;
            }
            if !news.contains(&connection) {
                news.push(connection);
            }
        });
        let next = agent.next_event();
        context.agenda.set(self.waker(station), Some(next));
        for number in news {
            let is_complete = |context: &Context| context.sockets.connections[number].is_complete();
            let before = is_complete(context);
            tcp::arrivals(context, number);
            if is_complete(context) && !before {
                self.open[place(station)] = self.open[place(station)].saturating_sub(1);
                self.pump(context, number);
            }
        }
        if let Some(ack) = ack {
            self.send_up(context, station, ack);
        }
    }

    /// The proxy's end of a connection may have something for the station; it must not have too
    /// much.
    fn take(&mut self, context: &mut Context, number: usize) {
        let connection = &mut context.sockets.connections[number];
        let (node, unread) = (connection.node, connection.receiver().unread());
        let round_trip = connection.receiver().stats().min_rtt.unwrap_or(Span::from_millis(1));
        if let Via::Proxy { receive_window, .. } = &mut connection.via {
            let proxy = &self.proxies[context.access_points.home(node)];
            let share = Share { of: proxy.rate(node), among: self.open[place(node)] };
            let standing = ReceiveWindow::standing(ReceiveWindow::ALLOWANCE);
            let window = receive_window.window(context.now, share, round_trip, standing, unread);
            connection.receiver().limit_window(window + unread);
        }
        if !unread.is_zero() {
            self.offer(context, node, Stream::Connection(number));
        }
    }

    /// A stream has something for its station.
    fn offer(&mut self, context: &mut Context, station: Node, stream: Stream) {
        let home = context.access_points.home(station);
        let before = self.proxies[home].revisit();
        self.proxies[home].offer(context.now, station, stream);
        let revisit = self.proxies[home].revisit();
        if revisit != before {
            context.agenda.set(self.law(home), revisit);
        }
        self.set_pacer(context, station);
    }

    fn set_pacer(&self, context: &mut Context, station: Node) {
        let next = self.proxies[context.access_points.home(station)].next_departure(station);
        context.agenda.set(self.pacer(station), next.map(|at| at.max(context.now)));
    }

    /// What may leave for a station now leaves.
    fn depart(&mut self, context: &mut Context, station: Node) {
        let (now, home) = (context.now, context.access_points.home(station));
        let connections = &mut context.sockets.connections;
        let read = |connection: usize, len| connections[connection].receiver().read(now, len);
        if let Some((departure, len)) = self.proxies[home].depart(now, station, read) {
            let (mut program, mut class, mut read_from) = (self.address.program, AccessClass::BestEffort, None);
            let (content, len) = match departure {
                Departure::Tunnel(tunnel) => {
                    let Tunnel::Data { connection, .. } = tunnel else { return };
                    read_from = Some(connection as usize);
                    (Payload::Tunnel(tunnel), len)
                }
                Departure::Udp(place, packet) => {
                    let load = &mut self.loads[place];
                    load.sent += 1;
                    (program, class) = (load.program, load.class);
                    (Payload::Udp { sent: now, packet: NonZeroU32::new(packet + 1) }, udp_packet(load.size))
                }
            };
            let (from, to) = (self.address.host, Address { host: context.host_of(station), program });
            context.send(from, packet((from, to), len, class, hash(station), content));
            if let Some(number) = read_from {
                self.pump(context, number);
            }
        }
        self.set_pacer(context, station);
    }

    /// The law of the proxy at place `home` has had a chance to change its mind.
    fn rates_changed(&self, context: &mut Context, home: usize) {
        let (now, proxy) = (context.now, &self.proxies[home]);
        context.agenda.set(self.law(home), proxy.revisit().map(|at| at.max(now)));
        let alone = self.proxies.len() == 1;
        for (n, station) in proxy.stations().enumerate() {
            let seen = proxy.controller().observe(flow_of(station));
            context.recorder.observed(now, station, &seen);
            // Where there are several proxies, what each knows of rounds is its stations'.
            if !alone || n == 0 {
                context.recorder.observed_round(now, (!alone).then_some(station), &seen);
            }
        }
        proxy.stations().for_each(|station| self.set_pacer(context, station));
    }
}

impl Program for Edge {
    fn begin(&mut self, context: &mut Context, own: ProgramId) {
        self.address.program = own;
        context.proxy = Some(self.address);
        let timers = (self.proxies.len() + 2 * self.agents.len()) as u32;
        self.first = context.timer(own, OWN);
        (1..timers).for_each(|timer| _ = context.timer(own, OWN + timer));
        for (place, agent) in self.agents.iter().enumerate() {
            let station = Scenario::station_node(place);
            context.listen(own, station);
            context.agenda.set(self.waker(station), Some(agent.next_event()));
        }
    }

    fn wake(&mut self, context: &mut Context, timer: u32) {
        if let Some(place) = timer.checked_sub(OWN) {
            return self.wake_own(context, place as usize);
        }
        let (number, end) = Connection::end_of(timer);
        let connection = &mut context.sockets.connections[number];
        // The request has not reached the proxy.
        if let Via::Proxy { asked: false, .. } = connection.via {
            return self.ask(context, number);
        }
        connection.end(end).on_timeout(context.now);
        self.pump(context, number);
    }

    fn receive(&mut self, context: &mut Context, at: Time, datagram: Datagram) {
        let station = |host: HostId| context.stations[host.index()];
        match datagram.content {
            Payload::Tcp { connection, header } => {
                let number = connection as usize;
                context.sockets.connections[number].end(End::Caller).on_segment(at, &header);
                self.pump(context, number);
            }
            Payload::Tunnel(tunnel) => match (station(datagram.to), station(datagram.from)) {
                (Some(station), _) => self.at_station(context, station, tunnel),
                (None, Some(station)) => self.at_proxy(context, station, tunnel),
                (None, None) => {}
            },
            content => {
                if let Some(Opened(number)) = content.message() {
                    self.ask(context, *number);
                }
                match content.message() {
                    Some(Offer::Begins(station, load)) => {
                        self.loads.push(load.clone());
                        self.offer(context, *station, Stream::Udp(self.loads.len() - 1));
                    }
                    Some(Offer::Ends(station, flow)) => {
                        if let Some(place) = self.loads.iter().position(|load| load.flow == *flow) {
                            let home = context.access_points.home(*station);
                            self.proxies[home].withdraw(context.now, *station, Stream::Udp(place));
                        }
                        context.recorder.bulk_flow_ended(context.now, *flow);
                        self.set_pacer(context, *station);
                    }
                    None => {}
                }
            }
        }
    }

    /// What a station's radio receives, its agent counts.
    fn overheard(&mut self, _: &mut Context, at: Time, station: Node, heard: &Heard<'_>) {
        match heard {
            Heard::Frame(packets, rate) => self.agent(station).frame(at, *packets, *rate),
            Heard::Packet(packet) => {
                if let Some(left) = packet.payload.content.left_proxy() {
                    self.agent(station).counted(at, left, packet.len);
                }
            }
            Heard::Driver(_) | Heard::Sent(..) => {}
        }
    }

    fn count_segments(&self, context: &mut Context, at: Time) {
        for load in &self.loads {
            context.recorder.segments(at, load.flow, Segments { sent: load.sent, ..Segments::default() });
        }
    }
}

/// A station's place in lists of stations.
fn place(station: Node) -> usize {
    station.index() - 1
}

/// The tunnel of a station is one flow.
fn hash(station: Node) -> u32 {
    (u32::from(station.0) + 1).wrapping_mul(0x85eb_ca6b)
}
