//! The cell itself: what happens at the end of each subframe.
//! Source:     3GPP TS 36.300 sections 5 and 11 (downlink transmission, scheduling), 36.211 section 4 (subframes of 1 ms).
//! Equations:  delay of a packet without a queue = what is left of its subframe + `lead` ms + 1 ms
//! Deviations: the uplink is a line of its own for each station, which shares nothing (3GPP TR 25.913 for its delay); it takes no
//!             grants. Propagation takes no time. No discontinuous reception, no system information; control
//!             channels are not part of a subframe's PRBs. A CQI decides the scheme of blocks and no more: one that falls damages
//!             none of those that are on their way.
//! Validity:   FDD, at most 110 PRBs a carrier; terminals keep still, apart from the quality and the handovers that they are given.
//! Checked by: tests/integration/cell.rs against reference data S5 and ns-3's own tests, crates/sim/tests/integration/cell.rs against reference data S7

use super::background::{Act, Source};
use super::carriers::{Carriers, Rule};
use super::decoder::Decoder;
use super::handover::{self, Course};
use super::harq::{Assignment, Harq, MOST_REPEATS, Sent};
use super::mcs::{Mcs, Tables};
use super::numbers::{BASE, CONTROL_PRB, RNTIS, SUBFRAME, at, rnti};
use super::params::{Background, Params, Plan, Scheduler};
use super::rlc::HandedUp;
use super::scheduler::{Average, Candidate, Room, Turns};
use super::station::Step;
use super::terminal::{Make, Terminal};
use crate::wired::Wire;
use crate::{Completion, Dest, Drop, Hop, NextEvent, Outbox, Outcome, Packet, RxInfo};
use lasthop_signals::{Node, Rnti};
use lasthop_units::{Bytes, Rate, Seed, Time};

/// An LTE cell: node 0 is the base station, nodes 1 and on are stations.
#[derive(Clone, Debug)]
pub struct Cell<P> {
    pub(super) params: Params,
    pub(super) rule: Rule,
    /// The stations, then the terminals of the background.
    pub(super) terminals: Vec<Terminal<P>>,
    pub(super) carriers: Vec<Carrier>,
    sources: Vec<Source>,
    /// Of each station, node 0 at its far end.
    uplinks: Vec<Wire<P>>,
    /// The RNTI of the next terminal that comes for one block, and the first of them.
    fresh: u16,
    first_fresh: u16,
    /// The first boundary that has not been passed: boundary n is the beginning of subframe n.
    next: u64,
    scratch: Scratch,
}

/// One carrier at work.
#[derive(Clone, Debug)]
pub(super) struct Carrier {
    pub(super) prb: u8,
    pub(super) harq: Harq,
    turns: Turns,
    /// Qualities of terminals that wait for their block of signalling.
    signals: Vec<Mcs>,
}

/// Kept from subframe to subframe for their memory only.
#[derive(Clone, Debug, Default)]
struct Scratch {
    candidates: Vec<Candidate>,
    given: Vec<(u16, u8)>,
    /// Which terminals have an assignment already.
    served: Vec<bool>,
}

