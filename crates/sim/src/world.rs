//! One simulated world: hosts, the links between them, and what their programs send.
//!
//! The agenda says which component acts next. What it produces (deliveries, driver reports) waits in `effects` and is handled
//! one after the other before time moves on, so no component is ever called from within another.

use crate::agenda::{Agenda, Component};
use crate::hook::{Forwarded, Hook, Interface, Lost};
use crate::net::{Effect, Effects, Net};
use crate::payload::{Datagram, Payload, index, tcp_packet, udp_packet};
use crate::programs::atp;
use crate::programs::connection::{App, Connection, End, Opening};
use crate::programs::edge::Edge;
use crate::programs::proxy::{Proxy, Stream};
use crate::programs::router::Router;
use crate::programs::source::Source;
use crate::programs::station;
use crate::programs::terminal::Terminal;
use crate::received::Received;
use lasthop_laws::atp::HopDelay;
use lasthop_laws::{Choice, Transport};
use lasthop_radio::{AccessClass, Dest, Ecn, Packet};
use lasthop_report::{Gauge, HopMeter, NOBODY, Recorder, Segments, SeriesKind};
use lasthop_scenario::{Scenario, StreamKind};
use lasthop_signals::{CellSubframe, FlowId, HopReport, HostId, Node, Signal};
use lasthop_transport::SmallQueue;
use lasthop_units::{Bytes, Seed, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Time between two looks at the bulk senders, as in the lab.
const SAMPLE: Span = Span::from_millis(10);

/// Everything there is.
#[derive(Clone)]
pub struct World {
    pub(crate) now: Time,
    pub(crate) agenda: Agenda,
    pub(crate) net: Net,
    /// The last hop among the links.
    pub(crate) last_hop: usize,
    /// What its nodes have received and their hosts do not have yet.
    received: Received,
    /// What stands in each host's forwarding path.
    hooks: Vec<Vec<Box<dyn Hook>>>,
    pub(crate) edge: Option<Edge>,
    pub(crate) terminals: Vec<Terminal>,
    /// The nodes of a mesh that find their routes themselves.
    pub(crate) routers: Vec<Router>,
    /// The ATP connection of each source, if it has one.
    pub(crate) atp: Vec<Option<atp::Connection>>,
    /// D of each node of the last hop; empty where no sender speaks ATP.
    pub(crate) hop_delays: Vec<HopDelay>,
    /// One for each access point.
    meters: Vec<HopMeter>,
    pub(crate) access_points: AccessPoints,
    /// Each host's node on the last hop, if it is a station.
    stations: Vec<Option<Node>>,
    /// Stations that keep the queues of their connections small.
    small_queues: BTreeSet<Node>,
    /// The connection and end that a packet of such a station, or of a terminal, belongs to, by its flow's hash.
    senders_of: BTreeMap<(Node, u32), (usize, End)>,
    pub(crate) sources: Vec<Source>,
    pub(crate) connections: Vec<Connection>,
    /// Those of bulk senders that were not done at the last look.
    sampled: Vec<usize>,
    /// Those an end of which tells of its cell.
    with_feedback: Vec<usize>,
    /// Octets that the last hop has brought to each of its nodes.
    carried: Vec<Bytes>,
    /// The congestion control of each host.
    pub(crate) senders: Vec<Choice>,
    pub(crate) seed: Seed,
    pub(crate) effects: Effects,
    pub(crate) recorder: Recorder,
}

/// The access points of the hop, and where each station belongs.
#[derive(Clone, Debug)]
pub struct AccessPoints {
    /// Their nodes, the hop's own first.
    pub nodes: Vec<Node>,
    /// For each station, the place of its access point among them.
    pub homes: Vec<usize>,
}

impl AccessPoints {
    /// The place of a station's access point.
    #[inline]
    pub(crate) fn home(&self, station: Node) -> usize {
        self.homes[station.index() - 1]
    }

    /// The place of an access point; `None` for any other node.
    #[inline]
    fn place(&self, node: Node) -> Option<usize> {
        self.nodes.iter().position(|ap| *ap == node)
    }
}

/// What a world is made of.
pub struct Parts {
    /// Links and routes.
    pub net: Net,
    /// The last hop among the links.
    pub last_hop: usize,
    /// From a frame's end on the last hop until the host of the node has what it carried.
    pub host_delay: Span,
    /// True if that is a radio channel.
    pub radio: bool,
    /// Its access points.
    pub access_points: AccessPoints,
    /// Each host's node on the last hop, if it is a station.
    pub stations: Vec<Option<Node>>,
    /// Stations that keep the queues of their connections small.
    pub small_queues: BTreeSet<Node>,
    /// What stands in each host's forwarding path.
    pub hooks: Vec<Vec<Box<dyn Hook>>>,
    /// The edge proxies, one for each access point, the agents of the stations, and where the proxies stand.
    pub proxy: Option<(Vec<Proxy>, Vec<station::Agent>, HostId)>,
    /// The stations that bound their own windows.
    pub terminals: Vec<Terminal>,
    /// The nodes of a mesh that find their routes themselves; empty where routes are given.
    pub routers: Vec<Router>,
    /// D of each node of the last hop at first; empty where no sender speaks ATP.
    pub hop_delays: Vec<HopDelay>,
    /// What starts traffic.
    pub sources: Vec<Source>,
    /// The congestion control of each host.
    pub senders: Vec<Choice>,
    /// The run's seed.
    pub seed: Seed,
    /// Where measurements go.
    pub recorder: Recorder,
}

impl World {
    /// A world at its beginning.
    pub fn new(parts: Parts) -> World {
        let Parts { net, last_hop, host_delay, radio, access_points, stations, small_queues, hooks, proxy, .. } = parts;
        let Parts { terminals, routers, hop_delays, sources, senders, seed, recorder, .. } = parts;
        let meters = match access_points.nodes.len() {
            1 => vec![HopMeter::new(radio)],
            several => vec![HopMeter::of_one_of_several(); several],
        };
        let carried = vec![Bytes::ZERO; net.links[last_hop].hosts.len()];
        let mut world = World {
            now: Time::ZERO,
            agenda: Agenda::default(),
            net,
            last_hop,
            received: Received::new(host_delay),
            hooks,
            edge: None,
            terminals,
            routers,
            atp: vec![None; sources.len()],
            hop_delays,
            meters,
            access_points,
            stations,
            small_queues,
            senders_of: BTreeMap::new(),
            sources,
            connections: Vec::new(),
            sampled: Vec::new(),
            with_feedback: Vec::new(),
            carried,
            senders,
            seed,
            effects: Effects::default(),
            recorder,
        };
        let first_of_edge = world.first_source() + world.sources.len() as u32;
        world.edge = proxy.map(|(proxies, stations, host)| Edge::new(proxies, stations, host, first_of_edge));
        for index in 0..world.sources.len() {
            world.agenda.set(world.source_component(index), world.sources[index].next);
        }
        for link in 0..world.net.len() {
            world.agenda.set(Net::component(link), world.net.next_event(link));
        }
        world.agenda.set(world.sampler(), Some(Time::ZERO + SAMPLE));
        world.begin_edge();
        world.begin_terminals();
        world.begin_routers();
        world
    }

    /// Puts something more into the forwarding path of a host, behind what stands there.
    pub fn add_hook(&mut self, host: HostId, hook: Box<dyn Hook>) {
        self.hooks[host.index()].push(hook);
    }

    /// From now on takes no figures from what drivers report: for callers that only want what hooks see.
    pub fn without_meters(&mut self) {
        self.meters.clear();
    }

    /// An access point's interface on the last hop, by its place among them.
    pub fn radio(&self, access_point: usize) -> Interface {
        (self.last_hop, self.access_points.nodes[access_point])
    }

    /// The time of the last event.
    pub fn now(&self) -> Time {
        self.now
    }

    /// When each stream acts next, in the scenario's order; `None` for one that is done.
    pub fn next_starts(&self) -> impl Iterator<Item = Option<Time>> + '_ {
        self.sources.iter().map(|source| source.next)
    }

    /// Lets everything happen that happens before `until`.
    pub fn run_until(&mut self, until: Time) {
        while let Some((at, component)) = self.agenda.next().filter(|(at, _)| *at < until) {
            self.now = at;
            self.wake(component);
            self.settle();
        }
    }

    /// The measurements, with what was unfinished at `end`.
    pub fn finish(mut self, end: Time) -> Recorder {
        for connection in self
            .connections
            .iter()
            .filter(|connection| matches!(connection.app, App::Fetch { .. }) && !connection.is_complete())
        {
            self.recorder.stream_fetch(connection.stream, connection.opened, None);
        }
        self.count_segments(end);
        self.recorder
    }

    /// Tells the recorder how many segments the bulk senders have sent by `at`.
    pub fn count_segments(&mut self, at: Time) {
        for (number, connection) in self.connections.iter().enumerate() {
            if matches!(connection.app, App::Bulk { .. }) {
                let stats = connection.sender().stats();
                let segments = Segments {
                    sent: stats.segments_sent,
                    retransmitted: stats.segments_retransmitted,
                    round_trips: stats.round_trips,
                    round_trip_sum: stats.round_trip_sum,
                    deviation_sum: stats.deviation_sum,
                    recoveries: Some(stats.recoveries),
                };
                self.recorder.segments(at, flow_id(number), segments);
            }
        }
        for (source, connection) in self.atp.iter().enumerate() {
            if let Some(connection) = connection {
                self.recorder.segments(at, atp::flow(source), connection.segments());
            }
        }
        for (index, source) in self.sources.iter().enumerate() {
            if matches!(source.stream.kind, StreamKind::Udp { rate: None, .. }) {
                let segments = Segments { sent: source.sent, ..Segments::default() };
                self.recorder.segments(at, udp_flow(index), segments);
            }
        }
    }

    /// Packets that wait at node `from` of a cable, by its place in the scenario's graph, as of its last event.
    pub fn cable_backlog(&self, link: usize, from: Node) -> usize {
        self.net.cable_backlog(link, from)
    }

    /// A cable, by its place in the scenario's graph, takes another route, which is longer by `by`, each way.
    pub fn lengthen(&mut self, link: usize, by: Span) {
        let next = self.net.lengthen(link, self.now, by, &mut self.effects);
        self.agenda.set(Net::component(link), next);
    }

    fn wake(&mut self, component: Component) {
        let links = self.net.len() as u32;
        let number = component.0;
        if number < links {
            let next = self.net.advance(number as usize, self.now, &mut self.effects);
            self.agenda.set(component, next);
        } else if number == links {
            self.sample_all();
            self.agenda.set(component, Some(self.now + SAMPLE));
        } else if component == self.handing_up() {
            self.hand_up();
        } else {
            match self.sources.get((number - self.first_source()) as usize) {
                Some(_) => self.start((number - self.first_source()) as usize),
                None if number < self.first_terminal() => self.wake_edge(component),
                None if number < self.first_router() => self.wake_terminal((number - self.first_terminal()) as usize),
                None if number < self.first_atp() => self.wake_router((number - self.first_router()) as usize),
                None if number < self.first_connection() => self.wake_atp((number - self.first_atp()) as usize),
                None => {
                    let place = (number - self.first_connection()) as usize;
                    let end = if place.is_multiple_of(2) { End::Answerer } else { End::Caller };
                    if end == End::Caller && self.is_unasked(place / 2) {
                        return self.ask(place / 2);
                    }
                    self.connections[place / 2].end(end).on_timeout(self.now);
                    self.pump(place / 2, end);
                }
            }
        }
    }

    /// Handles all that was produced, and what that produces.
    fn settle(&mut self) {
        while let Some(effect) = self.effects.pop() {
            match effect {
                Effect::Reported { at, link, of, report } => self.on_report(at, link, of, &report),
                Effect::Subframe { at, of, shown } => self.on_subframe(at, of, *shown),
                Effect::Lost { at, link, src, datagram, told } => {
                    self.tell_hooks(at, (link, src), &datagram, told);
                    self.on_loss(at, (link, src), &datagram);
                    if !told && link == self.last_hop {
                        self.never_sent(src, &datagram.content);
                        if let Some(delay) = self.hop_delays.get_mut(src.index()) {
                            delay.on_dropped();
                        }
                    }
                }
                Effect::Completed { at, from, dst, flow_hash, len, waited } => {
                    self.served(at, (from, dst), waited);
                    self.taken(from, flow_hash, len);
                }
                Effect::Uplink { at, from } => self.recorder.uplink_frame(at, from),
                Effect::Frame { at, to, packets, rate, airtime } => {
                    self.recorder.frame(at, to, u32::from(packets), airtime);
                    if let Some(edge) = &mut self.edge {
                        edge.agent(to).frame(at, packets, rate);
                    }
                }
                Effect::Arrived { at, link, to, packet, queued_at } if link == self.last_hop => {
                    self.over_last_hop(at, to, packet, queued_at);
                }
                Effect::Arrived { at, link, to, packet, .. } => self.at_interface(at, (link, to), packet),
            }
        }
    }

    /// What stands beside the queue that a packet was lost from hears of it.
    fn tell_hooks(&mut self, at: Time, (link, src): Interface, datagram: &Datagram, on_air: bool) {
        let Some(host) = self.net.links[link].hosts[src.index()] else { return };
        if self.hooks[host.index()].is_empty() {
            return;
        }
        let key = match &datagram.content {
            Payload::Tcp { connection, .. } => Some(self.connections[*connection as usize].key(datagram.from)),
            _ => None,
        };
        let lost = Lost { key, payload: &datagram.content, on_air };
        self.hooks[host.index()].iter_mut().for_each(|hook| hook.lost(at, (link, src), &lost));
    }

    /// A packet has crossed the last hop.
    fn over_last_hop(&mut self, at: Time, to: Node, packet: Packet<Datagram>, queued_at: Time) {
        self.carried[to.index()] += packet.len;
        if let Payload::Notice(notice) = &packet.payload.content {
            return self.heard(at, to, notice);
        }
        if let Payload::Routing(octets) = &packet.payload.content {
            return self.routed(at, to, octets);
        }
        if self.access_points.place(to).is_some() {
            self.recorder.uplink_delivery(at, queued_at, packet.src);
        } else {
            self.recorder.hop_delivery(at, queued_at, to, packet.len);
            if let (Some(edge), Some(left)) = (&mut self.edge, packet.payload.content.left_proxy()) {
                edge.agent(to).counted(at, left, packet.len);
            }
        }
        match self.received.hold(at, to, packet) {
            Ok(next) => self.agenda.set(self.handing_up(), Some(next)),
            Err(packet) => self.at_interface(at, (self.last_hop, to), packet),
        }
    }

    /// A host of the last hop has what its node received.
    fn hand_up(&mut self) {
        while let Some((to, packet)) = self.received.take(self.now) {
            self.at_interface(self.now, (self.last_hop, to), packet);
            self.settle();
        }
        self.agenda.set(self.handing_up(), self.received.next());
    }

    /// A packet has come to an interface of a host: it stays, or goes on.
    #[inline]
    fn at_interface(&mut self, at: Time, (link, node): Interface, mut packet: Packet<Datagram>) {
        let Some(host) = self.net.links[link].hosts[node.index()] else { return };
        if packet.payload.to == host {
            return self.receive(at, host, packet.payload);
        }
        if !self.hooks[host.index()].is_empty() {
            self.pass(at, host, (link, node), &mut packet);
        }
        self.stamp(host, &mut packet);
        self.send(host, packet);
    }

    /// A packet passes what stands in a host's forwarding path: all of it as it comes, then all of it as it leaves.
    fn pass(&mut self, at: Time, host: HostId, interface: Interface, packet: &mut Packet<Datagram>) {
        let key = match &packet.payload.content {
            Payload::Tcp { connection, .. } => Some(self.connections[*connection as usize].key(packet.payload.from)),
            _ => None,
        };
        let (next, hooks) = (self.net.next(host, packet.payload.to), &mut self.hooks[host.index()]);
        let beside = packet.src;
        let mut forwarded = Forwarded { at, interface, beside, key, packet };
        hooks.iter_mut().for_each(|hook| hook.ingress(&mut forwarded));
        let Some(step) = next else { return };
        (forwarded.interface, forwarded.beside) = ((usize::from(step.link), step.from), step.to);
        hooks.iter_mut().for_each(|hook| hook.egress(&mut forwarded));
    }

    /// A source acts.
    fn start(&mut self, number: usize) {
        let source = &mut self.sources[number];
        source.step();
        let (stream, next) = (source.stream, source.next);
        self.agenda.set(self.source_component(number), next);
        // Any number will do for a hash, as long as it differs from stream to stream.
        let hash = (number as u32).wrapping_mul(0x9e37_79b9);
        match stream.kind {
            StreamKind::Probe { size, .. } => {
                let content = Payload::Probe { source: index(number), sent: self.now };
                let packet = self.packet((stream.from, stream.to), udp_packet(size), hash, content);
                self.send(stream.from, packet);
            }
            StreamKind::Udp { size, rate, .. } => {
                let node = self.concerned(&stream);
                if rate.is_none() && source_begins(&stream, self.now, self.sources[number].sent) {
                    self.recorder.bulk_flow(self.now, udp_flow(number), node, &format!("udp {number}"));
                    self.recorder.belongs(udp_flow(number), stream.number);
                }
                match rate {
                    Some(_) => {
                        self.sources[number].sent += 1;
                        let content = Payload::Udp { source: index(number), sent: self.now, packet: None };
                        let packet = self.packet((stream.from, stream.to), udp_packet(size), hash, content);
                        self.send(stream.from, packet);
                    }
                    None if self.now < stream.stop => self.offer(node, Stream::Udp(number)),
                    None => self.withdraw(node, Stream::Udp(number), udp_flow(number)),
                }
            }
            StreamKind::Bulk { .. } if self.now >= stream.stop => self.stop_bulk(number, &stream),
            StreamKind::Bulk { .. } if self.senders[stream.from.index()].transport() == Transport::Atp => {
                let node = self.concerned(&stream);
                self.open_atp(number, &stream, node);
            }
            StreamKind::Bulk { size, .. } => self.open(&stream, App::Bulk { size }),
            StreamKind::Fetch { size, .. } => self.open(&stream, App::Fetch { size }),
        }
    }

    /// The station that a stream counts for in figures.
    fn concerned(&self, stream: &lasthop_scenario::Stream) -> Node {
        let station = |host: HostId| self.stations[host.index()];
        station(stream.to).or(station(stream.from)).unwrap_or(NOBODY)
    }

    fn open(&mut self, stream: &lasthop_scenario::Stream, app: App) {
        let number = self.connections.len();
        let node = self.concerned(stream);
        // The station calls; between stations, or where none is an end, the one that gets the data.
        let only_sender = self.stations[stream.from.index()].is_some() && self.stations[stream.to.index()].is_none();
        let receiver = match app {
            App::Bulk { .. } if only_sender => End::Answerer,
            _ => End::Caller,
        };
        let send_buffer = match stream.kind {
            StreamKind::Bulk { send_buffer, .. } => send_buffer,
            _ => None,
        };
        let lasthop_scenario::Stream { from, to, number: own, class, .. } = *stream;
        let hops = self.net.hops(from, to);
        let opening = Opening { number, from, to, hops, node, stream: own, app, class, send_buffer };
        let connection = Connection::open(self.now, opening, receiver, &self.senders, self.seed);
        let connection = connection.expect("the scenario names a law that exists");
        // The proxy carries what servers send to stations.
        let proxied = !only_sender && self.stations[stream.from.index()].is_none();
        let edge = self.edge.as_ref().filter(|_| proxied).map(Edge::host);
        if matches!(app, App::Bulk { .. }) {
            self.sampled.push(number);
        }
        self.connections.push(match edge {
            Some(edge) => connection.proxied(self.now, edge),
            None => connection,
        });
        [End::Answerer, End::Caller].into_iter().for_each(|end| self.watch(number, end));
        if self.connections[number].tells() {
            self.with_feedback.push(number);
        }
        if matches!(app, App::Bulk { .. }) {
            self.recorder.bulk_flow(self.now, flow_id(number), node, &format!("bulk {number}"));
            self.recorder.belongs(flow_id(number), stream.number);
        }
        match edge {
            Some(_) => self.ask(number),
            None => self.pump(number, End::Caller),
        }
    }

    /// A bulk stream's time is over: its sender ends where it has got to.
    fn stop_bulk(&mut self, source: usize, stream: &lasthop_scenario::Stream) {
        if self.atp[source].is_some() {
            return self.stop_atp(source);
        }
        let Some(number) = self.connections.iter().position(|connection| connection.stream == stream.number) else {
            return;
        };
        self.connections[number].stop();
        self.recorder.bulk_flow_ended(self.now, flow_id(number));
        self.pump(number, self.connections[number].data());
    }

    /// Counts what waits of one end of a connection, if it is at a terminal, or at a station that limits it, and sends over the last hop.
    fn watch(&mut self, number: usize, end: End) {
        let (from, to) = self.connections[number].way(end);
        let Some(station) = self.stations[from.index()] else { return };
        let small = self.small_queues.contains(&station);
        if !small && self.terminals.iter().all(|terminal| terminal.station != station) {
            return;
        }
        let step = self.net.next(from, to);
        // A host without a route yet will find one over the last hop.
        if step.map_or(!self.routers.is_empty(), |step| usize::from(step.link) == self.last_hop) {
            if small {
                self.connections[number].end(end).set_small_queue(Some(SmallQueue::WIFI));
            }
            self.senders_of.insert((station, self.connections[number].hash), (number, end));
        }
    }

    /// A station holds a packet no more.
    fn taken(&mut self, station: Node, flow_hash: u32, len: Bytes) {
        let Some(&(number, end)) = self.senders_of.get(&(station, flow_hash)) else { return };
        let sender = self.connections[number].end(end);
        sender.on_taken(len);
        if sender.small_queue().is_some() {
            self.pump(number, end);
        }
    }

    /// A packet of a station was dropped before its transmitter had it.
    fn never_sent(&mut self, station: Node, content: &Payload) {
        if let Payload::Tcp { connection, header } = content {
            self.taken(station, self.connections[*connection as usize].hash, tcp_packet(header));
        }
    }

    /// A packet has reached the host that it is for.
    fn receive(&mut self, at: Time, host: HostId, datagram: Datagram) {
        match datagram.content {
            Payload::Probe { source, sent } => {
                self.recorder.stream_probe(self.sources[source as usize].stream.number, sent, at);
            }
            Payload::Tcp { connection, header } => {
                let connection = connection as usize;
                let end = self.connections[connection].end_that_gets(datagram.from);
                self.connections[connection].end(end).on_segment(at, &header);
                self.pump(connection, end);
            }
            Payload::Udp { source, sent, .. } => {
                let source = source as usize;
                let stream = self.sources[source].stream;
                let node = self.concerned(&stream);
                match stream.kind {
                    StreamKind::Udp { size, rate: None, .. } => {
                        self.recorder.goodput(at, udp_flow(source), node, size);
                        self.recorder.end_delay(sent, at, node);
                    }
                    StreamKind::Udp { size, rate: Some(_), .. } => {
                        self.recorder.datagram(stream.number, sent, at, size);
                        self.recorder.end_delay(sent, at, node);
                    }
                    _ => {}
                }
            }
            Payload::Tunnel(tunnel) => match self.stations[host.index()] {
                Some(station) => self.at_station(station, tunnel),
                None => {
                    if let Some(station) = self.stations[datagram.from.index()] {
                        self.at_proxy(station, tunnel);
                    }
                }
            },
            Payload::Atp { source, packet } => self.at_atp(at, host, source as usize, &packet),
            // It has been taken in where it was heard.
            Payload::Notice(_) | Payload::Routing(_) => {}
        }
    }

    fn on_loss(&mut self, at: Time, (link, src): (usize, Node), datagram: &Datagram) {
        match &datagram.content {
            Payload::Probe { source, sent } => {
                self.recorder.stream_probe_lost(self.sources[*source as usize].stream.number, *sent);
            }
            Payload::Udp { source, sent, .. } => {
                self.recorder.datagram_lost(self.sources[*source as usize].stream.number, *sent);
            }
            Payload::Notice(_) | Payload::Routing(_) => return,
            _ => {}
        }
        // TCP finds out by itself, and so does the tunnel.
        if link == self.last_hop
            && self.access_points.place(src).is_some()
            && let Some(station) = self.stations[datagram.to.index()]
        {
            self.recorder.hop_lost(at, station);
        }
    }

    /// Lets the applications of a connection act, sends what one end has to send and notes when it wants to be woken.
    pub(crate) fn pump(&mut self, number: usize, end: End) {
        let now = self.now;
        if self.connections[number].data() == end {
            self.connections[number].serve();
        } else {
            self.arrivals(number);
            self.take_into_proxy(number);
        }
        while let Some(header) = self.connections[number].end(end).poll_transmit(now) {
            let connection = &mut self.connections[number];
            if end == connection.data() {
                connection.departs(now, &header);
            }
            let (len, hash, way) = (tcp_packet(&header), connection.hash, connection.way(end));
            let station = self.stations[way.0.index()];
            if station.is_some_and(|station| self.senders_of.contains_key(&(station, hash))) {
                connection.end(end).on_queued(len);
            }
            let content = Payload::Tcp { connection: index(number), header: Box::new(header) };
            let packet = self.packet(way, len, hash, content);
            self.send(way.0, packet);
        }
        let next = self.connections[number].end(end).next_timeout();
        self.agenda.set(self.end_component(number, end), next);
    }

    /// The receiving application looks at what has arrived.
    pub(crate) fn arrivals(&mut self, number: usize) {
        let (now, connection) = (self.now, &mut self.connections[number]);
        let was_complete = connection.is_complete();
        let news = connection.newly_received();
        let (node, stream, opened, app) = (connection.node, connection.stream, connection.opened, connection.app);
        let completed = connection.is_complete() && !was_complete;
        let recorder = &mut self.recorder;
        connection.arrived_whole(|sent| recorder.end_delay(sent, now, node));
        match app {
            App::Bulk { .. } if !news.is_zero() => self.recorder.goodput(now, flow_id(number), node, news),
            App::Fetch { .. } if completed => self.recorder.stream_fetch(stream, opened, Some(now)),
            _ => {}
        }
        if completed {
            let receiver = self.connections[number].data().other();
            self.connections[number].end(receiver).close();
            if matches!(app, App::Bulk { .. }) {
                self.recorder.bulk_flow_ended(now, flow_id(number));
            }
        }
    }

    // This and the next are inlined so that a packet is built where it will lie, not built and then copied.
    #[inline(always)]
    pub(crate) fn packet(
        &self,
        (from, to): (HostId, HostId),
        len: Bytes,
        flow_hash: u32,
        content: Payload,
    ) -> Packet<Datagram> {
        let class = match &content {
            Payload::Tcp { connection, .. } => self.connections[*connection as usize].class,
            Payload::Probe { source, .. } | Payload::Udp { source, .. } | Payload::Atp { source, .. } => {
                self.sources[*source as usize].stream.class
            }
            _ => AccessClass::BestEffort,
        };
        let (src, dst, ecn) = (Node(0), Dest::Node(Node(0)), Ecn::NotEct);
        Packet { len, src, dst, class, flow_hash, ecn, payload: Datagram { content, from, to } }
    }

    /// A packet leaves `host` towards the one that it is for. Without a way it vanishes, as where a router has no route.
    #[inline(always)]
    pub(crate) fn send(&mut self, host: HostId, packet: Packet<Datagram>) {
        let Some(step) = self.net.next(host, packet.payload.to) else { return };
        let packet = Packet { src: step.from, dst: Dest::Node(step.to), ..packet };
        if !self.hop_delays.is_empty() {
            self.queued(step);
        }
        let next = self.net.enqueue(usize::from(step.link), self.now, packet, &mut self.effects);
        self.agenda.set(Net::component(usize::from(step.link)), next);
    }

    /// A driver reports.
    fn on_report(&mut self, at: Time, link: usize, of: Node, report: &HopReport) {
        if let Some(place) = self.access_points.place(of).filter(|_| link == self.last_hop) {
            if let Some(meter) = self.meters.get_mut(place) {
                meter.add(&mut self.recorder, at, report);
            }
            for (node, delay) in self.hop_delays.iter().enumerate().skip(1) {
                let gauge = Gauge::Station(SeriesKind::NodeDelay, Node(node as u16));
                self.recorder.sample(at, gauge, delay.delay(at).as_millis_f64());
            }
        }
        if let Some(host) = self.net.links[link].hosts[of.index()] {
            self.hooks[host.index()].iter_mut().for_each(|hook| hook.report(at, (link, of), report));
        }
    }

    /// A station has decoded a carrier's control channel: what its connections tell of the cell follows from that. The base station's report
    /// tells how much of the cell is given away.
    fn on_subframe(&mut self, at: Time, station: Node, shown: CellSubframe) {
        if station == Scenario::AP {
            let given: u32 = shown.dcis.iter().map(|dci| u32::from(dci.prb)).sum();
            let share = f64::from(given) / f64::from(shown.prb);
            self.recorder.sample(at, Gauge::Hop(SeriesKind::ChannelBusy), share);
            return;
        }
        if self.with_feedback.is_empty() {
            return;
        }
        let (host, signal) = (self.host_of(station), Signal::Subframe(shown));
        let mut with_feedback = std::mem::take(&mut self.with_feedback);
        with_feedback.retain(|number| self.connections[*number].tells());
        let sharing = self.sharing(at, host, &with_feedback);
        for number in &with_feedback {
            let connection = &mut self.connections[*number];
            let Some(end) = connection.end_that_tells(host) else { continue };
            let own = connection.end(end);
            own.share_cell(at, sharing.with(own.received_lately(at)));
            own.sense(at, &signal);
            // The law may want to be woken; what it tells waits for the next segment.
            let next = connection.end(end).next_timeout();
            self.agenda.set(self.end_component(*number, end), next);
        }
        self.with_feedback = with_feedback;
    }

    /// Looks at every bulk sender that is not done.
    fn sample_all(&mut self) {
        let connections = &self.connections;
        self.sampled.retain(|number| !connections[*number].is_complete());
        (0..self.sampled.len()).for_each(|place| self.sample(self.sampled[place]));
    }

    /// What a bulk sender knows, while it has a connection and something to send.
    fn sample(&mut self, number: usize) {
        let connection = &self.connections[number];
        if !connection.sender().is_established() {
            return;
        }
        let (at, flow, stats) = (self.now, flow_id(number), connection.sender().stats());
        self.recorder.sample(at, Gauge::Flow(SeriesKind::Cwnd, flow), stats.cwnd.get() as f64);
        self.recorder.sample(at, Gauge::Flow(SeriesKind::Window, flow), stats.peer_window.get() as f64);
        self.recorder.sample(at, Gauge::Flow(SeriesKind::CaState, flow), f64::from(stats.ca_state.number()));
        if let Some(rtt) = stats.srtt {
            self.recorder.round_trip_at(at, flow, rtt);
        }
        if let Some(pacing) = connection.sender().decision().pacing {
            self.recorder.sample(at, Gauge::Flow(SeriesKind::Pacing, flow), pacing.as_mbit_f64());
        }
    }

    // Components: links, the look at the bulk senders, what hosts have received, sources, the edge, terminals, routers, ends of connections.

    fn sampler(&self) -> Component {
        Component(self.net.len() as u32)
    }

    fn handing_up(&self) -> Component {
        Component(self.net.len() as u32 + 1)
    }

    fn first_source(&self) -> u32 {
        self.net.len() as u32 + 2
    }

    fn source_component(&self, index: usize) -> Component {
        Component(self.first_source() + index as u32)
    }

    pub(crate) fn end_component(&self, number: usize, end: End) -> Component {
        let place = 2 * number as u32 + u32::from(end == End::Caller);
        Component(self.first_connection() + place)
    }

    /// The component number of the first terminal.
    pub(crate) fn first_terminal(&self) -> u32 {
        self.first_source() + self.sources.len() as u32 + self.edge.as_ref().map_or(0, Edge::components)
    }

    /// The component number of the first router.
    pub(crate) fn first_router(&self) -> u32 {
        self.first_terminal() + self.terminals.len() as u32
    }

    /// The component number of the first ATP connection's sender.
    pub(crate) fn first_atp(&self) -> u32 {
        self.first_router() + self.routers.len() as u32
    }

    /// The component number of the first connection's first end.
    fn first_connection(&self) -> u32 {
        self.first_atp() + 2 * self.atp.len() as u32
    }

    /// Octets that the last hop has brought to a node.
    pub(crate) fn carried(&self, node: Node) -> Bytes {
        self.carried[node.index()]
    }

    /// The host that a station is.
    pub(crate) fn host_of(&self, station: Node) -> HostId {
        self.net.links[self.last_hop].hosts[station.index()].expect("a station is a host")
    }
}

/// The number of a UDP source's flow: apart from those of connections.
pub(crate) fn udp_flow(source: usize) -> FlowId {
    FlowId(1 << 24 | source as u32)
}

/// True at a UDP source's first action.
fn source_begins(stream: &lasthop_scenario::Stream, now: Time, sent: u64) -> bool {
    sent == 0 && now < stream.stop
}

fn flow_id(number: usize) -> FlowId {
    FlowId(number as u32)
}
