//! BBR, version 1.
//! Source:     Cardwell et al., "BBR: congestion-based congestion control", ACM Queue 14(5), 2016, and
//!             [draft-cardwell-iccrg-bbr-congestion-control-00]; behaviour of record: Linux `tcp_bbr.c`.
//! Equations:  pacing = 0.99 pacing_gain BtlBw;   cwnd = cwnd_gain BtlBw RTprop + extra_acked + 3 quanta, made even
//!             BtlBw = max of delivery rate over 10 rounds;   RTprop = min of RTT over 10 s
//!             gains: startup 2885/1000 for both; drain 1000/2885 and 2885/1000; probing cycle and 2; RTprop probe 1 and 1
//! Symbols:    BtlBw -> `bandwidth`, RTprop -> `min_rtt`, the rest by name
//! Deviations: time in nanoseconds instead of ticks; after idling the sender counts as application-limited. Of bounds from
//!             outside only the upper one holds, as Linux's `snd_cwnd_clamp` does: a floor would undo drain and probe.
//! Validity:   one sender law per flow; needs delivery-rate samples and pacing.
//! Checked by: tests::* here and beside each sub-model, transport's tests/integration/bottleneck.rs against kernel measurements
//!
//! Each sub-model stands in a file of its own and is tested alone; this file is the state machine that they feed.

mod aggregation;
pub(crate) mod cycle;
pub(crate) mod filter;
mod full_pipe;
pub(crate) mod min_rtt;
mod policer;
mod recovery;
pub(crate) mod rounds;

use super::Setup;
use crate::{Bounds, Decision, Entry, SenderLaw, Why};
use aggregation::Aggregation;
use cycle::Cycle;
use filter::MaxFilter;
use full_pipe::FullPipe;
use lasthop_signals::{Ack, Sent, Signal};
use lasthop_units::{Bytes, Rate, Span, Stream, Time};
use min_rtt::MinRtt;
use policer::Policer;
use recovery::Recovery;
use rounds::Rounds;

/// The name of the law.
pub const NAME: &str = "bbr";
/// Its entry in the registry.
pub const LAW: Entry = Entry::sender(NAME, "BBR version 1.", &[], |_, setup| Ok(Box::new(Bbr::new(setup))));

/// 2 / ln 2: the least gain that doubles the delivery rate each round.
const HIGH_GAIN: f64 = 2.885;
const DRAIN_GAIN: f64 = 1.0 / HIGH_GAIN;
const CWND_GAIN: f64 = 2.0;
/// Pacing stays this far below the estimate, so that queues drain on average.
const PACING_MARGIN: f64 = 0.99;
const BANDWIDTH_ROUNDS: u64 = 10;
const MIN_SEGMENTS: u64 = 4;
const PROBE_RTT_TIME: Span = Span::from_millis(200);
/// Below this rate segments are not sent in bursts.
const SINGLES_BELOW: Rate = Rate::from_bps(1_200_000);

/// BBR for one flow.
#[derive(Clone, Debug)]
pub struct Bbr {
    mode: Mode,
    bandwidth: MaxFilter,
    rounds: Rounds,
    pipe: FullPipe,
    min_rtt: MinRtt,
    cycle: Cycle,
    aggregation: Aggregation,
    policer: Policer,
    recovery: Recovery,
    cwnd: Bytes,
    /// What bounds the window from outside.
    ceiling: Bytes,
    pacing: Rate,
    /// The pacing rate rests on a measured RTT.
    paced_by_rtt: bool,
    /// The sender restarted from idle and nothing has been acknowledged since.
    idle_restart: bool,
    /// Samples of segments sent before this much was delivered tell of the probe for RTprop, not of the path.
    probe_limited_until: Bytes,
    /// When the pacer will be done with what has been sent.
    departs: Time,
    mss: Bytes,
    initial: Bytes,
    random: Stream,
}

/// What BBR is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt {
        /// When it ends; `None` until little enough is in flight.
        until: Option<Time>,
        /// A whole round has passed since.
        round_done: bool,
    },
}

