//! ATP connections of the world, and what its nodes stamp into their packets.

use crate::agenda::Component;
use crate::payload::{Datagram, Payload, index, udp_packet};
use crate::world::World;
use lasthop_laws::atp::{Params, RECEIVER};
use lasthop_laws::tcp::Setup;
use lasthop_laws::{BuildError, Choice, Parameters, ReceiverSetup};
use lasthop_radio::{Dest, Packet};
use lasthop_report::Segments;
use lasthop_scenario::graph::Step;
use lasthop_scenario::{Stream, StreamKind};
use lasthop_signals::{FlowId, HostId, Node};
use lasthop_transport::atp::{self, Receiver, Sender};
use lasthop_units::{Bytes, Seed, Span, Time};
use std::collections::VecDeque;

/// One connection: all that its sender's application writes goes to the receiver's.
#[derive(Clone)]
pub(crate) struct Connection {
    sender: Sender,
    receiver: Receiver,
    from: HostId,
    to: HostId,
    /// The station that it counts for in figures.
    node: Node,
    /// Payload that the receiver's application had when it last looked.
    seen: Bytes,
    /// First departures: payload of the connection up to then, and when.
    departures: VecDeque<(u64, Time)>,
    departed: u64,
    /// The first packet that has not left yet.
    unsent: u32,
}

/// One end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Sender,
    Receiver,
}

impl Connection {
    /// The connection of a bulk stream with this law at its sender; its receiver has what is set of it.
    pub(crate) fn open(
        now: Time,
        stream: &Stream,
        node: Node,
        law: &Choice,
        seed: Seed,
    ) -> Result<Connection, BuildError> {
        let number = index(stream.number);
        let random = seed.stream(&format!("atp/{number}"));
        let receiver = Choice::of(&RECEIVER).with(law.settings().clone());
        let apart = Params::with(law.settings()).is_ok_and(|params| params.reports_apart());
        let epoch = ReceiverSetup { node, slot: 0, start: now, end: Time::MAX, interval: Span::MAX, idle_slots: None };
        let mut sender = Sender::new(now, number, law.sender(Setup::new(Bytes::new(u64::from(atp::PAYLOAD)), random))?);
        match stream.kind {
            StreamKind::Bulk { size: Some(size), .. } => {
                sender.write(size);
                sender.close();
            }
            _ => sender.write_forever(),
        }
        Ok(Connection {
            sender,
            receiver: Receiver::new(number, receiver.receiver(epoch)?).with_reports_apart(apart),
            from: stream.from,
            to: stream.to,
            node,
            seen: Bytes::ZERO,
            departures: VecDeque::new(),
            departed: 0,
            unsent: 0,
        })
    }

    /// What its sender has done, as reports count it.
    pub(crate) fn segments(&self) -> Segments {
        let counters = self.sender.counters();
        Segments { sent: counters.packets, retransmitted: counters.resent, ..Segments::default() }
    }

    fn end_at(&self, host: HostId) -> End {
        if host == self.from { End::Sender } else { End::Receiver }
    }

    /// What one end sends now.
    fn poll(&mut self, now: Time, end: End) -> Option<atp::Packet> {
        match end {
            End::Receiver => self.receiver.poll_transmit(now),
            End::Sender => {
                let packet = self.sender.poll_transmit(now)?;
                if packet.payload > 0 && packet.header.number == self.unsent {
                    self.unsent = self.unsent.wrapping_add(1);
                    self.departed += u64::from(packet.payload);
                    self.departures.push_back((self.departed, now));
                }
                Some(packet)
            }
        }
    }
}

/// The number of the flow of a source's ATP connection: apart from those of TCP connections and UDP sources.
pub(crate) fn flow(source: usize) -> FlowId {
    FlowId(1 << 25 | source as u32)
}

impl World {
    /// A bulk stream over ATP begins.
    pub(crate) fn open_atp(&mut self, source: usize, stream: &Stream, node: Node) {
        let law = &self.senders[stream.from.index()];
        let connection = Connection::open(self.now, stream, node, law, self.seed);
        self.atp[source] = Some(connection.expect("the scenario names a law that exists"));
        self.recorder.bulk_flow(self.now, flow(source), node, &format!("atp {source}"));
        self.recorder.belongs(flow(source), stream.number);
        self.pump_atp(source, End::Sender);
    }

