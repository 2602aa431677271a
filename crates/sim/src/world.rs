//! One simulated world: a server, a wire, an access point, a hop and its stations.
//!
//! The agenda says which component acts next. What it produces (deliveries, driver reports) waits in `effects` and is handled
//! one after the other before time moves on, so no component is ever called from within another.

use crate::access_point::Agent;
use crate::agenda::{Agenda, Component};
use crate::backhaul::Backhaul;
use crate::cargo::{Cargo, Tunnel, tcp_packet, udp_packet};
use crate::connection::{App, End, Pair, Via};
use crate::edge::Edge;
use crate::hop::LastHop;
use crate::proxy::{Proxy, Stream};
use crate::source::Source;
use crate::station;
use lasthop_radio::wired::Wire;
use lasthop_radio::{AccessClass, Dest, Drop, Ecn, Hop, Outbox, Packet, PpduKind, PpduRecord, RxInfo};
use lasthop_report::{Gauge, HopMeter, Recorder, Segments};
use lasthop_scenario::{Scenario, StreamKind};
use lasthop_signals::{FlowId, HopReport, Node, Signal};
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use std::collections::VecDeque;

/// The server's and the access point's ends of the wire.
pub const SERVER: Node = Node(0);
/// The access point on the wire.
pub const GATEWAY: Node = Node(1);

const WIRE: Component = Component(0);
const HOP: Component = Component(1);
/// Looks at the bulk senders.
const SAMPLER: Component = Component(2);
pub(crate) const BACKHAUL: Component = Component(3);
/// Changes the backhaul's rate.
pub(crate) const CHANGER: Component = Component(4);
const FIRST_SOURCE: u32 = 5;

/// Time between two looks at the bulk senders, as in the lab.
const SAMPLE: Span = Span::from_millis(10);

/// Everything there is.
pub struct World {
    pub(crate) now: Time,
    pub(crate) agenda: Agenda,
    wire: Wire<Cargo>,
    pub(crate) backhaul: Option<Backhaul>,
    hop: LastHop,
    /// One for each access point, or none at all.
    agents: Vec<Agent>,
    pub(crate) edge: Option<Edge>,
    /// One for each access point.
    meters: Vec<HopMeter>,
    pub(crate) access_points: AccessPoints,
    pub(crate) sources: Vec<Source>,
    pub(crate) pairs: Vec<Pair>,
    law: &'static str,
    seed: Seed,
    pub(crate) effects: Effects,
    pub(crate) recorder: Recorder,
}

/// What components have produced and nobody has handled yet.
#[derive(Default)]
pub(crate) struct Effects(VecDeque<Effect>);

enum Effect {
    Arrived { at: Time, link: Component, to: Node, packet: Packet<Cargo>, queued_at: Time },
    Reported { at: Time, of: Node, report: HopReport },
    Lost { at: Time, link: Component, src: Node, cargo: Cargo },
    Frame { at: Time, to: Node, packets: u16, rate: Rate, airtime: Span },
    Uplink { at: Time, from: Node },
}

/// Collects what one link produces.
pub(crate) struct Collect<'a> {
    link: Component,
    access_points: &'a AccessPoints,
    effects: &'a mut Effects,
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
    /// True for a station's node on the hop.
    #[inline]
    pub(crate) fn is_station(&self, node: Node) -> bool {
        (1..=self.homes.len()).contains(&node.index())
    }

    /// The place of a station's access point.
    #[inline]
    pub(crate) fn home(&self, station: Node) -> usize {
        self.homes[station.index() - 1]
    }

    /// A station's access point.
    #[inline]
    pub(crate) fn of(&self, station: Node) -> Node {
        self.nodes[self.home(station)]
    }
}

impl Outbox<Cargo> for Collect<'_> {
    fn deliver(&mut self, at: Time, to: Node, packet: Packet<Cargo>, rx: &RxInfo) {
        self.effects.0.push_back(Effect::Arrived { at, link: self.link, to, packet, queued_at: rx.queued_at });
    }

    fn dropped(&mut self, at: Time, packet: Packet<Cargo>, _why: Drop) {
        self.effects.0.push_back(Effect::Lost { at, link: self.link, src: packet.src, cargo: packet.payload });
    }

    fn ppdu(&mut self, at: Time, ppdu: &PpduRecord) {
        let (PpduKind::Data, Some(to), 1..) = (ppdu.kind, ppdu.to, ppdu.received) else { return };
        if self.access_points.is_station(to) {
            let (packets, rate, airtime) = (ppdu.packets, ppdu.rate, ppdu.duration);
            self.effects.0.push_back(Effect::Frame { at, to, packets, rate, airtime });
        } else if self.access_points.is_station(ppdu.from) {
            self.effects.0.push_back(Effect::Uplink { at, from: ppdu.from });
        }
    }

    fn driver(&mut self, at: Time, of: Node, signal: &Signal) {
        if let Signal::Hop(report) = signal {
            self.effects.0.push_back(Effect::Reported { at, of, report: report.clone() });
        }
    }
}