impl Bbr {
    /// A flow about to start.
    pub fn new(setup: Setup) -> Bbr {
        let initial = setup.initial_window();
        Bbr {
            mode: Mode::Startup,
            bandwidth: MaxFilter::new(BANDWIDTH_ROUNDS),
            rounds: Rounds::default(),
            pipe: FullPipe::default(),
            min_rtt: MinRtt::default(),
            cycle: Cycle::default(),
            aggregation: Aggregation::default(),
            policer: Policer::default(),
            recovery: Recovery::default(),
            cwnd: initial,
            ceiling: Bytes::MAX,
            pacing: initial_pacing(initial, Span::from_millis(1)),
            paced_by_rtt: false,
            idle_restart: false,
            probe_limited_until: Bytes::ZERO,
            departs: Time::ZERO,
            mss: setup.mss,
            initial,
            random: setup.random,
        }
    }

    fn on_sent(&mut self, now: Time, sent: &Sent) {
        let busy = self.pacing.time_for(sent.len).unwrap_or(Span::ZERO);
        self.departs = self.departs.max(now) + busy;
        if !sent.from_idle || self.rounds.count() == 0 {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.mode {
            Mode::ProbeBandwidth => self.set_pacing(1.0),
            Mode::ProbeRtt { until: Some(until), .. } if now > until => self.leave_probe_rtt(now),
            _ => {}
        }
    }

    fn on_ack(&mut self, now: Time, ack: &Ack) {
        self.set_mss(ack.mss);
        let round_began = self.update_bandwidth(now, ack);
        if ack.delivery.is_some() && !ack.newly_delivered.is_zero() {
            self.aggregation.on_ack(now, round_began, ack.newly_delivered, self.bandwidth(), self.cwnd, self.mss);
        }
        self.update_cycle(now, ack);
        let app_limited = ack.delivery.is_none_or(|sample| sample.app_limited);
        self.pipe.on_round(round_began && !app_limited, self.bandwidth.get());
        self.check_drain(now, ack);
        self.update_min_rtt(now, ack, round_began);
        if !ack.newly_delivered.is_zero() {
            self.idle_restart = false;
        }
        if let (false, Some(srtt)) = (self.paced_by_rtt, ack.srtt) {
            self.paced_by_rtt = true;
            self.pacing = initial_pacing(self.cwnd, srtt);
        }
        let (pacing_gain, cwnd_gain) = self.gains();
        self.set_pacing(pacing_gain);
        self.set_cwnd(ack, cwnd_gain);
    }

    fn set_mss(&mut self, mss: Bytes) {
        if mss != self.mss && !mss.is_zero() {
            // Until now the windows were counted in segments of another size.
            let old = self.mss.get().max(1);
            self.cwnd = mss * (self.cwnd.get() / old).max(1);
            self.initial = mss * (self.initial.get() / old).max(1);
            self.mss = mss;
        }
    }

    /// Folds in the delivery-rate sample. True if it begins a round.
    fn update_bandwidth(&mut self, now: Time, ack: &Ack) -> bool {
        let Some(sample) = ack.delivery else { return false };
        let began = self.rounds.on_sample(sample.prior_delivered, ack.delivered);
        if began {
            self.recovery.on_round();
        }
        let probing = self.mode == Mode::ProbeBandwidth;
        if self.policer.on_ack(now, began, probing, ack, sample.app_limited) {
            self.enter_probe_bandwidth(now);
        }
        let limited = sample.app_limited || sample.prior_delivered < self.probe_limited_until;
        if !limited || sample.rate >= self.bandwidth.get() {
            self.bandwidth.update(self.rounds.count(), sample.rate);
        }
        began
    }

    fn bandwidth(&self) -> Rate {
        self.policer.rate().unwrap_or(self.bandwidth.get())
    }

    fn update_cycle(&mut self, now: Time, ack: &Ack) {
        if self.mode != Mode::ProbeBandwidth {
            return;
        }
        let gain = self.pacing_gain();
        let target = self.inflight(gain.max(1.0));
        let in_network = self.in_network(now, ack.prior_in_flight, gain);
        let rtt = self.min_rtt.get().unwrap_or(Span::ZERO);
        self.cycle.on_ack(now, gain, rtt, in_network, target, !ack.newly_lost.is_zero());
    }

    fn check_drain(&mut self, now: Time, ack: &Ack) {
        if self.mode == Mode::Startup && self.pipe.is_full() {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && self.in_network(now, ack.in_flight, DRAIN_GAIN) <= self.inflight(1.0) {
            self.enter_probe_bandwidth(now);
        }
    }

    fn enter_probe_bandwidth(&mut self, now: Time) {
        self.mode = Mode::ProbeBandwidth;
        self.cycle.enter(now, &mut self.random);
    }

    fn update_min_rtt(&mut self, now: Time, ack: &Ack, round_began: bool) {
        let expired = self.min_rtt.update(now, ack.rtt);
        if expired && !self.idle_restart && !matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.recovery.save(self.cwnd, false);
            self.mode = Mode::ProbeRtt { until: None, round_done: false };
        }
        let Mode::ProbeRtt { until, round_done } = self.mode else { return };
        self.probe_limited_until = ack.delivered + ack.in_flight;
        match until {
            None if ack.in_flight <= self.mss * MIN_SEGMENTS => {
                self.rounds.restart(ack.delivered);
                self.mode = Mode::ProbeRtt { until: Some(now + PROBE_RTT_TIME), round_done: false };
            }
            None => {}
            Some(end) => {
                let round_done = round_done || round_began;
                self.mode = Mode::ProbeRtt { until, round_done };
                if round_done && now > end {
                    self.leave_probe_rtt(now);
                }
            }
        }
    }

    fn leave_probe_rtt(&mut self, now: Time) {
        self.min_rtt.refresh(now);
        self.cwnd = self.cwnd.max(self.recovery.saved());
        if self.pipe.is_full() {
            self.enter_probe_bandwidth(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            // A policed path takes probing for an offence.
            Mode::ProbeBandwidth if self.policer.rate().is_some() => 1.0,
            Mode::ProbeBandwidth => self.cycle.gain(),
            Mode::ProbeRtt { .. } => 1.0,
        }
    }

    fn gains(&self) -> (f64, f64) {
        let cwnd_gain = match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBandwidth => CWND_GAIN,
            Mode::ProbeRtt { .. } => 1.0,
        };
        (self.pacing_gain(), cwnd_gain)
    }

    fn set_pacing(&mut self, gain: f64) {
        let rate = self.bandwidth().scale(gain * PACING_MARGIN);
        // Until the pipe has been full once the estimate can only be too low.
        if self.pipe.is_full() || rate > self.pacing {
            self.pacing = rate.max(slowest(self.mss));
        }
    }

    fn set_cwnd(&mut self, ack: &Ack, gain: f64) {
        if !ack.newly_delivered.is_zero() {
            let (cwnd, conserving) = self.recovery.on_ack(self.cwnd, ack, self.mss);
            self.cwnd = if conserving { cwnd } else { self.approach(cwnd, ack, gain) };
        }
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.cwnd = self.cwnd.min(self.mss * MIN_SEGMENTS);
        }
        self.cwnd = self.cwnd.max(self.mss);
    }

