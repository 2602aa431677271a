//! Whether the hop is about to lose.
//! Source:     oal.md A.3 step 7 (classes) and A.4 (acting rule and hysteresis).
//! Equations:  act = class in {Poor, Bad};   release after n decisions in a row that do not act
//! Symbols:    n -> `release_after`
//! Deviations: the class comes from a backlog threshold, not from a learned tree, which will take its place behind
//!             [`Predictor`]; a backlog is measured in time, so that one threshold fits every rate.
//! Checked by: tests::*

use dyn_clone::DynClone;
use lasthop_units::Span;

/// Share of segments lost to congestion that is to be expected in the coming round trip.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LossClass {
    /// Below 1 %.
    Good,
    /// 1 % to 5 %.
    Acceptable,
    /// 5 % to 12 %.
    Poor,
    /// 12 % and more.
    Bad,
}

impl LossClass {
    /// True if windows must be tight.
    pub fn acts(self) -> bool {
        self >= LossClass::Poor
    }
}

/// What a predictor is shown each control interval.
#[derive(Clone, Copy, Debug)]
pub struct HopState {
    /// How long the hop takes to send what waits at the access point.
    pub drains_in: Span,
    /// MSDUs that its queue refused since the last interval.
    pub drops: u64,
}

/// Predicts the loss class of the coming round trip.
pub trait Predictor: DynClone + Send {
    /// The class, given the hop's state now.
    fn predict(&mut self, state: &HopState) -> LossClass;
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
    fn predict(&mut self, state: &HopState) -> LossClass {
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

    fn state(drains_in_ms: u64, drops: u64) -> HopState {
        HopState { drains_in: Span::from_millis(drains_in_ms), drops }
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
