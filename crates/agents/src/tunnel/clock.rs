//! The clock of an agent.

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
