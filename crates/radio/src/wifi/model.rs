//! The hop: ports with their queues, an agenda of events, and the loop that works through it.

use super::air::Air;
use super::background::Source;
use super::contention::Window;
use super::exchange::Exchange;
use super::link::Channel;
use super::medium::{Medium, NONE};
use super::params::Role;
use super::phy::Standard;
use super::plan::{MAX_MSDU, Plan};
use super::rate_control::{Sampler, channel};
use super::session::Session;
use super::timing::{classes as node_classes, contender_of};
use crate::queue::{Meta, Pool, Queue, Table, add_tables};
use crate::{AccessClass, Completion, Dest, Drop, Hop, NextEvent, Outbox, Outcome, Packet};
use lasthop_signals::{HopReport, Node, Signal};
use lasthop_units::{Bytes, Seed, Span, Stream, Time};
use rand::Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An 802.11 channel as a hop.
///
/// A packet's `src` and `dst` must be nodes of one BSS (a station and its access point) or two peers that decode each
/// other; anything else is [`Drop::Unreachable`]. A group packet of an access point or peer goes out once at the lowest
/// basic rate and is delivered to each BSS member or peer that decodes it. One of a station goes to its access point,
/// which gets it and sends it out again to its other stations, unless [`super::Params::client_isolation`] is on: the packet
/// keeps its source, and its time of queueing is that at the access point.
/// Payloads are cloned only for group packets.
#[derive(Clone, Debug)]
pub struct Wifi<P> {
    pub(super) plan: Plan,
    pub(super) medium: Medium,
    /// Contenders a node.
    pub(super) classes: usize,
    pub(super) ports: Vec<Port>,
    /// One a contender, like `exchanges`.
    pub(super) queues: Vec<Queue>,
    pub(super) exchanges: Vec<Exchange>,
    pub(super) sessions: Vec<Session>,
    pub(super) peers: Vec<Peer>,
    pub(super) pool: Pool,
    /// Flow tables of the queues that have them.
    pub(super) tables: Vec<Table>,
    /// By the pool's numbers. Empty once delivered, and for background packets.
    pub(super) payloads: Vec<Option<P>>,
    /// By the pool's numbers: the next packet of an A-MSDU, `NIL` at its end.
    pub(super) joined: Vec<u32>,
    pub(super) sources: Vec<Source>,
    /// Sources with a queue that must never run empty, by contender.
    pub(super) saturated: Vec<Vec<u16>>,
    agenda: BinaryHeap<Reverse<Entry>>,
    scheduled: u64,
    pub(super) arrivals: u64,
    pub(super) ampdus: u32,
    /// By link ([`Plan::link`]): its noise.
    pub(super) errors: Vec<Noise>,
    /// By link: its radio conditions.
    pub(super) channels: Vec<Option<Box<Channel>>>,
    /// By link: the position in its rate trace.
    steps: Vec<usize>,
    /// Per node: noise on what it overhears of others' frames.
    pub(super) ears: Vec<Noise>,
    /// Per peer: the rate control of what is sent to it.
    pub(super) samplers: Vec<Option<Sampler>>,
    next: Time,
    /// Reused lists.
    pub(super) victims: Vec<u32>,
    pub(super) overheard: Vec<u16>,
    winners: Vec<u16>,
    losers: Vec<u16>,
    /// Nodes with drivers that report.
    pub(super) reporters: Vec<u16>,
    pub(super) report: Signal,
}

/// A node's place in the tables.
#[derive(Clone, Debug)]
pub(super) struct Port {
    /// Its receivers by slot. The slot after the last is for group packets.
    pub receivers: Vec<u16>,
    /// Slot by node, `NONE` for nodes that it has no link to.
    slots: Vec<u16>,
    /// Its first session; a class has one a slot.
    first_session: usize,
    /// Its first peer; there is one a slot.
    pub first_peer: usize,
    /// Most MPDUs in an A-MPDU; 1 without a BlockAck agreement.
    pub most_mpdus: u16,
    /// Most packets in an MPDU, and the longest MPDU that holds more than one.
    pub most_packets: u16,
    pub longest_mpdu: u32,
    /// Its contender of highest priority, which beacons use, counted within the node.
    top: usize,
    /// Data PSDUs longer than this are announced by RTS.
    pub rts_threshold: u32,
    pub beacon_due: bool,
}

