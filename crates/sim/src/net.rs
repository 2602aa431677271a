//! Links and forwarding tables: how a packet gets from one host to the next.
//!
//! Links, hosts and routes are indices into arrays: a packet costs no search. What links produce waits in [`Effects`] until
//! the world handles it, so that no component is called from within another.

use crate::agenda::Component;
use crate::payload::Datagram;
use lasthop_radio::last_hop::Model;
use lasthop_radio::wifi::{Air, PpduKind, PpduRecord};
use lasthop_radio::{Completion, Dest, Drop, Hop, NextEvent, Outbox, Packet, RxInfo};
use lasthop_scenario::graph::{Forwarding, Step};
use lasthop_signals::{HopReport, HostId, Node, Signal};
use lasthop_units::{Bytes, Rate, Span, Time};
use std::collections::VecDeque;

/// A link of the world.
#[derive(Clone)]
pub struct Link {
    /// What carries packets.
    pub model: Model<Datagram>,
    /// The host of each node.
    pub hosts: Vec<Option<HostId>>,
    /// Nodes 1 to this many are stations of a last hop.
    pub stations: usize,
    /// Whether the world is told what its transmitters are done with.
    pub completions: bool,
}

/// All links, and each host's forwarding table.
#[derive(Clone)]
pub struct Net {
    pub(crate) links: Vec<Link>,
    pub(crate) tables: Vec<Forwarding>,
}

/// What links have produced and nobody has handled yet.
#[derive(Clone, Default)]
pub(crate) struct Effects(VecDeque<Effect>);

/// One thing that a link has produced.
#[derive(Clone)]
pub(crate) enum Effect {
    /// A packet has come to `to`.
    Arrived { at: Time, link: usize, to: Node, packet: Packet<Datagram>, queued_at: Time },
    /// A driver reports.
    Reported { at: Time, link: usize, of: Node, report: HopReport },
    /// A station has decoded the control channel of one of its cell's carriers.
    Subframe { at: Time, of: Node, shown: Box<Signal> },
    /// A packet is lost. `told`: its transmitter has said that it is done with it.
    Lost { at: Time, link: usize, src: Node, datagram: Datagram, told: bool },
    /// A transmitter of the last hop is done with a packet, which was queued and came to the head of the line then.
    Completed { at: Time, from: Node, dst: Dest, flow_hash: u32, len: Bytes, waited: (Time, Time) },
    /// A frame to a station is over.
    Frame { at: Time, to: Node, packets: u16, rate: Rate, airtime: Span },
    /// A data frame of a station has come to its access point.
    Uplink { at: Time, from: Node },
    /// A program hands this to another one.
    Handed(Datagram),
}

/// Collects what one link produces.
struct Collect<'a> {
    link: usize,
    stations: usize,
    completions: bool,
    effects: &'a mut Effects,
}

impl Effects {
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Effect> {
        self.0.pop_front()
    }

    pub(crate) fn hand(&mut self, datagram: Datagram) {
        self.0.push_back(Effect::Handed(datagram));
    }
}

impl Collect<'_> {
    #[inline]
    fn is_station(&self, node: Node) -> bool {
        (1..=self.stations).contains(&node.index())
    }
}

impl Outbox<Datagram> for Collect<'_> {
    fn deliver(&mut self, at: Time, to: Node, packet: Packet<Datagram>, rx: &RxInfo) {
        self.effects.0.push_back(Effect::Arrived { at, link: self.link, to, packet, queued_at: rx.queued_at });
    }

    fn wants_completions(&self) -> bool {
        self.completions
    }

    fn completed(&mut self, at: Time, completion: &Completion) {
        let Completion { from, dst, flow_hash, len, queued_at, head_at, .. } = *completion;
        let waited = (queued_at, head_at);
        self.effects.0.push_back(Effect::Completed { at, from, dst, flow_hash, len, waited });
    }

    fn dropped(&mut self, at: Time, packet: Packet<Datagram>, why: Drop) {
        let (src, datagram) = (packet.src, packet.payload);
        let told = why == Drop::RetryLimit;
        self.effects.0.push_back(Effect::Lost { at, link: self.link, src, datagram, told });
    }

    fn driver(&mut self, at: Time, of: Node, signal: &Signal) {
        let link = self.link;
        match signal {
            Signal::Hop(report) => {
                self.effects.0.push_back(Effect::Reported { at, link, of, report: report.clone() });
            }
            Signal::Subframe(_) => {
                self.effects.0.push_back(Effect::Subframe { at, of, shown: Box::new(signal.clone()) });
            }
            _ => {}
        }
    }
}

