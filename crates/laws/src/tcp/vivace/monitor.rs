//! Monitor intervals: what was sent in each, and what became of it.
//! Source:     Dong et al. 2018 sections 2 and 4.3; the paper leaves the bookkeeping open.
//! Equations:  L = lost / sent
//! Symbols:    L -> `Interval::loss`; the moments between which an interval's segments left -> `start`, `closed`
//! Deviations: an interval's clock starts with its first segment, so that a sender with nothing to send holds no timer.
//!             Round trips are those of the newest segment of each ACK: half of all under delayed ACKs, and without their wait.
//!             A segment sent again is one more segment. Round trips that cover less than half of an interval give no slope: of two
//!             that left within a millisecond it may be a hundred seconds a second.
//! Validity:   an interval is settled when all that had been sent by its end for the first time is acknowledged, or when a later
//!             segment has been delivered for as long as the sender waits for reordered ones (RFC 8985: a quarter of the
//!             least round trip). What is marked lost still later does not count.
//! Checked by: tests::*

use super::utility::{Line, filtered, utility};
use lasthop_signals::Sent;
use lasthop_units::{Bytes, Rate, Span, Time};
use std::collections::VecDeque;

/// What an interval is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// Nothing: it fills the time until results have come.
    Filler,
    /// To see whether the doubled rate is worth more.
    Doubled,
    /// At the higher rate of a pair.
    Higher,
    /// At the lower rate of a pair.
    Lower,
}

/// One monitor interval.
#[derive(Clone, Debug)]
pub(super) struct Interval {
    pub(super) role: Role,
    /// At which it was sent, in Mbit/s.
    pub(super) rate: f64,
    length: Span,
    /// When its first segment left.
    start: Option<Time>,
    /// When the next interval took over, and what had been sent for the first time by then.
    closed: Option<(Time, Bytes)>,
    /// When the first segment sent after it was delivered.
    passed: Option<Time>,
    sent: Bytes,
    lost: Bytes,
    line: Line,
}

impl Interval {
    fn holds(&self, sent_at: Time) -> bool {
        self.start.is_some_and(|start| start <= sent_at)
    }

    fn end(&self) -> Option<Time> {
        self.start.map(|start| start + self.length)
    }

    /// The share of what was sent in it that was lost.
    pub(super) fn loss(&self) -> f64 {
        (self.lost.get() as f64 / self.sent.get().max(1) as f64).min(1.0)
    }

    /// How fast the round-trip time rose, small changes being none, and those of a part of the interval unknown.
    pub(super) fn gradient(&self) -> f64 {
        if self.line.covers() < self.length / 2 { 0.0 } else { filtered(self.line.slope()) }
    }

    /// What it is worth.
    pub(super) fn utility(&self) -> f64 {
        utility(self.rate, self.gradient(), self.loss())
    }

    /// False if nothing was lost, and so much less was sent than its rate stands for that something else set the rate. Where segments were
    /// lost, what kept the sender back may be those that are missing: to try again would be to lose as many again.
    pub(super) fn is_used(&self, mss: Bytes) -> bool {
        let planned = mbit(self.rate).bytes_in(self.length);
        !self.lost.is_zero() || self.sent + mss * 2 >= Bytes::new(planned.get() / 4 * 3)
    }
}

/// `rate` Mbit/s.
pub(super) fn mbit(rate: f64) -> Rate {
    Rate::from_mbit(1).scale(rate)
}

/// All intervals that are not settled, the newest of which is being sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Monitor {
    intervals: VecDeque<Interval>,
    /// Payload sent for the first time.
    sent: Bytes,
    /// Payload acknowledged by cumulative ACKs.
    acked: Bytes,
}

impl Monitor {
    /// From now on an interval of this kind is sent.
    pub(super) fn begin(&mut self, now: Time, role: Role, rate: f64, length: Span) {
        let sent = self.sent;
        if let Some(open) = self.intervals.back_mut() {
            open.closed = Some((now, sent));
        }
        self.intervals.push_back(Interval {
            role,
            rate,
            length,
            start: None,
            closed: None,
            passed: None,
            sent: Bytes::ZERO,
            lost: Bytes::ZERO,
            line: Line::default(),
        });
    }

    /// The one being sent.
    pub(super) fn current(&self) -> Option<&Interval> {
        self.intervals.back()
    }