/// What a node's driver counts for each of its receivers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Peer {
    pub queue_drops: u64,
    pub tx_attempts: u64,
    pub tx_retries: u64,
    pub tx_failed: u64,
    pub tx_packets: u64,
    pub tx_bytes: u64,
    pub rx_packets: u64,
    pub rx_bytes: u64,
    pub tx_airtime: Span,
    pub rx_airtime: Span,
    pub tx_ppdus: u64,
}

/// Random MPDU losses of a link.
#[derive(Clone, Debug)]
pub(super) struct Noise {
    /// An MPDU is lost if 32 random bits are below this.
    pub threshold: u64,
    pub stream: Stream,
}

impl Noise {
    #[inline]
    pub fn strikes(&mut self) -> bool {
        self.threshold > 0 && u64::from(self.stream.next_u32()) < self.threshold
    }

    /// True with a probability of `1 - success`.
    #[inline]
    pub fn misses(&mut self, success: f64) -> bool {
        success < 1.0 && f64::from(self.stream.next_u32()) >= success * 4_294_967_296.0
    }
}

/// What will happen. The order of the variants is the order at equal times, with the winning of the channel between
/// `Report` and `Respond`: whoever wins at the very moment an answer begins cannot have sensed it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Event {
    /// A PPDU ends.
    FlightEnd(u16),
    /// A contender's answer has not come.
    Timeout(u16),
    /// An access point's target beacon transmission time.
    Beacon(u16),
    /// A background source acts.
    Source(u16),
    /// Drivers report.
    Report,
    /// An RTS that a node overheard may have come to nothing.
    RtsExpires(u16),
    /// ns-3: a PPDU is sensed.
    Sensed(u16),
    /// The receiver of a contender's frame answers.
    Respond(u16),
    /// A contender goes on within its transmission opportunity: with the data after CTS, or with the next frame.
    GoOn(u16),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Entry {
    at: Time,
    /// Kind, then order of scheduling: the total order of simultaneous events.
    rank: u64,
    event: Event,
}

impl<P: Clone> Wifi<P> {
    /// A hop at rest. Equal plans and seeds behave equally.
    pub fn new(plan: Plan, seed: Seed) -> Wifi<P> {
        let params = plan.params();
        let count = params.nodes.len();
        let classes = plan.classes();
        let (mut sessions, mut peers) = (0, 0);
        let mut ports = Vec::with_capacity(count);
        let mut queues = Vec::with_capacity(count * classes);
        let mut tables = Vec::new();
        for node in 0..count {
            let receivers: Vec<usize> = (0..count).filter(|&to| plan.linked(node, to)).collect();
            let mut slots = vec![NONE; count];
            receivers.iter().enumerate().for_each(|(slot, &to)| slots[to] = narrow(slot));
            let kind = plan.queue(node);
            let lanes = receivers.len() + 1;
            let vht = matches!(plan.phy(node).standard, Standard::Dot11ac | Standard::Dot11ax(_));
            add_tables(&kind, lanes, classes, vht, &mut tables);
            queues.extend((0..classes).map(|class| Queue::new(&kind, lanes, (class, classes), &tables)));
            let receivers = receivers.into_iter().map(narrow).collect();
            ports.push(Port {
                receivers,
                slots,
                first_session: sessions,
                first_peer: peers,
                most_mpdus: plan.max_ampdu(node),
                most_packets: plan.amsdu(node).0,
                longest_mpdu: plan.amsdu(node).1,
                top: node_classes(plan.phy(node).standard) - 1,
                rts_threshold: params.nodes[node]
                    .rts_threshold
                    .map_or(u32::MAX, |threshold| u32::try_from(threshold.get()).unwrap_or(u32::MAX)),
                beacon_due: false,
            });
            sessions += lanes * classes;
            peers += lanes;
        }
        let conditions = plan.conditions();
        let noise = |place: usize, of: &str| Noise {
            // 0 to 2^32, so that 1.0 strikes always.
            threshold: (conditions[place].mpdu_error * 4_294_967_296.0).round() as u64,
            stream: seed.stream(&format!("{}/{of}", conditions[place].name)),
        };
        let mut wifi = Wifi {
            classes,
            medium: Medium::new(&plan, seed),
            ports,
            queues,
            exchanges: vec![Exchange::default(); count * classes],
            sessions: (0..sessions).map(|_| Session::default()).collect(),
            peers: vec![Peer::default(); peers],
            pool: Pool::new(),
            tables,
            payloads: Vec::new(),
            joined: Vec::new(),
            sources: Vec::new(),
            saturated: vec![Vec::new(); count * classes],
            agenda: BinaryHeap::with_capacity(64),
            scheduled: 0,
            arrivals: 0,
            ampdus: 0,
            errors: (0..conditions.len()).map(|link| noise(link, "error")).collect(),
            ears: (0..count).map(|node| noise(node, "overheard")).collect(),
            channels: (0..conditions.len()).map(|link| channel(&plan, link, seed)).collect(),
            steps: vec![0; conditions.len()],
            samplers: Vec::new(),
            next: Time::ZERO,
            victims: Vec::new(),
            overheard: Vec::new(),
            winners: Vec::new(),
            losers: Vec::with_capacity(count),
            reporters: Vec::new(),
            report: Signal::Hop(HopReport::default()),
            plan,
        };
        wifi.start_samplers(seed);
        wifi.start(seed);
        wifi
    }

