//! The agent on the simulated access point: the rewriter in the forwarding path, and the law behind it.

use lasthop_laws::oal::rwnd::Rewriter;
use lasthop_laws::{BuildError, Choice, HopLaw};
use lasthop_signals::{FlowId, HopReport, Node, Signal};
use lasthop_units::{Bytes, Time};
use lasthop_wire::FlowKey;
use lasthop_wire::tcp::TcpHeader;

/// Flows that the rewriter remembers; as many as the eBPF map.
const FLOWS: usize = 4096;

/// What an access point with an agent has beside its queue.
#[derive(Clone)]
pub struct Agent {
    rewriter: Rewriter,
    law: Box<dyn HopLaw>,
    targets: Vec<(FlowId, Option<Bytes>)>,
}

impl Agent {
    /// An agent with this law.
    ///
    /// # Errors
    /// If the choice makes no law of a hop.
    pub fn new(choice: &Choice) -> Result<Agent, BuildError> {
        Ok(Agent { rewriter: Rewriter::new(FLOWS), law: choice.hop()?, targets: Vec::new() })
    }

    /// A segment towards a station passes.
    pub fn downlink(&mut self, now: Time, key: FlowKey, station: Node, header: &TcpHeader) {
        self.rewriter.on_downlink(now, key, station, header);
    }

    /// A segment from a station passes, and its window may be lowered.
    pub fn uplink(&mut self, now: Time, key: FlowKey, station: Node, header: &mut TcpHeader) {
        if let Some(window) = self.rewriter.on_uplink(now, key, station, header) {
            header.window = window;
        }
    }

    /// The driver reports: one control interval.
    pub fn tick(&mut self, now: Time, report: &HopReport) {
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
