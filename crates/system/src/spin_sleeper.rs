//! Being on time: waking a little early and watching the clock for the rest, within a budget.
//!
//! A sleeping thread comes late by what the timer interrupt, the processor's wake-up and the scheduler take: a few microseconds
//! on bare metal, tens of them in a virtual machine. A thread that wakes that much early and watches the clock is on
//! time. How much that is, the thread learns from its own wake-ups, so that a machine that wakes fast does not pay for
//! one that does not. A real-time thread that watched all the time would be throttled by the kernel and starve
//! everything else on its processor; hence the budget, which is a share of the time that the thread does not need for
//! its work: the busier it is, the less it watches. Watching happens here, up to the moment, and not in rounds through
//! the caller's work, which would count for nothing.
//! Source:     stochastic approximation of a quantile (Robbins and Monro 1951), with steps of constant size, because machines change.
//! Equations:  early' = early + UP if a wake-up was later than `early`, else early - UP (1 - q)/q;   q = 99 %
//! Deviations: `early` stays within `LEAST..=MOST`: what takes longer than that is no wake-up but a machine that has stopped.
//! Validity:   waits of tens of microseconds and more.     Checked by: tests::*

use crate::poll::Poll;
use lasthop_units::{Span, Time};
use std::io;

/// Decides between sleeping and watching the clock.
#[derive(Clone, Copy, Debug)]
pub struct SpinSleeper {
    /// One part in so many of the time spent waiting may be spent watching.
    share: u64,
    /// Time that may still be spent watching.
    budget: Span,
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

impl From<Time> for Until {
    /// Nothing must be done at a moment.
    fn from(about: Time) -> Until {
        Until { due: None, about }
    }
}

/// How early to wake before anything is known of the machine.
const FIRST: Span = Span::from_micros(50);
const LEAST: Span = Span::from_micros(5);
const MOST: Span = Span::from_micros(80);
/// How far one wake-up that was later than expected moves the expectation…
const UP: Span = Span::from_nanos(4950);
/// …and one that was not: one in a hundred is left behind.
const DOWN: Span = Span::from_nanos(50);
/// The longest time to watch in one go, and the budget of a thread that has slept long.
const LONGEST: Span = Span::from_millis(5);

impl SpinSleeper {
    /// Somebody with a full budget who may watch for one part in `share` of the time that passes in [`SpinSleeper::wait`].
    pub fn new(share: u64) -> SpinSleeper {
        SpinSleeper { share: share.max(1), budget: LONGEST, early: FIRST }
    }

    /// Waits until a file is ready or the moment has come, of which `clock` tells; returns how many files are ready. It may
    /// come back early with none: look again.
    ///
    /// # Errors
    /// Those of [`Poll::wait`].
    pub fn wait(&mut self, poll: &mut Poll, clock: impl Fn() -> Time, until: Until) -> io::Result<usize> {
        let began = clock();
        let sleep = self.plan(began, until);
        let mut ready = poll.wait(sleep)?;
        let mut now = clock();
        self.earn(now.since(began));
        if ready == 0 && now >= began + sleep {
            if !sleep.is_zero() {
                self.woke(now.since(began + sleep));
            }
            let due = until.due.map_or(Time::ZERO, |due| due.min(until.about));
            let watched_from = now;
            while ready == 0 && now < due && due.since(now) <= self.early {
                ready = poll.wait(Span::ZERO)?;
                now = clock();
            }
            self.watched(now.since(watched_from));
        }
        Ok(ready)
    }

    /// How long to sleep at `now`: zero means to watch at once.
    fn plan(&self, now: Time, until: Until) -> Span {
        let early = if self.budget >= self.early { self.early } else { Span::ZERO };
        let due = until.due.map_or(Time::MAX, |due| due.saturating_sub(early));
        due.min(until.about).since(now)
    }

    /// Accounts for time in which there was nothing to do.
    fn earn(&mut self, span: Span) {
        self.budget = (self.budget + span / self.share).min(LONGEST);
    }

    /// Accounts for time in which the clock was watched.
    fn watched(&mut self, span: Span) {
        self.earn(span);
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
    use std::cell::Cell;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_micros(us)
    }

    fn due(us: u64) -> Until {
        Until { due: Some(at(us)), about: Time::MAX }
    }