    /// True if the one being sent has lasted as long as it should. Fillers last until something else begins.
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.due().is_some_and(|end| end <= now)
    }

    fn due(&self) -> Option<Time> {
        self.current().filter(|open| open.role != Role::Filler).and_then(Interval::end)
    }

    /// When something will change if nothing is seen before.
    pub(super) fn next_change(&self, patience: Span) -> Option<Time> {
        let settles = self.intervals.front().and_then(|first| first.passed).map(|at| at + patience);
        self.due().into_iter().chain(settles).min()
    }

    /// A segment left.
    pub(super) fn on_sent(&mut self, now: Time, sent: &Sent) {
        if !sent.retransmission {
            self.sent += sent.len;
        }
        if let Some(open) = self.intervals.back_mut() {
            open.start.get_or_insert(now);
            open.sent += sent.len;
        }
    }

    /// A segment that left at `sent_at` is lost.
    pub(super) fn on_lost(&mut self, sent_at: Time, len: Bytes) {
        if let Some(interval) = self.intervals.iter_mut().rfind(|interval| interval.holds(sent_at)) {
            interval.lost += len;
        }
    }

    /// The cumulative acknowledgement advanced, and the newest segment delivered with it or by SACK took `rtt`.
    pub(super) fn on_ack(&mut self, now: Time, newly_acked: Bytes, rtt: Option<Span>) {
        self.acked += newly_acked;
        let Some(rtt) = rtt else { return };
        let sent_at = now.saturating_sub(rtt);
        for interval in &mut self.intervals {
            if interval.closed.is_some_and(|(at, _)| at <= sent_at) {
                interval.passed.get_or_insert(now);
            }
        }
        if let Some(interval) = self.intervals.iter_mut().rfind(|interval| interval.holds(sent_at)) {
            interval.line.add(sent_at, rtt);
        }
    }

    /// The oldest interval, if all is known of it.
    pub(super) fn settled(&mut self, now: Time, patience: Span) -> Option<Interval> {
        let first = self.intervals.front()?;
        let (_, upto) = first.closed?;
        let settled = self.acked >= upto || first.passed.is_some_and(|at| at + patience <= now);
        if settled { self.intervals.pop_front() } else { None }
    }

    /// No interval so far is for anything any more.
    pub(super) fn void(&mut self) {
        self.intervals.iter_mut().for_each(|interval| interval.role = Role::Filler);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::brief::at;

    const LEN: Bytes = Bytes::new(1000);
    const PATIENCE: Span = Span::from_millis(5);
    const LENGTH: Span = Span::from_millis(20);

    fn send(monitor: &mut Monitor, ms: impl IntoIterator<Item = u64>) {
        for ms in ms {
            let sent = Sent { len: LEN, in_flight: LEN, retransmission: false, from_idle: false };
            monitor.on_sent(at(ms), &sent);
        }
    }

    /// An interval of twenty segments from 100 ms on, and a filler after it.
    fn sent() -> Monitor {
        let mut monitor = Monitor::default();
        monitor.begin(at(90), Role::Higher, 8.0, LENGTH);
        assert_eq!(monitor.next_change(PATIENCE), None, "no clock before the first segment");
        send(&mut monitor, 100..120);
        assert_eq!(monitor.next_change(PATIENCE), Some(at(120)));
        assert!(!monitor.is_over(at(119)) && monitor.is_over(at(120)));
        monitor.begin(at(120), Role::Filler, 8.0, LENGTH);
        send(&mut monitor, 120..130);
        assert_eq!(monitor.next_change(PATIENCE), None, "a filler has no end");
        monitor
    }

    #[test]
    fn an_interval_is_settled_once_all_of_it_is_acknowledged() {
        let mut monitor = sent();
        (100..120).for_each(|ms| {
            assert!(monitor.settled(at(ms + 30), PATIENCE).is_none());
            monitor.on_ack(at(ms + 30), LEN, Some(Span::from_millis(30)));
        });
        let interval = monitor.settled(at(149), PATIENCE).expect("settled");
        assert_eq!((interval.role, interval.loss(), interval.gradient()), (Role::Higher, 0.0, 0.0));
        assert!(interval.is_used(LEN));
        assert!(monitor.settled(at(149), PATIENCE).is_none(), "the filler is being sent");
    }

    #[test]
    fn a_loss_belongs_to_the_interval_in_which_its_segment_left() {
        let mut monitor = sent();
        monitor.on_ack(at(130), LEN * 10, Some(Span::from_millis(30)));
        monitor.on_ack(at(150), Bytes::ZERO, Some(Span::from_millis(30)));
        assert_eq!(monitor.next_change(PATIENCE), Some(at(155)), "later segments have been delivered since 150 ms");
        assert!(monitor.settled(at(154), PATIENCE).is_none());
        monitor.on_lost(at(119), LEN);
        monitor.on_lost(at(120), LEN);
        monitor.on_lost(at(99), LEN);
        let interval = monitor.settled(at(155), PATIENCE).expect("settled");
        assert_eq!(interval.loss(), 0.05);
        assert_eq!(monitor.current().expect("a filler").loss(), 0.1);
    }

    #[test]
    fn the_gradient_is_that_of_its_own_round_trips() {
        let mut monitor = sent();
        // Twice the link's rate: a millisecond later each millisecond.
        (100..120).for_each(|ms| monitor.on_ack(at(ms + 30 + (ms - 100)), LEN, Some(Span::from_millis(ms - 70))));
        let interval = monitor.settled(at(200), PATIENCE).expect("settled");
        assert!((interval.gradient() - 1.0).abs() < 1e-9, "{}", interval.gradient());
        assert!((interval.utility() - (8f64.powf(0.9) - 7200.0)).abs() < 1e-6);
    }

    #[test]
    fn two_round_trips_side_by_side_give_no_gradient() {
        for (second, expected) in [(109, 0.0), (110, 1.0)] {
            let mut monitor = sent();
            let rtt = |ms: u64| Span::from_millis(ms - 70);
            [100, second].into_iter().for_each(|ms| monitor.on_ack(at(ms) + rtt(ms), LEN, Some(rtt(ms))));
            let gradient = monitor.intervals[0].gradient();
            assert!((gradient - expected).abs() < 1e-9, "{second}: {gradient}");
        }
    }

    #[test]
    fn an_interval_in_which_little_was_sent_tells_nothing() {
        let mut monitor = Monitor::default();
        monitor.begin(at(0), Role::Lower, 8.0, LENGTH);
        // 20 ms at 8 Mbit/s are 20 segments: 15 less two for bursts are the least.
        send(&mut monitor, 0..12);
        assert!(!monitor.current().expect("open").is_used(LEN));
        let mut lossy = monitor.clone();
        send(&mut monitor, 12..13);
        assert!(monitor.current().expect("open").is_used(LEN));
        lossy.on_lost(at(3), LEN);
        assert!(lossy.current().expect("open").is_used(LEN), "what is missing may have kept the sender back");
    }
}