    /// A bulk stream's time is over.
    pub(crate) fn stop_atp(&mut self, source: usize) {
        let Some(connection) = &mut self.atp[source] else { return };
        connection.sender.stop();
        self.recorder.bulk_flow_ended(self.now, flow(source));
        self.pump_atp(source, End::Sender);
    }

    /// A packet has come to the host that it is for.
    pub(crate) fn at_atp(&mut self, at: Time, host: HostId, source: usize, packet: &atp::Packet) {
        let Some(connection) = &mut self.atp[source] else { return };
        let end = connection.end_at(host);
        match end {
            End::Sender => connection.sender.on_packet(at, packet),
            End::Receiver => connection.receiver.on_packet(at, packet),
        }
        self.pump_atp(source, end);
    }

    /// An end is due.
    pub(crate) fn wake_atp(&mut self, place: usize) {
        let (now, source) = (self.now, place / 2);
        let end = if place.is_multiple_of(2) { End::Sender } else { End::Receiver };
        let Some(connection) = &mut self.atp[source] else { return };
        match end {
            End::Sender => connection.sender.on_timeout(now),
            End::Receiver => connection.receiver.on_timeout(now),
        }
        self.pump_atp(source, end);
    }

    /// Sends what one end has to send and notes when it wants to be woken.
    fn pump_atp(&mut self, source: usize, end: End) {
        if end == End::Receiver {
            self.arrivals_atp(source);
        }
        loop {
            let now = self.now;
            let Some(connection) = &mut self.atp[source] else { return };
            let Some(packet) = connection.poll(now, end) else { break };
            let way = match end {
                End::Sender => (connection.from, connection.to),
                End::Receiver => (connection.to, connection.from),
            };
            // Any number will do for a hash, as long as it differs from connection to connection.
            let hash = (source as u32 | 1 << 30).wrapping_mul(0x9e37_79b9);
            let content = Payload::Atp { source: index(source), packet: Box::new(packet) };
            let mut packet = self.packet(way, udp_packet(packet.len()), hash, content);
            self.stamp(way.0, &mut packet);
            self.send(way.0, packet);
        }
        let Some(connection) = &self.atp[source] else { return };
        let next = match end {
            End::Sender => connection.sender.next_timeout(),
            End::Receiver => connection.receiver.next_timeout(),
        };
        let component = Component(self.first_atp() + 2 * source as u32 + u32::from(end == End::Receiver));
        self.agenda.set(component, next.map(|at| at.max(self.now)));
    }

    /// The receiving application looks at what has come.
    fn arrivals_atp(&mut self, source: usize) {
        let now = self.now;
        let Some(connection) = &mut self.atp[source] else { return };
        let received = connection.receiver.received();
        let news = received - connection.seen;
        if news.is_zero() {
            return;
        }
        connection.seen = received;
        while let Some((_, sent)) = connection.departures.front().copied().filter(|(upto, _)| *upto <= received.get()) {
            connection.departures.pop_front();
            self.recorder.end_delay(sent, now, connection.node);
        }
        self.recorder.goodput(now, flow(source), connection.node, news);
        if connection.receiver.is_done() {
            self.recorder.bulk_flow_ended(now, flow(source));
        }
    }

    /// A node of the last hop that is about to queue a packet stamps it with its own delay, where that is the larger one.
    pub(crate) fn stamp(&self, host: HostId, packet: &mut Packet<Datagram>) {
        let Payload::Atp { packet: own, .. } = &mut packet.payload.content else { return };
        let Some(step) = self.net.next(host, packet.payload.to) else { return };
        let hop = self.hop_delays.get(step.from.index()).filter(|_| usize::from(step.link) == self.last_hop);
        if let Some(hop) = hop {
            own.header.delay = own.header.delay.max(hop.delay(self.now));
        }
    }

    /// A packet is about to wait at a node of the last hop.
    pub(crate) fn queued(&mut self, step: Step) {
        if usize::from(step.link) == self.last_hop {
            self.hop_delays[step.from.index()].on_queued(self.now);
        }
    }

    /// A transmitter of the last hop is done with a packet.
    pub(crate) fn served(&mut self, at: Time, (from, dst): (Node, Dest), (queued_at, head_at): (Time, Time)) {
        match (self.hop_delays.get_mut(from.index()), dst) {
            (Some(delay), Dest::Node(_)) => delay.on_done(at, queued_at, head_at),
            (Some(delay), Dest::Group) => delay.on_group_done(at),
            (None, _) => {}
        }
    }
}
