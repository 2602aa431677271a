//! The receive window: how much the endpoint lets the peer send, and how that grows.
//! Source:     Linux's dynamic right-sizing (`tcp_rcv_space_adjust`, `tcp_grow_window`, `tcp_select_window`), by the
//!             idea of Fisk and Feng, "Dynamic right-sizing in TCP", 2001; RFC 9293 section 3.8.6 (a right edge never
//!             moves left; silly windows are not advertised); RFC 7323 section 2 (scaling).
//! Equations:  once an RTT, if more was read than in the best RTT before:
//!             capacity = max(capacity, w + 2 w (copied - best) / best), w = 2 copied + 16 MSS;
//!             the advertised part of it opens by 2 MSS a segment that arrives in order
//! Symbols:    copied -> `copied`, best -> `best`
//! Deviations: an edge that may not move left is rounded up to the scale's unit, so a closing window takes in somewhat
//!             more than the buffer (Linux has the same); a buffer holds 158/256 of its size in payload, which is what Linux measures for full segments of
//!             an Ethernet path;
//!             payload out of order occupies only the window that it was sent into.     Validity: not validated.
//! Checked by: tests::*

use lasthop_units::{Bytes, Span, Time};

/// The window that one end advertises.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceiveWindow {
    /// Payload that the buffer holds now, and may come to hold.
    capacity: u64,
    max_capacity: u64,
    /// The part of the capacity that is advertised yet.
    open: u64,
    /// The most that the application wants to have waiting.
    limit: u64,
    /// The highest right edge advertised, as an offset.
    edge: u64,
    scale: u8,
    mss: u64,
    /// RTT as the receiver sees it, from echoed timestamps.
    rtt: Option<Span>,
    copied: u64,
    best: u64,
    measured_at: Time,
}

/// What Linux advertises at the start of a connection at most, in segments of payload: about 64 kB.
const INITIAL_OPEN: u64 = 65_535;

impl ReceiveWindow {
    /// A window on a buffer of `initial` octets that may grow to `max`, both with overhead; segments carry `mss`.
    pub(crate) fn new(initial: Bytes, max: Bytes, mss: u64) -> ReceiveWindow {
        let max_capacity = payload(max.max(initial)).max(2 * mss);
        let capacity = payload(initial).max(2 * mss);
        ReceiveWindow {
            capacity,
            max_capacity,
            open: capacity.min(INITIAL_OPEN),
            limit: u64::MAX,
            scale: scale_for(max),
            mss,
            best: capacity.min(10 * mss),
            ..ReceiveWindow::default()
        }
    }

    /// The shift to offer in a SYN.
    pub(crate) fn offered_scale(&self) -> u8 {
        self.scale
    }

    /// The peer did not offer to scale: then neither side does.
    pub(crate) fn disable_scaling(&mut self) {
        self.scale = 0;
    }

    /// The window field of a SYN, which is never scaled. `next` is the offset after the peer's SYN, where known.
    pub(crate) fn syn_field(&mut self, next: u64) -> u16 {
        let window = self.open.min(u64::from(u16::MAX));
        self.edge = self.edge.max(next + window);
        window as u16
    }

    /// Segments carry less by `octets`.
    pub(crate) fn shorten_segments(&mut self, octets: u64) {
        self.mss = self.mss.saturating_sub(octets).max(1);
    }

    /// `len` octets arrived in order. True if that opens the window.
    pub(crate) fn on_in_order(&mut self, len: u64) -> bool {
        // Small segments waste memory in a real buffer, so they do not open the window.
        let opens = len >= self.mss && self.open < self.capacity;
        if opens {
            self.open = (self.open + 2 * self.mss).min(self.capacity);
        }
        opens
    }

    /// The echo of a timestamp shows this RTT.
    pub(crate) fn on_rtt(&mut self, rtt: Span) {
        self.rtt = Some(self.rtt.map_or(rtt, |old| (old * 7 + rtt) / 8));
    }

    /// The application wants to have at most `len` octets waiting, or on their way: no more is advertised. What has been
    /// advertised before stands.
    pub(crate) fn set_limit(&mut self, len: u64) {
        self.limit = len.max(2 * self.mss);
    }

    /// The application read `len` octets.
    pub(crate) fn on_read(&mut self, now: Time, len: u64) {
        self.copied += len;
        let Some(rtt) = self.rtt else { return };
        if now.since(self.measured_at) < rtt.max(Span::from_millis(1)) {
            return;
        }
        if self.copied > self.best {
            // The window must lead what a doubling sender will need in the next round, and a faster one besides.
            let window = 2 * self.copied + 16 * self.mss;
            let lead = window.saturating_mul(self.copied - self.best) / self.best.max(1);
            let wanted = window.saturating_add(2 * lead);
            self.capacity = self.capacity.max(wanted.min(self.max_capacity));
            self.best = self.copied;
        }
        self.copied = 0;
        self.measured_at = now;
    }

