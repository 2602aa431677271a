//! One bulk flow: what it delivered, when it stood still, how much it sent twice.

use crate::series::Bins;
use crate::{Delays, Window};
use lasthop_units::{Bytes, Span, Time};

/// A sender's cumulative counters since the flow began, in segments as they leave the sender, as the kernel's
/// `tcpi_data_segs_out` and `tcpi_total_retrans` are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segments {
    /// Data segments sent, retransmissions included.
    pub sent: u64,
    /// Those that had been sent before.
    pub retransmitted: u64,
    /// Round trips that the sender has measured.
    pub round_trips: u64,
    /// Their sum.
    pub round_trip_sum: Span,
    /// Sum of the mean deviation after each of them, as the kernel's `tcpi_rttvar` is.
    pub deviation_sum: Span,
    /// Times that fast recovery was entered, where the sender tells.
    pub recoveries: Option<u64>,
}

/// What the recorder knows of one bulk flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    /// The place of the station that it counts for, if there is one.
    pub(crate) station: Option<usize>,
    /// The stream that it belongs to.
    pub(crate) stream: Option<usize>,
    pub(crate) name: String,
    pub(crate) began: Time,
    pub(crate) ended: Option<Time>,
    /// Payload delivered inside the window.
    pub(crate) payload: Bytes,
    /// Payload delivered at any time, in bytes a bin.
    pub(crate) arrivals: Bins,
    /// The sender's smoothed round-trip time inside the window, as often as somebody looked.
    pub(crate) round_trips: Delays,
    last_progress: Time,
    longest_gap: Span,
    counters: Vec<(Time, Segments)>,
}

impl Flow {
    pub(crate) fn new(station: Option<usize>, name: String, began: Time) -> Flow {
        Flow { station, name, began, last_progress: began, ..Flow::default() }
    }

    /// `payload` reached the application at `at`.
    pub(crate) fn goodput(&mut self, at: Time, payload: Bytes, window: &Window) {
        if payload.is_zero() {
            return;
        }
        if window.contains(at) {
            self.payload += payload;
        }
        self.longest_gap = self.longest_gap.max(window.overlap(self.last_progress, at));
        self.last_progress = self.last_progress.max(at);
    }

    /// The longest time without progress inside the window, while the flow lasted; `None` if it lay outside.
    pub(crate) fn stall(&self, window: &Window) -> Option<Span> {
        let until = self.ended.unwrap_or(Time::MAX);
        let lived = window.overlap(self.began, until);
        (!lived.is_zero()).then(|| self.longest_gap.max(window.overlap(self.last_progress, until)))
    }

    /// The counters stood so at `at`. Only the samples that the ratio needs are kept.
    pub(crate) fn counted(&mut self, at: Time, segments: Segments, window: &Window) {
        let distance = |t: Time| t.since(window.warm_up).max(window.warm_up.since(t));
        match self.counters.len() {
            // The first is replaced as long as samples come nearer to the end of the warm-up.
            1 if distance(at) <= distance(self.counters[0].0) => self.counters[0] = (at, segments),
            0 | 1 => self.counters.push((at, segments)),
            _ => self.counters[1] = (at, segments),
        }
    }

    /// What was sent and resent inside the window; `None` if the counters were not seen at its beginning and end.
    pub(crate) fn segments(&self, window: &Window) -> Option<Segments> {
        let (first, last) = match self.counters.as_slice() {
            // A flow that begins inside the window begins from nothing.
            [only] | [.., only] if self.began >= window.warm_up => (Segments::default(), only.1),
            [first, last] => (first.1, last.1),
            _ => return None,
        };
        Some(Segments {
            sent: last.sent.saturating_sub(first.sent),
            retransmitted: last.retransmitted.saturating_sub(first.retransmitted),
            round_trips: last.round_trips.saturating_sub(first.round_trips),
            round_trip_sum: last.round_trip_sum.saturating_sub(first.round_trip_sum),
            deviation_sum: last.deviation_sum.saturating_sub(first.deviation_sum),
            // Nothing is told of what has not begun.
            recoveries: last.recoveries.map(|last| last.saturating_sub(first.recoveries.unwrap_or(0))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000)
    }

    const WINDOW: Window = Window { warm_up: Time::from_nanos(1_000_000_000), end: Time::from_nanos(2_000_000_000) };

    #[test]
    fn the_longest_gap_counts_only_inside_the_window() {
        let mut flow = Flow::new(Some(0), "f".into(), ms(0));
        flow.goodput(ms(100), Bytes::new(1), &WINDOW);
        flow.goodput(ms(1050), Bytes::new(1), &WINDOW); // 950 ms, of which 50 inside
        flow.goodput(ms(1200), Bytes::new(1), &WINDOW); // 150 ms
        flow.goodput(ms(1900), Bytes::ZERO, &WINDOW); // nothing came
        assert_eq!(flow.stall(&WINDOW), Some(Span::from_millis(800)));
        assert_eq!(flow.payload, Bytes::new(2));
        flow.ended = Some(ms(1300));
        assert_eq!(flow.stall(&WINDOW), Some(Span::from_millis(150)));
        flow.ended = Some(ms(900));
        assert_eq!(flow.stall(&WINDOW), None);
    }

    #[test]
    fn counters_are_differenced_between_warm_up_and_end() {
        let mut flow = Flow::new(Some(0), "f".into(), ms(0));
        let counted = |sent, retransmitted| Segments { sent, retransmitted, ..Segments::default() };
        flow.counted(ms(900), counted(90, 30), &WINDOW);
        assert_eq!(flow.segments(&WINDOW), None);
        flow.counted(ms(1000), counted(100, 40), &WINDOW);
        flow.counted(ms(1500), counted(200, 41), &WINDOW);
        flow.counted(ms(2000), counted(300, 50), &WINDOW);
        assert_eq!(flow.segments(&WINDOW), Some(counted(200, 10)));
    }

    #[test]
    fn a_flow_born_in_the_window_needs_no_baseline() {
        let mut flow = Flow::new(Some(0), "f".into(), ms(1200));
        flow.counted(ms(2000), Segments { sent: 10, retransmitted: 1, ..Segments::default() }, &WINDOW);
        assert_eq!(flow.segments(&WINDOW), Some(Segments { sent: 10, retransmitted: 1, ..Segments::default() }));
    }
}