/// What a world is made of.
pub struct Parts {
    /// From [`SERVER`] to [`GATEWAY`].
    pub wire: Wire<Cargo>,
    /// From there to the access points, if that is another place.
    pub backhaul: Option<Backhaul>,
    /// The last hop.
    pub hop: LastHop,
    /// Its access points.
    pub access_points: AccessPoints,
    /// The agents on the access points: one for each, or none.
    pub agents: Vec<Agent>,
    /// The edge proxies, one for each access point, and the agents of the stations.
    pub proxy: Option<(Vec<Proxy>, Vec<station::Agent>)>,
    /// What starts traffic.
    pub sources: Vec<Source>,
    /// The law of every TCP sender, by name.
    pub law: &'static str,
    /// The run's seed.
    pub seed: Seed,
    /// Where measurements go.
    pub recorder: Recorder,
}

impl World {
    /// A world at its beginning.
    pub fn new(parts: Parts) -> World {
        let Parts { wire, backhaul, hop, access_points, agents, proxy, sources, law, seed, recorder } = parts;
        let meters = match access_points.nodes.len() {
            1 => vec![HopMeter::new(matches!(hop, LastHop::Wifi(_)))],
            several => vec![HopMeter::of_one_of_several(); several],
        };
        let first_of_edge = FIRST_SOURCE + sources.len() as u32;
        let mut world = World {
            now: Time::ZERO,
            agenda: Agenda::default(),
            wire,
            backhaul,
            hop,
            agents,
            edge: proxy.map(|(proxies, stations)| Edge::new(proxies, stations, first_of_edge)),
            meters,
            access_points,
            sources,
            pairs: Vec::new(),
            law,
            seed,
            effects: Effects::default(),
            recorder,
        };
        for index in 0..world.sources.len() {
            world.agenda.set(world.source_component(index), world.sources[index].next);
        }
        world.agenda.set(WIRE, world.wire.next_event());
        world.agenda.set(HOP, world.hop.next_event());
        world.agenda.set(SAMPLER, Some(Time::ZERO + SAMPLE));
        world.agenda.set(CHANGER, world.backhaul.as_ref().and_then(Backhaul::next_change));
        world.begin_edge();
        world
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
        for pair in self.pairs.iter().filter(|pair| matches!(pair.app, App::Fetch { .. }) && !pair.is_complete()) {
            self.recorder.fetch_unfinished(pair.opened, pair.node);
        }
        self.count_segments(end);
        self.recorder
    }

    /// Tells the recorder how many segments the bulk senders have sent by `at`.
    pub fn count_segments(&mut self, at: Time) {
        for (number, pair) in self.pairs.iter().enumerate() {
            if matches!(pair.app, App::Bulk { .. }) {
                let stats = pair.server.stats();
                let segments = Segments { sent: stats.segments_sent, retransmitted: stats.segments_retransmitted };
                self.recorder.segments(at, flow_id(number), segments);
            }
        }
        for (index, source) in self.sources.iter().enumerate() {
            if matches!(source.stream.kind, StreamKind::Udp { .. }) {
                let segments = Segments { sent: source.sent, retransmitted: 0 };
                self.recorder.segments(at, udp_flow(index), segments);
            }
        }
    }

