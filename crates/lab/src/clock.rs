//! The lab's model time: `CLOCK_MONOTONIC` since the world began.

use lasthop_units::{Span, Time};
use nix::time::{ClockId, clock_gettime};

/// Reads model time. Copies share their origin, so every thread of a run tells the same time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin_ns: u64,
}

impl Clock {
    /// A world that begins now.
    pub fn start() -> Clock {
        Clock { origin_ns: monotonic_ns() }
    }

    /// Time since the world began.
    pub fn now(self) -> Time {
        Time::from_nanos(monotonic_ns().saturating_sub(self.origin_ns))
    }

    /// Sleeps until `moment`; returns at once if it has passed.
    pub fn sleep_until(self, moment: Time) {
        let span = moment.since(self.now());
        if span > Span::ZERO {
            std::thread::sleep(span.into());
        }
    }
}

fn monotonic_ns() -> u64 {
    // CLOCK_MONOTONIC exists on every Linux and cannot be negative.
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(0, |at| (at.tv_sec() as u64).wrapping_mul(1_000_000_000).wrapping_add(at.tv_nsec() as u64))
}
