//! Namespaces, a wire with delay, and a look at TCP's own numbers, for tests and benches that need root.
#![allow(dead_code, reason = "each user of this module uses part of it")]
#![allow(clippy::disallowed_methods, reason = "real time is what is tested")]

pub mod agent;
pub mod bulk;
pub mod cgroup;
pub mod delay;
pub mod driver;
pub mod edge;
#[path = "../../../../tests/src/machine.rs"]
pub mod machine;
pub mod monitor;
pub mod netns;
pub mod others;
pub mod pump;
pub mod slots;
pub mod tcp;
pub mod upload;
#[cfg(feature = "bpf")]
pub mod watch;

use lasthop_laws::{Decision, HopLaw, Why};
use lasthop_signals::{FlowId, Signal};
use lasthop_units::{Bytes, Time};
use std::collections::BTreeSet;

/// A law that gives every flow the same window.
#[derive(Clone)]
pub struct Fixed {
    window: Bytes,
    flows: BTreeSet<FlowId>,
}

impl Fixed {
    pub fn new(window: Bytes) -> Fixed {
        Fixed { window, flows: BTreeSet::new() }
    }
}

impl HopLaw for Fixed {
    fn sense(&mut self, _: Time, signal: &Signal) {
        match signal {
            Signal::Flow(report) => drop(self.flows.insert(report.flow)),
            Signal::FlowGone(id) => drop(self.flows.remove(id)),
            _ => {}
        }
    }

    fn decide(&self, _: Time, each: &mut dyn FnMut(FlowId, Decision)) {
        let decision = Decision { rwnd: Some(self.window), ..Decision::unlimited(Why::Tight) };
        self.flows.iter().for_each(|id| each(*id, decision));
    }

    fn name(&self) -> &'static str {
        "fixed"
    }
}