    fn wake(&mut self, component: Component) {
        match component {
            WIRE => {
                self.wire.advance(self.now, &mut collect(WIRE, &self.access_points, &mut self.effects));
                self.agenda.set(WIRE, self.wire.next_event());
            }
            BACKHAUL | CHANGER => self.wake_backhaul(component),
            HOP => {
                self.hop.advance(self.now, &mut collect(HOP, &self.access_points, &mut self.effects));
                self.agenda.set(HOP, self.hop.next_event());
            }
            SAMPLER => {
                (0..self.pairs.len()).for_each(|number| self.sample(number));
                self.agenda.set(SAMPLER, Some(self.now + SAMPLE));
            }
            Component(number) => match self.sources.get((number - FIRST_SOURCE) as usize) {
                Some(_) => self.start((number - FIRST_SOURCE) as usize),
                None if number < self.first_pair() => self.wake_edge(component),
                None => {
                    let place = (number - self.first_pair()) as usize;
                    let end = if place.is_multiple_of(2) { End::Server } else { End::Station };
                    if end == End::Station && self.is_unasked(place / 2) {
                        return self.ask(place / 2);
                    }
                    self.pairs[place / 2].end(end).on_timeout(self.now);
                    self.pump(place / 2, end);
                }
            },
        }
    }

    /// Handles all that was produced, and what that produces.
    fn settle(&mut self) {
        while let Some(effect) = self.effects.0.pop_front() {
            match effect {
                Effect::Reported { at, of, report } => self.on_report(at, of, &report),
                Effect::Lost { at, link, src, cargo } => self.on_loss(at, (link, src), &cargo),
                Effect::Uplink { at, from } => self.recorder.uplink_frame(at, from),
                Effect::Frame { at, to, packets, rate, airtime } => {
                    self.recorder.frame(at, to, u32::from(packets), airtime);
                    if let Some(edge) = &mut self.edge {
                        edge.agent(to).frame(packets, rate);
                    }
                }
                Effect::Arrived { at, link: WIRE, to: GATEWAY, packet, .. } => self.forward_down(at, packet),
                Effect::Arrived { link: BACKHAUL, to, packet, .. } => self.over_backhaul(to, packet),
                Effect::Arrived { at, link: WIRE, packet, .. } => self.receive(at, End::Server, packet),
                Effect::Arrived { at, to, packet, .. } if !self.access_points.is_station(to) => {
                    self.forward_up(at, packet);
                }
                Effect::Arrived { at, to, packet, queued_at, .. } => {
                    self.recorder.hop_delivery(at, queued_at, to, packet.len);
                    if let (Some(edge), Some(left)) = (&mut self.edge, packet.payload.left_proxy()) {
                        edge.agent(to).counted(at, left, packet.len);
                    }
                    self.receive(at, End::Station, packet);
                }
            }
        }
    }

    /// A source acts.
    fn start(&mut self, index: usize) {
        let source = &mut self.sources[index];
        source.step();
        let (stream, next) = (source.stream, source.next);
        self.agenda.set(self.source_component(index), next);
        let node = Scenario::station_node(stream.station);
        match stream.kind {
            StreamKind::Probe { size, .. } => {
                let cargo = Cargo::Probe { source: index, sent: self.now };
                // Any number will do for a hash, as long as it differs from stream to stream.
                let hash = (index as u32).wrapping_mul(0x9e37_79b9);
                let packet = self.packet(SERVER, GATEWAY, udp_packet(size), hash, cargo);
                self.send_wire(packet);
            }
            StreamKind::Udp { size, rate } => {
                if source_begins(&stream, self.now, self.sources[index].sent) {
                    self.recorder.bulk_flow(self.now, udp_flow(index), node, &format!("udp {index}"));
                }
                match rate {
                    Some(_) => {
                        self.sources[index].sent += 1;
                        let cargo = Cargo::Udp { source: index, sent: self.now, packet: None };
                        let hash = (index as u32).wrapping_mul(0x9e37_79b9);
                        let packet = self.packet(SERVER, GATEWAY, udp_packet(size), hash, cargo);
                        self.send_wire(packet);
                    }
                    None if self.now < stream.stop => self.offer(node, Stream::Udp(index)),
                    None => self.withdraw(node, Stream::Udp(index), udp_flow(index)),
                }
            }
            StreamKind::Bulk { size, .. } => self.open(node, App::Bulk { size }, stream.class),
            StreamKind::Fetch { size, .. } => self.open(node, App::Fetch { size }, stream.class),
        }
    }

    fn open(&mut self, node: Node, app: App, class: AccessClass) {
        let number = self.pairs.len();
        let pair = Pair::open(self.now, number, node, app, self.law, self.seed);
        let mut pair = pair.expect("the scenario names a law that exists");
        pair.class = class;
        self.pairs.push(if self.edge.is_some() { pair.proxied(self.now) } else { pair });
        if matches!(app, App::Bulk { .. }) {
            self.recorder.bulk_flow(self.now, flow_id(number), node, &format!("bulk {number}"));
        }
        match self.edge {
            Some(_) => self.ask(number),
            None => self.pump(number, End::Station),
        }
    }

