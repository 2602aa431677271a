//! Control laws: pure state machines from signals to limits.
//!
//! A law owns no socket, no clock, no thread and no random source. Everything it knows came through `sense`; what it
//! wants is answered by `decide`, which changes nothing. The same law object therefore runs in the simulator, in the
//! lab and in production agents, and can be replayed from a log.

pub mod aggregation;
mod decision;
mod intake;
pub mod oal;
pub mod param;
pub mod registry;
pub mod tcp;

pub use decision::{Bounds, Decision, Why};
pub use intake::{Intake, Pool, Ramp, Share};
pub use param::{ParamError, Parameters, Settings, Value};
pub use registry::{BuildError, Choice, Entry, Place};

use lasthop_signals::{FlowId, Signal};
use lasthop_units::Time;

/// The laws that are no congestion controls, which are in [`tcp::LAWS`]: one line a law.
pub const LAWS: &[Entry] = &[oal::LAW, aggregation::LAW, aggregation::PREDECESSOR, aggregation::FRAMES];

/// Decides for one flow, at its sender. A law can be copied with everything that it has learned, so that a run can be
/// forked: a type that is [`Clone`] is [`CloneSenderLaw`].
pub trait SenderLaw: Send + CloneSenderLaw {
    /// Folds one observation into the model. `now` never goes back.
    fn sense(&mut self, now: Time, signal: &Signal);

    /// What the sender may do now. Pure: asking twice gives the same answer.
    fn decide(&self, now: Time) -> Decision;

    /// The name by which scenarios and reports call the law.
    fn name(&self) -> &'static str;
}

/// Decides for all flows of a hop at once. It can be copied as a [`SenderLaw`] can.
pub trait HopLaw: Send + CloneHopLaw {
    /// Folds one observation into the model. `now` never goes back.
    fn sense(&mut self, now: Time, signal: &Signal);

    /// Folds in what was observed at one moment. A law may do once what follows from all of it.
    fn sense_all(&mut self, now: Time, signals: &[Signal]) {
        signals.iter().for_each(|signal| self.sense(now, signal));
    }

    /// Calls `each` once for every flow that the law limits, in order of flow number. A flow that is not named is not
    /// limited. Pure.
    fn decide(&self, now: Time, each: &mut dyn FnMut(FlowId, Decision));

    /// The name by which scenarios and reports call the law.
    fn name(&self) -> &'static str;
}

/// Copies a sender law whose type is not known. Every law that is [`Clone`] has it.
pub trait CloneSenderLaw {
    /// A copy that has learned the same, and learns on its own from here on.
    fn boxed_clone(&self) -> Box<dyn SenderLaw>;
}

impl<T: SenderLaw + Clone + 'static> CloneSenderLaw for T {
    fn boxed_clone(&self) -> Box<dyn SenderLaw> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn SenderLaw> {
    fn clone(&self) -> Box<dyn SenderLaw> {
        (**self).boxed_clone()
    }
}

/// Copies a hop law whose type is not known. Every law that is [`Clone`] has it.
pub trait CloneHopLaw {
    /// A copy that has learned the same, and learns on its own from here on.
    fn boxed_clone(&self) -> Box<dyn HopLaw>;
}

impl<T: HopLaw + Clone + 'static> CloneHopLaw for T {
    fn boxed_clone(&self) -> Box<dyn HopLaw> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn HopLaw> {
    fn clone(&self) -> Box<dyn HopLaw> {
        (**self).boxed_clone()
    }
}
