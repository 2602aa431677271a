//! The congestion window that loss-based laws share: slow start, additive growth, recovery, timeout, idle.
//! Source:     RFC 5681 sections 3.1 and 4.1, RFC 6928 (initial window); reduction by [`super::prr`]; the ways of
//!             counting are Linux's (`tcp_slow_start`, `tcp_cong_avoid_ai`, `tcp_enter_loss`, `tcp_cwnd_restart`).
//! Equations:  slow start: cwnd' = min(cwnd + delivered, ssthresh);   growth: one MSS for every `per_mss` delivered
//!             timeout: cwnd' = pipe + MSS;   idle: cwnd halves once an RTO down to the initial window
//!             bound to [lower, upper]: cwnd <= upper, ssthresh <= upper;   while nothing is repaired, cwnd < lower:
//!             ssthresh >= lower, so that the window comes up to it as in slow start and not in one burst
//! Symbols:    cwnd, ssthresh, pipe (`in_flight`), lower and upper (`bounds`), all `Bytes`
//! Deviations: RTO after idling is taken as srtt + 200 ms, its value on a path of little jitter.
//! Validity:   cwnd >= 1 MSS always.     Checked by: tests::* here, in reno and in cubic; tests/integration/conformance

use super::Setup;
use super::prr::Prr;
use crate::{Bounds, Decision, Why};
use lasthop_signals::{Ack, Loss, Sent, Signal};
use lasthop_units::{Bytes, Span, Time};

/// The window and where it is in its life.
#[derive(Clone, Debug)]
pub(super) struct Window {
    cwnd: Bytes,
    ssthresh: Bytes,
    mss: Bytes,
    initial: Bytes,
    /// Delivered and not yet turned into growth.
    credit: Bytes,
    phase: Phase,
    last_sent: Option<Time>,
    srtt: Option<Span>,
    /// Where the window stays if something beside the law bounds it.
    bounds: Option<Bounds<Bytes>>,
    /// Window and threshold before the timeout that began this loss event.
    before_timeout: Option<(Bytes, Bytes)>,
}

#[derive(Clone, Debug)]
enum Phase {
    Open,
    /// Fast recovery.
    Recovery(Prr),
    /// Fast recovery of a law that has halved the window at once.
    Halved,
    /// After a timeout; `progress` once anything has been acknowledged since.
    Loss {
        progress: bool,
    },
}

impl Window {
    /// A window at its initial size, in slow start.
    pub(super) fn new(setup: &Setup) -> Window {
        Window {
            cwnd: setup.initial_window(),
            ssthresh: Bytes::MAX,
            mss: setup.mss,
            initial: setup.initial_window(),
            credit: Bytes::ZERO,
            phase: Phase::Open,
            last_sent: None,
            srtt: None,
            bounds: None,
            before_timeout: None,
        }
    }

    pub(super) fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    pub(super) fn mss(&self) -> Bytes {
        self.mss
    }