    fn start(&mut self, seed: Seed) {
        let aps: Vec<usize> = (0..self.ports.len()).filter(|&node| self.is_ap(node)).collect();
        if let Some(beacons) = self.plan.params().beacons {
            for (index, &ap) in aps.iter().enumerate() {
                // Access points on one channel come up at different times: their beacons are spread evenly.
                let offset = beacons.interval * (index as u64 + 1) / (aps.len() as u64 + 1);
                self.schedule(Time::ZERO + offset, Event::Beacon(narrow(ap)));
            }
        }
        self.reporters = (0..self.ports.len()).filter(|&node| self.plan.reports(node)).map(narrow).collect();
        if !self.reporters.is_empty() {
            self.schedule(Time::ZERO + self.plan.params().driver_interval, Event::Report);
        }
        self.start_sources(seed);
        self.find_next();
    }

    pub(super) fn is_ap(&self, node: usize) -> bool {
        self.plan.params().nodes[node].role == Role::Ap
    }

    /// What the hop was built from.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Packets inside the hop on their way from `from` to `to`: queued, on the air, or held back by the receiver for
    /// the sake of order. Background packets included.
    pub fn backlog(&self, from: Node, to: Node) -> usize {
        let Some(port) = self.ports.get(from.index()) else { return 0 };
        let slot = match port.slots.get(to.index()) {
            Some(&slot) if slot != NONE => usize::from(slot),
            _ => return 0,
        };
        let classes = self.classes;
        let held = |class: usize| {
            let queued = self.queues[from.index() * classes + class].backlog(&self.tables, slot).0;
            let session = &self.sessions[self.session(from.index(), class, slot)];
            let inside = session.window.iter().skip(session.released).filter(|entry| entry.got || !entry.dead);
            queued + inside.map(|entry| usize::from(entry.packets)).sum::<usize>()
        };
        (0..classes).map(held).sum()
    }

    /// Which contender of `node` sends a class: without EDCA its only one.
    #[inline]
    pub(super) fn contender(&self, node: usize, class: AccessClass) -> usize {
        node * self.classes + contender_of(class).min(self.ports[node].top)
    }

    /// The contender that sends a node's beacons: management frames use AC_VO (10.2.3.2).
    pub(super) fn beacon_contender(&self, node: usize) -> usize {
        node * self.classes + self.ports[node].top
    }

    #[inline]
    pub(super) fn session(&self, node: usize, class: usize, slot: usize) -> usize {
        let port = &self.ports[node];
        port.first_session + class * (port.receivers.len() + 1) + slot
    }

    /// The slot in which `node` keeps what is for `to`.
    #[inline]
    pub(super) fn slot(&self, node: usize, to: usize) -> usize {
        usize::from(self.ports[node].slots[to])
    }

    /// The mode of data frames on a link now, as an index: a step of its trace.
    pub(super) fn step(&mut self, link: usize, now: Time) -> u16 {
        let trace = self.plan.trace(link);
        let step = &mut self.steps[link];
        while trace.get(*step + 1).is_some_and(|next| next.0 <= now) {
            *step += 1;
        }
        trace[*step].1
    }

    // --- agenda ---

    pub(super) fn schedule(&mut self, at: Time, event: Event) {
        let kind = match event {
            Event::FlightEnd(_) => 0,
            Event::Timeout(_) => 1,
            Event::Beacon(_) => 2,
            Event::Source(_) => 3,
            Event::Report => 4,
            Event::RtsExpires(_) | Event::Sensed(_) => 5,
            Event::Respond(_) => RESPOND,
            Event::GoOn(_) => RESPOND + 1,
        };
        self.agenda.push(Reverse(Entry { at, rank: kind << 56 | self.scheduled, event }));
        self.scheduled += 1;
    }

    fn find_next(&mut self) {
        let event = self.agenda.peek().map_or(Time::MAX, |Reverse(entry)| entry.at);
        self.next = event.min(self.medium.next_access());
    }

