//! The clock that reports, heartbeats and the eBPF program share.

use lasthop_units::Time;
use nix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC`: what reports, decisions and recordings of an agent are dated by.
pub fn now() -> Time {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("CLOCK_MONOTONIC is always there");
    let (s, ns) = (u64::try_from(now.tv_sec()).unwrap_or(0), u64::try_from(now.tv_nsec()).unwrap_or(0));
    Time::from_nanos(s * 1_000_000_000 + ns)
}
