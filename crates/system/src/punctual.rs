//! Being on time: waking a little early and watching the clock for the rest, within a budget.
//!
//! A sleeping thread comes late by what the timer interrupt, the processor's wake-up and the scheduler take: a few microseconds
//! on bare metal, tens of them in a virtual machine. Who wakes that much early and watches the clock is on time. How much that
//! is, the thread learns from its own wake-ups, so that a machine that wakes fast does not pay for one that does not.
//! A real-time thread that watched all the time would be throttled by the kernel and starve everything else on its processor;
//! hence the budget.
//! Source:     stochastic approximation of a quantile (Robbins and Monro 1951), with steps of constant size, because machines change.
//! Equations:  early' = early + UP if a wake-up was later than `early`, else early - UP (1 - q)/q;   q = 99 %
//! Deviations: `early` stays within `LEAST..=MOST`: what takes longer than that is no wake-up but a machine that has stopped.
//! Validity:   waits of tens of microseconds and more.     Checked by: tests::*

use crate::poll::Poll;
use lasthop_units::{Span, Time};
use std::io;

/// Decides between sleeping and watching the clock.
#[derive(Clone, Copy, Debug)]
pub struct Punctual {
    /// One part in so many of all time may be spent watching.
    share: u64,
    /// Time that may still be spent watching.
    budget: Span,
    updated: Time,
    early: Span,
}

/// Up to when to wait.
#[derive(Clone, Copy, Debug)]
pub struct Until {
    /// Something must be done at this moment; `None` if nothing must.
    pub due: Option<Time>,
    /// Something is to be done about then, which may be late by what a wake-up takes.
    pub about: Time,
}

/// How early to wake before anything is known of the machine.
const FIRST: Span = Span::from_micros(50);
const LEAST: Span = Span::from_micros(5);
const MOST: Span = Span::from_micros(80);
/// How far one wake-up that was later than expected moves the expectation…
const UP: Span = Span::from_nanos(4950);
/// …and one that was not: one in a hundred is left behind.
const DOWN: Span = Span::from_nanos(50);
/// The longest time to watch in one go, and the budget of who has slept long.
const LONGEST: Span = Span::from_millis(5);

impl Punctual {
    /// Somebody with a full budget who may watch for one part in `share` of all time.
    pub fn new(now: Time, share: u64) -> Punctual {
        Punctual { share: share.max(1), budget: LONGEST, updated: now, early: FIRST }
    }

    /// Waits until a file is ready or the moment has come, of which `clock` tells; returns how many files are ready. It may
    /// come back early with none: look again.
    ///
    /// # Errors
    /// Those of [`Poll::wait`].
    pub fn wait(&mut self, poll: &mut Poll, clock: impl Fn() -> Time, until: Until) -> io::Result<usize> {
        let now = clock();
        let wait = self.plan(now, until);
        let ready = poll.wait(wait)?;
        match ready {
            0 if !wait.is_zero() => self.woke(clock().since(now + wait)),
            0 if until.due.is_none_or(|due| due > now) => self.watched(clock().since(now)),
            _ => {}
        }
        Ok(ready)
    }

    /// How long to sleep at `now`: zero means to look again at once.
    fn plan(&mut self, now: Time, until: Until) -> Span {
        self.budget = (self.budget + now.since(self.updated) / self.share).min(LONGEST);
        self.updated = now;
        let early = if self.budget >= self.early { self.early } else { Span::ZERO };
        let due = until.due.map_or(Time::MAX, |due| due.saturating_sub(early));
        due.min(until.about).since(now)
    }

    /// Accounts for a look that found nothing.
    fn watched(&mut self, span: Span) {
        self.budget = self.budget.saturating_sub(span);
    }

    /// A sleep has ended so much after its time.
    fn woke(&mut self, late: Span) {
        let early = if late > self.early { self.early + UP } else { self.early.saturating_sub(DOWN) };
        self.early = early.clamp(LEAST, MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_micros(us)
    }

    fn due(us: u64) -> Until {
        Until { due: Some(at(us)), about: Time::MAX }
    }

    #[test]
    fn it_wakes_early_and_then_watches() {
        let mut punctual = Punctual::new(Time::ZERO, 4);
        assert_eq!(punctual.plan(at(0), due(1000)), Span::from_micros(950));
        assert_eq!(punctual.plan(at(960), due(1000)), Span::ZERO);
        assert_eq!(punctual.plan(at(1005), due(1000)), Span::ZERO);
    }

    #[test]
    fn what_need_not_be_punctual_is_not_watched_for() {
        let mut punctual = Punctual::new(Time::ZERO, 4);
        assert_eq!(punctual.plan(at(0), Until { due: None, about: at(1000) }), Span::from_micros(1000));
        assert_eq!(punctual.plan(at(0), Until { due: Some(at(1010)), about: at(1000) }), Span::from_micros(960));
        assert_eq!(punctual.plan(at(0), Until { due: Some(at(5000)), about: at(1000) }), Span::from_micros(1000));
    }

    #[test]
    fn it_wakes_as_early_as_all_but_one_in_a_hundred_need() {
        let mut punctual = Punctual::new(Time::ZERO, 2);
        // 5 to 25 µs, and one in 250 a millisecond.
        let late = |n: u64| if n.is_multiple_of(250) { Span::from_millis(1) } else { Span::from_micros(5 + n % 21) };
        (1..100_000).for_each(|n| punctual.woke(late(n)));
        assert!((Span::from_micros(20)..=Span::from_micros(32)).contains(&punctual.early), "{}", punctual.early);
        // Everything much later: no further than the bound.
        (0..1000).for_each(|_| punctual.woke(Span::from_millis(2)));
        assert_eq!(punctual.early, MOST);
        (0..10_000).for_each(|_| punctual.woke(Span::ZERO));
        assert_eq!(punctual.early, LEAST);
    }

    #[test]
    fn watching_never_takes_more_than_its_share() {
        for share in [2, 4] {
            let mut punctual = Punctual::new(Time::ZERO, share);
            let (step, mut now, mut watched) = (Span::from_micros(1), Time::ZERO, Span::ZERO);
            while now < Time::ZERO + Span::from_secs(1) {
                // Something is always 25 µs ahead: without a budget this would watch for ever.
                let wait = punctual.plan(now, Until { due: Some(now + Span::from_micros(25)), about: Time::MAX });
                if wait.is_zero() {
                    punctual.watched(step);
                    watched += step;
                    now += step;
                } else {
                    now += wait;
                }
            }
            let most = Span::from_secs(1) / share;
            assert!(watched <= most + LONGEST && watched >= most.scale(0.8), "one part in {share}: {watched}");
        }
    }
}
