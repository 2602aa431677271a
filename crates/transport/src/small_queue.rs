//! TCP small queues: how much of one connection may wait in its own host.
//! Source:     Linux 6.x, `tcp_small_queue_check` and `tcp_update_pacing_rate`; for Wi-Fi, what mac80211 asks of
//!             sockets (`sk_pacing_shift` 7 instead of 10).
//! Equations:  limit = max(rate * time, 2 packets), at most `cap` unless the law paces; twice that for what is sent again
//!             rate = the law's pacing rate, or 2 cwnd / srtt in slow start, 1.2 cwnd / srtt later
//!             something may leave while queued <= limit, or while at most one segment is outstanding
//! Symbols:    time -> [`SmallQueue::time`], cap -> [`SmallQueue::cap`], queued -> `queued`
//! Deviations: octets of packets, where Linux counts the memory that they take; the factor of 2 lasts to the end of
//!             slow start, where Linux's ends at half of its threshold. Probes of the tail and of a closed window are
//!             not held back.
//! Validity:   the host tells of every packet exactly once that it is gone, sent or dropped.
//! Checked by: tests/integration/small_queue.rs

use lasthop_laws::{Decision, Why};
use lasthop_units::{Bytes, Rate, Span};

/// What makes a packet of a segment's payload: headers of IPv4 and TCP, and timestamps.
const HEADERS: Bytes = Bytes::new(20 + 20 + 12);

/// How much of a connection its host may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SmallQueue {
    /// As much as leaves at the connection's rate in this time, or two packets if that is more.
    pub time: Span,
    /// At most this, for a connection that is not paced.
    pub cap: Bytes,
}

impl SmallQueue {
    /// Linux's for a cable: 1/1024 s, at most 4 MiB (1 MiB in older kernels).
    pub const CABLE: SmallQueue = SmallQueue { time: Span::from_nanos(976_562), cap: Bytes::new(4 << 20) };
    /// Linux's for Wi-Fi, where frames are filled from what waits: 1/128 s, at most 4 MiB.
    pub const WIFI: SmallQueue = SmallQueue { time: Span::from_nanos(7_812_500), cap: Bytes::new(4 << 20) };

    fn limit(&self, decision: &Decision, srtt: Option<Span>, payload: Bytes) -> Bytes {
        let unpaced = || {
            let gain = if decision.why == Why::SlowStart { 2.0 } else { 1.2 };
            let window = decision.cwnd?.upper;
            Rate::of(window.scale(gain), srtt?)
        };
        // Before anything is known of the path only the cap holds.
        let rate = decision.pacing.or_else(unpaced);
        let limit = rate.map_or(self.cap, |rate| rate.bytes_in(self.time)).max((payload + HEADERS) * 2);
        if decision.pacing.is_some() { limit } else { limit.min(self.cap) }
    }
}

/// What of a connection waits in its host.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostQueue {
    pub(crate) limit: Option<SmallQueue>,
    queued: Bytes,
}

impl HostQueue {
    /// The host has taken in a packet of ours of this length.
    pub(crate) fn on_queued(&mut self, len: Bytes) {
        self.queued += len;
    }

    /// It holds that one no more.
    pub(crate) fn on_taken(&mut self, len: Bytes) {
        self.queued = self.queued.saturating_sub(len);
    }

    /// Octets that it holds.
    pub(crate) fn queued(&self) -> Bytes {
        self.queued
    }

    /// True if the host may be given a segment of `payload` octets, which it has been given before if `again`.
    pub(crate) fn admits(&self, decision: &Decision, srtt: Option<Span>, payload: Bytes, again: bool) -> bool {
        let Some(limit) = self.limit else { return true };
        let limit = limit.limit(decision, srtt, payload) * (1 + u64::from(again));
        self.queued <= limit
    }
}