impl<P> Cell<P> {
    /// A cell at its beginning.
    pub fn new(plan: Plan, seed: Seed) -> Cell<P> {
        let params = plan.params().clone();
        let count = params.carriers.len();
        let mut terminals: Vec<Terminal<P>> = Vec::new();
        let data = params.background.iter().filter(|background| matches!(background, Background::Data { .. }));
        // Numbers of terminals that stay, of those that have changed their cell, and of those that come for one block.
        let mut numbers = params.stations.len() + data.count();
        for (place, station) in params.stations.iter().enumerate() {
            let make = Make {
                node: Some(node(place)),
                rnti: rnti(place),
                decoder: station.decodes.then(|| Decoder::new(station.decoder, place, seed)),
                course: Course::new(&station.handovers, &mut numbers),
                channel: station.channel.clone(),
                tables: station.tables,
                layers: station.layers,
                carriers: Carriers::new(usize::from(station.primary), usize::from(station.carriers), count),
                draws: seed.stream(&format!("cell/station{place}/blocks")),
            };
            terminals.push(Terminal::new(make, count));
        }
        let mut sources = Vec::new();
        for (index, background) in params.background.iter().enumerate() {
            sources.push(Source::new(*background, index, terminals.len(), seed));
            let Background::Data { carrier, cqi, errors, layers, tables, .. } = *background else { continue };
            let make = Make {
                node: None,
                rnti: rnti(terminals.len()),
                decoder: None,
                course: Course::default(),
                channel: vec![Step { at: Time::ZERO, cqi, errors }],
                tables,
                layers,
                carriers: Carriers::new(usize::from(carrier), 1, count),
                draws: seed.stream(&format!("cell/background{index}/blocks")),
            };
            terminals.push(Terminal::new(make, count));
        }
        let carrier = |prb: &u8| Carrier {
            prb: *prb,
            harq: Harq::default(),
            turns: Turns::new(params.scheduler, params.use_remainder),
            signals: Vec::new(),
        };
        let uplinks = params.stations.iter().enumerate().map(|(n, station)| {
            let impairments = handover::uplink(&station.handovers, station.uplink.rate);
            let wire = Wire::new(node(n), BASE, station.uplink, station.uplink);
            wire.impaired(&impairments, seed, &format!("cell/station{n}/uplink"))
        });
        let fresh = rnti(numbers).0;
        Cell {
            rule: Rule::new(&params.aggregation),
            carriers: params.carriers.iter().map(carrier).collect(),
            sources,
            uplinks: uplinks.collect(),
            fresh,
            first_fresh: fresh,
            next: 0,
            scratch: Scratch { served: vec![false; terminals.len()], ..Scratch::default() },
            terminals,
            params,
        }
    }

    /// Packets and bytes that wait at the base station for a station, what is on the air not included; zero for any other node. A
    /// byte of PDCP counts as any other.
    pub fn backlog(&self, station: Node) -> (usize, Bytes) {
        let rlc = self.station(station).map(|terminal| &terminal.rlc);
        rlc.map_or((0, Bytes::ZERO), |rlc| (rlc.packets(), Bytes::new(rlc.waiting())))
    }

    /// When the oldest of those packets was enqueued.
    pub fn oldest(&self, station: Node) -> Option<Time> {
        self.station(station)?.rlc.oldest()
    }

    /// Octets of packets that a station has decoded, PDCP's headers included, whether they are complete and in order or not; zero for any other
    /// node.
    pub fn decoded(&self, station: Node) -> Bytes {
        self.station(station).map_or(Bytes::ZERO, |terminal| Bytes::new(terminal.rlc.decoded()))
    }

    /// Packets that waited to leave a station when its uplink was last advanced; zero for any other node.
    pub fn uplink_backlog(&self, station: Node) -> usize {
        let uplink = station.index().checked_sub(1).and_then(|place| self.uplinks.get(place));
        uplink.map_or(0, |uplink| uplink.backlog(station))
    }

    /// How many carriers a station has, as of the last subframe.
    pub fn active_carriers(&mut self, station: Node) -> usize {
        let (now, rule) = (self.next.saturating_sub(1), self.rule);
        match station.index().checked_sub(1) {
            Some(place) if place < self.uplinks.len() => self.terminals[place].carriers.active(now, &rule),
            _ => 0,
        }
    }

    fn station(&self, station: Node) -> Option<&Terminal<P>> {
        let place = station.index().checked_sub(1).filter(|place| *place < self.uplinks.len())?;
        self.terminals.get(place)
    }

    /// The next boundary at which something happens.
    fn due(&self) -> Option<u64> {
        let busy = self.params.truth
            || self.carriers.iter().any(|carrier| !carrier.harq.is_empty() || !carrier.signals.is_empty())
            || self.terminals.iter().any(|terminal| terminal.decoder.is_some() || terminal.rlc.waiting() > 0);
        if busy {
            return Some(self.next);
        }
        let acts = self.sources.iter().map(|source| source.next).chain(self.next_handover()).min()?;
        Some(self.next.max(acts.as_nanos().div_ceil(SUBFRAME.as_nanos())))
    }

    fn pass(&mut self, boundary: u64, out: &mut impl Outbox<P>) {
        let now = at(boundary);
        if let Some(over) = boundary.checked_sub(1) {
            self.report(now, over, out);
            (0..self.carriers.len()).for_each(|carrier| self.receive(now, carrier, over, out));
        }
        self.hand_over(boundary);
        self.take_background(now);
        (0..self.carriers.len()).for_each(|carrier| self.decide(boundary, carrier));
        self.next = boundary + 1;
    }

