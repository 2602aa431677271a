//! Vegas: congestion avoidance by the queue that the flow itself keeps, told from its round-trip times.
//! Source:     Brakmo and Peterson, "TCP Vegas: end to end congestion avoidance on a global Internet", IEEE JSAC
//!             13(8), 1995; ways of counting and defaults as in Linux (`tcp_vegas.c`).
//! Equations:  once a round:   diff = floor(W (R - B) / B);   target = floor(W B / R)
//!             slow start: diff > gamma ends it with cwnd' = min(cwnd, target + 1)
//!             avoidance: diff < alpha: W' = W + 1;   diff > beta: W' = W - 1;   otherwise W' = W
//!             loss: ssthresh = cwnd / 2
//! Symbols:    W, the window in whole segments -> `segments`; B, the least RTT since the flow was last idle -> `base`;
//!             R, the least RTT of the round -> `least`; round -> `Round::end` in payload sent
//! Deviations: from the paper, with Linux: diff is W (R - B) / B. The paper's is W (R - B) / R, the
//!             segments that stand in queues; Linux's is R / B times that, so that alpha, beta and
//!             gamma stand for fewer: where the path holds 32 segments, alpha = 20 is met by 14 in
//!             queues (46 * 14 / 32 = 20). Slow start doubles every round, a loss halves the window,
//!             and segments are found lost by RACK. From Linux: reordering alone does not suspend
//!             the law, a window that is not used does not grow, and the adjustment waits for a
//!             cumulative ACK of everything sent when the round began. Below a floor from outside the window is brought
//!             down once a round and climbs back as in slow start.
//! Validity:   B must be the path's own delay: a flow that starts behind a standing queue takes it for the path.
//!             A round with fewer than three RTT samples may hold delayed ACKs only; it is left to Reno.
//! Checked by: tests::* (worked by hand), tests/integration/conformance, transport's tests/integration/vegas.rs (queue at a bottleneck)

use super::Setup;
use super::window::Window;
use crate::{Decision, Entry, ParamError, Parameters, SenderLaw, params};
use lasthop_signals::{Ack, Signal};
use lasthop_units::{Bytes, Span, Time};

/// The name of the law.
pub const NAME: &str = "vegas";

/// Samples that a round needs for Vegas to judge by it.
const MIN_SAMPLES: u32 = 3;

/// The least window that Vegas sets, in segments.
const LEAST_WINDOW: u64 = 2;

/// Its entry in the registry.
pub const LAW: Entry = Entry::sender(
    NAME,
    "TCP Vegas: a few segments queued at the bottleneck, told from round-trip times (Brakmo and Peterson, 1995).",
    Params::TABLE,
    |settings, setup| Ok(Box::new(Vegas::new(&setup, Params::with(settings)?)?)),
);

params! {
    /// How much the flow keeps queued: bounds on W (R - B) / B, in segments. The defaults are Linux's.
    pub struct Params {
        /// The window grows with fewer segments queued. As in Linux: those in queues times RTT
        /// over least RTT.
        alpha: u32 = "2", |p| p.alpha > 0 => "at least 1";
        /// The window shrinks with more queued.
        beta: u32 = "4", |p| p.beta >= p.alpha => "at least alpha";
        /// Slow start ends with more queued.
        gamma: u32 = "1";
    }
}

/// Vegas for one flow.
#[derive(Clone, Debug)]
pub struct Vegas {
    params: Params,
    window: Window,
    /// The least round-trip time since the flow was last idle.
    base: Option<Span>,
    round: Round,
    /// False from a loss until it is repaired: Reno decides then.
    trusting: bool,
    /// Payload acknowledged by cumulative ACKs.
    acked: Bytes,
    /// Payload sent for the first time.
    sent: Bytes,
}

/// What the current round has shown.
#[derive(Clone, Debug, Default)]
struct Round {
    /// The round is over when more than this is acknowledged.
    end: Bytes,
    least: Option<Span>,
    samples: u32,
}

impl Vegas {
    /// A flow about to start.
    ///
    /// # Errors
    /// Those of [`Params::validate`].
    pub fn new(setup: &Setup, params: Params) -> Result<Vegas, ParamError> {
        params.validate()?;
        Ok(Vegas {
            params,
            window: Window::new(setup),
            base: None,
            round: Round::default(),
            trusting: true,
            acked: Bytes::ZERO,
            sent: Bytes::ZERO,
        })
    }

    fn begin_round(&mut self) {
        self.round = Round { end: self.sent, least: None, samples: 0 };
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.acked += ack.newly_acked;
        if let Some(rtt) = ack.rtt {
            let rtt = rtt.max(Span::from_nanos(1));
            self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
            self.round.least = Some(self.round.least.map_or(rtt, |least| least.min(rtt)));
            self.round.samples += 1;
        }
        if !self.trusting {
            self.grow_as_reno(ack);
        } else if self.acked > self.round.end {
            match (self.base, self.round.least) {
                (Some(base), Some(least)) if self.round.samples >= MIN_SAMPLES => self.adjust(ack, base, least),
                _ => self.grow_as_reno(ack),
            }
            self.begin_round();
        } else {
            // Within a round only slow start grows.
            self.window.on_ack(ack);
        }
    }