    /// The window field to send while everything below `next` has arrived and `unread` of it has not been read.
    pub(crate) fn field(&mut self, next: u64, unread: u64) -> u16 {
        let step = 1u64 << self.scale;
        let free = self.most().saturating_sub(unread);
        let left = self.edge.saturating_sub(next);
        // Opening by slivers would invite slivers (RFC 9293, section 3.8.6.2.2).
        let worthwhile = free >= left + self.mss.min(self.capacity / 2) || free >= left && left >= self.mss;
        let units = if worthwhile && free / step >= left.div_ceil(step) { free / step } else { left.div_ceil(step) };
        let field = units.min(u64::from(u16::MAX));
        self.edge = self.edge.max(next + field * step);
        field as u16
    }

    /// True if so much has been read since the last advertisement that the peer should hear of it unasked.
    pub(crate) fn wants_update(&self, next: u64, unread: u64) -> bool {
        let left = self.edge.saturating_sub(next);
        let free = self.most().saturating_sub(unread);
        free >= 2 * left && free - left >= (2 * self.mss).min(self.capacity / 2)
    }

    /// How much must be read before `wants_update` can be true.
    pub(crate) fn read_until_update(&self, next: u64, unread: u64) -> u64 {
        let left = self.edge.saturating_sub(next);
        let wanted = (2 * left).max(left + (2 * self.mss).min(self.capacity / 2));
        (wanted + unread).saturating_sub(self.most())
    }

    /// What is advertised while nothing waits to be read.
    fn most(&self) -> u64 {
        self.open.min(self.limit)
    }

    /// The offset after the last that may be accepted.
    pub(crate) fn edge(&self) -> u64 {
        self.edge
    }
}

/// The payload that a buffer of `size` holds.
fn payload(size: Bytes) -> u64 {
    size.get() / 256 * 158
}

/// The smallest shift with which the whole buffer can be advertised (RFC 7323 allows up to 14).
fn scale_for(max: Bytes) -> u8 {
    (0..14).find(|shift| max.get() >> shift <= u64::from(u16::MAX)).unwrap_or(14)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn window() -> ReceiveWindow {
        ReceiveWindow::new(Bytes::new(131_072), Bytes::new(32 << 20), 1448)
    }

    #[test]
    fn the_default_buffer_needs_a_shift_of_ten() {
        assert_eq!(window().offered_scale(), 10);
        assert_eq!(scale_for(Bytes::new(6 << 20)), 7);
        assert_eq!(scale_for(Bytes::new(65_535)), 0);
    }

    #[test]
    fn a_sender_that_doubles_every_round_is_never_held_back() {
        let (mut window, mut now, mut next) = (window(), Time::ZERO, 1);
        window.syn_field(1);
        window.on_rtt(Span::from_millis(20));
        let mut flight = 10 * 1448;
        for _ in 0..11 {
            assert!(window.edge() - next >= flight, "{flight} does not fit into {}", window.edge() - next);
            for _ in 0..flight / 1448 {
                next += 1448;
                window.on_in_order(1448);
                now += Span::from_millis(20) / (flight / 1448);
                window.on_read(now, 1448);
                window.field(next, 0);
            }
            flight *= 2;
        }
    }

    #[test]
    fn an_application_that_reads_nothing_closes_the_window() {
        let mut window = window();
        window.syn_field(1);
        let (mut next, mut unread) = (1, 0);
        while window.field(next, unread) > 0 {
            let len = 1448.min(window.edge() - next);
            next += len;
            unread += len;
        }
        // 64 kB, and what rounding up to whole units adds: up to 1 kB a segment.
        assert!((64_000..64_000 * 2).contains(&unread), "{unread}");
        assert!(!window.wants_update(next, unread));
        assert!(window.wants_update(next, unread - window.read_until_update(next, unread)));
    }

    proptest! {
        #[test]
        fn a_window_update_is_due_when_enough_has_been_read(
            opened in 0u64..200, limit in 0u64..400_000, unread in 0u64..200_000, since in 0u64..100_000,
        ) {
            let mut window = window();
            for _ in 0..opened {
                window.on_in_order(1448);
            }
            window.field(1, 0);
            window.set_limit(limit);
            let next = 1 + since;
            let needed = window.read_until_update(next, unread);
            for read in (0..=unread).step_by(1000).chain([needed.saturating_sub(1), needed]) {
                if read <= unread {
                    prop_assert_eq!(window.wants_update(next, unread - read), read >= needed, "{} of {}", read, needed);
                }
            }
        }

        #[test]
        fn the_right_edge_never_moves_left(
            steps in prop::collection::vec((0u64..3000, 0u64..4000, 0u64..50), 1..300)
        ) {
            let (mut window, mut now, mut next, mut unread) = (window(), Time::ZERO, 1u64, 0u64);
            let mut edge = 1 + u64::from(window.syn_field(1));
            window.on_rtt(Span::from_millis(20));
            for (arrived, read, ms) in steps {
                now += Span::from_millis(ms);
                let arrived = arrived.min(window.edge() - next);
                next += arrived;
                unread += arrived;
                window.on_in_order(arrived);
                let read = read.min(unread);
                unread -= read;
                window.on_read(now, read);
                let shown = next + (u64::from(window.field(next, unread)) << window.scale);
                prop_assert!(shown >= edge, "edge {edge} moved left to {shown}");
                edge = shown;
            }
        }
    }
}
