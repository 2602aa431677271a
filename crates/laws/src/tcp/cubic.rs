//! CUBIC.
//! Source:     RFC 9438 sections 4.1 to 4.8; where it leaves a choice, Linux (`tcp_cubic.c`), as deployed.
//! Equations:  W(t) = C (t - K)^3 + W_max,  K = cbrt((W_max - cwnd_epoch) / C)               (eq. 1 and 2)
//!             W_est' = W_est + alpha * segments_acked / cwnd,  alpha = 3 (1 - beta) / (1 + beta)      (eq. 4)
//!             growth of (target - cwnd) / cwnd segments a segment acked, target = W(t + min_rtt)
//!             on loss: ssthresh = beta cwnd; W_max = cwnd, or cwnd (1 + beta) / 2 if it was falling   (section 4.7)
//! Symbols:    W_max -> `w_max`, K -> `Epoch::k`, W_est -> `Epoch::reno`; windows in segments, times in seconds (f64)
//! Deviations: target looks ahead by the least RTT, not by the smoothed one; before the first loss the window grows by
//!             at least 1/20 a round, and never by more than 1/2 (all Linux).  alpha stays below 1 (Linux).
//! Validity:   needs SACK.     Checked by: tests::*, transport's tests/integration/bottleneck.rs against kernel measurements

use super::Setup;
use super::hystart::{HyStart, Sample};
use super::window::Window;
use crate::{Decision, Entry, SenderLaw};
use lasthop_signals::{Ack, Signal};
use lasthop_units::{Bytes, Rate, Span, Time};

/// The name of the law.
pub const NAME: &str = "cubic";
/// Its entry in the registry.
pub const LAW: Entry = Entry::sender(NAME, "CUBIC (RFC 9438).", &[], |_, setup| Ok(Box::new(Cubic::new(&setup))));

const C: f64 = 0.4;
const BETA: f64 = 0.7;
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Without a loss to aim for, one segment for at most this many acknowledged.
const SLOWEST_UNAIMED: f64 = 20.0;
/// One segment for at least this many acknowledged.
const FASTEST: f64 = 2.0;
/// One segment for this many windows acknowledged, where the curve is below the window.
const STANDSTILL: f64 = 100.0;
/// HyStart needs ACK trains of some length.
const HYSTART_SEGMENTS: u64 = 16;
/// RTTs this soon after a loss still show the queue that caused it.
const DISTRUST: Span = Span::from_secs(1);

/// CUBIC for one flow.
#[derive(Clone, Debug)]
pub struct Cubic {
    window: Window,
    hystart: HyStart,
    epoch: Option<Epoch>,
    /// The window, in segments, that the last loss showed to be too much; zero before any.
    w_max: f64,
    min_rtt: Option<Span>,
    acked: Bytes,
    sent: Bytes,
}

/// A stretch of congestion avoidance between two losses.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    began: Time,
    origin: f64,
    k: f64,
    /// What Reno would have come to.
    reno: f64,
}

impl Epoch {
    fn new(now: Time, cwnd: f64, w_max: f64) -> Epoch {
        let origin = w_max.max(cwnd);
        Epoch { began: now, origin, k: ((origin - cwnd) / C).cbrt(), reno: cwnd }
    }

    /// W(t), `t` after the epoch began.
    fn curve(&self, t: Span) -> f64 {
        C * (t.as_secs_f64() - self.k).powi(3) + self.origin
    }
}

impl Cubic {
    /// A flow about to start.
    pub fn new(setup: &Setup) -> Cubic {
        Cubic {
            window: Window::new(setup),
            hystart: HyStart::new(),
            epoch: None,
            w_max: 0.0,
            min_rtt: None,
            acked: Bytes::ZERO,
            sent: Bytes::ZERO,
        }
    }

    fn on_ack(&mut self, now: Time, ack: &Ack) {
        self.acked += ack.newly_acked;
        if let Some(rtt) = ack.rtt {
            self.on_rtt(now, rtt, ack);
        }
        let delivered = self.window.on_ack(ack);
        if !delivered.is_zero() {
            self.grow(now, delivered);
        }
    }

    fn on_rtt(&mut self, now: Time, rtt: Span, ack: &Ack) {
        if self.epoch.is_some_and(|epoch| now.since(epoch.began) < DISTRUST) {
            return;
        }
        let min_rtt = self.min_rtt.map_or(rtt, |min| min.min(rtt));
        self.min_rtt = Some(min_rtt);
        let window = &mut self.window;
        if !window.in_slow_start() || window.in_recovery() || ack.newly_acked.is_zero() {
            return;
        }
        let srtt = ack.srtt.unwrap_or(rtt);
        let rate = Rate::of(window.cwnd() * 2, srtt).unwrap_or(Rate::MAX);
        let eligible = window.cwnd() >= window.mss() * HYSTART_SEGMENTS;
        let sample = Sample { rtt, min_rtt, acked: self.acked, sent: self.sent, eligible, rate };
        if self.hystart.on_ack(now, &sample) {
            window.end_slow_start();
        }
    }

