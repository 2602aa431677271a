//! PCC Vivace: online learning of the rate that is worth most.
//! Source:     Dong et al. 2018, sections 2 to 4.
//! Equations:  u(x) = x^0.9 - 900 x dRTT/dT - 11.35 x L;   gamma = (u(r (1 + e)) - u(r (1 - e))) / (2 e r)
//!             r' = r + m(tau) gamma, within the dynamic change boundary
//! Symbols:    x and r in Mbit/s (10^6 bit of payload) -> `rate`; e -> `epsilon`; the rest in utility.rs and step.rs
//! Deviations: the paper was at hand in parts only: its equations, constants and rules as others quote them. Chosen here:
//!             - m, see step.rs.
//!             - An interval lasts a smoothed round trip, and at least twenty segments: ten RTT samples under delayed ACKs.
//!             - A decision rests on one pair of intervals. The public code takes two; `pairs` sets it.
//!             - The order of a pair is random, so that neither rate always meets the queue that the other has left.
//!             - x is the rate that was set, not the one that came about. An interval in which less than three quarters
//!               of it left, and nothing was lost, is taken anew. Until results have come, r is sent.
//!             - The first rate is the initial window a round trip. The next doubling waits for the result of the last, a
//!               round trip more: doubling in advance would double the loss at the end of the start. After the
//!               first fall in utility the rate is the last one before it.
//!             - The double check of implausible pairs (section 4.3) is off unless `double-check` is set. As it is read here,
//!               it delays and halves only what raises the rate, and so costs most of the resilience to random loss that
//!               the paper reports.
//!             - The paper's time limit on an interval is the retransmission timeout: it halves the rate and ends the start.
//!             - No rate is below two segments a round trip.
//!             - The window is twice what the rate sends in a smoothed round trip, and at least the initial one: pacing
//!               rules, and the window bounds what a path that stops can hold. Of bounds from outside only the upper
//!               one holds.
//! Validity:   needs pacing, and [`Signal::Lost`] for each lost segment. With few segments an interval (a small rate times
//!             delay) one lost segment outweighs the difference between the two rates.
//! Checked by: tests::* here and in utility.rs, step.rs and monitor.rs (worked by hand), tests/integration/conformance, transport's
//!             tests/integration/vivace.rs (bottleneck, two flows, random loss)
//!
//! States:     starting (double while the utility rises) -> learning (pairs of intervals), which it never leaves.

mod monitor;
mod step;
mod utility;

use super::Setup;
use crate::{Bounds, Decision, Entry, ParamError, Parameters, SenderLaw, Why, params};
use lasthop_signals::{Ack, Signal};
use lasthop_units::{Bytes, Rate, Span, Stream, Time};
use monitor::{Interval, Monitor, Role, mbit};
use rand::Rng;
use step::Step;

/// The name of the law.
pub const NAME: &str = "vivace";

/// Its entry in the registry.
pub const LAW: Entry = Entry::sender(
    NAME,
    "PCC Vivace: gradient ascent on a utility of rate, rise of the round-trip time and loss (NSDI 2018).",
    Params::TABLE,
    |settings, setup| Ok(Box::new(Vivace::new(setup, Params::with(settings)?)?)),
);

params! {
    /// How the rate is probed.
    pub struct Params {
        /// A pair of monitor intervals is sent at the rate times 1 + epsilon and 1 - epsilon.
        epsilon: f64 = "0.05", |p| (0.005..=0.5).contains(&p.epsilon) => "from 0.005 to 0.5";
        /// Pairs of which the mean gradient makes a decision.
        pairs: u32 = "1", |p| (1..=8).contains(&p.pairs) => "from 1 to 8";
        /// Repeat a decision whose higher rate met less loss or a smaller RTT rise; then the mean
        /// of both gradients counts.
        double_check: bool = "false";
    }
}

/// Segments that an interval has at least.
const LEAST_SEGMENTS: u64 = 20;
/// Segments a round trip: the least rate.
const LEAST_RATE_SEGMENTS: u64 = 2;
/// The rate by which the window is reckoned, as a multiple of the one that is sent.
const WINDOW_GAIN: f64 = 2.0;
/// Mbit/s: faster than any link.
const MOST: f64 = 1e6;
/// Round trips count as at least this long.
const SHORTEST: Span = Span::from_micros(1);

/// Vivace for one flow.
#[derive(Clone, Debug)]
pub struct Vivace {
    params: Params,
    phase: Phase,
    monitor: Monitor,
    step: Step,
    /// The rate that it has arrived at, in Mbit/s; `None` before the first round trip.
    rate: Option<f64>,
    srtt: Span,
    min_rtt: Span,
    mss: Bytes,
    initial: Bytes,
    /// What bounds the window from outside.
    ceiling: Bytes,
    random: Stream,
}

