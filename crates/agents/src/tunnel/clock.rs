//! The clock of an agent, and being on time by it.

pub use lasthop_system::sched::{become_realtime, sharpen_timers};

use lasthop_units::{Span, Time};
use nix::time::{ClockId, clock_gettime};
use std::sync::LazyLock;

/// The wall clock as it was when the process first asked, and from then on as steady as `CLOCK_MONOTONIC`: two agents
/// whose hosts agree on the time may compare theirs, and those of one host to well below a microsecond.
pub fn now() -> Time {
    read(ClockId::CLOCK_MONOTONIC) + *AHEAD
}

/// The same moment by `CLOCK_MONOTONIC`, for logs.
pub fn monotonic(time: Time) -> Time {
    time.saturating_sub(*AHEAD)
}

/// By how much the wall clock is ahead of the monotonic one.
static AHEAD: LazyLock<Span> = LazyLock::new(|| read(ClockId::CLOCK_REALTIME).since(read(ClockId::CLOCK_MONOTONIC)));

fn read(clock: ClockId) -> Time {
    let now = clock_gettime(clock).expect("these two clocks are always there");
    let (s, ns) = (u64::try_from(now.tv_sec()).unwrap_or(0), u64::try_from(now.tv_nsec()).unwrap_or(0));
    Time::from_nanos(s * 1_000_000_000 + ns)
}

/// Wakes a little early and watches the clock for the rest, for at most half of all time: the kernel throttles a
/// real-time thread that never sleeps.
#[derive(Clone, Copy, Debug)]
pub struct Punctual {
    budget: Span,
    updated: Time,
}

/// Most wake-ups are less late than this.
const EARLY: Span = Span::from_micros(30);
/// One part in so many of all time may be spent watching.
const SHARE: u64 = 2;
const LONGEST: Span = Span::from_millis(5);

impl Punctual {
    /// Somebody with a full budget.
    pub fn new(now: Time) -> Punctual {
        Punctual { budget: LONGEST, updated: now }
    }

    /// How long to sleep at `now` if the next thing is due at `next`: zero means to look again at once.
    pub fn wait(&mut self, now: Time, next: Time) -> Span {
        let passed = now.since(self.updated);
        self.budget = (self.budget + passed / SHARE).min(LONGEST);
        self.updated = now;
        let ahead = next.since(now);
        match self.budget >= EARLY {
            true => ahead.saturating_sub(EARLY),
            false => ahead,
        }
    }

    /// Accounts for a look that found nothing.
    pub fn watched(&mut self, from: Time, to: Time) {
        self.budget = self.budget.saturating_sub(to.since(from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watching_takes_half_of_all_time_at_most() {
        let (mut now, mut watched) = (Time::ZERO, Span::ZERO);
        let mut punctual = Punctual::new(now);
        while now < Time::ZERO + Span::from_secs(1) {
            let wait = punctual.wait(now, now + Span::from_micros(25));
            let step = if wait.is_zero() { Span::from_micros(1) } else { wait };
            if wait.is_zero() {
                punctual.watched(now, now + step);
                watched += step;
            }
            now += step;
        }
        assert!((Span::from_millis(400)..=Span::from_millis(505)).contains(&watched), "{watched}");
    }
}
