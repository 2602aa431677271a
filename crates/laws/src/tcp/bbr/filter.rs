//! A running maximum over a window of rounds.
//! Source:     K. Nichols' windowed min/max filter, as Linux has it (`lib/win_minmax.c`).
//! Equations:  the best, second-best and third-best sample, each later than the one before, aged by quarters of the window
//! Deviations: none.     Validity: rounds never decrease.
//! Checked by: tests::*
//!
//! Three samples stand for all of a window: exact while the maximum does not change, and at most a window late.

use lasthop_units::Rate;

/// The filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaxFilter {
    window: u64,
    best: [Sample; 3],
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    round: u64,
    rate: Rate,
}

impl MaxFilter {
    /// A filter over `window` rounds, empty.
    pub(crate) fn new(window: u64) -> MaxFilter {
        MaxFilter { window, best: [Sample::default(); 3] }
    }

    /// The maximum; zero without samples.
    pub(crate) fn get(&self) -> Rate {
        self.best[0].rate
    }

    /// Folds in the sample `rate` of round `round`.
    pub(crate) fn update(&mut self, round: u64, rate: Rate) {
        let new = Sample { round, rate };
        let best = &mut self.best;
        if rate >= best[0].rate || round - best[2].round > self.window {
            *best = [new; 3];
            return;
        }
        if rate >= best[1].rate {
            best[1] = new;
            best[2] = new;
        } else if rate >= best[2].rate {
            best[2] = new;
        }
        let age = round - best[0].round;
        if age > self.window {
            // The best has aged out: the others move up.
            *best = [best[1], best[2], new];
            if round - best[0].round > self.window {
                *best = [best[1], best[2], new];
            }
        } else if best[1].round == best[0].round && age > self.window / 4 {
            best[1] = new;
            best[2] = new;
        } else if best[2].round == best[1].round && age > self.window / 2 {
            best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_maximum_lives_for_its_window_and_no_longer() {
        let mut filter = MaxFilter::new(10);
        filter.update(0, Rate::from_mbit(100));
        (1..=10).for_each(|round| filter.update(round, Rate::from_mbit(50)));
        assert_eq!(filter.get(), Rate::from_mbit(100));
        filter.update(11, Rate::from_mbit(50));
        assert_eq!(filter.get(), Rate::from_mbit(50));
    }

    proptest! {
        #[test]
        fn the_filter_keeps_the_newest_and_never_exceeds_the_maximum(
            samples in prop::collection::vec((0u64..3, 1u64..1000), 1..200)
        ) {
            let (mut filter, mut round, mut all) = (MaxFilter::new(10), 0, Vec::new());
            for (step, mbit) in samples {
                round += step;
                all.push((round, Rate::from_mbit(mbit)));
                filter.update(round, Rate::from_mbit(mbit));
                let recent = all.iter().filter(|(r, _)| round - r <= 10).map(|(_, rate)| *rate);
                let max = recent.max().expect("the newest");
                prop_assert!(filter.get() <= max);
                prop_assert!(filter.get() >= Rate::from_mbit(mbit));
            }
        }
    }
}
