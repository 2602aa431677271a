//! A stream of probes: small packets by UDP, each of which measures the path.

use crate::context::Context;
use crate::hook::Interface;
use crate::payload::{Datagram, Payload, ProgramId};
use crate::program::Program;
use crate::programs::source::Source;
use lasthop_units::{Bytes, Time};

/// Both ends of one stream.
#[derive(Clone)]
pub(crate) struct Probe {
    source: Source,
    /// Payload of a packet.
    size: Bytes,
    own: ProgramId,
}

impl Probe {
    /// The program of this stream, with packets of this payload.
    pub(crate) fn new(source: Source, size: Bytes) -> Probe {
        Probe { source, size, own: ProgramId::NONE }
    }
}

impl Program for Probe {
    fn begin(&mut self, context: &mut Context, own: ProgramId) {
        self.own = own;
        self.source.begin(context, own);
    }

    fn wake(&mut self, context: &mut Context, _: u32) {
        self.source.step(context);
        self.source.send(context, self.own, self.size);
    }

    fn receive(&mut self, context: &mut Context, at: Time, datagram: Datagram) {
        if let Payload::Udp { sent, .. } = datagram.content {
            context.recorder.stream_probe(self.source.stream.number, sent, at);
        }
    }

    fn lost(&mut self, context: &mut Context, _: Time, _: Interface, datagram: &Datagram, _on_air: bool) {
        if let Payload::Udp { sent, .. } = datagram.content {
            context.recorder.stream_probe_lost(self.source.stream.number, sent);
        }
    }
}