    /// The blocks of a subframe have been on the air.
    fn receive(&mut self, now: Time, carrier: usize, subframe: u64, out: &mut impl Outbox<P>) {
        while let Some(sent) = self.carriers[carrier].harq.landed(subframe) {
            let Some(place) = sent.terminal else { continue };
            let terminal = &mut self.terminals[usize::from(place)];
            let node = terminal.node;
            let mut failed = [None; 2];
            for (block, failed) in sent.blocks.iter().zip(&mut failed) {
                let Some(block) = block else { continue };
                let bits = if terminal.decodes_block(at(subframe), block) {
                    Some(block.bits)
                } else if block.repeats < MOST_REPEATS {
                    *failed = Some(*block);
                    continue;
                } else {
                    None
                };
                terminal.rlc.settle(block.sequence, bits, |up| {
                    if let Some(node) = node {
                        leave(now, node, up, out);
                    }
                });
            }
            if failed.iter().any(Option::is_some) {
                self.carriers[carrier].harq.repeat(sent, failed);
            }
        }
    }

    /// What has come by itself.
    fn take_background(&mut self, now: Time) {
        for source in &mut self.sources {
            while source.next <= now {
                let came = source.next;
                match (source.act(), source.kind()) {
                    (Act::Burst { terminal, octets }, _) => self.terminals[terminal].rlc.push_octets(came, octets),
                    (Act::Signal, Background::Control { carrier, cqi, .. }) => {
                        self.carriers[usize::from(carrier)].signals.extend(Mcs::for_cqi(cqi, Tables::Qam64));
                    }
                    (Act::Signal, Background::Data { .. }) => {}
                }
            }
        }
    }

    /// Decides which terminals are sent what on a carrier `lead` subframes on: repeats first, then signalling, then new blocks.
    fn decide(&mut self, boundary: u64, carrier: usize) {
        let (now, subframe) = (at(boundary), boundary + u64::from(self.params.lead));
        let mut room = Room::new(self.carriers[carrier].prb, self.params.use_remainder);
        self.scratch.served.fill(false);
        while let Some(repeat) = self.carriers[carrier].harq.due(subframe) {
            room.take(repeat.prb);
            if let Some(place) = repeat.terminal {
                self.scratch.served[usize::from(place)] = true;
                self.assign(boundary, carrier, place, repeat.prb, repeat.blocks);
            }
        }
        self.signal(carrier, subframe, &mut room);
        let Carrier { prb, turns, .. } = &mut self.carriers[carrier];
        let Scratch { candidates, given, served } = &mut self.scratch;
        let window = match self.params.scheduler {
            Scheduler::ProportionalFair { window } => Some(window),
            Scheduler::RoundRobin => None,
        };
        candidates.clear();
        for (place, terminal) in self.terminals.iter_mut().enumerate() {
            if terminal.rlc.waiting() == 0 || served[place] || !terminal.carriers.has(carrier, boundary, &self.rule) {
                continue;
            }
            let average = window.map_or(1.0, |window| terminal.averages[carrier].at(boundary, window));
            candidates.extend(terminal.candidate(place, now, *prb, average));
        }
        given.clear();
        turns.allocate(&mut room, candidates, given);
        for n in 0..self.scratch.given.len() {
            let (place, prb) = self.scratch.given[n];
            self.assign(boundary, carrier, place, prb, [None; 2]);
        }
    }

    /// Gives a terminal an assignment: what is repeated, and new blocks in the layers that are left.
    fn assign(&mut self, boundary: u64, carrier: usize, place: u16, prb: u8, mut blocks: [Option<Sent>; 2]) {
        let subframe = boundary + u64::from(self.params.lead);
        let terminal = &mut self.terminals[usize::from(place)];
        terminal.fill(at(boundary), (carrier, subframe), prb, &mut blocks);
        if blocks.iter().all(Option::is_none) {
            return;
        }
        terminal.carriers.give(carrier, boundary, prb, &self.params.carriers, &self.rule);
        let fresh = blocks.iter().flatten().filter(|sent| sent.repeats == 0);
        let bits: u32 = fresh.map(|sent| sent.bits).sum();
        if let (Scheduler::ProportionalFair { window }, 1..) = (self.params.scheduler, bits) {
            terminal.averages[carrier].give(boundary, bits, window);
        }
        let sent = Assignment { subframe, terminal: Some(place), rnti: terminal.rnti, prb, blocks };
        self.carriers[carrier].harq.air.push_back(sent);
    }

