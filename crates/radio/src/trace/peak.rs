//! The rate that a recorded link is capable of: what a driver would call its PHY rate.
//!
//! A trace says how much got through, not at which rate. Its radio was capable of at least what it delivered in the best millisecond
//! lately; a smaller rate would be contradicted by what comes through, for opportunities come in bursts.

use lasthop_units::{Rate, Span, Time};
use lasthop_wire::delivery::{DeliveryTrace, OPPORTUNITY};

/// How long a good millisecond is remembered.
const MEMORY: u64 = 10;
/// In so many milliseconds each.
const BIN: u64 = 100;
const MS: u64 = 1_000_000;

/// The best milliseconds of a trace.
#[derive(Clone, Debug)]
pub(super) struct Peaks {
    /// Most opportunities in one millisecond of each bin of a lap.
    bins: Vec<u32>,
    period: u64,
    /// The millisecond that was asked of last, and the answer.
    last: (u64, Rate),
}

impl Peaks {
    pub fn new(trace: &DeliveryTrace) -> Peaks {
        let period = trace.period().as_nanos() / MS;
        let mut bins = vec![0; usize::try_from(period / BIN + 1).unwrap_or(1)];
        let stamps: Vec<u64> = trace.lap().map(|at| at.as_nanos() / MS).collect();
        for same in stamps.chunk_by(|a, b| a == b) {
            let bin = &mut bins[(same[0] / BIN) as usize];
            *bin = (*bin).max(u32::try_from(same.len()).unwrap_or(u32::MAX));
        }
        Peaks { bins, period, last: (u64::MAX, Rate::ZERO) }
    }

    /// What the link was seen to be capable of, by what is over at `now`: in the second before, and the bin that has begun.
    pub fn rate(&mut self, trace: &DeliveryTrace, now: Time) -> Rate {
        let ms = now.as_nanos() / MS;
        if self.last.0 != ms {
            self.last = (ms, self.look(trace, ms));
        }
        self.last.1
    }

    fn look(&self, trace: &DeliveryTrace, ms: u64) -> Rate {
        let count = self.bins.len() as u64;
        let (lap, within) = (ms / self.period, ms % self.period);
        let bin = within / BIN;
        // The bins before it; those of the lap before where there are none, and none before the first lap.
        let earlier = (1..=MEMORY).filter_map(|back| match bin.checked_sub(back) {
            Some(bin) => Some(self.bins[bin as usize]),
            None if lap > 0 => Some(self.bins[((bin + MEMORY * count - back) % count) as usize]),
            None => None,
        });
        let at = |ms: u64| Time::ZERO + Span::from_millis(ms);
        let begins = lap * self.period + bin * BIN;
        let (mut n, mut best) = (begins.checked_sub(1).map_or(0, |before| trace.until(at(before))), 0);
        let end = trace.until(at(ms));
        while n < end {
            let next = trace.until(trace.opportunity(n));
            best = best.max(u32::try_from(next - n).unwrap_or(u32::MAX));
            n = next;
        }
        let best = earlier.chain([best]).max().unwrap_or(0);
        Rate::of(OPPORTUNITY * u64::from(best), Span::from_millis(1)).unwrap_or(Rate::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_the_best_millisecond_of_the_past_second() {
        let stamps = [vec![5, 5, 5], vec![40], vec![1_500, 1_500], vec![3_000]].concat();
        let trace = DeliveryTrace::new(stamps).expect("in order");
        let mut peaks = Peaks::new(&trace);
        let mut at = |ms: u64| {
            let rate = peaks.rate(&trace, Time::ZERO + Span::from_millis(ms));
            rate.as_bps() / (OPPORTUNITY.get() * 8 * 1000)
        };
        assert_eq!([at(4), at(5), at(50), at(999)], [0, 3, 3, 3]);
        assert_eq!([at(1_150), at(1_499), at(1_500), at(2_400)], [0, 0, 2, 2]);
        // The second lap begins with the last opportunity of the first.
        assert_eq!([at(2_999), at(3_000), at(3_004), at(3_005)], [0, 1, 1, 3]);
    }
}
