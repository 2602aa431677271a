//! When terminals empty the hop together, so that each sees how long its path is without a queue.
//! Source:     the purpose is that of ProbeRTT of [draft-ietf-ccwg-bbr]; that terminals which hear each other do it at once is ours.
//! Equations:  a drain lasts max(200 ms, R), beside others that fill the hop up to 2 R (see `competition`); the next comes 10 s later, and 1 s later while drains still shorten a minimum by an eighth
//! Deviations: the window falls to half of what the path is thought to hold, not to four packets.
//! Validity:   one terminal's drain among many that do not hear it empties its own part of the queue only.
//! Checked by: tests::*

use lasthop_units::{Span, Time};

/// The shortest drain.
const LEAST: Span = Span::from_millis(200);
/// The longest that only empties the hop, whatever round trips are.
const SHORT: Span = Span::from_secs(2);
/// The longest of all: one that must last a round trip, to show whether the queue is the terminals'.
const MOST: Span = Span::from_secs(8);
/// From one drain to the next.
const PERIOD: Span = Span::from_secs(10);
/// The same while minima still fall, or something is suspected; no drain begins sooner after another, whoever asks for it.
const SOON: Span = Span::from_secs(1);
/// The same while others fill the hop.
const RARE: Span = Span::from_secs(30);

/// A terminal's drains.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drains {
    /// When the present one ends.
    until: Option<Time>,
    /// When the last one began, and when the next may.
    began: Option<Time>,
    ended: Time,
    next: Time,
    /// Some minimum has fallen since the last one began.
    fruitful: bool,
    deep: bool,
}

impl Default for Drains {
    fn default() -> Drains {
        Drains { until: None, began: None, ended: Time::ZERO, next: Time::ZERO, fruitful: false, deep: true }
    }
}

impl Drains {
    /// True while one lasts. To be asked at each look: the first time that one is over counts as its end.
    pub(super) fn lasts(&mut self, now: Time) -> bool {
        if self.until.is_some_and(|until| until <= now) {
            (self.until, self.ended) = (None, now);
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

    /// The next one may come soon after the last has ended.
    pub(super) fn hurry(&mut self) {
        self.next = self.next.min(self.ended + SOON * 2);
    }

    /// The next one has time.
    pub(super) fn put_off(&mut self, now: Time) {
        self.next = now + RARE;
    }

    /// How long one need last that only empties the hop, with this round trip.
    pub(super) fn short(rtt: Span) -> Span {
        rtt.min(SHORT)
    }

    /// True if one may last so long.
    pub(super) fn spans(long: Span) -> bool {
        long <= MOST
    }

    /// True if a neighbour's may be joined: `rarely`, if others fill the hop.
    pub(super) fn may_join(&self, now: Time, rarely: bool) -> bool {
        let apart = if rarely { RARE / 2 } else { SOON };
        self.until.is_none() && self.began.is_none_or(|began| now.since(began) >= apart)
    }

    /// One begins, that lasts `long`.
    pub(super) fn begin(&mut self, now: Time, long: Span) {
        (self.began, self.until, self.fruitful) = (Some(now), Some(now + long.clamp(LEAST, MOST)), false);
    }

    /// A path's minimum is `now` where it was `before`.
    pub(super) fn on_minimum(&mut self, before: Span, now: Span) {
        self.fruitful |= Drains::is_news(before, now);
    }

    /// True if a minimum has fallen by an eighth.
    pub(super) fn is_news(before: Span, now: Span) -> bool {
        now + before / 8 < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::brief::{at, ms};

    #[test]
    fn drains_are_frequent_while_they_find_shorter_paths() {
        let mut drains = Drains::default();
        assert!(drains.is_due(at(0)));
        drains.begin(at(0), ms(20));
        assert!(drains.lasts(at(199)) && !drains.is_due(at(199)));
        drains.on_minimum(ms(100), ms(50));
        assert!(!drains.lasts(at(200)));
        assert!(!drains.is_due(at(1199)) && drains.is_due(at(1200)));
        drains.begin(at(1200), ms(300));
        drains.on_minimum(ms(50), ms(49));
        assert!(drains.lasts(at(1499)) && !drains.lasts(at(1500)));
        assert!(!drains.is_due(at(11_499)) && drains.is_due(at(11_500)));
    }

    #[test]
    fn whoever_asks_often_is_joined_once_a_second_at_most() {
        let mut drains = Drains::default();
        assert!(drains.may_join(at(0), false));
        drains.begin(at(0), ms(20));
        assert!(!drains.may_join(at(100), false) && !drains.lasts(at(300)));
        assert!(!drains.may_join(at(999), false) && drains.may_join(at(1000), false));
    }

    #[test]
    fn round_trips_of_minutes_do_not_make_long_drains() {
        let mut drains = Drains::default();
        drains.begin(at(0), Span::from_secs(60));
        assert!(drains.lasts(at(7999)) && !drains.lasts(at(8000)));
        assert!(Drains::spans(Span::from_secs(8)) && !Drains::spans(Span::from_secs(9)));
    }
}