    /// The window in segments: what the equations of congestion control count in.
    pub(super) fn segments(&self) -> f64 {
        self.cwnd.get() as f64 / self.mss.get() as f64
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// True during fast recovery, when nothing grows.
    pub(super) fn in_recovery(&self) -> bool {
        matches!(self.phase, Phase::Recovery(_) | Phase::Halved)
    }

    /// From now on the window stays between these; `None`: it is the law's alone.
    pub(super) fn bound(&mut self, bounds: Option<Bounds<Bytes>>) {
        self.bounds = bounds;
        self.keep_bounds();
    }

    /// True while a bound, and not the law, holds the window where it is: nothing that grows with time may go on.
    pub(super) fn is_bound(&self) -> bool {
        self.bounds.is_some_and(|bounds| self.cwnd >= bounds.upper)
    }

    /// A threshold above the upper bound would make a slow start of every bound that is raised.
    fn keep_bounds(&mut self) {
        let Some(Bounds { lower, upper }) = self.bounds else { return };
        let upper = upper.max(self.mss);
        if self.cwnd >= upper {
            self.credit = Bytes::ZERO;
        }
        self.cwnd = self.cwnd.min(upper);
        self.ssthresh = self.ssthresh.min(upper);
        // While losses are repaired the law must be let act.
        if matches!(self.phase, Phase::Open) && self.cwnd < lower {
            self.ssthresh = self.ssthresh.max(lower.min(upper));
        }
    }

    /// Slow start ends here.
    pub(super) fn end_slow_start(&mut self) {
        self.ssthresh = self.cwnd;
    }

    /// The window is `cwnd` from here on, and slow start is over.
    pub(super) fn settle(&mut self, cwnd: Bytes) {
        self.cwnd = cwnd.max(self.mss);
        self.ssthresh = self.ssthresh.min(self.cwnd);
        self.keep_bounds();
    }

    /// The window grows by one segment.
    pub(super) fn add_segment(&mut self) {
        self.cwnd += self.mss;
        self.keep_bounds();
    }

    /// How long the sender had been silent before this segment, if it had been.
    pub(super) fn on_sent(&mut self, now: Time, sent: &Sent) -> Option<Span> {
        if let Phase::Recovery(prr) = &mut self.phase {
            prr.on_sent(sent.len);
        }
        let silent = self.last_sent.filter(|_| sent.from_idle).map(|last| now.since(last));
        self.last_sent = Some(now);
        if let Some(silent) = silent {
            self.decay(silent);
        }
        silent
    }

    /// What was learned of the path ages while nothing is sent.
    fn decay(&mut self, silent: Span) {
        let rto = self.srtt.unwrap_or(Span::from_secs(1)) + Span::from_millis(200);
        let restart = self.initial.min(self.cwnd);
        let mut left = silent;
        if left > rto {
            self.ssthresh = self.ssthresh.max(self.cwnd.scale(0.75));
        }
        while left > rto && self.cwnd > restart {
            left -= rto;
            self.cwnd = self.cwnd.scale(0.5).max(restart);
        }
    }

    /// What a law has no opinion of its own on: what was sent, what a timeout turned out to be, the end of a recovery, and bounds.
    pub(super) fn follow(&mut self, now: Time, signal: &Signal) {
        match signal {
            Signal::Sent(sent) => {
                self.on_sent(now, sent);
            }
            Signal::Undone => self.on_undone(),
            Signal::Recovered => self.on_recovered(),
            Signal::Bounds(bounds) => self.bound(*bounds),
            _ => {}
        }
    }

    /// Reno's growth: slow start, and then one segment for each window that is delivered.
    pub(super) fn climb(&mut self, ack: &Ack) {
        let delivered = self.on_ack(ack);
        if !delivered.is_zero() {
            self.grow(delivered, self.cwnd());
        }
    }

    /// Folds in an ACK. Returns the delivered payload that the law may turn into growth beyond slow start.
    pub(super) fn on_ack(&mut self, ack: &Ack) -> Bytes {
        let rest = self.fold(ack);
        self.keep_bounds();
        rest
    }

    fn fold(&mut self, ack: &Ack) -> Bytes {
        self.set_mss(ack.mss);
        self.keep_bounds();
        self.srtt = ack.srtt.or(self.srtt);
        match &mut self.phase {
            Phase::Recovery(prr) => {
                if let Some(cwnd) = prr.on_ack(ack) {
                    self.cwnd = cwnd.max(self.mss);
                }
                return Bytes::ZERO;
            }
            Phase::Halved => return Bytes::ZERO,
            Phase::Loss { progress } => *progress |= !ack.newly_acked.is_zero(),
            Phase::Open => {}
        }
        if ack.newly_acked.is_zero() {
            return Bytes::ZERO;
        }
        // What was not used says nothing of the path; slow start may run ahead of use by a factor of two.
        let used = ack.cwnd_limited || self.in_slow_start() && self.cwnd < ack.prior_in_flight * 2;
        if !used {
            return Bytes::ZERO;
        }
        if !self.in_slow_start() {
            return ack.newly_delivered;
        }
        let grown = (self.cwnd + ack.newly_delivered).min(self.ssthresh);
        let rest = ack.newly_delivered - (grown - self.cwnd);
        self.cwnd = grown;
        rest
    }

    /// Grows by one MSS for every `per_mss` of `delivered`, remembering the remainder.
    pub(super) fn grow(&mut self, delivered: Bytes, per_mss: Bytes) {
        let per_mss = per_mss.max(Bytes::new(1));
        // Credit saved up while growth was slower is worth one segment now, not a burst.
        if self.credit >= per_mss {
            self.credit = Bytes::ZERO;
            self.cwnd += self.mss;
        }
        self.credit += delivered;
        let steps = self.credit.get() / per_mss.get();
        self.credit -= per_mss * steps;
        self.cwnd += self.mss * steps;
        self.keep_bounds();
    }

    /// Fast recovery begins; the window will come down to `ssthresh`.
    pub(super) fn on_loss(&mut self, loss: &Loss, ssthresh: Bytes) {
        self.set_mss(loss.mss);
        self.ssthresh = ssthresh.max(self.mss * 2);
        let prr = Prr::new(self.cwnd, self.ssthresh);
        self.cwnd = prr.begin(loss.in_flight, self.mss);
        self.credit = Bytes::ZERO;
        self.phase = Phase::Recovery(prr);
        self.keep_bounds();
    }

    /// Fast recovery begins with a window of `ssthresh`, which stays until it ends.
    pub(super) fn on_halving(&mut self, loss: &Loss, ssthresh: Bytes) {
        self.set_mss(loss.mss);
        self.ssthresh = ssthresh.max(self.mss * 2);
        (self.cwnd, self.credit) = (self.ssthresh, Bytes::ZERO);
        self.phase = Phase::Halved;
        self.keep_bounds();
    }

    /// The window is no longer than this; the threshold stays.
    pub(super) fn deflate(&mut self, most: Bytes) {
        self.cwnd = self.cwnd.min(most).max(self.mss);
        self.keep_bounds();
    }

    /// True if a timeout now is a new loss event: not while a reduction for the same data is in force.
    pub(super) fn timeout_is_news(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Loss { progress: true })
    }