    /// A packet has come over the wire to the access point.
    fn forward_down(&mut self, at: Time, packet: Packet<Cargo>) {
        let node = match &packet.payload {
            Cargo::Tcp { connection, .. } if self.pairs[*connection].via != Via::Direct => {
                return self.receive(at, End::Station, packet);
            }
            Cargo::Tcp { connection, header } => {
                let pair = &self.pairs[*connection];
                if let Some(agent) = self.agents.get_mut(self.access_points.home(pair.node)) {
                    agent.downlink(at, pair.key, pair.node, header);
                }
                pair.node
            }
            Cargo::Probe { source, .. } | Cargo::Udp { source, .. } => {
                Scenario::station_node(self.sources[*source].stream.station)
            }
            // The tunnel begins here.
            Cargo::Tunnel(_) => return,
        };
        self.send_down(node, packet);
    }

    /// A packet has come over the hop to the access point.
    fn forward_up(&mut self, at: Time, mut packet: Packet<Cargo>) {
        let agent = self.agents.get_mut(self.access_points.home(packet.src));
        if let (Some(agent), Cargo::Tcp { connection, header }) = (agent, &mut packet.payload) {
            let pair = &self.pairs[*connection];
            agent.uplink(at, pair.key.reversed(), pair.node, header);
        }
        self.send_up_to_edge(packet);
    }

    /// A packet has reached a host.
    fn receive(&mut self, at: Time, end: End, packet: Packet<Cargo>) {
        match packet.payload {
            Cargo::Probe { source, sent } => {
                self.recorder.probe(sent, at, Scenario::station_node(self.sources[source].stream.station));
            }
            Cargo::Tcp { connection, header } => {
                self.pairs[connection].end(end).on_segment(at, &header);
                self.pump(connection, end);
            }
            Cargo::Udp { source, sent, .. } => {
                let stream = self.sources[source].stream;
                if let StreamKind::Udp { size, .. } = stream.kind {
                    let node = Scenario::station_node(stream.station);
                    self.recorder.goodput(at, udp_flow(source), node, size);
                    self.recorder.end_delay(sent, at, node);
                }
            }
            Cargo::Tunnel(tunnel) => self.at_station(packet.dst, tunnel),
        }
    }

    fn on_loss(&mut self, at: Time, (link, src): (Component, Node), cargo: &Cargo) {
        let station = match cargo {
            Cargo::Probe { source, sent } => {
                let station = Scenario::station_node(self.sources[*source].stream.station);
                self.recorder.probe_lost(*sent, station);
                Some(station)
            }
            Cargo::Udp { source, .. } => Some(Scenario::station_node(self.sources[*source].stream.station)),
            // TCP finds out by itself, and so does the tunnel.
            Cargo::Tcp { connection, .. } => Some(self.pairs[*connection].node),
            Cargo::Tunnel(Tunnel::Data { connection, .. }) => Some(self.pairs[*connection as usize].node),
            Cargo::Tunnel(_) => None,
        };
        if let Some(station) = station.filter(|_| link == HOP && !self.access_points.is_station(src)) {
            self.recorder.hop_lost(at, station);
        }
    }

    /// Lets the applications of a connection act, sends what one end has to send and notes when it wants to be woken.
    pub(crate) fn pump(&mut self, number: usize, end: End) {
        let now = self.now;
        match end {
            End::Server => self.pairs[number].serve(),
            End::Station => {
                self.arrivals(number);
                self.take_into_proxy(number);
            }
        }
        let proxied = self.pairs[number].via != Via::Direct;
        while let Some(header) = self.pairs[number].end(end).poll_transmit(now) {
            let (len, hash) = (tcp_packet(&header), self.pairs[number].hash);
            if end == End::Server {
                self.pairs[number].departs(now, &header);
            }
            let cargo = Cargo::Tcp { connection: number, header: Box::new(header) };
            match end {
                End::Server => {
                    let packet = self.packet(SERVER, GATEWAY, len, hash, cargo);
                    self.send_wire(packet);
                }
                End::Station if proxied => {
                    let packet = self.packet(GATEWAY, SERVER, len, hash, cargo);
                    self.send_wire(packet);
                }
                End::Station => {
                    let node = self.pairs[number].node;
                    let packet = self.packet(node, self.access_points.of(node), len, hash, cargo);
                    self.send_hop(packet);
                }
            }
        }
        let next = self.pairs[number].end(end).next_timeout();
        self.agenda.set(self.end_component(number, end), next);
    }