impl Air<Datagram> for Collect<'_> {
    fn ppdu(&mut self, at: Time, ppdu: &PpduRecord) {
        let (PpduKind::Data, Some(to), 1..) = (ppdu.kind, ppdu.to, ppdu.received) else { return };
        if self.is_station(to) {
            let (packets, rate, airtime) = (ppdu.packets, ppdu.rate, ppdu.duration);
            self.effects.0.push_back(Effect::Frame { at, to, packets, rate, airtime });
        } else if self.is_station(ppdu.from) {
            self.effects.0.push_back(Effect::Uplink { at, from: ppdu.from });
        }
    }
}

impl Net {
    /// How many links there are.
    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }

    /// The next step of a packet at `at` for `to`.
    #[inline]
    pub(crate) fn next(&self, at: HostId, to: HostId) -> Option<Step> {
        self.tables[at.index()].next(to)
    }

    /// Links that a packet from one host to another takes; 1 if there is no way.
    pub(crate) fn hops(&self, from: HostId, to: HostId) -> u32 {
        let mut at = from;
        for passed in 0..self.tables.len() as u32 {
            if at == to {
                return passed.max(1);
            }
            let next = self.next(at, to).and_then(|step| self.links[usize::from(step.link)].hosts[step.to.index()]);
            let Some(next) = next else { return 1 };
            at = next;
        }
        1
    }

    /// A packet enters a link. Returns when the link wants to be woken.
    #[inline(always)]
    pub(crate) fn enqueue(
        &mut self,
        link: usize,
        now: Time,
        packet: Packet<Datagram>,
        effects: &mut Effects,
    ) -> Option<Time> {
        let Link { model, stations, completions, .. } = &mut self.links[link];
        let out = &mut Collect { link, stations: *stations, completions: *completions, effects };
        model.enqueue(now, packet, out);
        model.next_event()
    }

    /// A link is due. Returns when it wants to be woken again.
    #[inline]
    pub(crate) fn advance(&mut self, link: usize, now: Time, effects: &mut Effects) -> Option<Time> {
        let Link { model, stations, completions, .. } = &mut self.links[link];
        let out = &mut Collect { link, stations: *stations, completions: *completions, effects };
        model.advance(now, out);
        model.next_event()
    }

    /// When a link wants to be woken.
    pub(crate) fn next_event(&self, link: usize) -> Option<Time> {
        self.links[link].model.next_event()
    }

    /// A cable takes another route, which is longer by `by`, each way. Returns when the link wants to be woken.
    pub(crate) fn lengthen(&mut self, link: usize, now: Time, by: Span, effects: &mut Effects) -> Option<Time> {
        let Link { model, stations, completions, .. } = &mut self.links[link];
        if let Model::Cable(cable) = model {
            cable.lengthen(now, by, &mut Collect { link, stations: *stations, completions: *completions, effects });
        }
        self.next_event(link)
    }

    /// Packets that wait at node `from` of a cable, as of its last event.
    pub(crate) fn cable_backlog(&self, link: usize, from: Node) -> usize {
        match &self.links[link].model {
            Model::Cable(cable) => cable.backlog(from),
            _ => 0,
        }
    }

    /// The component of a link.
    pub(crate) fn component(link: usize) -> Component {
        Component(link as u32)
    }
}