    fn run(&mut self, now: Time, out: &mut impl Air<P>) {
        loop {
            let access = self.medium.next_access();
            let first = self.agenda.peek().map(|Reverse(entry)| *entry);
            match first {
                Some(entry) if entry.at < access || (entry.at == access && entry.rank >> 56 < RESPOND) => {
                    if entry.at > now {
                        break;
                    }
                    self.agenda.pop();
                    self.handle(entry.at, entry.event, out);
                }
                _ if access > now => break,
                _ => self.grant(access),
            }
        }
        self.find_next();
    }

    fn handle(&mut self, now: Time, event: Event, out: &mut impl Air<P>) {
        match event {
            Event::FlightEnd(flight) => self.flight_end(now, flight, out),
            Event::Timeout(contender) => {
                self.medium.timed_out(contender, now);
                self.finish(now, contender, false, out);
            }
            Event::Beacon(ap) => self.beacon_due(now, ap),
            Event::Source(source) => self.source_acts(now, source, out),
            Event::Report => self.report(now, out),
            Event::RtsExpires(node) => self.medium.expire_rts(node, now),
            Event::Sensed(flight) => self.medium.sense(flight, now),
            Event::Respond(contender) => self.respond(now, contender),
            Event::GoOn(contender) => self.go_on(now, contender),
        }
    }

    fn beacon_due(&mut self, now: Time, ap: u16) {
        let Some(beacons) = self.plan.params().beacons else { return };
        self.schedule(now + beacons.interval, Event::Beacon(ap));
        self.ports[usize::from(ap)].beacon_due = true;
        let contender = self.beacon_contender(usize::from(ap));
        self.medium.awake(narrow(contender), now);
    }

    /// Contenders with a backoff that ends at `now` send.
    fn grant(&mut self, now: Time) {
        let (mut winners, mut losers) = (std::mem::take(&mut self.winners), std::mem::take(&mut self.losers));
        self.medium.winners(now, &mut winners, &mut losers);
        for &contender in &winners {
            self.take_turn(now, contender);
        }
        // A collision inside a node counts like one on the air (10.23.2.4), but no frame is given up for it.
        let limit = self.plan.params().retry_limit;
        for &contender in &losers {
            let ex = &mut self.exchanges[usize::from(contender)];
            ex.failures += 1;
            let window = if ex.failures >= limit { Window::Reset } else { Window::Double };
            ex.failures %= limit;
            self.medium.back_off(contender, window, now);
        }
        (self.winners, self.losers) = (winners, losers);
    }

    // --- packets ---

    /// Puts a packet into the pool, and its payload beside it.
    #[inline]
    pub(super) fn admit(&mut self, meta: Meta, payload: Option<P>) -> u32 {
        let id = self.pool.insert(meta);
        match self.payloads.get_mut(id as usize) {
            Some(place) => *place = payload,
            None => {
                self.payloads.push(payload);
                self.joined.push(NIL);
            }
        }
        id
    }

    /// Makes the packet whole again that went in under this number.
    #[inline]
    pub(super) fn packet(meta: &Meta, payload: P) -> Packet<P> {
        Packet {
            len: Bytes::new(u64::from(meta.len)),
            src: Node(meta.src),
            dst: if meta.dst == NONE { Dest::Group } else { Dest::Node(Node(meta.dst)) },
            class: meta.class,
            flow_hash: meta.flow_hash,
            ecn: meta.ecn,
            payload,
        }
    }

    /// Drops a packet that never left the queue.
    pub(super) fn drop_queued(&mut self, at: Time, peer: usize, id: u32, why: Drop, out: &mut impl Outbox<P>) {
        self.peers[peer].queue_drops += 1;
        if let Some(payload) = self.payloads[id as usize].take() {
            out.dropped(at, Self::packet(self.pool.get(id), payload), why);
        }
        self.pool.remove(id);
    }

    /// Drops what a queue gave up for the sake of others.
    pub(super) fn drop_victims(&mut self, at: Time, node: usize, why: Drop, out: &mut impl Outbox<P>) {
        for i in 0..self.victims.len() {
            let id = self.victims[i];
            let to = self.pool.get(id).dst;
            let slot = if to == NONE { self.group_slot(node) } else { self.slot(node, usize::from(to)) };
            let peer = self.ports[node].first_peer + slot;
            self.drop_queued(at, peer, id, why, out);
        }
        self.victims.clear();
    }