    fn grow_as_reno(&mut self, ack: &Ack) {
        let delivered = self.window.on_ack(ack);
        if !delivered.is_zero() {
            self.window.grow(delivered, self.window.cwnd());
        }
    }

    /// The adjustment of a round. `least` was its least round-trip time.
    fn adjust(&mut self, ack: &Ack, base: Span, least: Span) {
        let mss = self.window.mss();
        let segments = self.window.cwnd().get() / mss.get().max(1);
        let diff = queued(segments, base, least);
        if self.window.in_slow_start() {
            if diff > u64::from(self.params.gamma) {
                let target = mss * (unqueued(segments, base, least) + 1);
                self.window.settle(self.window.cwnd().min(target).max(mss * LEAST_WINDOW));
            }
            // Slow start grows if it goes on; avoidance has just begun otherwise.
            self.window.on_ack(ack);
            return;
        }
        let used = !self.window.on_ack(ack).is_zero();
        if diff > u64::from(self.params.beta) {
            self.window.settle(self.window.cwnd().saturating_sub(mss).max(mss * LEAST_WINDOW));
        } else if diff < u64::from(self.params.alpha) && used {
            self.window.add_segment();
        }
    }
}

/// The law's diff, in whole segments: what of a window of `segments` stood in queues in a round with the least
/// round-trip time `least`, times `least / base`.
fn queued(segments: u64, base: Span, least: Span) -> u64 {
    ratio(segments, least.saturating_sub(base), base)
}

/// Whole segments of a window of `segments` that the path would have held without a queue.
fn unqueued(segments: u64, base: Span, least: Span) -> u64 {
    ratio(segments, base, least)
}

