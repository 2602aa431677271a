//! Control laws: pure state machines from signals to limits.
//!
//! A law owns no socket, no clock, no thread and no random source. Everything it knows came through `sense`; what it
//! wants is answered by `decide`, which changes nothing. The same law object therefore runs in the simulator, in the
//! lab and in production agents, and can be replayed from a log.

pub mod aggregation;
pub mod airtime;
pub mod atp;
mod decision;
pub mod ebpf;
pub mod entry;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod model;
pub mod oal;
pub mod observation;
pub mod param;
pub mod pbe;
mod receive_window;
pub mod registry;
pub mod tcp;
pub mod terminal;

pub use decision::{Decision, Why};
pub use entry::{Entry, LossRecovery, Place, Transport};
pub use lasthop_signals::Bounds;
pub use model::{Decider, Model};
pub use observation::Observation;
pub use param::{ParamError, Parameters, Settings, Value};
pub use receive_window::{ReceiveWindow, Share, SlowOpen, WindowBudget};
pub use registry::{BuildError, Choice, by_name};

use dyn_clone::DynClone;
use lasthop_signals::{FlowId, Node, Signal};
use lasthop_units::{Span, Time};

/// The laws that are no congestion controls, which are in [`tcp::LAWS`]: one line a law.
pub const LAWS: &[Entry] = &[
    oal::LAW,
    aggregation::LAW,
    aggregation::PREDECESSOR,
    aggregation::FRAMES,
    terminal::LAW,
    atp::LAW,
    atp::RECEIVER,
    pbe::LAW,
    pbe::RECEIVER,
];

/// What laws share with eBPF programs that decide as they do: one line a law.
pub const SHARED: &[ebpf::Shared] = &[atp::SHARED, oal::rwnd::SHARED, pbe::SHARED];

/// Decides for one flow, at its sender. A law can be copied with everything that it has learned, so that a run can be
/// forked: any type that is [`Clone`] is.
pub trait SenderLaw: DynClone + Send {
    /// Folds one observation into the model. `now` never goes back.
    fn sense(&mut self, now: Time, signal: &Signal);

    /// What the sender may do now. Pure: asking twice gives the same answer.
    fn decide(&self, now: Time) -> Decision;
}

/// Decides for all flows of a hop at once. It can be copied as a [`SenderLaw`] can.
pub trait HopLaw: DynClone + Send {
    /// Folds one observation into the model. `now` never goes back.
    fn sense(&mut self, now: Time, signal: &Signal);

    /// Folds in what was observed at one moment. A law may do once what follows from all of it.
    fn sense_all(&mut self, now: Time, signals: &[Signal]) {
        signals.iter().for_each(|signal| self.sense(now, signal));
    }

    /// True if the law wants to see every segment that passes, as [`Signal::Segment`]. Always the same answer: worlds ask once.
    fn wants_segments(&self) -> bool {
        false
    }

    /// Nothing that the law decides is done: it is only asked what it would do. A law that learns from what it does must know. Said before
    /// anything is sensed.
    fn only_watches(&mut self) {}

    /// Calls `each` once for every flow that the law limits, in order of flow number. A flow that is not named is not
    /// limited. Pure.
    fn decide(&self, now: Time, each: &mut dyn FnMut(FlowId, Decision));

    /// What the law knows of a flow, for logs and plots. Pure.
    fn observe(&self, _flow: FlowId) -> Observation {
        Observation::default()
    }

    /// The model that it has learned, if it is one that learns. Pure.
    fn model(&self, _now: Time) -> Option<Model> {
        None
    }

    /// The name by which scenarios and reports call the law.
    fn name(&self) -> &'static str;
}

/// Decides at the receiving end what it tells the sender's side. It can be copied as a [`SenderLaw`] can.
///
/// Its world asks `decide` after each `sense`. What [`Decision::feedback`] holds then is told once, as the world's transport
/// does it; before the next `sense` it is the same, after it that of another moment, or none.
pub trait ReceiverLaw: DynClone + Send {
    /// Folds one observation into the model. `now` never goes back.
    fn sense(&mut self, now: Time, signal: &Signal);

    /// What to tell now, and when to be woken. Pure.
    fn decide(&self, now: Time) -> Decision;
}

/// What every receiver law is told when it is created: its node, and the slots in which it tells of what came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiverSetup {
    /// Its node at the last hop.
    pub node: Node,
    /// Number of its first slot; those behind it count on from there, modulo 2^32.
    pub slot: u32,
    /// When its first slot begins.
    pub start: Time,
    /// When its first slot ends.
    pub end: Time,
    /// How long all others are.
    pub interval: Span,
    /// After so many slots in a row in which nothing came nothing is told any more, until something comes; `None`: every slot is.
    pub idle_slots: Option<u32>,
}

dyn_clone::clone_trait_object!(SenderLaw);
dyn_clone::clone_trait_object!(HopLaw);
dyn_clone::clone_trait_object!(ReceiverLaw);