    /// Slow-starts towards the target from below, and drops to it from above.
    fn approach(&self, cwnd: Bytes, ack: &Ack, gain: f64) -> Bytes {
        let full = self.pipe.is_full();
        let extra = if full { self.aggregation.extra(self.bandwidth()) } else { Bytes::ZERO };
        let target = self.with_quanta(self.bdp(gain) + extra);
        let cwnd = if full {
            (cwnd + ack.newly_delivered).min(target)
        } else if cwnd < target || ack.delivered < self.initial {
            cwnd + ack.newly_delivered
        } else {
            cwnd
        };
        cwnd.max(self.mss * MIN_SEGMENTS)
    }

    fn bdp(&self, gain: f64) -> Bytes {
        match self.min_rtt.get() {
            Some(rtt) => self.bandwidth().scale(gain).bytes_in(rtt) + Bytes::new(1),
            None => self.initial,
        }
    }

    /// `amount` with room for what hosts hold back in bursts, in whole segments, their number even so that the last of
    /// a window does not wait for a delayed ACK.
    fn with_quanta(&self, amount: Bytes) -> Bytes {
        let mut segments = amount.get().div_ceil(self.mss.get().max(1)) + 3 * self.quantum();
        segments += segments % 2;
        if self.mode == Mode::ProbeBandwidth && self.cycle.is_probing() {
            segments += 2;
        }
        self.mss * segments
    }

