//! UDP traffic: a constant load, or what a regulator paces.

use crate::context::Context;
use crate::hook::Interface;
use crate::payload::{Datagram, Payload, ProgramId};
use crate::program::Program;
use crate::programs::edge::{Load, Offer};
use crate::programs::source::Source;
use lasthop_signals::FlowId;
use lasthop_units::{Bytes, Rate, Time};

/// Both ends of one stream.
#[derive(Clone)]
pub(crate) struct Udp {
    source: Source,
    /// Payload of a packet.
    size: Bytes,
    /// Its load; `None`: as much as the edge proxy lets through.
    rate: Option<Rate>,
    own: ProgramId,
}

impl Udp {
    /// The program of this stream, with packets of this payload, at this rate if it has one.
    pub(crate) fn new(source: Source, size: Bytes, rate: Option<Rate>) -> Udp {
        Udp { source, size, rate, own: ProgramId::NONE }
    }

    /// The number of its flow: apart from those of connections.
    fn flow(&self) -> FlowId {
        FlowId(1 << 24 | self.source.place as u32)
    }
}

impl Program for Udp {
    fn begin(&mut self, context: &mut Context, own: ProgramId) {
        self.own = own;
        self.source.begin(context, own);
    }

    fn wake(&mut self, context: &mut Context, _: u32) {
        self.source.step(context);
        let (stream, now) = (self.source.stream, context.now);
        if self.rate.is_some() {
            return self.source.send(context, self.own, self.size);
        }
        let (station, flow) = (context.concerned(&stream), self.flow());
        let begins = now < stream.stop;
        if begins {
            context.recorder.bulk_flow(now, flow, station, &format!("udp {}", self.source.place));
            context.recorder.belongs(flow, stream.number);
        }
        if let Some(proxy) = context.proxy {
            let load = Load { program: self.own, flow, size: self.size, class: stream.class, sent: 0 };
            context.hand(
                proxy,
                Payload::own(if begins { Offer::Begins(station, load) } else { Offer::Ends(station, flow) }),
            );
        }
    }

    fn receive(&mut self, context: &mut Context, at: Time, datagram: Datagram) {
        let Payload::Udp { sent, .. } = datagram.content else { return };
        let node = context.concerned(&self.source.stream);
        match self.rate {
            None => context.recorder.goodput(at, self.flow(), node, self.size),
            Some(_) => context.recorder.datagram(self.source.stream.number, sent, at, self.size),
        }
        context.recorder.end_delay(sent, at, node);
    }

    fn lost(&mut self, context: &mut Context, _: Time, _: Interface, datagram: &Datagram, _on_air: bool) {
        if let Payload::Udp { sent, .. } = datagram.content {
            context.recorder.datagram_lost(self.source.stream.number, sent);
        }
    }
}
