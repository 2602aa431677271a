//! Which interval is aimed at: the target, a longer one while the target cannot be had, or a shorter one for which there is room.
//! Source:     own; \[aggregation\] leaves frames of single packets where T̄ is out of reach (the least case of its
//!             Lemma 2).
//! Equations:  m = ĉ + w'1 where all send as much as they may (`controller::rounds`)
//!             out of reach from the second slot in a row with m > 1.05 T̄ on,   within reach from the second with m < T̄ on;
//!             from the first, if two slots have just told another ĉ
//!             within reach  T = min{ T̄, b },   out of reach  T = max{ T̄, m, ĉ / (1 - 1/2) }
//! Symbols:    ĉ -> `overhead`, m -> `shortest`, T̄ -> `asked`, b -> `queue_limit` ([`super::short_queue`]), T -> `interval`
//! Deviations: what is published sends single packets, in rounds of m. Why another interval: decision 9.
//!             * Where ĉ is most of m, single packets take hardly any of the air, and T̄ is missed in any case. What is aimed at is the
//!               shortest interval in which packets take half of the time; slow packets take that as singles.
//!             * Between T̄ and 1.05 T̄ nothing is to be gained by giving the target up.
//!             * ĉ is what single packets cannot tell and longer frames can (`overhead`): one that was wrong is found out there.
//!             * Not with [`OverheadRule::Round`]: its ĉ may be another hop's for ten seconds, and that law stays as
//!               published.
//! Validity:   what others send counts as overhead. Where several regulators on a channel are all out of reach, each takes the others'
//!             packets for overhead of its own, and only the most packets a frame bound what they aim at.
//! Checked by: tests::*, tests/integration/aggregation_loop.rs, crates/sim/tests/long/out_of_reach.rs

use super::params::OverheadRule;

/// Whether the target can be had.
#[derive(Clone, Debug, PartialEq)]
pub struct FeasibleTarget {
    /// The target, seconds.
    asked: f64,
    /// What the hop's queue has room for, seconds.
    queue_limit: f64,
    /// What is aimed at, seconds.
    interval: f64,
    /// True while the target counts as out of reach.
    out: bool,
    /// Slots in a row that say otherwise.
    against: u32,
    /// False if the target is aimed at whatever happens.
    yields: bool,
}

/// Above this multiple of the target the shortest round is out of reach; below the target itself it is within.
const OUT: f64 = 1.05;
/// Slots in a row that must say so.
const PATIENCE: u32 = 2;
/// Share of the time that packets are to have where the target is out of reach.
const USED: f64 = 0.5;

impl FeasibleTarget {
    /// Aims at `asked` seconds.
    pub fn new(asked: f64, rule: OverheadRule) -> FeasibleTarget {
        FeasibleTarget {
            asked,
            queue_limit: asked,
            interval: asked,
            out: false,
            against: 0,
            yields: rule == OverheadRule::Access,
        }
    }

    /// Nothing longer than `queue_limit` is to be aimed at while the target is within reach.
    pub fn bound(&mut self, queue_limit: f64) {
        self.queue_limit = queue_limit;
    }

    /// Folds one slot in, after which a round is believed to last `shortest` seconds at the least, `overhead` of them for accesses.
    /// `sure`: two slots have said so already. True if the target has come within reach, or is no longer.
    pub fn update(&mut self, overhead: f64, shortest: f64, sure: bool) -> bool {
        let otherwise = match self.out {
            true => shortest < self.asked,
            false => self.yields && shortest > OUT * self.asked,
        };
        self.against = if otherwise { self.against + 1 } else { 0 };
        let turns = self.against >= PATIENCE || otherwise && sure;
        if turns {
            (self.out, self.against) = (!self.out, 0);
        }
        let useful = shortest.max(overhead / (1.0 - USED));
        self.interval = if self.out { self.asked.max(useful) } else { self.asked.min(self.queue_limit) };
        turns
    }

    /// The interval that is aimed at, seconds.
    pub fn interval(&self) -> f64 {
        self.interval
    }

    /// True while the target is out of reach.
    pub fn is_out(&self) -> bool {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feasible_target() -> FeasibleTarget {
        FeasibleTarget::new(10e-3, OverheadRule::Access)
    }

    #[test]
    fn two_slots_of_long_rounds_make_half_of_the_air_the_target() {
        let mut feasible_target = feasible_target();
        assert!(
            !feasible_target.update(60e-3, 60.8e-3, false) && !feasible_target.is_out(),
            "one slot is not believed"
        );
        assert!(feasible_target.update(60e-3, 60.8e-3, false) && feasible_target.is_out());
        assert_eq!(feasible_target.interval(), 120e-3);
        // It follows what is believed of the overhead, and packets that take most of the time as singles stay single.
        assert!(!feasible_target.update(40e-3, 40.8e-3, false));
        assert_eq!(feasible_target.interval(), 80e-3);
        feasible_target.update(4e-3, 14e-3, false);
        assert_eq!(feasible_target.interval(), 14e-3);
    }

    #[test]
    fn it_returns_when_single_packets_fit_with_hysteresis() {
        let mut feasible_target = feasible_target();
        for _ in 0..10 {
            assert!(!feasible_target.update(9.6e-3, 10.4e-3, false), "4 % too long");
        }
        assert!(feasible_target.update(30e-3, 30.8e-3, true), "two slots have said so");
        for _ in 0..10 {
            assert!(!feasible_target.update(9.6e-3, 10.4e-3, false));
        }
        assert_eq!(feasible_target.interval(), 19.2e-3);
        assert!(
            !feasible_target.update(9e-3, 9.8e-3, false)
                && !feasible_target.update(9.6e-3, 10.4e-3, false)
                && !feasible_target.update(9e-3, 9.8e-3, false)
        );
        assert!(feasible_target.update(9e-3, 9.8e-3, false));
        assert_eq!((feasible_target.interval(), feasible_target.is_out()), (10e-3, false));
    }

    #[test]
    fn half_of_the_air_is_never_aimed_at_in_less_than_the_target() {
        let mut feasible_target = feasible_target();
        feasible_target.update(11e-3, 11e-3, true);
        feasible_target.update(4e-3, 9.5e-3, false);
        assert_eq!(feasible_target.interval(), 10e-3);
    }

    #[test]
    fn the_published_law_gives_no_target_up() {
        let mut feasible_target = FeasibleTarget::new(10e-3, OverheadRule::Round);
        (0..10).for_each(|_| assert!(!feasible_target.update(60e-3, 61e-3, true)));
        assert_eq!(feasible_target.interval(), 10e-3);
    }
}
