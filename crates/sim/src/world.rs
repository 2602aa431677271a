//! One simulated world: a server, a wire, an access point, a hop and its stations.
//!
//! The agenda says which component acts next. What it produces (deliveries, driver reports) waits in `effects` and is handled
//! one after the other before time moves on, so no component is ever called from within another.

use crate::access_point::Agent;
use crate::agenda::{Agenda, Component};
use crate::cargo::{Cargo, tcp_packet, udp_packet};
use crate::connection::{App, End, Pair};
use crate::hop::LastHop;
use crate::source::Source;
use lasthop_radio::wired::Wire;
use lasthop_radio::{AccessClass, Dest, Drop, Ecn, Hop, Outbox, Packet, RxInfo};
use lasthop_report::{Gauge, HopMeter, Recorder, Segments};
use lasthop_scenario::{Scenario, StreamKind};
use lasthop_signals::{FlowId, HopReport, Node, Signal};
use lasthop_units::{Bytes, Seed, Span, Time};
use std::collections::VecDeque;

/// The server's and the access point's ends of the wire.
pub const SERVER: Node = Node(0);
/// The access point on the wire.
pub const GATEWAY: Node = Node(1);
/// The access point on the hop; stations are the nodes after it.
const ACCESS_POINT: Node = Scenario::AP;

const WIRE: Component = Component(0);
const HOP: Component = Component(1);
/// Looks at the bulk senders.
const SAMPLER: Component = Component(2);
const FIRST_SOURCE: u32 = 3;

/// Time between two looks at the bulk senders, as in the lab.
const SAMPLE: Span = Span::from_millis(10);

/// Everything there is.
pub struct World {
    now: Time,
    agenda: Agenda,
    wire: Wire<Cargo>,
    hop: LastHop,
    agent: Option<Agent>,
    meter: HopMeter,
    sources: Vec<Source>,
    pairs: Vec<Pair>,
    law: &'static str,
    seed: Seed,
    effects: Effects,
    recorder: Recorder,
}

/// What components have produced and nobody has handled yet.
#[derive(Default)]
struct Effects(VecDeque<Effect>);

enum Effect {
    Arrived { at: Time, link: Component, to: Node, packet: Packet<Cargo>, queued_at: Time },
    Reported { at: Time, report: HopReport },
    Lost { cargo: Cargo },
}

/// Collects what one link produces.
struct Collect<'a> {
    link: Component,
    effects: &'a mut Effects,
}

impl Outbox<Cargo> for Collect<'_> {
    fn deliver(&mut self, at: Time, to: Node, packet: Packet<Cargo>, rx: &RxInfo) {
        self.effects.0.push_back(Effect::Arrived { at, link: self.link, to, packet, queued_at: rx.queued_at });
    }

    fn dropped(&mut self, _at: Time, packet: Packet<Cargo>, _why: Drop) {
        self.effects.0.push_back(Effect::Lost { cargo: packet.payload });
    }

    fn driver(&mut self, at: Time, of: Node, signal: &Signal) {
        if let (ACCESS_POINT, Signal::Hop(report)) = (of, signal) {
            self.effects.0.push_back(Effect::Reported { at, report: report.clone() });
        }
    }
}

/// What a world is made of.
pub struct Parts {
    /// From [`SERVER`] to [`GATEWAY`].
    pub wire: Wire<Cargo>,
    /// The last hop.
    pub hop: LastHop,
    /// The agent on the access point.
    pub agent: Option<Agent>,
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
        let Parts { wire, hop, agent, sources, law, seed, recorder } = parts;
        let meter = HopMeter::new(matches!(hop, LastHop::Wifi(_)));
        let mut world = World {
            now: Time::ZERO,
            agenda: Agenda::default(),
            wire,
            hop,
            agent,
            meter,
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
    }

