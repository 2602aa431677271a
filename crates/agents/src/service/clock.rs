//! The clock of an agent.

pub use lasthop_system::sched::{become_realtime, sharpen_timers};

use super::log::Say;
use lasthop_units::{Span, Time};
use nix::time::{ClockId, clock_gettime};
use std::sync::LazyLock;

/// The wall clock as it was when the process first asked, and from then on as steady as `CLOCK_MONOTONIC`: agents on
/// hosts that agree on the time may compare theirs, and those of one host to well below a microsecond.
pub fn now() -> Time {
    read(ClockId::CLOCK_MONOTONIC) + *AHEAD
}

/// The wall clock as it is set now: for what is compared with clocks of others that may be set, too.
pub fn wall() -> Time {
    read(ClockId::CLOCK_REALTIME)
}

/// Asks for real-time scheduling; `say` is told if it is refused, which costs accuracy and no more.
pub fn ask_for_realtime(priority: i32, say: Say) {
    if !become_realtime(priority) {
        say(&format!(
            "no real-time scheduling: start as root, with CAP_SYS_NICE, or where `ulimit -r` says {priority} or more; \
             it goes on without, and is late when the machine is busy"
        ));
    }
}

/// `CLOCK_MONOTONIC`, which eBPF programs go by: what reports, heartbeats and recordings are dated by.
pub fn monotonic_now() -> Time {
    read(ClockId::CLOCK_MONOTONIC)
}

/// The same moment by `CLOCK_MONOTONIC`, for logs.
pub fn monotonic(time: Time) -> Time {
    time.saturating_sub(*AHEAD)
}

/// The moment at which the kernel put a wall-clock `stamp` on something that has just been fetched. The wall clock may be set
/// meanwhile, back or forward: a stamp that cannot be right counts as one of now.
pub fn of_stamp(stamp: Time) -> Time {
    let (now, wall) = both();
    now.saturating_sub(age(stamp, wall))
}

/// Both clocks at one moment: a thread that is interrupted between the two looks takes them again.
fn both() -> (Time, Time) {
    let look = || {
        let (before, wall, after) = (now(), read(ClockId::CLOCK_REALTIME), now());
        (after.since(before), after, wall)
    };
    let (mut least, mut now, mut wall) = look();
    for _ in 0..3 {
        if least <= Span::from_micros(2) {
            break;
        }
        let again = look();
        if again.0 < least {
            (least, now, wall) = again;
        }
    }
    (now, wall)
}

/// How long ago `stamp` was, if that can be; else nothing.
fn age(stamp: Time, wall: Time) -> Span {
    let age = wall.since(stamp);
    if age <= LONGEST_AGE { age } else { Span::ZERO }
}

/// What waits in a socket's queue for longer was stamped by a clock that has been set since.
const LONGEST_AGE: Span = Span::from_secs(5);

/// By how much the wall clock is ahead of the monotonic one.
static AHEAD: LazyLock<Span> = LazyLock::new(|| read(ClockId::CLOCK_REALTIME).since(read(ClockId::CLOCK_MONOTONIC)));

fn read(clock: ClockId) -> Time {
    let now = clock_gettime(clock).expect("these two clocks are always there");
    let (s, ns) = (u64::try_from(now.tv_sec()).unwrap_or(0), u64::try_from(now.tv_nsec()).unwrap_or(0));
    Time::from_nanos(s * 1_000_000_000 + ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_of_a_clock_that_has_been_set_count_as_of_now() {
        let at = |ms: u64| Time::ZERO + Span::from_millis(ms);
        assert_eq!(age(at(99_000), at(100_000)), Span::from_secs(1));
        assert_eq!(age(at(100_000), at(40_000)), Span::ZERO, "set back by a minute since");
        assert_eq!(age(at(40_000), at(100_000)), Span::ZERO, "set forward by a minute since");
    }

    #[test]
    fn a_stamp_of_now_is_now() {
        let before = now();
        let stamped = of_stamp(read(ClockId::CLOCK_REALTIME));
        assert!(stamped.saturating_sub(Span::ZERO) <= now() && before.since(stamped) < Span::from_millis(1));
    }
}
