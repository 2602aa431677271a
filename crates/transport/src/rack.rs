//! Loss by time: what was sent before something that has already arrived is lost, give or take reordering.
//! Source:     RFC 8985 section 6.2; the reordering window's steps as in Linux (`tcp_rack_reo_wnd`).
//! Equations:  lost at = sent at + RACK.rtt + reo_wnd, for segments sent before RACK.segment
//!             reo_wnd = 0 in recovery or with 3 segments SACKed while no reordering was ever seen;
//!             else min(steps * min_rtt / 4, srtt)
//! Symbols:    RACK.xmit_ts, RACK.end_seq -> `newest`; RACK.rtt -> `rtt`; RACK.reo_wnd_mult -> `steps`;
//!             RACK.reo_wnd_persist -> `persist`; RACK.fack -> `highest`
//! Deviations: a D-SACK counts as reordering seen: a segment that is always repeated before its first copy arrives
//!             would else never show it (Linux learns it by undoing).     Validity: needs SACK to see losses inside a window.
//! Checked by: tests::*, tests/integration/props.rs

use lasthop_units::{Span, Time};

/// The RACK state of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rack {
    /// Departure and end of the most recently sent segment that has been delivered.
    newest: (Time, u64),
    /// Its RTT.
    rtt: Span,
    /// The highest end delivered.
    highest: u64,
    reordering_seen: bool,
    steps: u8,
    persist: u8,
    /// The end of data at the last D-SACK that widened the window: one widening a round.
    dsack_round: u64,
}

/// Recoveries after which a window widened by D-SACKs returns to one step.
const PERSIST: u8 = 16;
/// SACKed segments that prove loss where no reordering has been seen (RFC 5681's three duplicate ACKs).
const DUP_THRESHOLD: usize = 3;

impl Rack {
    pub(crate) fn new() -> Rack {
        Rack { newest: (Time::ZERO, 0), steps: 1, ..Rack::default() }
    }

    /// A segment ending at `end` is delivered; `resent` if any copy but the first was sent, at `sent_at`.
    pub(crate) fn on_delivered(&mut self, now: Time, sent_at: Time, end: u64, resent: bool, min_rtt: Option<Span>) {
        if end >= self.highest {
            self.highest = end;
        } else if !resent {
            self.reordering_seen = true;
        }
        let rtt = now.since(sent_at);
        // Faster than the path allows: the acknowledgement is for the first copy, so the second proves nothing.
        if resent && min_rtt.is_some_and(|min| rtt < min) {
            return;
        }
        if (sent_at, end) > self.newest {
            self.newest = (sent_at, end);
            self.rtt = rtt;
        }
    }

    /// The receiver reports a duplicate: something was retransmitted needlessly, so it had only been overtaken.
    pub(crate) fn on_duplicate(&mut self, una: u64, sent_end: u64) {
        self.reordering_seen = true;
        if una >= self.dsack_round {
            self.dsack_round = sent_end;
            self.steps = self.steps.saturating_add(1);
            self.persist = PERSIST;
        }
    }

    /// A recovery has ended.
    pub(crate) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// How long after its time a segment is still given.
    pub(crate) fn reorder_window(
        &self,
        recovering: bool,
        sacked: usize,
        min_rtt: Option<Span>,
        srtt: Option<Span>,
    ) -> Span {
        if !self.reordering_seen && (recovering || sacked >= DUP_THRESHOLD) {
            return Span::ZERO;
        }
        let quarter = min_rtt.unwrap_or(Span::ZERO) / 4;
        (quarter * u64::from(self.steps)).min(srtt.unwrap_or(Span::MAX))
    }

    /// When a segment sent at `sent_at` and ending at `end` is lost; `None` if nothing sent later has arrived.
    pub(crate) fn lost_at(&self, sent_at: Time, end: u64, reorder_window: Span) -> Option<Time> {
        ((sent_at, end) < self.newest).then_some(sent_at + self.rtt + reorder_window)
    }

    /// RTT of the most recently sent segment that was delivered.
    pub(crate) fn rtt(&self) -> Span {
        self.rtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::brief::at;

    #[test]
    fn only_what_was_sent_before_the_newest_delivered_can_be_lost() {
        let mut rack = Rack::new();
        rack.on_delivered(at(25), at(5), 3000, false, None);
        assert_eq!(rack.lost_at(at(1), 1000, Span::ZERO), Some(at(21)));
        assert_eq!(rack.lost_at(at(6), 4000, Span::ZERO), None);
    }

    #[test]
    fn reordering_widens_the_window_and_duplicates_more_so() {
        let (min, srtt) = (Some(Span::from_millis(20)), Some(Span::from_millis(30)));
        let mut rack = Rack::new();
        assert_eq!(rack.reorder_window(false, 3, min, srtt), Span::ZERO);
        assert_eq!(rack.reorder_window(false, 2, min, srtt), Span::from_millis(5));
        rack.on_delivered(at(20), at(1), 2000, false, min);
        rack.on_delivered(at(21), at(0), 1000, false, min);
        assert_eq!(rack.reorder_window(true, 3, min, srtt), Span::from_millis(5));
        rack.on_duplicate(1, 5000);
        rack.on_duplicate(2, 6000);
        assert_eq!(rack.reorder_window(true, 3, min, srtt), Span::from_millis(10), "one widening a round");
        (1..20).for_each(|n| rack.on_duplicate(5000 * n, 5000 * (n + 1)));
        assert_eq!(rack.reorder_window(true, 3, min, srtt), Span::from_millis(30), "never more than the RTT");
        (0..16).for_each(|_| rack.on_recovered());
        assert_eq!(rack.reorder_window(true, 3, min, srtt), Span::from_millis(5));
    }

    #[test]
    fn an_ack_faster_than_the_path_is_for_the_first_copy() {
        let mut rack = Rack::new();
        rack.on_delivered(at(101), at(100), 1000, true, Some(Span::from_millis(20)));
        assert_eq!(rack.lost_at(at(50), 500, Span::ZERO), None);
    }
}
