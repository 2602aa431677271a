//! When terminals empty the hop together, so that each sees how long its path is without a queue.
//! Source:     the purpose is that of ProbeRTT of [draft-ietf-ccwg-bbr]; that terminals which hear each other do it at once is ours.
//! Equations:  a drain lasts max(200 ms, R); the next comes 10 s later, and 1 s later while drains still shorten a minimum by an eighth
//! Deviations: the window falls to half of what the path is thought to hold, not to four packets.
//! Validity:   one terminal's drain among many that do not hear it empties its own part of the queue only.
//! Checked by: tests::*

use lasthop_units::{Span, Time};

/// The shortest drain.
const LEAST: Span = Span::from_millis(200);
/// The longest, whatever round trips are.
const MOST: Span = Span::from_secs(2);
/// From one drain to the next.
const PERIOD: Span = Span::from_secs(10);
/// The same while minima still fall; no drain begins sooner after another, whoever asks for it.
const SOON: Span = Span::from_secs(1);

/// A terminal's drains.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drains {
    /// When the present one ends.
    until: Option<Time>,
    /// When the last one began, and when the next may.
    began: Option<Time>,
    next: Time,
    /// Some minimum has fallen since the last one began.
    fruitful: bool,
    deep: bool,
}

impl Default for Drains {
    fn default() -> Drains {
        Drains { until: None, began: None, next: Time::ZERO, fruitful: false, deep: true }
    }
}

impl Drains {
    /// True while one lasts. To be asked at each look: the first time that one is over counts as its end.
    pub(super) fn lasts(&mut self, now: Time) -> bool {
        if self.until.is_some_and(|until| until <= now) {
            self.until = None;
            self.next = now + if self.fruitful { SOON } else { PERIOD };
            self.deep = self.fruitful;
        }
        self.until.is_some()
    }

    /// True if the present one, or the next, should go deep: minima may still fall.
    pub(super) fn is_deep(&self) -> bool {
        self.deep
    }

    /// When the present one ends.
    pub(super) fn until(&self) -> Option<Time> {
        self.until
    }

    /// True if the terminal should begin one of its own accord where a queue stands.
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.until.is_none() && self.next <= now
    }

    /// True if a neighbour's may be joined.
    pub(super) fn may_join(&self, now: Time) -> bool {
        self.until.is_none() && self.began.is_none_or(|began| now.since(began) >= SOON)
    }

    /// One begins, for connections of which the longest round trip is `rtt`.
    pub(super) fn begin(&mut self, now: Time, rtt: Span) {
        (self.began, self.until, self.fruitful) = (Some(now), Some(now + rtt.clamp(LEAST, MOST)), false);
    }

    /// A path's minimum is `now` where it was `before`.
    pub(super) fn seen(&mut self, before: Span, now: Span) {
        self.fruitful |= now + before / 8 < before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    const fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    #[test]
    fn they_come_often_while_they_show_shorter_paths_and_rarely_after() {
        let mut drains = Drains::default();
        assert!(drains.is_due(at(0)));
        drains.begin(at(0), ms(20));
        assert!(drains.lasts(at(199)) && !drains.is_due(at(199)));
        drains.seen(ms(100), ms(50));
        assert!(!drains.lasts(at(200)));
        assert!(!drains.is_due(at(1199)) && drains.is_due(at(1200)));
        drains.begin(at(1200), ms(300));
        drains.seen(ms(50), ms(49));
        assert!(drains.lasts(at(1499)) && !drains.lasts(at(1500)));
        assert!(!drains.is_due(at(11_499)) && drains.is_due(at(11_500)));
    }

    #[test]
    fn whoever_asks_often_is_joined_once_a_second_at_most() {
        let mut drains = Drains::default();
        assert!(drains.may_join(at(0)));
        drains.begin(at(0), ms(20));
        assert!(!drains.may_join(at(100)) && !drains.lasts(at(300)));
        assert!(!drains.may_join(at(999)) && drains.may_join(at(1000)));
    }

    #[test]
    fn round_trips_of_minutes_do_not_make_long_drains() {
        let mut drains = Drains::default();
        drains.begin(at(0), Span::from_secs(60));
        assert!(drains.lasts(at(1999)) && !drains.lasts(at(2000)));
    }
}
