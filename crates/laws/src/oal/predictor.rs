//! Whether the hop is about to lose.
//! Source:     \[oal\] for the classes and the rule by which it acts; the hysteresis is own.
//! Equations:  act = class in {Poor, Bad};   release after n decisions in a row that do not act
//! Symbols:    n -> `release_after`
//! Deviations: by default the class comes from a backlog threshold, measured in time so that one threshold fits every rate;
//!             the paper's tree is [`Learned`](super::learned::Learned), behind the same trait.
//! Checked by: tests::*

use crate::Model;
use dyn_clone::DynClone;
use lasthop_signals::{Node, Signal};
use lasthop_units::{Span, Time, named};

named! {
    /// Share of segments lost to congestion that is to be expected in the coming round trip.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum LossClass {
        /// Below 1 %.
        Good = "Good",
        /// 1 % to 5 %.
        Acceptable = "Acceptable",
        /// 5 % to 12 %.
        Poor = "Poor",
        /// 12 % and more.
        Bad = "Bad",
    }
}

impl LossClass {
    /// The class of a share of losses; NaN is good.
    pub fn of(share: f64) -> LossClass {
        match share {
            share if share >= 0.12 => LossClass::Bad,
            share if share >= 0.05 => LossClass::Poor,
            share if share >= 0.01 => LossClass::Acceptable,
            _ => LossClass::Good,
        }
    }

    /// True if windows must be tight.
    pub fn acts(self) -> bool {
        self >= LossClass::Poor
    }
}

/// What a predictor is shown of a station each control interval.
#[derive(Clone, Copy, Debug)]
pub struct StationState {
    /// Now.
    pub now: Time,
    /// Which.
    pub station: Node,
    /// How long the hop takes to send what waits at the access point.
    pub drains_in: Span,
    /// MSDUs that its queues refused since the last interval.
    pub drops: u64,
}

/// Predicts the loss class of the coming round trip.
///
/// Each control interval it is told of the flows, then of the driver's report, then asked for each station's class, then told
/// whether windows are tight now.
pub trait Predictor: DynClone + Send {
    /// Folds one observation in.
    fn sense(&mut self, _now: Time, _signal: &Signal) {}

    /// True if it wants to see every segment's header.
    fn wants_segments(&self) -> bool {
        false
    }

    /// The class of what is sent to a station, as it is now.
    fn predict(&mut self, state: &StationState) -> LossClass;

    /// True while nothing must be tight, whatever is predicted, so that what then happens can be learned from.
    fn abstains(&self, _now: Time) -> bool {
        false
    }

    /// Whether any window is tight from now on.
    fn acted(&mut self, _tight: bool) {}

    /// What it decides by, if it learns.
    fn model(&self, _now: Time) -> Option<Model> {
        None
    }
}

dyn_clone::clone_trait_object!(Predictor);

/// A backlog that takes longer than `limit` to drain is about to overflow.
#[derive(Clone, Debug)]
pub struct BacklogThreshold {
    limit: Span,
}

impl BacklogThreshold {
    /// Acts from a drain time of `limit`.
    pub fn new(limit: Span) -> BacklogThreshold {
        BacklogThreshold { limit }
    }
}

impl Predictor for BacklogThreshold {
    fn predict(&mut self, state: &StationState) -> LossClass {
        match state.drains_in {
            _ if state.drops > 0 => LossClass::Bad,
            drain if drain >= self.limit => LossClass::Poor,
            drain if drain >= self.limit / 2 => LossClass::Acceptable,
            _ => LossClass::Good,
        }
    }
}

/// Holds on to a decision to act until it has been superfluous several times in a row.
#[derive(Clone, Debug)]
pub struct Hysteresis {
    release_after: u32,
    idle: u32,
}

impl Hysteresis {
    /// Starts released.
    pub fn new(release_after: u32) -> Hysteresis {
        Hysteresis { release_after, idle: release_after }
    }

    /// Folds one decision in and says whether to act.
    pub fn update(&mut self, acts: bool) -> bool {
        self.idle = if acts { 0 } else { self.idle.saturating_add(1) };
        self.acting()
    }

    /// Whether to act.
    pub fn acting(&self) -> bool {
        self.idle < self.release_after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(drains_in_ms: u64, drops: u64) -> StationState {
        StationState { now: Time::ZERO, station: Node(1), drains_in: Span::from_millis(drains_in_ms), drops }
    }

    #[test]
    fn classes_begin_at_1_5_and_12_percent() {
        let classes = [0.0, 0.0099, 0.01, 0.0499, 0.05, 0.1199, 0.12, 1.0].map(LossClass::of);
        let [good, acceptable, poor, bad] = LossClass::ALL;
        assert_eq!(classes, [good, good, acceptable, acceptable, poor, poor, bad, bad]);
    }

    #[test]
    fn the_threshold_is_a_drain_time() {
        let mut threshold = BacklogThreshold::new(Span::from_millis(4));
        assert_eq!(threshold.predict(&state(1, 0)), LossClass::Good);
        assert_eq!(threshold.predict(&state(2, 0)), LossClass::Acceptable);
        assert_eq!(threshold.predict(&state(4, 0)), LossClass::Poor);
        assert_eq!(threshold.predict(&state(0, 1)), LossClass::Bad);
    }

    #[test]
    fn release_waits_for_three_quiet_decisions() {
        let mut hysteresis = Hysteresis::new(3);
        assert!(!hysteresis.acting());
        assert!(hysteresis.update(true));
        assert!(hysteresis.update(false));
        assert!(hysteresis.update(false));
        assert!(!hysteresis.update(false));
    }
}
