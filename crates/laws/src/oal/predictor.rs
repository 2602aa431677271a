//! Whether the hop is about to lose.
//! Source:     oal.md A.3 step 7 (classes) and A.4 (acting rule and hysteresis).
//! Equations:  act = class in {Poor, Bad};   release after n decisions in a row that do not act
//! Symbols:    n -> `release_after`
//! Deviations: the class comes from a backlog threshold, not from a learned tree, which will take its place behind
//!             [`Predictor`]; a backlog is measured in time, so that one threshold fits every rate.
//! Checked by: tests::*

use lasthop_units::{Bytes, Rate, Span};

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
    /// Everything that waits at the access point.
    pub backlog: Bytes,
    /// What the hop carries now.
    pub capacity: Rate,
    /// MSDUs that its queue refused since the last interval.
    pub drops: u64,
}

/// Predicts the loss class of the coming round trip.
pub trait Predictor: Send {
    /// The class, given the hop's state now.
    fn predict(&mut self, state: &HopState) -> LossClass;
}

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
        let drains_in = state.capacity.time_for(state.backlog).unwrap_or(Span::MAX);
        match state {
            _ if state.drops > 0 => LossClass::Bad,
            _ if drains_in >= self.limit => LossClass::Poor,
            _ if drains_in >= self.limit / 2 => LossClass::Acceptable,
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

    fn state(backlog: u64, drops: u64) -> HopState {
        HopState { backlog: Bytes::new(backlog), capacity: Rate::from_mbit(80), drops }
    }

    #[test]
    fn the_threshold_is_a_drain_time() {
        // 80 Mbit/s carry 10 kB a millisecond.
        let mut threshold = BacklogThreshold::new(Span::from_millis(4));
        assert_eq!(threshold.predict(&state(10_000, 0)), LossClass::Good);
        assert_eq!(threshold.predict(&state(20_000, 0)), LossClass::Acceptable);
        assert_eq!(threshold.predict(&state(40_000, 0)), LossClass::Poor);
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
