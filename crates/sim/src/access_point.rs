//! The agent on the simulated access point: the rewriter in the forwarding path, and the law behind it.

use crate::hook::{Forwarded, Hook, Interface};
use crate::payload::Payload;
use lasthop_laws::HopLaw;
use lasthop_laws::oal::rwnd::Rewriter;
use lasthop_signals::{FlowId, HopReport, Segment, Signal, Way};
use lasthop_units::{Bytes, Time};
use lasthop_wire::FlowKey;
use lasthop_wire::tcp::{Flags, TcpHeader};

/// Flows that the rewriter remembers; as many as the eBPF map.
const FLOWS: usize = 4096;

/// What an access point with an agent has beside its queue.
#[derive(Clone)]
pub struct Agent {
    /// The access point's own on the hop.
    radio: Interface,
    rewriter: Rewriter,
    law: Box<dyn HopLaw>,
    /// Whether the law wants to see every segment.
    segments: bool,
    targets: Vec<(FlowId, Option<Bytes>)>,
}

impl Agent {
    /// An agent with this law at this interface of an access point.
    pub fn with_law(law: Box<dyn HopLaw>, radio: Interface) -> Agent {
        let segments = law.wants_segments();
        Agent { radio, rewriter: Rewriter::new(FLOWS), law, segments, targets: Vec::new() }
    }

    /// Shows the law a segment of a known flow with this key in its downlink direction.
    fn show(&mut self, forwarded: &Forwarded<'_>, way: Way, key: FlowKey) {
        let Payload::Tcp { header, .. } = &forwarded.packet.payload.content else { return };
        if header.flags.intersects(Flags::SYN | Flags::RST) {
            return;
        }
        if let Some(flow) = self.rewriter.id(key) {
            let TcpHeader { seq, ack, options, payload_len: len, .. } = **header;
            let sack = options.sack.as_slice().iter().map(|block| (block.left, block.right)).collect();
            let station = forwarded.beside;
            let segment = Segment { flow, station, way, seq, len, count: 1, ack, sack };
            self.law.sense(forwarded.at, &Signal::Segment(segment));
        }
    }

    /// One control interval.
    fn tick(&mut self, now: Time, report: &HopReport) {
        for flow in self.rewriter.take_gone() {
            self.law.sense(now, &Signal::FlowGone(flow));
        }
        let law = &mut self.law;
        self.rewriter.report(now, |flow| law.sense(now, &Signal::Flow(flow)));
        law.sense(now, &Signal::Hop(report.clone()));
        self.targets.clear();
        let targets = &mut self.targets;
        self.law.decide(now, &mut |flow, decision| targets.push((flow, decision.rwnd)));
        for (flow, target) in &self.targets {
            self.rewriter.set_target(*flow, *target);
        }
    }
}

impl Hook for Agent {
    /// A segment from a station passes, and its window may be lowered.
    fn ingress(&mut self, forwarded: &mut Forwarded<'_>) {
        let (Payload::Tcp { header, .. }, Some(key)) = (&mut forwarded.packet.payload.content, forwarded.key) else {
            return;
        };
        if forwarded.interface != self.radio {
            return;
        }
        if let Some(window) = self.rewriter.on_uplink(forwarded.at, key, forwarded.beside, header) {
            header.window = window;
        }
        if self.segments {
            self.show(forwarded, Way::Up, key.reversed());
        }
    }

    /// A segment towards a station passes.
    fn egress(&mut self, forwarded: &mut Forwarded<'_>) {
        let (Payload::Tcp { header, .. }, Some(key)) = (&forwarded.packet.payload.content, forwarded.key) else {
            return;
        };
        if forwarded.interface == self.radio {
            self.rewriter.on_downlink(forwarded.at, key, forwarded.beside, header);
            if self.segments {
                self.show(forwarded, Way::Down, key);
            }
        }
    }

    fn report(&mut self, at: Time, interface: Interface, report: &HopReport) {
        if interface == self.radio {
            self.tick(at, report);
        }
    }
}