    fn grow(&mut self, now: Time, delivered: Bytes) {
        if self.window.is_bound() {
            // The curve would run away from a window that may not follow it.
            self.epoch = None;
            return;
        }
        let cwnd = self.window.segments();
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(now, cwnd, self.w_max));
        let ahead = now.since(epoch.began) + self.min_rtt.unwrap_or(Span::ZERO);
        let target = epoch.curve(ahead);
        // Segments to be acknowledged for one of growth.
        let mut per_segment = if target > cwnd { cwnd / (target - cwnd) } else { STANDSTILL * cwnd };
        if self.w_max == 0.0 {
            per_segment = per_segment.min(SLOWEST_UNAIMED);
        }
        let mss = self.window.mss();
        epoch.reno += ALPHA * (delivered.get() as f64 / mss.get() as f64) / cwnd;
        if epoch.reno > cwnd {
            per_segment = per_segment.min(cwnd / (epoch.reno - cwnd));
        }
        self.window.grow(delivered, mss.scale(per_segment.max(FASTEST)));
    }

    /// Ends the epoch and returns the new slow-start threshold.
    fn reduce(&mut self) -> Bytes {
        let cwnd = self.window.segments();
        self.epoch = None;
        // Fast convergence: a window that did not come back to where it was makes room for others.
        self.w_max = if cwnd < self.w_max { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.window.cwnd().scale(BETA)
    }
}

impl SenderLaw for Cubic {
    fn sense(&mut self, now: Time, signal: &Signal) {
        match signal {
            Signal::Sent(sent) => {
                if !sent.retransmission {
                    self.sent += sent.len;
                }
                let silent = self.window.on_sent(now, sent);
                if let (Some(silent), Some(epoch)) = (silent, &mut self.epoch) {
                    // The curve is a matter of time spent sending.
                    epoch.began = (epoch.began + silent).min(now);
                }
            }
            Signal::Ack(ack) => self.on_ack(now, ack),
            Signal::Loss(loss) => {
                let ssthresh = self.reduce();
                self.window.on_loss(loss, ssthresh);
            }
            Signal::Timeout(loss) => {
                let ssthresh = self.window.cwnd().scale(BETA);
                self.window.on_timeout(loss, ssthresh);
                // Nothing that was learned can be trusted any more.
                self.epoch = None;
                self.w_max = 0.0;
                self.min_rtt = None;
                self.hystart.restart(now, self.sent);
            }
            Signal::Undone => self.window.on_undone(),
            Signal::Recovered => self.window.on_recovered(),
            Signal::Bounds(bounds) => {
                self.window.bound(*bounds);
                if self.window.is_bound() {
                    self.epoch = None;
                }
            }
            _ => {}
        }
    }