    #[test]
    fn it_wakes_early_and_then_watches() {
        let sleeper = SpinSleeper::new(4);
        assert_eq!(sleeper.plan(at(0), due(1000)), Span::from_micros(950));
        assert_eq!(sleeper.plan(at(960), due(1000)), Span::ZERO);
        assert_eq!(sleeper.plan(at(1005), due(1000)), Span::ZERO);
    }

    #[test]
    fn what_need_not_be_punctual_is_not_watched_for() {
        let sleeper = SpinSleeper::new(4);
        assert_eq!(sleeper.plan(at(0), Until { due: None, about: at(1000) }), Span::from_micros(1000));
        assert_eq!(sleeper.plan(at(0), Until { due: Some(at(1010)), about: at(1000) }), Span::from_micros(960));
        assert_eq!(sleeper.plan(at(0), Until { due: Some(at(5000)), about: at(1000) }), Span::from_micros(1000));
    }

    #[test]
    fn it_wakes_as_early_as_all_but_one_in_a_hundred_need() {
        let mut sleeper = SpinSleeper::new(2);
        // 5 to 25 µs, and one in 250 a millisecond.
        let late = |n: u64| if n.is_multiple_of(250) { Span::from_millis(1) } else { Span::from_micros(5 + n % 21) };
        (1..100_000).for_each(|n| sleeper.woke(late(n)));
        assert!((Span::from_micros(20)..=Span::from_micros(32)).contains(&sleeper.early), "{}", sleeper.early);
        // Everything much later: no further than the bound.
        (0..1000).for_each(|_| sleeper.woke(Span::from_millis(2)));
        assert_eq!(sleeper.early, MOST);
        (0..10_000).for_each(|_| sleeper.woke(Span::ZERO));
        assert_eq!(sleeper.early, LEAST);
    }

    /// Waits with `poll` for what is always 25 µs ahead, for 0.2 s by a clock that only waiting and `work` move on: a look
    /// takes a microsecond. Gives how long was watched, and how long was waited in all.
    fn busy(sleeper: &mut SpinSleeper, poll: &mut Poll, work: Span) -> (Span, Span) {
        let (clock, mut watched, mut waited) = (Cell::new(Time::ZERO), Span::ZERO, Span::ZERO);
        while clock.get() < Time::ZERO + Span::from_millis(200) {
            clock.set(clock.get() + work);
            let (began, looks) = (clock.get(), Cell::new(0));
            let look = || {
                looks.set(looks.get() + 1);
                // The first look is the one before the wait.
                clock.set(clock.get() + if looks.get() > 1 { Span::from_micros(1) } else { Span::ZERO });
                clock.get()
            };
            let sleeps = !sleeper.plan(began, due_in(began, 25)).is_zero();
            sleeper.wait(poll, look, due_in(began, 25)).expect("epoll");
            let passed = clock.get().since(began);
            if sleeps {
                // The real sleep has not moved this clock.
                clock.set(began + Span::from_micros(25));
                sleeper.earn(Span::from_micros(25).saturating_sub(passed));
            } else {
                watched += passed;
            }
            waited += clock.get().since(began);
        }
        (watched, waited)
    }

    fn due_in(now: Time, us: u64) -> Until {
        Until { due: Some(now + Span::from_micros(us)), about: Time::MAX }
    }

    #[test]
    fn busy_waiting_stays_within_its_share_of_idle_time() {
        let mut poll = Poll::new().expect("epoll");
        for (share, work) in [(2, 0), (4, 0), (2, 25), (2, 75)] {
            let (watched, waited) = busy(&mut SpinSleeper::new(share), &mut poll, Span::from_micros(work));
            let most = waited / share;
            assert!(watched <= most + LONGEST * 2, "one part in {share} of {waited}: {watched}");
            assert!(watched >= most.scale(0.7), "one part in {share} of {waited}: {watched}");
        }
    }

    #[test]
    fn it_comes_back_when_the_moment_has_come_and_not_before() {
        let (mut poll, began) = (Poll::new().expect("epoll"), monotonic());
        let mut sleeper = SpinSleeper::new(2);
        for n in 1..=20 {
            let moment = began + Span::from_micros(300 * n);
            let until = Until { due: Some(moment), about: Time::MAX };
            while monotonic() < moment {
                let before = monotonic();
                assert_eq!(sleeper.wait(&mut poll, monotonic, until).expect("epoll"), 0);
                assert!(monotonic() >= moment || monotonic() > before);
            }
        }
    }

    fn monotonic() -> Time {
        let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).expect("always there");
        Time::from_nanos(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
    }
}