    /// The station's application looks at what has arrived.
    pub(crate) fn arrivals(&mut self, number: usize) {
        let (now, pair) = (self.now, &mut self.pairs[number]);
        let was_complete = pair.is_complete();
        let news = pair.newly_received();
        let (node, opened, app) = (pair.node, pair.opened, pair.app);
        let completed = pair.is_complete() && !was_complete;
        let recorder = &mut self.recorder;
        pair.arrived_whole(|sent| recorder.end_delay(sent, now, node));
        match app {
            App::Bulk { .. } if !news.is_zero() => self.recorder.goodput(now, flow_id(number), node, news),
            App::Fetch { .. } if completed => self.recorder.fetch(opened, now, node),
            _ => {}
        }
        if completed {
            self.pairs[number].station.close();
            if matches!(app, App::Bulk { .. }) {
                self.recorder.bulk_flow_ended(now, flow_id(number));
            }
        }
    }

    // This and the two after it are inlined so that a packet is built where it will lie, not built and then copied.
    #[inline(always)]
    pub(crate) fn packet(&self, src: Node, dst: Node, len: Bytes, flow_hash: u32, payload: Cargo) -> Packet<Cargo> {
        let class = match &payload {
            Cargo::Tcp { connection, .. } => self.pairs[*connection].class,
            Cargo::Probe { source, .. } | Cargo::Udp { source, .. } => self.sources[*source].stream.class,
            _ => AccessClass::BestEffort,
        };
        let ecn = Ecn::NotEct;
        Packet { len, src, dst: Dest::Node(dst), class, flow_hash, ecn, payload }
    }

    #[inline(always)]
    pub(crate) fn send_wire(&mut self, packet: Packet<Cargo>) {
        self.wire.enqueue(self.now, packet, &mut collect(WIRE, &self.access_points, &mut self.effects));
        self.agenda.set(WIRE, self.wire.next_event());
    }

    #[inline(always)]
    pub(crate) fn send_hop(&mut self, packet: Packet<Cargo>) {
        self.hop.enqueue(self.now, packet, &mut collect(HOP, &self.access_points, &mut self.effects));
        self.agenda.set(HOP, self.hop.next_event());
    }

    /// An access point's driver reports.
    fn on_report(&mut self, at: Time, of: Node, report: &HopReport) {
        let Some(place) = self.access_points.nodes.iter().position(|node| *node == of) else { return };
        self.meters[place].add(&mut self.recorder, at, report);
        if let Some(agent) = self.agents.get_mut(place) {
            agent.tick(at, report);
        }
    }

    /// What a bulk sender knows, while it has a connection and something to send.
    fn sample(&mut self, number: usize) {
        let pair = &self.pairs[number];
        if !matches!(pair.app, App::Bulk { .. }) || !pair.server.is_established() || pair.is_complete() {
            return;
        }
        let (at, flow, stats) = (self.now, flow_id(number), pair.server.stats());
        self.recorder.sample(at, Gauge::Cwnd(flow), stats.cwnd.get() as f64);
        self.recorder.sample(at, Gauge::Window(flow), stats.peer_window.get() as f64);
        if let Some(pacing) = pair.server.decision().pacing {
            self.recorder.sample(at, Gauge::Pacing(flow), pacing.as_mbit_f64());
        }
    }

    fn source_component(&self, index: usize) -> Component {
        Component(FIRST_SOURCE + index as u32)
    }

    pub(crate) fn end_component(&self, number: usize, end: End) -> Component {
        let place = 2 * number as u32 + u32::from(end == End::Station);
        Component(self.first_pair() + place)
    }

    /// The component number of the first connection's first end.
    fn first_pair(&self) -> u32 {
        FIRST_SOURCE + self.sources.len() as u32 + self.edge.as_ref().map_or(0, Edge::components)
    }
}

#[inline(always)]
pub(crate) fn collect<'a>(link: Component, access_points: &'a AccessPoints, effects: &'a mut Effects) -> Collect<'a> {
    Collect { link, access_points, effects }
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