    /// The timer expired. `ssthresh` counts if the timeout is news.
    pub(super) fn on_timeout(&mut self, loss: &Loss, ssthresh: Bytes) {
        self.set_mss(loss.mss);
        if self.timeout_is_news() {
            self.before_timeout = Some((self.cwnd, self.ssthresh));
            self.ssthresh = ssthresh.max(self.mss * 2);
        }
        self.cwnd = loss.in_flight + self.mss;
        self.credit = Bytes::ZERO;
        self.phase = Phase::Loss { progress: false };
        self.keep_bounds();
    }

    /// The timeout was spurious (RFC 4015 in the form of Linux's `tcp_undo_cwnd_reduction`): what it took is given back.
    pub(super) fn on_undone(&mut self) {
        if let Some((cwnd, ssthresh)) = self.before_timeout.take() {
            (self.cwnd, self.ssthresh) = (self.cwnd.max(cwnd), self.ssthresh.max(ssthresh));
        }
        self.phase = Phase::Open;
        self.keep_bounds();
    }

    /// Everything outstanding when recovery began has been acknowledged.
    pub(super) fn on_recovered(&mut self) {
        if self.in_recovery() {
            self.cwnd = self.ssthresh.max(self.mss);
        }
        self.phase = Phase::Open;
        self.keep_bounds();
    }

    /// The window as a decision.
    pub(super) fn decide(&self) -> Decision {
        let why = if self.in_recovery() {
            Why::Recovery
        } else if self.in_slow_start() {
            Why::SlowStart
        } else {
            Why::CongestionAvoidance
        };
        Decision { cwnd: Some(Bounds { lower: self.mss, upper: self.cwnd }), ..Decision::unlimited(why) }
    }

