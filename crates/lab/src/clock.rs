//! The lab's model time: `CLOCK_MONOTONIC` since the world began.

use lasthop_units::{Span, Time};
use nix::time::{ClockId, clock_gettime};

/// Reads model time. Copies share their origin, so every thread of a run tells the same time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin_ns: u64,
    /// By how much `CLOCK_REALTIME` was ahead of it when the world was made.
    ahead_ns: u64,
}

impl Clock {
    /// A world that begins now.
    pub fn start() -> Clock {
        Clock::start_after(Span::ZERO)
    }

    /// A world that begins after `delay`: what takes part in it can be put up meanwhile, and nothing in it happens
    /// early because of that.
    pub fn start_after(delay: Span) -> Clock {
        let now = monotonic_ns();
        let ahead_ns = nanos(ClockId::CLOCK_REALTIME).saturating_sub(now);
        Clock { origin_ns: now.saturating_add(delay.as_nanos()), ahead_ns }
    }

    /// Time since the world began; zero until then.
    pub fn now(self) -> Time {
        Time::from_nanos(monotonic_ns().saturating_sub(self.origin_ns))
    }

    /// How long it is until `moment`, the time before the world's beginning included; zero if it has passed.
    pub fn until(self, moment: Time) -> Span {
        Span::from_nanos(self.on_monotonic(moment).as_nanos().saturating_sub(monotonic_ns()))
    }

    /// `moment` on `CLOCK_MONOTONIC` itself, which every process of the machine can read.
    pub fn on_monotonic(self, moment: Time) -> Time {
        Time::from_nanos(self.origin_ns.saturating_add(moment.as_nanos()))
    }

    /// `moment` since 1970, by the machine's clock as it went when the world was made.
    pub fn on_the_wall(self, moment: Time) -> Time {
        Time::from_nanos(self.on_monotonic(moment).as_nanos().saturating_add(self.ahead_ns))
    }

    /// Sleeps until `moment`; returns at once if it has passed.
    pub fn sleep_until(self, moment: Time) {
        let span = self.until(moment);
        if span > Span::ZERO {
            std::thread::sleep(span.into());
        }
    }
}

fn monotonic_ns() -> u64 {
    nanos(ClockId::CLOCK_MONOTONIC)
}

fn nanos(clock: ClockId) -> u64 {
    // Both clocks exist on every Linux and cannot be negative.
    clock_gettime(clock)
        .map_or(0, |at| (at.tv_sec() as u64).wrapping_mul(1_000_000_000).wrapping_add(at.tv_nsec() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_that_has_not_begun_stands_still() {
        let clock = Clock::start_after(Span::from_secs(1000));
        assert_eq!(clock.now(), Time::ZERO);
        assert!(clock.until(Time::ZERO) > Span::from_secs(900));
        assert_eq!(clock.on_monotonic(Time::from_nanos(5)) - clock.on_monotonic(Time::ZERO), Span::from_nanos(5));
    }
}
