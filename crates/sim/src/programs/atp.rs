//! A bulk stream over ATP.

use crate::agenda::Component;
use crate::context::Context;
use crate::payload::{Address, Datagram, Payload, ProgramId, index, packet, udp_packet};
use crate::program::Program;
use crate::programs::source::Source;
use lasthop_laws::atp::{Params, RECEIVER};
use lasthop_laws::tcp::Setup;
use lasthop_laws::{BuildError, Choice, Parameters, ReceiverSetup};
use lasthop_report::Segments;
use lasthop_scenario::{Stream, StreamKind};
use lasthop_signals::{FlowId, HostId, Node};
use lasthop_transport::atp::{self, Receiver, Sender};
use lasthop_units::{Bytes, Seed, Span, Time};
use std::collections::VecDeque;

/// Both ends of one stream, with their applications.
#[derive(Clone)]
pub(crate) struct Atp {
    source: Source,
    /// The law of its sender.
    law: Choice,
    /// From the stream's start on.
    connection: Option<Connection>,
    own: ProgramId,
    /// What wakes each end: the sender, the receiver.
    timers: [Component; 2],
}

impl Atp {
    /// The program of this stream, with this law at its sender.
    pub(crate) fn new(source: Source, law: Choice) -> Atp {
        Atp { source, law, connection: None, own: ProgramId::NONE, timers: [Component(0); 2] }
    }

    /// The number of its flow: apart from those of TCP connections and UDP sources.
    fn flow(&self) -> FlowId {
        FlowId(1 << 25 | self.source.place as u32)
    }

    /// Sends what one end has to send and notes when it wants to be woken.
    fn pump(&mut self, context: &mut Context, end: End) {
        let (now, flow) = (context.now, self.flow());
        let Some(connection) = &mut self.connection else { return };
        if end == End::Receiver {
            connection.arrivals(context, flow);
        }
        let (from, to) = match end {
            End::Sender => (connection.from, connection.to),
            End::Receiver => (connection.to, connection.from),
        };
        let to = Address { host: to, program: self.own };
        // Any number will do for a hash, as long as it differs from connection to connection.
        let hash = (self.source.place as u32 | 1 << 30).wrapping_mul(0x9e37_79b9);
        while let Some(own) = connection.poll(now, end) {
            let (len, class) = (udp_packet(own.len()), self.source.stream.class);
            context.send(from, packet((from, to), len, class, hash, Payload::own(own)));
        }
        let next = match end {
            End::Sender => connection.sender.next_timeout(),
            End::Receiver => connection.receiver.next_timeout(),
        };
        context.agenda.set(self.timers[end as usize], next.map(|at| at.max(now)));
    }

    /// The stream begins, or its time is over.
    fn act(&mut self, context: &mut Context) {
        self.source.step(context);
        let (stream, now, flow) = (self.source.stream, context.now, self.flow());
        if now < stream.stop {
            let node = context.concerned(&stream);
            let connection = Connection::open(now, &stream, node, &self.law, context.seed);
            self.connection = Some(connection.expect("the scenario names a law that exists"));
            context.recorder.bulk_flow(now, flow, node, &format!("atp {}", self.source.place));
            context.recorder.belongs(flow, stream.number);
        } else if let Some(connection) = &mut self.connection {
            connection.sender.stop();
            context.recorder.bulk_flow_ended(now, flow);
        }
        self.pump(context, End::Sender);
    }
}

/// Timers of its ends, as the program knows them; its stream has another.
const SENDER: u32 = 1;
const RECEIVER_END: u32 = 2;

impl Program for Atp {
    fn begin(&mut self, context: &mut Context, own: ProgramId) {
        self.own = own;
        self.source.begin(context, own);
    }

    fn ready(&mut self, context: &mut Context) {
        self.timers = [SENDER, RECEIVER_END].map(|timer| context.timer(self.own, timer));
    }

    fn wake(&mut self, context: &mut Context, timer: u32) {
        let (now, Some(connection)) = (context.now, &mut self.connection) else { return self.act(context) };
        match timer {
            SENDER => {
                connection.sender.on_timeout(now);
                self.pump(context, End::Sender);
            }
            RECEIVER_END => {
                connection.receiver.on_timeout(now);
                self.pump(context, End::Receiver);
            }
            _ => self.act(context),
        }
    }

    fn receive(&mut self, context: &mut Context, at: Time, datagram: Datagram) {
        let (Some(connection), Some(packet)) = (&mut self.connection, datagram.content.message()) else { return };
        let end = if datagram.to == connection.from { End::Sender } else { End::Receiver };
        match end {
            End::Sender => connection.sender.on_packet(at, packet),
            End::Receiver => connection.receiver.on_packet(at, packet),
        }
        self.pump(context, end);
    }

    fn count_segments(&self, context: &mut Context, at: Time) {
        if let Some(connection) = &self.connection {
            let counters = connection.sender.counters();
            let segments = Segments { sent: counters.packets, retransmitted: counters.resent, ..Segments::default() };
            context.recorder.segments(at, self.flow(), segments);
        }
    }
}

/// One connection: all that its sender's application writes goes to the receiver's.
#[derive(Clone)]
struct Connection {
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
enum End {
    Sender,
    Receiver,
}

impl Connection {
    /// The connection of a bulk stream with this law at its sender; its receiver has what is set
    /// of it.
    fn open(now: Time, stream: &Stream, node: Node, law: &Choice, seed: Seed) -> Result<Connection, BuildError> {
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

    /// The receiving application looks at what has come.
    fn arrivals(&mut self, context: &mut Context, flow: FlowId) {
        let (now, received) = (context.now, self.receiver.received());
        let news = received - self.seen;
        if news.is_zero() {
            return;
        }
        self.seen = received;
        while let Some((_, sent)) = self.departures.front().copied().filter(|(upto, _)| *upto <= received.get()) {
            self.departures.pop_front();
            context.recorder.end_delay(sent, now, self.node);
        }
        context.recorder.goodput(now, flow, self.node, news);
        if self.receiver.is_done() {
            context.recorder.bulk_flow_ended(now, flow);
        }
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
