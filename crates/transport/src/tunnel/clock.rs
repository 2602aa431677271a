//! By how much the other end's clock is ahead of ours.
//! Source:     RFC 5905 sections 8 (offset and delay from four times) and 10 (clock filter: of several samples that of the least delay).
//! Equations:  theta = ((T2 - T1) + (T3 - T4)) / 2;   delta = (T4 - T1) - (T3 - T2);   error = delta / 2 + phi age + 1 us
//! Symbols:    T1 -> when a packet left here; T3 -> when the packet with its acknowledgement left there; T2 -> T3 less the delay that
//!             the acknowledgement names; T4 -> when that arrived; theta -> [`ClockOffset::ahead`], error -> [`ClockOffset::error`]
//! Deviations: the filter chooses among the samples of 10 to 20 s, not among eight; 1 us is what the acknowledgement's delay is cut by.
//!             What is applied stays as it is while the newest choice allows it, so that delays have no steps without need; it
//!             begins at none: hosts that agree, as far as can be told, are left alone.
//! Validity:   clocks that drift apart by no more than phi, 15 parts in a million. The error is a bound only then; it is half the least
//!             round trip, all of which could lie in one direction.     Checked by: tests::*, tests/integration/clock.rs

use lasthop_units::{Span, Time};

/// What is known of the other end's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// By how many nanoseconds it is ahead; negative if it is behind.
    pub ahead: i64,
    /// How far the truth may be from `ahead`, either way.
    pub error: Span,
}

/// Samples, and what is made of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    /// The best of the window that began then, and of the one before.
    began: Time,
    best: [Option<Sample>; 2],
    applied: i64,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    ahead: i64,
    half: Span,
    at: Time,
}

/// Samples are the best of as much.
const WINDOW: Span = Span::from_secs(10);
/// A microsecond in so many of age: 15 parts in a million.
const DRIFT: u64 = 66_667;

impl Clock {
    /// Takes in the four times of a packet and its acknowledgement: `left` and `back` by our clock, `arrived` and `answered` by the
    /// other's.
    pub(super) fn sample(&mut self, left: Time, arrived: Time, answered: Time, back: Time) {
        let [t1, t2, t3, t4] = [left, arrived, answered, back].map(|time| i128::from(time.as_nanos()));
        let (ahead, delay) = ((t2 - t1 + t3 - t4) / 2, (t4 - t1) - (t3 - t2));
        // An answer from before the question is none.
        let (Ok(ahead), Ok(delay)) = (i64::try_from(ahead), u64::try_from(delay)) else { return };
        if back.since(self.began) >= WINDOW {
            (self.began, self.best) = (back, [None, self.best[0]]);
        }
        let sample = Sample { ahead, half: Span::from_nanos(delay) / 2, at: back };
        if self.best[0].is_none_or(|best| sample.error(back) <= best.error(back)) {
            self.best[0] = Some(sample);
        }
        if let Some(ClockOffset { ahead, error }) = self.estimate(back)
            && self.applied.abs_diff(ahead) > error.as_nanos()
        {
            self.applied = ahead;
        }
    }

    /// What is applied, and how far that may be from the truth; `None` before there was a sample.
    pub(super) fn offset(&self, now: Time) -> Option<ClockOffset> {
        let ClockOffset { ahead, error } = self.estimate(now)?;
        let away = Span::from_nanos(self.applied.abs_diff(ahead));
        Some(ClockOffset { ahead: self.applied, error: error + away })
    }

    /// The other clock's time at our `now`.
    pub(super) fn there(&self, now: Time) -> Time {
        Time::from_nanos(now.as_nanos().saturating_add_signed(self.applied))
    }

    fn estimate(&self, now: Time) -> Option<ClockOffset> {
        let best = self.best.iter().flatten().min_by_key(|sample| sample.error(now))?;
        Some(ClockOffset { ahead: best.ahead, error: best.error(now) })
    }
}

impl Sample {
    fn error(&self, now: Time) -> Span {
        self.half + now.since(self.at) / DRIFT + Span::from_micros(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Time {
        Time::from_nanos(us * 1000)
    }

    #[test]
    fn four_times_give_the_offset_and_its_bound() {
        let mut clock = Clock::default();
        assert_eq!(clock.offset(us(0)), None);
        // Ahead by a second; 4 ms there, 2 ms back, 10 ms in between.
        clock.sample(us(10_000), us(1_014_000), us(1_024_000), us(26_000));
        let found = clock.offset(us(26_000)).expect("a sample");
        assert_eq!((found.ahead, found.error), (1_001_000_000, Span::from_micros(3_001)));
        assert_eq!(clock.there(us(5)), us(1_001_005));
        // A better one that allows what is applied leaves it, and one that does not moves it.
        clock.sample(us(30_000), us(1_032_000), us(1_032_000), us(32_000));
        assert_eq!(clock.offset(us(32_000)).expect("a sample").ahead, 1_001_000_000);
        clock.sample(us(40_000), us(1_040_100), us(1_040_100), us(40_200));
        assert_eq!(clock.offset(us(40_200)).expect("a sample").ahead, 1_000_000_000);
    }

    #[test]
    fn clocks_that_may_agree_are_left_alone() {
        let mut clock = Clock::default();
        clock.sample(us(10_000), us(14_000), us(24_000), us(26_000));
        assert_eq!((clock.offset(us(26_000)).expect("a sample").ahead, clock.there(us(7))), (0, us(7)));
    }

    #[test]
    fn times_without_sense_do_no_harm() {
        let mut clock = Clock::default();
        for times in [[5, 0, 9, 1], [0, 0, u64::MAX, 0], [u64::MAX, 0, 0, u64::MAX], [0, u64::MAX, 0, 0]] {
            let [a, b, c, d] = times.map(Time::from_nanos);
            clock.sample(a, b, c, d);
            clock.there(d);
            clock.offset(Time::ZERO);
        }
    }

    #[test]
    fn old_samples_are_forgotten() {
        let mut clock = Clock::default();
        let s = |s: u64| us(s * 1_000_000);
        clock.sample(s(1), s(101), s(101), s(1) + Span::from_micros(10));
        assert_eq!(clock.offset(s(2)).expect("a sample").ahead, 99_999_995_000);
        // The other clock is set; every second there is a sample, of less quality.
        for n in 2..30 {
            clock.sample(s(n), s(n), s(n), s(n) + Span::from_millis(20));
        }
        let found = clock.offset(s(30)).expect("a sample");
        assert_eq!(found.ahead, -10_000_000, "within 10 ms of 0");
    }
}