    fn wake(&mut self, component: Component) {
        match component {
            WIRE => {
                self.wire.advance(self.now, &mut Collect { link: WIRE, effects: &mut self.effects });
                self.agenda.set(WIRE, self.wire.next_event());
            }
            HOP => {
                self.hop.advance(self.now, &mut Collect { link: HOP, effects: &mut self.effects });
                self.agenda.set(HOP, self.hop.next_event());
            }
            SAMPLER => {
                (0..self.pairs.len()).for_each(|number| self.sample(number));
                self.agenda.set(SAMPLER, Some(self.now + SAMPLE));
            }
            Component(number) => match self.sources.get((number - FIRST_SOURCE) as usize) {
                Some(_) => self.start((number - FIRST_SOURCE) as usize),
                None => {
                    let place = number as usize - FIRST_SOURCE as usize - self.sources.len();
                    let end = if place.is_multiple_of(2) { End::Server } else { End::Station };
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
                Effect::Reported { at, report } => self.on_report(at, &report),
                Effect::Lost { cargo: Cargo::Probe { source, sent } } => {
                    self.recorder.probe_lost(sent, Scenario::station_node(self.sources[source].stream.station));
                }
                // TCP finds out by itself.
                Effect::Lost { .. } => {}
                Effect::Arrived { at, link: WIRE, to: GATEWAY, packet, .. } => self.forward_down(at, packet),
                Effect::Arrived { at, link: HOP, to: ACCESS_POINT, packet, .. } => self.forward_up(at, packet),
                Effect::Arrived { at, link: WIRE, packet, .. } => self.receive(at, End::Server, packet),
                Effect::Arrived { at, to, packet, queued_at, .. } => {
                    self.recorder.hop_delivery(at, queued_at, to, packet.len);
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
            StreamKind::Bulk { size, .. } => self.open(node, App::Bulk { size }),
            StreamKind::Fetch { size, .. } => self.open(node, App::Fetch { size }),
        }
    }

    fn open(&mut self, node: Node, app: App) {
        let number = self.pairs.len();
        let pair = Pair::open(self.now, number, node, app, self.law, self.seed);
        self.pairs.push(pair.expect("the scenario names a law that exists"));
        if matches!(app, App::Bulk { .. }) {
            self.recorder.bulk_flow(self.now, flow_id(number), node, &format!("bulk {number}"));
        }
        self.pump(number, End::Station);
    }

    /// A packet has come over the wire to the access point.
    fn forward_down(&mut self, at: Time, mut packet: Packet<Cargo>) {
        let node = match &packet.payload {
            Cargo::Tcp { connection, header } => {
                let pair = &self.pairs[*connection];
                if let Some(agent) = &mut self.agent {
                    agent.downlink(at, pair.key, pair.node, header);
                }
                pair.node
            }
            Cargo::Probe { source, .. } => Scenario::station_node(self.sources[*source].stream.station),
        };
        (packet.src, packet.dst) = (ACCESS_POINT, Dest::Node(node));
        self.send_hop(packet);
    }

    /// A packet has come over the hop to the access point.
    fn forward_up(&mut self, at: Time, mut packet: Packet<Cargo>) {
        if let (Some(agent), Cargo::Tcp { connection, header }) = (&mut self.agent, &mut packet.payload) {
            let pair = &self.pairs[*connection];
            agent.uplink(at, pair.key.reversed(), pair.node, header);
        }
        (packet.src, packet.dst) = (GATEWAY, Dest::Node(SERVER));
        self.send_wire(packet);
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
        }
    }

    /// Lets the applications of a connection act, sends what one end has to send and notes when it wants to be woken.
    fn pump(&mut self, number: usize, end: End) {
        let (now, pair) = (self.now, &mut self.pairs[number]);
        match end {
            End::Server => pair.serve(),
            End::Station => {
                let was_complete = pair.is_complete();
                let news = pair.newly_received();
                let (node, opened, app) = (pair.node, pair.opened, pair.app);
                let completed = pair.is_complete() && !was_complete;
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
        }
        while let Some(header) = self.pairs[number].end(end).poll_transmit(now) {
            let (len, hash) = (tcp_packet(&header), self.pairs[number].key.hash());
            let cargo = Cargo::Tcp { connection: number, header };
            match end {
                End::Server => {
                    let packet = self.packet(SERVER, GATEWAY, len, hash, cargo);
                    self.send_wire(packet);
                }
                End::Station => {
                    let packet = self.packet(self.pairs[number].node, ACCESS_POINT, len, hash, cargo);
                    self.send_hop(packet);
                }
            }
        }
        let next = self.pairs[number].end(end).next_timeout();
        self.agenda.set(self.end_component(number, end), next);
    }

    fn packet(&self, src: Node, dst: Node, len: Bytes, flow_hash: u32, payload: Cargo) -> Packet<Cargo> {
        let (class, ecn) = (AccessClass::BestEffort, Ecn::NotEct);
        Packet { len, src, dst: Dest::Node(dst), class, flow_hash, ecn, payload }
    }

    fn send_wire(&mut self, packet: Packet<Cargo>) {
        self.wire.enqueue(self.now, packet, &mut Collect { link: WIRE, effects: &mut self.effects });
        self.agenda.set(WIRE, self.wire.next_event());
    }

    fn send_hop(&mut self, packet: Packet<Cargo>) {
        self.hop.enqueue(self.now, packet, &mut Collect { link: HOP, effects: &mut self.effects });
        self.agenda.set(HOP, self.hop.next_event());
    }

    /// The access point's driver reports.
    fn on_report(&mut self, at: Time, report: &HopReport) {
        self.meter.add(&mut self.recorder, at, report);
        if let Some(agent) = &mut self.agent {
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

    fn end_component(&self, number: usize, end: End) -> Component {
        let place = 2 * number as u32 + u32::from(end == End::Station);
        Component(FIRST_SOURCE + self.sources.len() as u32 + place)
    }
}

fn flow_id(number: usize) -> FlowId {
    FlowId(number as u32)
}