    /// The slot of a node's group packets. A station's are addressed to its access point, which sends them out
    /// (9.3.2.1.2).
    fn group_slot(&self, node: usize) -> usize {
        let is_station = matches!(self.plan.params().nodes[node].role, Role::Station { .. });
        if is_station { 0 } else { self.ports[node].receivers.len() }
    }

    /// An access point has received a group packet of one of its stations and sends it out again.
    #[cold]
    #[inline(never)]
    pub(super) fn relay(&mut self, now: Time, ap: u16, packet: &Meta, payload: P, out: &mut impl Outbox<P>) {
        let node = usize::from(ap);
        let Meta { len, flow_hash, src, dst, class, ecn, .. } = *packet;
        let (contender, slot) = (self.contender(node, class), self.group_slot(node));
        let id = self.admit(Meta::new(self.arrivals, now, len, flow_hash, src, dst, class, ecn), Some(payload));
        self.arrivals += 1;
        self.take_in(now, node, contender, slot, id, out);
    }

    /// Offers a packet of the pool to its queue; false if that is full.
    #[inline]
    pub(super) fn take_in(
        &mut self,
        now: Time,
        node: usize,
        contender: usize,
        slot: usize,
        id: u32,
        out: &mut impl Outbox<P>,
    ) -> bool {
        let taken = self.queues[contender].push(&mut self.pool, &mut self.tables, slot, id, &mut self.victims);
        if !taken {
            let peer = self.ports[node].first_peer + slot;
            self.drop_queued(now, peer, id, Drop::QueueFull, out);
            return false;
        }
        if !self.victims.is_empty() {
            self.drop_victims(now, node, Drop::QueueFull, out);
        }
        self.hand_over(now, contender, out);
        self.medium.awake(narrow(contender), now);
        true
    }

    /// Where a packet goes: its source, contender and slot.
    #[inline]
    fn route(&self, packet: &Packet<P>) -> Option<(usize, usize, usize)> {
        let src = packet.src.index();
        let port = self.ports.get(src)?;
        let slot = match packet.dst {
            Dest::Group => self.group_slot(src),
            Dest::Node(to) => match *port.slots.get(to.index())? {
                NONE => return None,
                slot => usize::from(slot),
            },
        };
        let contender = self.contender(src, packet.class);
        (packet.len.get() <= MAX_MSDU).then_some((src, contender, slot))
    }
}

impl<P: Clone, O: Air<P>> Hop<P, O> for Wifi<P> {
    fn enqueue(&mut self, now: Time, packet: Packet<P>, out: &mut O) {
        if self.next <= now {
            self.run(now, out);
        }
        let Some((src, contender, slot)) = self.route(&packet) else {
            return out.dropped(now, packet, Drop::Unreachable);
        };
        let Packet { len, dst, class, flow_hash, ecn, payload, .. } = packet;
        let dst = match dst {
            Dest::Node(to) => to.0,
            Dest::Group => NONE,
        };
        let len = len.get() as u32;
        let meta = Meta::new(self.arrivals, now, len, flow_hash, narrow(src), dst, class, ecn);
        self.arrivals += 1;
        let id = self.admit(meta, Some(payload));
        if !self.take_in(now, src, contender, slot, id, out) {
            return;
        }
        self.next = self.next.min(self.medium.next_access());
    }

    fn advance(&mut self, now: Time, out: &mut O) {
        if self.next <= now {
            self.run(now, out);
        }
    }
}

impl<P> NextEvent for Wifi<P> {
    fn next_event(&self) -> Option<Time> {
        (self.next != Time::MAX).then_some(self.next)
    }
}

/// What a transmitter has to say of a packet that it is done with, if contention for its frame began at `head`.
pub(super) fn completion(meta: &Meta, from: u16, head: Time, outcome: Outcome) -> Completion {
    let Meta { queued_at, len, flow_hash, dst, class, .. } = *meta;
    Completion {
        from: Node(from),
        dst: if dst == NONE { Dest::Group } else { Dest::Node(Node(dst)) },
        len: Bytes::new(u64::from(len)),
        class,
        flow_hash,
        queued_at,
        head_at: head.max(queued_at),
        outcome,
    }
}

/// "No packet": the end of an A-MSDU.
pub(super) const NIL: u32 = u32::MAX;

/// Kind of `Event::Respond` in the order of simultaneous events; kinds below come before the winning of the channel.
const RESPOND: u64 = 6;

/// Table indices fit: at most 1024 nodes, 4 contenders each.
pub(super) fn narrow(index: usize) -> u16 {
    debug_assert!(index < usize::from(NONE));
    index as u16
}