/// What Vivace is doing.
#[derive(Clone, Debug)]
enum Phase {
    /// Doubling while that pays; with the utility of the last rate.
    Starting(Option<f64>),
    Learning(Experiment),
}

/// Pairs of intervals, until a decision can be made.
#[derive(Clone, Debug, Default)]
struct Experiment {
    /// What is still to be sent, the last first.
    plan: Vec<Role>,
    higher: Outcomes,
    lower: Outcomes,
    /// The gradient of an implausible experiment before this one.
    doubted: Option<f64>,
}

/// Sums over the settled intervals of one rate.
#[derive(Clone, Copy, Debug, Default)]
struct Outcomes {
    count: u32,
    utility: f64,
    gradient: f64,
    loss: f64,
}

impl Outcomes {
    fn add(&mut self, interval: &Interval) {
        self.count += 1;
        self.utility += interval.utility();
        self.gradient += interval.gradient();
        self.loss += interval.loss();
    }
}

impl Experiment {
    /// The gradient of the utility in 1 / (Mbit/s), once all `pairs` are settled.
    fn gradient(&self, pairs: u32, epsilon: f64, rate: f64) -> Option<f64> {
        let complete = self.higher.count >= pairs && self.lower.count >= pairs;
        let risen = (self.higher.utility - self.lower.utility) / f64::from(pairs);
        complete.then(|| risen / (2.0 * epsilon * rate))
    }

    /// Sending faster hardly ever lowers loss or delay: something else did.
    fn is_implausible(&self) -> bool {
        self.higher.loss < self.lower.loss || self.higher.gradient < self.lower.gradient
    }
}

impl Vivace {
    /// A flow about to start.
    ///
    /// # Errors
    /// Those of [`Params::validate`].
    pub fn new(setup: Setup, params: Params) -> Result<Vivace, ParamError> {
        params.validate()?;
        let initial = setup.initial_window();
        Ok(Vivace {
            params,
            phase: Phase::Starting(None),
            monitor: Monitor::default(),
            step: Step::default(),
            rate: None,
            srtt: Span::from_millis(1),
            min_rtt: Span::from_millis(1),
            mss: setup.mss,
            initial,
            ceiling: Bytes::MAX,
            random: setup.random,
        })
    }

    fn set_mss(&mut self, mss: Bytes) {
        if mss != self.mss && !mss.is_zero() {
            // The initial window is a number of segments.
            self.initial = mss * (self.initial.get() / self.mss.get().max(1)).max(1);
            self.mss = mss;
        }
    }

    /// What marking losses may still take after later segments have been delivered.
    fn patience(&self) -> Span {
        self.min_rtt / 4
    }

    /// `rate` Mbit/s, or the nearest that may be sent.
    fn bounded(&self, rate: f64) -> f64 {
        let least = Rate::of(self.mss * LEAST_RATE_SEGMENTS, self.srtt).unwrap_or(Rate::MAX);
        rate.max(least.as_mbit_f64()).clamp(1e-5, MOST)
    }

    /// Sends at `rate` Mbit/s for an interval of this kind.
    fn begin(&mut self, now: Time, role: Role, rate: f64) {
        let rate = self.bounded(rate);
        let segments = mbit(rate).time_for(self.mss * LEAST_SEGMENTS).unwrap_or(Span::MAX);
        self.monitor.begin(now, role, rate, self.srtt.max(segments));
    }

    fn on_ack(&mut self, now: Time, ack: &Ack) {
        self.set_mss(ack.mss);
        if let Some(srtt) = ack.srtt {
            self.srtt = srtt.max(SHORTEST);
            self.min_rtt = ack.min_rtt.unwrap_or(srtt).min(srtt);
        }
        self.monitor.on_ack(now, ack.newly_acked, ack.rtt);
        if self.rate.is_none() && ack.srtt.is_some() {
            let first = Rate::of(self.initial, self.srtt).unwrap_or(Rate::MAX).as_mbit_f64();
            let first = self.bounded(first);
            self.rate = Some(first);
            self.begin(now, Role::Doubled, first);
        }
    }

    /// Does what is due: results first, because they may change what is sent next.
    fn advance(&mut self, now: Time) {
        let Some(rate) = self.rate else { return };
        while let Some(interval) = self.monitor.settled(now, self.patience()) {
            match interval.role {
                Role::Filler => {}
                _ if !interval.is_used(self.mss) => self.repeat(now),
                Role::Doubled => self.judge_doubling(now, &interval),
                Role::Higher | Role::Lower => self.judge_pair(now, &interval),
            }
        }
        if self.monitor.is_over(now) {
            let next = match &mut self.phase {
                Phase::Starting(_) => None,
                Phase::Learning(experiment) => experiment.plan.pop(),
            };
            match next {
                Some(role) => self.begin_trial(now, role),
                None => self.begin(now, Role::Filler, self.rate.unwrap_or(rate)),
            }
        }
    }