    fn set_mss(&mut self, mss: Bytes) {
        if mss != self.mss && !mss.is_zero() {
            // Until now the window was counted in segments of another size.
            self.cwnd = mss * (self.cwnd.get() / self.mss.get().max(1)).max(1);
            self.initial = mss * (self.initial.get() / self.mss.get().max(1)).max(1);
            self.mss = mss;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::test_signals::{MSS, ack, loss, setup};

    fn sent(from_idle: bool) -> Sent {
        Sent { len: MSS, in_flight: MSS, retransmission: false, from_idle }
    }

    #[test]
    fn idling_halves_the_window_per_rto_down_to_the_initial_one() {
        let grown = || {
            let mut window = Window::new(&setup());
            let mut ack = ack(30, 40);
            ack.srtt = Some(Span::from_millis(100));
            window.on_ack(&ack);
            window.on_sent(Time::ZERO, &sent(false));
            assert_eq!(window.cwnd(), MSS * 40);
            window
        };
        // The timeout is 100 ms + 200 ms.
        for (idle_ms, segments) in [(250, 40), (350, 20), (650, 10), (60_000, 10)] {
            let mut window = grown();
            let silent = window.on_sent(Time::ZERO + Span::from_millis(idle_ms), &sent(true));
            assert_eq!(silent, Some(Span::from_millis(idle_ms)));
            assert_eq!(window.cwnd(), MSS * segments, "after {idle_ms} ms");
        }
    }

    #[test]
    fn growth_remembers_what_is_left_over_and_saves_up_no_burst() {
        let mut window = Window::new(&setup());
        window.grow(MSS * 15, MSS * 10);
        window.grow(MSS * 4, MSS * 10);
        assert_eq!(window.cwnd(), MSS * 11);
        window.grow(MSS, MSS * 10);
        assert_eq!(window.cwnd(), MSS * 12);
        // Nine saved up at a slow rate are worth one segment at a fast one, and start a new count.
        window.grow(MSS * 9, MSS * 10);
        window.grow(MSS, MSS * 2);
        assert_eq!(window.cwnd(), MSS * 13);
    }

    fn bounds(lower: u64, upper: u64) -> Option<Bounds<Bytes>> {
        Some(Bounds { lower: MSS * lower, upper: MSS * upper })
    }

    #[test]
    fn a_bound_that_falls_and_rises_makes_no_slow_start() {
        let mut window = Window::new(&setup());
        window.on_ack(&ack(70, 80));
        assert_eq!(window.cwnd(), MSS * 80);
        window.bound(bounds(1, 20));
        assert_eq!((window.cwnd(), window.is_bound(), window.in_slow_start()), (MSS * 20, true, false));
        window.bound(bounds(1, 60));
        assert_eq!((window.cwnd(), window.is_bound(), window.in_slow_start()), (MSS * 20, false, false));
        assert_eq!(window.on_ack(&ack(20, 20)), MSS * 20, "growth is the law's");
        window.bound(None);
        assert_eq!((window.cwnd(), window.in_slow_start()), (MSS * 20, false));
    }

    #[test]
    fn nothing_grows_beyond_the_bound_and_nothing_is_saved_up() {
        let mut window = Window::new(&setup());
        window.bound(bounds(1, 12));
        assert_eq!(window.on_ack(&ack(5, 10)), MSS * 3, "slow start ends at the bound");
        (0..20).for_each(|_| window.grow(MSS * 3, MSS * 4));
        window.add_segment();
        assert_eq!(window.cwnd(), MSS * 12);
        window.bound(bounds(1, 40));
        window.grow(MSS * 3, MSS * 4);
        assert_eq!(window.cwnd(), MSS * 12);
    }

    #[test]
    fn the_floor_is_reached_by_doubling_outside_recovery() {
        let mut window = Window::new(&setup());
        window.end_slow_start();
        window.bound(bounds(35, 60));
        assert_eq!(window.cwnd(), MSS * 10, "no burst");
        window.on_ack(&ack(10, 10));
        window.on_ack(&ack(20, 20));
        assert_eq!(window.cwnd(), MSS * 35);
        window.on_loss(&loss(34), MSS * 24);
        window.on_ack(&ack(20, 34));
        assert!(window.cwnd() < MSS * 35, "recovery is left alone: {}", window.cwnd());
        window.on_recovered();
        assert_eq!((window.cwnd(), window.in_slow_start()), (MSS * 24, true));
        window.on_ack(&ack(24, 24));
        assert_eq!(window.cwnd(), MSS * 35);
    }

    #[test]
    fn another_segment_size_keeps_the_count_of_segments() {
        let mut window = Window::new(&setup());
        let mut smaller = ack(0, 0);
        smaller.mss = Bytes::new(536);
        window.on_ack(&smaller);
        assert_eq!(window.cwnd(), Bytes::new(5360));
    }
}