    fn inflight(&self, gain: f64) -> Bytes {
        // Of the measured bandwidth, even where a policer's rate is in force.
        let bdp = match self.min_rtt.get() {
            Some(rtt) => self.bandwidth.get().scale(gain).bytes_in(rtt) + Bytes::new(1),
            None => self.initial,
        };
        self.with_quanta(bdp)
    }

    /// Segments that leave in one burst.
    fn quantum(&self) -> u64 {
        let least = if self.pacing < SINGLES_BELOW { 1 } else { 2 };
        (self.pacing.bytes_in(Span::from_millis(1)).get() / self.mss.get().max(1)).max(least)
    }

    /// What will be in the network when the pacer lets the next segment go.
    fn in_network(&self, now: Time, in_flight: Bytes, gain: f64) -> Bytes {
        let drained = self.bandwidth().bytes_in(self.departs.since(now));
        let next = if gain > 1.0 { self.mss * self.quantum() } else { Bytes::ZERO };
        (in_flight + next).saturating_sub(drained)
    }
}

/// The rate that sends the initial window in a round at startup's gain.
fn initial_pacing(window: Bytes, rtt: Span) -> Rate {
    let rate = Rate::of(window, rtt).unwrap_or(Rate::MAX);
    rate.scale(HIGH_GAIN * PACING_MARGIN)
}

/// A segment a second: slow enough for any path, and it never stops the clock of acknowledgements.
fn slowest(mss: Bytes) -> Rate {
    Rate::of(mss, Span::from_secs(1)).unwrap_or(Rate::MAX).max(Rate::from_bps(8))
}

impl SenderLaw for Bbr {
    fn sense(&mut self, now: Time, signal: &Signal) {
        match signal {
            Signal::Sent(sent) => self.on_sent(now, sent),
            Signal::Ack(ack) => self.on_ack(now, ack),
            Signal::Loss(loss) => {
                self.set_mss(loss.mss);
                self.recovery.save(self.cwnd, matches!(self.mode, Mode::ProbeRtt { .. }));
                self.recovery.on_loss();
            }
            Signal::Timeout(loss) => {
                self.set_mss(loss.mss);
                self.recovery.save(self.cwnd, matches!(self.mode, Mode::ProbeRtt { .. }));
                self.recovery.on_timeout();
                self.pipe.forget();
                self.cwnd = loss.in_flight + self.mss;
            }
            Signal::Recovered => self.recovery.on_recovered(),
            Signal::Bounds(bounds) => self.ceiling = bounds.map_or(Bytes::MAX, |bounds| bounds.upper),
            _ => {}
        }
    }

    fn decide(&self, _now: Time) -> Decision {
        let why = match self.mode {
            Mode::Startup => Why::BbrStartup,
            Mode::Drain => Why::BbrDrain,
            Mode::ProbeBandwidth => Why::BbrProbeBw,
            Mode::ProbeRtt { .. } => Why::BbrProbeRtt,
        };
        Decision {
            cwnd: Some(Bounds { lower: self.mss, upper: self.cwnd.min(self.ceiling).max(self.mss) }),
            pacing: Some(self.pacing),
            ..Decision::unlimited(why)
        }
    }
}

#[cfg(test)]
mod tests;
