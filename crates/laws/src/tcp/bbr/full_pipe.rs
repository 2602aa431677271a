//! Has startup filled the pipe?
//! Source:     [draft-cardwell-iccrg-bbr-congestion-control-00] section 4.3.2.2.
//! Equations:  full after 3 rounds in which the bandwidth estimate did not grow by a quarter
//! Symbols:    BBR.full_bw -> `best`, BBR.full_bw_count -> `stalled`, BBR.filled_pipe -> `full`
//! Deviations: none.     Validity: rounds limited by the application are not counted.     Checked by: tests::*

use lasthop_units::Rate;

const GROWTH: f64 = 1.25;
const ROUNDS: u32 = 3;

/// The estimator.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    best: Rate,
    stalled: u32,
    full: bool,
}

impl FullPipe {
    /// An ACK was processed; `counts` if it begins a round that the network limited.
    pub(super) fn on_round(&mut self, counts: bool, bandwidth: Rate) {
        if self.full || !counts {
            return;
        }
        if bandwidth >= self.best.scale(GROWTH) {
            self.best = bandwidth;
            self.stalled = 0;
        } else {
            self.stalled += 1;
            self.full = self.stalled >= ROUNDS;
        }
    }

    /// A timeout: what was reached before is no measure any more.
    pub(super) fn forget(&mut self) {
        self.best = Rate::ZERO;
    }

    /// True from the moment the pipe was full.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rounds_without_a_quarter_more_fill_the_pipe() {
        let mut pipe = FullPipe::default();
        for mbit in [10, 20, 40, 48] {
            pipe.on_round(true, Rate::from_mbit(mbit));
        }
        pipe.on_round(true, Rate::from_mbit(49));
        pipe.on_round(false, Rate::from_mbit(49));
        assert!(!pipe.is_full());
        pipe.on_round(true, Rate::from_mbit(49));
        assert!(pipe.is_full());
    }

    #[test]
    fn growth_in_between_starts_the_count_again() {
        let mut pipe = FullPipe::default();
        for mbit in [40, 40, 40, 50, 50, 50] {
            pipe.on_round(true, Rate::from_mbit(mbit));
        }
        assert!(!pipe.is_full());
    }
}
