//! Trying again what has failed: at once, and then ever more rarely, so that whoever makes it fail costs little.

use lasthop_units::{Span, Time};

/// When something may be tried again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    next: Time,
    gap: Span,
}

/// Before the second attempt; each further one waits twice as long, and none longer than [`LONGEST`].
const FIRST: Span = Span::from_millis(10);
/// What is back is noticed within this.
const LONGEST: Span = Span::from_secs(1);

impl Backoff {
    /// Nothing has failed yet.
    pub(crate) const fn new() -> Backoff {
        Backoff { next: Time::ZERO, gap: FIRST }
    }

    /// True if it may be tried now, which is taken for done.
    pub(crate) fn may_try(&mut self, now: Time) -> bool {
        if now < self.next {
            return false;
        }
        self.next = now + self.gap;
        self.gap = (self.gap * 2).min(LONGEST);
        true
    }

    /// It works: the next attempt may be made at once.
    pub(crate) fn succeeded(&mut self) {
        *self = Backoff::new();
    }

    /// When it may be tried next.
    pub(crate) fn next(&self) -> Time {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_failing_is_tried_once_a_second_in_the_end() {
        let (mut backoff, mut tried) = (Backoff::new(), Vec::new());
        for ms in 0..10_000u64 {
            let now = Time::from_nanos((77_000 + ms) * 1_000_000);
            if backoff.may_try(now) {
                assert!(backoff.next() > now);
                tried.push(ms);
            }
        }
        assert_eq!(tried[..8], [0, 10, 30, 70, 150, 310, 630, 1_270]);
        assert_eq!(tried[8..], [2_270, 3_270, 4_270, 5_270, 6_270, 7_270, 8_270, 9_270]);
        backoff.succeeded();
        assert!(backoff.may_try(Time::from_nanos(1)));
    }
}