    /// What was sent tells nothing of the path: the same again.
    fn repeat(&mut self, now: Time) {
        let Some(rate) = self.rate else { return };
        match &self.phase {
            Phase::Starting(_) => self.begin(now, Role::Doubled, rate),
            Phase::Learning(experiment) => self.experiment(now, experiment.doubted),
        }
    }

    fn judge_doubling(&mut self, now: Time, interval: &Interval) {
        let Phase::Starting(before) = self.phase else { return };
        let utility = interval.utility();
        if before.is_none_or(|before| utility > before) {
            self.phase = Phase::Starting(Some(utility));
            let doubled = self.bounded(interval.rate * 2.0);
            self.rate = Some(doubled);
            self.begin(now, Role::Doubled, doubled);
        } else {
            self.rate = Some(self.bounded(interval.rate / 2.0));
            self.experiment(now, None);
        }
    }

    fn judge_pair(&mut self, now: Time, interval: &Interval) {
        let (Phase::Learning(experiment), Some(rate)) = (&mut self.phase, self.rate) else { return };
        match interval.role {
            Role::Higher => experiment.higher.add(interval),
            _ => experiment.lower.add(interval),
        }
        let Params { epsilon, pairs, double_check } = self.params;
        let Some(gradient) = experiment.gradient(pairs, epsilon, rate) else { return };
        let gradient = match (experiment.doubted, double_check && experiment.is_implausible()) {
            (None, true) => return self.experiment(now, Some(gradient)),
            (Some(first), true) => f64::midpoint(first, gradient),
            (_, false) => gradient,
        };
        let change = self.step.change(gradient, rate);
        self.rate = Some(self.bounded(rate + change));
        self.experiment(now, None);
    }

    /// Begins to try rates around the present one.
    fn experiment(&mut self, now: Time, doubted: Option<f64>) {
        self.monitor.void();
        let mut plan = Vec::new();
        for _ in 0..self.params.pairs {
            let higher_first = self.random.next_u64().is_multiple_of(2);
            plan.extend(if higher_first { [Role::Lower, Role::Higher] } else { [Role::Higher, Role::Lower] });
        }
        let first = plan.pop();
        self.phase = Phase::Learning(Experiment { plan, doubted, ..Experiment::default() });
        if let Some(role) = first {
            self.begin_trial(now, role);
        }
    }

    fn begin_trial(&mut self, now: Time, role: Role) {
        let Some(rate) = self.rate else { return };
        let offset = if role == Role::Higher { self.params.epsilon } else { -self.params.epsilon };
        self.begin(now, role, rate * (1.0 + offset));
    }

    fn on_timeout(&mut self, now: Time) {
        let Some(rate) = self.rate else { return };
        self.rate = Some(self.bounded(rate / 2.0));
        self.step = Step::default();
        self.experiment(now, None);
    }

    /// The rate that is being sent.
    fn pacing(&self) -> Rate {
        match self.monitor.current() {
            Some(interval) => mbit(interval.rate).max(Rate::from_bps(8)),
            None => Rate::of(self.initial, self.srtt).unwrap_or(Rate::MAX).max(Rate::from_bps(8)),
        }
    }
}

impl SenderLaw for Vivace {
    fn sense(&mut self, now: Time, signal: &Signal) {
        match signal {
            Signal::Sent(sent) => {
                // An interval that is over does not get what leaves now.
                self.advance(now);
                self.monitor.on_sent(now, sent);
                return;
            }
            Signal::Ack(ack) => self.on_ack(now, ack),
            Signal::Lost(lost) => self.monitor.on_lost(lost.sent_at, lost.len),
            Signal::Loss(loss) => self.set_mss(loss.mss),
            Signal::Timeout(loss) => {
                self.set_mss(loss.mss);
                self.on_timeout(now);
            }
            Signal::Bounds(bounds) => self.ceiling = bounds.map_or(Bytes::MAX, |bounds| bounds.upper),
            _ => {}
        }
        self.advance(now);
    }

    fn decide(&self, _now: Time) -> Decision {
        let pacing = self.pacing();
        let window = match self.rate {
            Some(_) => pacing.scale(WINDOW_GAIN).bytes_in(self.srtt).max(self.initial),
            None => self.initial,
        };
        Decision {
            cwnd: Some(Bounds { lower: self.mss, upper: window.min(self.ceiling).max(self.mss) }),
            pacing: Some(pacing),
            revisit: self.monitor.next_change(self.patience()),
            ..Decision::unlimited(match self.phase {
                Phase::Starting(_) => Why::SlowStart,
                Phase::Learning(_) => Why::Learning,
            })
        }
    }
}

#[cfg(test)]
mod tests;
