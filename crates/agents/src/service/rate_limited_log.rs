//! Saying that something goes on: soon, and then ever more rarely, so that nobody fills a log by making it go on.

use lasthop_units::{Span, Time};

/// When something that goes on is told.
#[derive(Debug)]
pub struct LogLimiter {
    /// After so long it is told first: what comes together is told together.
    first: Span,
    /// When it may be told next, and how long it will be kept after that.
    next: Time,
    gap: Span,
    last: Option<Time>,
    untold: bool,
}

/// Between the first two lines; each further one waits [`LONGER`] times as long, and none longer than [`LONGEST`].
const GAP: Span = Span::from_secs(10);
const LONGER: u64 = 4;
/// What has not gone on for so long is new when it does.
const LONGEST: Span = Span::from_secs(600);

impl LogLimiter {
    /// Something that is told `first` after it has begun.
    pub fn new(first: Span) -> LogLimiter {
        LogLimiter { first, next: Time::ZERO, gap: GAP, last: None, untold: false }
    }

    /// It goes on.
    pub fn goes_on(&mut self, now: Time) {
        if self.last.is_none_or(|last| now.since(last) >= LONGEST) {
            (self.next, self.gap) = (now + self.first, GAP);
        }
        (self.last, self.untold) = (Some(now), true);
    }

    /// True if it is to be told now, which is taken for done.
    pub fn is_due(&mut self, now: Time) -> bool {
        if !self.untold || now < self.next {
            return false;
        }
        (self.next, self.untold) = (now + self.gap, false);
        self.gap = (self.gap * LONGER).min(LONGEST);
        true
    }

    /// Nothing is told before this.
    pub fn not_before(&self) -> Time {
        self.next
    }
}

/// What happens again and again, to be told together: how often since it was told last, and the last time.
#[derive(Debug)]
pub struct RateLimitedLog<T> {
    limiter: LogLimiter,
    count: u64,
    last: Option<T>,
}

/// What comes within this time of the first is told with it.
const GATHER: Span = Span::from_secs(1);

impl<T> RateLimitedLog<T> {
    /// Nothing has happened yet.
    pub fn new() -> RateLimitedLog<T> {
        RateLimitedLog { limiter: LogLimiter::new(GATHER), count: 0, last: None }
    }

    /// It has happened.
    pub fn add(&mut self, now: Time, what: T) {
        self.add_many(now, 1, what);
    }

    /// It has happened so many times.
    pub fn add_many(&mut self, now: Time, number: u64, what: T) {
        self.limiter.goes_on(now);
        (self.count, self.last) = (self.count + number, Some(what));
    }

    /// How often, and the last, if it is time to tell it, which is taken for done.
    pub fn take(&mut self, now: Time) -> Option<(u64, T)> {
        if !self.limiter.is_due(now) {
            return None;
        }
        Some((std::mem::take(&mut self.count), self.last.take()?))
    }
}

impl<T> Default for RateLimitedLog<T> {
    fn default() -> RateLimitedLog<T> {
        RateLimitedLog::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos((5_000_000 + ms) * 1_000_000)
    }

    /// When lines are written of what goes on every 10 ms from `from` to `to`, in milliseconds.
    fn told(limiter: &mut LogLimiter, from: u64, to: u64) -> Vec<u64> {
        let mut told = Vec::new();
        for ms in (from..to).step_by(10) {
            limiter.goes_on(at(ms));
            if limiter.is_due(at(ms)) {
                told.push(ms - from);
            }
        }
        told
    }

    #[test]
    fn a_day_of_it_is_told_within_a_second_and_in_few_lines() {
        let mut limiter = LogLimiter::new(Span::from_secs(1));
        assert_eq!(told(&mut limiter, 0, 300_000), [1_000, 11_000, 51_000, 211_000]);
        assert_eq!(told(&mut limiter, 300_000, 24 * 3_600_000).len(), 143);
        // After a rest it is news again.
        assert_eq!(told(&mut limiter, 30 * 3_600_000, 30 * 3_600_000 + 20_000), [1_000, 11_000]);
    }

    #[test]
    fn a_single_event_is_logged_once_and_recurring_ones_rarely() {
        let mut limiter = LogLimiter::new(Span::from_secs(1));
        limiter.goes_on(at(0));
        assert_eq!(limiter.not_before(), at(1_000));
        assert!(!limiter.is_due(at(999)) && limiter.is_due(at(1_000)) && !limiter.is_due(at(90_000)));
        assert_eq!(limiter.not_before(), at(11_000));
        // An hour of what lasts a second and rests two.
        let lines: usize = (0..1200).map(|n| told(&mut limiter, 100_000 + n * 3_000, 101_000 + n * 3_000).len()).sum();
        assert!((6..=9).contains(&lines), "{lines} lines");
    }
}