/// `segments * over / under`, rounded down; `under` is not zero.
fn ratio(segments: u64, over: Span, under: Span) -> u64 {
    let scaled = u128::from(segments) * u128::from(over.as_nanos()) / u128::from(under.as_nanos().max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

impl SenderLaw for Vegas {
    fn sense(&mut self, now: Time, signal: &Signal) {
        match signal {
            Signal::Sent(sent) => {
                if sent.from_idle {
                    // What the path was before is old; the round starts with this flight.
                    self.base = None;
                    self.begin_round();
                }
                if !sent.retransmission {
                    self.sent += sent.len;
                }
                self.window.on_sent(now, sent);
            }
            Signal::Ack(ack) => self.on_ack(ack),
            Signal::Loss(loss) => {
                self.trusting = false;
                self.window.on_loss(loss, self.window.cwnd().scale(0.5));
            }
            Signal::Timeout(loss) => {
                self.trusting = false;
                self.window.on_timeout(loss, self.window.cwnd().scale(0.5));
            }
            Signal::Recovered => {
                self.window.on_recovered();
                self.trusting = true;
                self.begin_round();
            }
            Signal::Bounds(bounds) => self.window.bound(*bounds),
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
    use crate::Why;
    use crate::tcp::test_signals::{MSS, ack, cwnd, loss, setup};
    use lasthop_signals::Sent;

    fn vegas() -> Vegas {
        Vegas::new(&setup(), Params::default()).expect("defaults are valid")
    }

    /// One window sent, and acknowledged a segment at a time with this round-trip time.
    fn round(vegas: &mut Vegas, rtt_ms: u64) {
        let segments = cwnd(vegas).get() / MSS.get();
        for _ in 0..segments {
            let sent = Sent { len: MSS, in_flight: MSS, retransmission: false, from_idle: false };
            vegas.sense(Time::ZERO, &Signal::Sent(sent));
        }
        for _ in 0..segments {
            let mut ack = ack(1, segments);
            ack.rtt = Some(Span::from_millis(rtt_ms));
            vegas.sense(Time::ZERO, &Signal::Ack(ack));
        }
    }

    /// A flow in avoidance with a window of `segments` and a base of 100 ms.
    fn avoiding(segments: u64) -> Vegas {
        let mut vegas = vegas();
        vegas.base = Some(Span::from_millis(100));
        vegas.window.settle(MSS * segments);
        vegas.begin_round();
        vegas
    }

    /// The window, in segments, that a round of `rtt_ms` leaves of `segments`.
    fn after(segments: u64, rtt_ms: u64) -> u64 {
        let mut vegas = avoiding(segments);
        // Its first ACK ends the empty round before it; the round itself ends with the ACK after its last.
        round(&mut vegas, rtt_ms);
        vegas.window.settle(MSS * segments);
        let before = vegas.round.end;
        let mut ack = ack(1, segments);
        ack.rtt = Some(Span::from_millis(rtt_ms));
        assert!(vegas.acked <= before, "the round is not over yet");
        vegas.sense(Time::ZERO, &Signal::Ack(ack));
        cwnd(&vegas).get() / MSS.get()
    }

    #[test]
    fn queued_and_unqueued_segments_worked_by_hand() {
        let ms = Span::from_millis;
        // 20 segments, 100 ms grown to 125 ms: 20 * 25 / 100 = 5 queued, 20 * 100 / 125 = 16 not.
        assert_eq!((queued(20, ms(100), ms(125)), unqueued(20, ms(100), ms(125))), (5, 16));
        // 20 * 24 / 100 = 4.8 and 20 * 100 / 124 = 16.1, rounded down.
        assert_eq!((queued(20, ms(100), ms(124)), unqueued(20, ms(100), ms(124))), (4, 16));
        assert_eq!((queued(20, ms(100), ms(100)), unqueued(20, ms(100), ms(100))), (0, 20));
    }

    #[test]
    fn avoidance_grows_below_alpha_shrinks_above_beta_else_holds() {
        // 20 segments: 1 queued at 109 ms, 2 at 110 ms, 4 at 124 ms, 5 at 125 ms.
        assert_eq!(after(20, 109), 21);
        assert_eq!(after(20, 110), 20);
        assert_eq!(after(20, 124), 20);
        assert_eq!(after(20, 125), 19);
    }

    #[test]
    fn the_window_never_shrinks_below_two_segments() {
        assert_eq!(after(3, 1000), 2);
    }

    #[test]
    fn slow_start_ends_by_gamma_at_what_the_path_holds_and_one() {
        let mut vegas = vegas();
        round(&mut vegas, 100);
        assert_eq!(cwnd(&vegas), MSS * 20);
        assert_eq!(vegas.decide(Time::ZERO).why, Why::SlowStart);
        // The first ACK of this round ends the one of 100 ms; the first of the next ends this one of 140 ms.
        round(&mut vegas, 140);
        assert_eq!(cwnd(&vegas), MSS * 40);
        round(&mut vegas, 140);
        // 40 * 40 / 100 = 16 queued; 40 * 100 / 140 = 28.
        assert_eq!(cwnd(&vegas), MSS * 29);
        assert_eq!(vegas.decide(Time::ZERO).why, Why::CongestionAvoidance);
    }

    #[test]
    fn a_round_of_two_samples_is_left_to_reno() {
        let mut vegas = avoiding(10);
        let mut last = ack(10, 10);
        last.rtt = Some(Span::from_millis(200));
        vegas.round = Round { end: Bytes::ZERO, least: last.rtt, samples: 1 };
        // Vegas would see 10 queued and shrink; Reno adds one for a window delivered.
        vegas.sense(Time::ZERO, &Signal::Ack(last));
        assert_eq!(cwnd(&vegas), MSS * 11);
    }

    #[test]
    fn a_loss_halves_and_vegas_judges_again_once_it_is_repaired() {
        let mut vegas = avoiding(20);
        vegas.sense(Time::ZERO, &Signal::Loss(loss(19)));
        assert_eq!(vegas.decide(Time::ZERO).why, Why::Recovery);
        vegas.sense(Time::ZERO, &Signal::Recovered);
        assert_eq!(cwnd(&vegas), MSS * 10);
        round(&mut vegas, 170);
        round(&mut vegas, 170);
        // 10 * 70 / 100 = 7 queued: one less in the round after recovery's own.
        assert_eq!(cwnd(&vegas), MSS * 9);
    }

    #[test]
    fn idling_forgets_the_base() {
        let mut vegas = avoiding(20);
        let sent = Sent { len: MSS, in_flight: MSS, retransmission: false, from_idle: true };
        vegas.sense(Time::ZERO, &Signal::Sent(sent));
        assert_eq!(vegas.base, None);
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut vegas = avoiding(20);
        for _ in 0..50 {
            vegas.sense(
                Time::ZERO,
                &Signal::Sent(Sent { len: MSS, in_flight: MSS, retransmission: false, from_idle: false }),
            );
            let mut idle = ack(1, 2);
            idle.rtt = Some(Span::from_millis(100));
            idle.cwnd_limited = false;
            vegas.sense(Time::ZERO, &Signal::Ack(idle));
        }
        assert_eq!(cwnd(&vegas), MSS * 20);
    }

    #[test]
    fn impossible_parameters_are_refused_by_name() {
        let refused = |params: Params| Vegas::new(&setup(), params).expect_err("refused").to_string();
        assert_eq!(refused(Params { alpha: 0, ..Params::default() }), "alpha = 0 must be at least 1");
        assert_eq!(refused(Params { alpha: 5, ..Params::default() }), "beta = 4 must be at least alpha");
    }
}