    /// Blocks of signalling, one behind the other.
    fn signal(&mut self, carrier: usize, subframe: u64, room: &mut Room) {
        let Carrier { signals, harq, .. } = &mut self.carriers[carrier];
        let fit = signals.len().min(usize::from(room.left() / CONTROL_PRB));
        room.take(fit as u8 * CONTROL_PRB);
        for mcs in signals.drain(..fit) {
            let rnti = Rnti(self.fresh);
            // Those of terminals that stay come before.
            self.fresh = if self.fresh == RNTIS.1 { self.first_fresh } else { self.fresh + 1 };
            let bits = mcs.bits(Tables::Qam64, CONTROL_PRB).unwrap_or(0);
            let sent = Sent { sequence: 0, bits, mcs, tables: Tables::Qam64, new_data: true, repeats: 0 };
            let blocks = [Some(sent), None];
            harq.air.push_back(Assignment { subframe, terminal: None, rnti, prb: CONTROL_PRB, blocks });
        }
    }
}

impl<P: Clone, O: Outbox<P>> Hop<P, O> for Cell<P> {
    fn enqueue(&mut self, now: Time, packet: Packet<P>, out: &mut O) {
        self.advance(now, out);
        let (limit, stations) = (self.params.queue.get(), self.uplinks.len());
        let place = |node: Node| node.index().checked_sub(1).filter(|place| *place < stations);
        match (packet.src, packet.dst) {
            (BASE, Dest::Group) => {
                for terminal in &mut self.terminals[..stations] {
                    terminal.queue(now, packet.clone(), limit, out);
                }
            }
            (BASE, Dest::Node(to)) => match place(to) {
                Some(place) => self.terminals[place].queue(now, packet, limit, out),
                None => out.dropped(now, packet, Drop::Unreachable),
            },
            (from, _) => match place(from) {
                Some(place) => self.uplinks[place].enqueue(now, packet, out),
                None => out.dropped(now, packet, Drop::Unreachable),
            },
        }
    }

    fn advance(&mut self, now: Time, out: &mut O) {
        while let Some(boundary) = self.due().filter(|boundary| at(*boundary) <= now) {
            self.pass(boundary, out);
        }
        // At those that were left out nothing would have happened.
        self.next = self.next.max(now.as_nanos() / SUBFRAME.as_nanos() + 1);
        self.uplinks.iter_mut().for_each(|uplink| uplink.advance(now, out));
    }
}

impl<P> NextEvent for Cell<P> {
    fn next_event(&self) -> Option<Time> {
        let uplinks = self.uplinks.iter().filter_map(NextEvent::next_event);
        uplinks.chain(self.due().map(at)).min()
    }
}

/// A packet leaves the cell at a station.
fn leave<P>(now: Time, node: Node, up: HandedUp<P>, out: &mut impl Outbox<P>) {
    let HandedUp { packet, queued_at, head_at, bits } = up;
    if out.wants_completions() {
        let Packet { len, dst, class, flow_hash, .. } = packet;
        let outcome = if bits.is_some() { Outcome::Acknowledged } else { Outcome::GivenUp };
        out.completed(now, &Completion { from: BASE, dst, len, class, flow_hash, queued_at, head_at, outcome });
    }
    match bits {
        // A block lasts a millisecond.
        Some(bits) => {
            let rx = RxInfo { queued_at, rate: Rate::from_bps(u64::from(bits) * 1000) };
            out.deliver(now, node, packet, &rx);
        }
        None => out.dropped(now, packet, Drop::RetryLimit),
    }
}

impl<P> Cell<P> {
    /// Begins the handovers that are due at a boundary.
    pub(super) fn hand_over(&mut self, boundary: u64) {
        for (place, terminal) in self.terminals.iter_mut().enumerate() {
            let Some(number) = terminal.course.begin(at(boundary)) else { continue };
            terminal.rnti = number;
            terminal.rlc.forward();
            terminal.carriers.release();
            terminal.averages.fill(Average::new());
            for carrier in &mut self.carriers {
                carrier.harq.forget(place as u16);
            }
        }
    }

    /// When the next handover begins.
    pub(super) fn next_handover(&self) -> Option<Time> {
        self.terminals.iter().filter_map(|terminal| terminal.course.next()).min()
    }
}

/// A station, by its place.
fn node(place: usize) -> Node {
    Node(u16::try_from(place + 1).expect("a plan has at most 1023 stations"))
}
