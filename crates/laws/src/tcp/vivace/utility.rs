//! What a monitor interval is worth, and how fast the round-trip time rose in it.
//! Source:     Dong et al. 2018 section 3 (equation 1 and its constants), section 4.3 (regression and filter).
//! Equations:  u = x^0.9 - 900 x g - 11.35 x L;   g = sum (t - mean t)(RTT - mean RTT) / sum (t - mean t)^2
//! Symbols:    x, Mbit/s of 10^6 bit -> `rate`; g, seconds a second -> `gradient`; L, share of what was sent -> `loss`;
//!             t, when the segment left
//! Deviations: none. The public PCC-Uspace counts 1 Mbit = 1024 * 1024 bit and has two other utilities; neither is used.
//! Validity:   the constants hold for x in Mbit/s only: u does not scale with the unit.
//! Checked by: tests::* (worked by hand)

use lasthop_units::{Span, Time};

const EXPONENT: f64 = 0.9;
/// b of the paper.
const LATENCY_WEIGHT: f64 = 900.0;
/// c of the paper.
const LOSS_WEIGHT: f64 = 11.35;
/// Smaller gradients of the round-trip time count as zero.
const GRADIENT_FILTER: f64 = 0.01;

/// The utility of sending at `rate` Mbit/s where the round-trip time changes by `gradient` seconds a second and the share
/// `loss` is lost.
pub(super) fn utility(rate: f64, gradient: f64, loss: f64) -> f64 {
    rate.powf(EXPONENT) - LATENCY_WEIGHT * rate * gradient - LOSS_WEIGHT * rate * loss
}

/// `gradient`, or zero where it is too small to tell from noise.
pub(super) fn filtered(gradient: f64) -> f64 {
    if gradient.abs() < GRADIENT_FILTER { 0.0 } else { gradient }
}

/// The straight line through round-trip times over the moments at which their segments left.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    /// The first sample: others count from it, so that the sums keep their digits.
    origin: Option<(Time, Span)>,
    /// The latest moment.
    last: Time,
    count: f64,
    time: f64,
    rtt: f64,
    time_squared: f64,
    product: f64,
}

impl Line {
    /// A segment that left at `sent_at` took `rtt`.
    pub(super) fn add(&mut self, sent_at: Time, rtt: Span) {
        let (first, least) = *self.origin.get_or_insert((sent_at, rtt));
        let time = sent_at.as_secs_f64() - first.as_secs_f64();
        let rise = rtt.as_secs_f64() - least.as_secs_f64();
        self.last = self.last.max(sent_at);
        self.count += 1.0;
        self.time += time;
        self.rtt += rise;
        self.time_squared += time * time;
        self.product += time * rise;
    }

    /// How long after the first moment the last one was.
    pub(super) fn covers(&self) -> Span {
        self.origin.map_or(Span::ZERO, |(first, _)| self.last.since(first))
    }

    /// Its slope in seconds a second; zero where samples of two moments are missing.
    pub(super) fn slope(&self) -> f64 {
        if self.count < 2.0 {
            return 0.0;
        }
        let spread = self.time_squared - self.time * self.time / self.count;
        let slope = (self.product - self.time * self.rtt / self.count) / spread;
        if spread > 0.0 && slope.is_finite() { slope } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, want: f64) {
        assert!((got - want).abs() < 1e-6 * want.abs().max(1.0), "{got} for {want}");
    }

    #[test]
    fn the_utility_is_the_printed_one() {
        // 10^0.9 = 7.943282347, 100^0.9 = 63.095734448, 1^0.9 = 1.
        near(utility(10.0, 0.0, 0.0), 7.943_282_347);
        near(utility(100.0, 0.0, 0.0), 63.095_734_448);
        // 900 * 10 * 0.02 = 180;   11.35 * 10 * 0.05 = 5.675.
        near(utility(10.0, 0.02, 0.0), 7.943_282_347 - 180.0);
        near(utility(10.0, 0.0, 0.05), 7.943_282_347 - 5.675);
        near(utility(100.0, 0.02, 0.05), 63.095_734_448 - 1800.0 - 56.75);
        // A queue that drains is worth something.
        near(utility(1.0, -0.1, 0.0), 1.0 + 90.0);
    }

    #[test]
    fn a_megabit_has_ten_to_the_six_bit() {
        // In units of 2^20 bit 10 Mbit/s would be worth 9.536743^0.9 = 7.611362.
        assert!((utility(10.0, 0.0, 0.0) - 7.611_362).abs() > 0.3);
    }

    #[test]
    fn gradients_below_a_hundredth_are_noise() {
        assert_eq!(filtered(0.0099), 0.0);
        assert_eq!(filtered(-0.0099), 0.0);
        assert_eq!(filtered(0.01), 0.01);
        assert_eq!(filtered(-0.5), -0.5);
    }

    #[test]
    fn the_slope_is_that_of_least_squares() {
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let mut line = Line::default();
        assert_eq!(line.slope(), 0.0);
        line.add(at(1000), Span::from_millis(20));
        assert_eq!(line.slope(), 0.0);
        line.add(at(1000), Span::from_millis(25));
        assert_eq!(line.slope(), 0.0, "one moment has no slope");
        // Times 0, 1, 2, 3 and round trips 20, 21, 21, 24: means 1.5 and 21.5; (2.25 + 0.25 - 0.25 + 3.75) / 5 = 1.2.
        let mut line = Line::default();
        for (time, rtt) in [(0, 20), (1, 21), (2, 21), (3, 24)] {
            line.add(at(5000 + time), Span::from_millis(rtt));
        }
        near(line.slope(), 1.2);
    }
}