    fn decide(&self, _now: Time) -> Decision {
        self.window.decide()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::test_signals::{MSS, ack, cwnd, loss, setup};
    use lasthop_signals::Sent;

    fn secs(s: f64) -> Span {
        Span::from_secs_f64(s)
    }

    #[test]
    fn the_curve_of_rfc_9438_by_hand() {
        // W_max = 100, cwnd = 70: K = cbrt(30 / 0.4) = 4.2172 s.
        let epoch = Epoch::new(Time::ZERO, 70.0, 100.0);
        assert!((epoch.k - 4.217_163).abs() < 1e-6);
        assert!((epoch.curve(Span::ZERO) - 70.0).abs() < 1e-9);
        assert!((epoch.curve(secs(epoch.k)) - 100.0).abs() < 1e-6);
        // One second past the plateau: 100 + 0.4.
        assert!((epoch.curve(secs(epoch.k + 1.0)) - 100.4).abs() < 1e-6);
        // Half way: 0.4 * (-2.10858)^3 + 100 = 96.25.
        assert!((epoch.curve(secs(epoch.k / 2.0)) - 96.25).abs() < 1e-6);
    }

    #[test]
    fn a_loss_leaves_0_7_and_a_second_one_converges_faster() {
        let mut cubic = Cubic::new(&setup());
        (0..90).for_each(|_| cubic.sense(Time::ZERO, &Signal::Ack(ack(1, 100))));
        assert_eq!(cwnd(&cubic), MSS * 100);
        cubic.sense(Time::ZERO, &Signal::Loss(loss(100)));
        cubic.sense(Time::ZERO, &Signal::Recovered);
        assert_eq!(cwnd(&cubic), MSS * 70);
        assert_eq!(cubic.w_max, 100.0);
        cubic.sense(Time::ZERO, &Signal::Loss(loss(70)));
        assert!((cubic.w_max - 70.0 * 0.85).abs() < 1e-9);
    }

    #[test]
    fn the_window_reaches_the_old_maximum_in_k_seconds() {
        let mut cubic = Cubic::new(&setup());
        (0..990).for_each(|_| cubic.sense(Time::ZERO, &Signal::Ack(ack(1, 1000))));
        cubic.sense(Time::ZERO, &Signal::Loss(loss(1000)));
        cubic.sense(Time::ZERO, &Signal::Recovered);
        assert_eq!(cwnd(&cubic), MSS * 700);
        // K = cbrt(300 / 0.4) = 9.0856 s. An ACK a millisecond, RTT 100 ms.
        let k = (300.0f64 / C).cbrt();
        let mut now = Time::ZERO;
        let mut round_trip = ack(1, 1000);
        round_trip.rtt = Some(Span::from_millis(100));
        let mut half_way = None;
        while now.as_secs_f64() < k {
            now += Span::from_micros(150);
            cubic.sense(now, &Signal::Ack(round_trip));
            if half_way.is_none() && now.as_secs_f64() >= k / 2.0 {
                half_way = Some(cubic.window.segments());
            }
        }
        // W(K/2) = 1000 - 300/8 = 962.5, W(K) = 1000; the window lags a round behind its target.
        assert!((half_way.expect("passed") - 962.5).abs() < 4.0, "{half_way:?}");
        assert!((cubic.window.segments() - 1000.0).abs() < 3.0, "{}", cubic.window.segments());
    }

    #[test]
    fn a_window_let_go_after_a_minute_grows_as_from_a_fresh_epoch() {
        let bounds = |upper: u64| Some(crate::Bounds { lower: MSS, upper: MSS * upper });
        let mut cubic = Cubic::new(&setup());
        (0..90).for_each(|_| cubic.sense(Time::ZERO, &Signal::Ack(ack(1, 100))));
        cubic.sense(Time::ZERO, &Signal::Loss(loss(100)));
        cubic.sense(Time::ZERO, &Signal::Recovered);
        assert_eq!(cwnd(&cubic), MSS * 70);
        let mut fresh = cubic.clone();
        // Bound where it is for a minute, a window each 100 ms.
        cubic.sense(Time::ZERO, &Signal::Bounds(bounds(70)));
        let mut now = Time::ZERO;
        for _ in 0..600 {
            now += Span::from_millis(100);
            cubic.sense(now, &Signal::Ack(ack(70, 70)));
        }
        assert_eq!(cwnd(&cubic), MSS * 70);
        cubic.sense(now, &Signal::Bounds(None));
        for round in 0..5 {
            now += Span::from_millis(100);
            (0..70).for_each(|_| cubic.sense(now, &Signal::Ack(ack(1, 100))));
            let alone = Time::ZERO + Span::from_millis(100 * (round + 1));
            (0..70).for_each(|_| fresh.sense(alone, &Signal::Ack(ack(1, 100))));
            assert_eq!(cwnd(&cubic), cwnd(&fresh), "round {round}");
        }
    }

    #[test]
    fn time_without_sending_is_not_on_the_curve() {
        let mut idle = Cubic::new(&setup());
        (0..90).for_each(|_| idle.sense(Time::ZERO, &Signal::Ack(ack(1, 100))));
        idle.sense(Time::ZERO, &Signal::Loss(loss(100)));
        idle.sense(Time::ZERO, &Signal::Recovered);
        let sent = |from_idle| Signal::Sent(Sent { len: MSS, in_flight: MSS, retransmission: false, from_idle });
        // The epoch begins with the first ACK.
        idle.sense(Time::ZERO, &sent(false));
        idle.sense(Time::ZERO, &Signal::Ack(ack(1, 70)));
        let mut busy = idle.clone();
        // Too short for the window to decay: less than a retransmission timeout.
        let silence = Span::from_secs(1);
        idle.sense(Time::ZERO + silence, &sent(true));
        for round in 1..=20 {
            let now = Time::ZERO + Span::from_millis(100 * round);
            (0..70).for_each(|_| idle.sense(now + silence, &Signal::Ack(ack(1, 100))));
            (0..70).for_each(|_| busy.sense(now, &Signal::Ack(ack(1, 100))));
            assert_eq!(cwnd(&idle), cwnd(&busy), "round {round}");
        }
        assert!(cwnd(&busy) > MSS * 80, "{}", cwnd(&busy));
    }

    #[test]
    fn before_any_loss_the_window_grows_by_a_twentieth_a_round() {
        let mut cubic = Cubic::new(&setup());
        (0..990).for_each(|_| cubic.sense(Time::ZERO, &Signal::Ack(ack(1, 1000))));
        cubic.window.end_slow_start();
        // A whole window acknowledged, one segment for 20 each.
        (0..100).for_each(|_| cubic.sense(Time::ZERO, &Signal::Ack(ack(10, 1000))));
        assert_eq!(cwnd(&cubic), MSS * 1050);
    }
}
