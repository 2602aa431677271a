//! A law of access points that records what it sees, and acts as the law in it does, if there is one.

use crate::recorder::{Observed, Recorder};
use lasthop_laws::oal::label::Timing;
use lasthop_laws::{Decision, HopLaw, Model, Observation, Why};
use lasthop_signals::{FlowId, Signal};
use lasthop_units::Time;
use std::sync::{Arc, Mutex, PoisonError};

/// What has been observed and not been taken.
type Sink = Arc<Mutex<Vec<Observed>>>;

/// The law. Copies of it share what they observed.
#[derive(Clone)]
pub struct Observer {
    recorder: Recorder,
    law: Option<Box<dyn HopLaw>>,
    /// Nobody does what the law decides.
    watches: bool,
    sink: Sink,
}

impl Observer {
    /// An observer of what `law` sees and does; without one of what passes, in shadow.
    pub fn new(timing: Timing, law: Option<Box<dyn HopLaw>>) -> Observer {
        Observer { recorder: Recorder::new(timing), law, watches: false, sink: Sink::default() }
    }

    /// Takes what has become final since the last call, from any copy.
    pub fn taker(&self) -> impl FnMut() -> Vec<Observed> + Send + use<> {
        let sink = self.sink.clone();
        move || std::mem::take(&mut *sink.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the law holds any window tight.
    fn acts(&self, now: Time) -> bool {
        let mut tight = false;
        if let Some(law) = self.law.as_ref().filter(|_| !self.watches) {
            law.decide(now, &mut |_, decision| tight |= decision.why == Why::Tight);
        }
        tight
    }
}

impl HopLaw for Observer {
    fn sense(&mut self, now: Time, signal: &Signal) {
        if let Some(law) = &mut self.law {
            law.sense(now, signal);
        }
        self.recorder.sense(now, signal);
        if matches!(signal, Signal::Hop(_)) {
            self.recorder.acted(self.acts(now));
            let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
            self.recorder.take(|observed| sink.push(observed));
        }
    }

    fn wants_segments(&self) -> bool {
        true
    }

    fn only_watches(&mut self) {
        self.watches = true;
        if let Some(law) = &mut self.law {
            law.only_watches();
        }
    }

    fn model(&self, now: Time) -> Option<Model> {
        self.law.as_ref().and_then(|law| law.model(now))
    }

    fn decide(&self, now: Time, each: &mut dyn FnMut(FlowId, Decision)) {
        if let Some(law) = &self.law {
            law.decide(now, each);
        }
    }

    fn observe(&self, flow: FlowId) -> Observation {
        self.law.as_ref().map(|law| law.observe(flow)).unwrap_or_default()
    }

    fn name(&self) -> &'static str {
        self.law.as_ref().map_or("record", |law| law.name())
    }
}
