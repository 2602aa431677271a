//! What a PBE sender does while another place than the cell is the narrowest: BBR that never asks the cell for more than its fair share.
//! Source:     \[pbe\], section 4.2.3, reconstructed (see [`super`]); BBR:
//!             [draft-cardwell-iccrg-bbr-congestion-control-00].
//! Equations:  drain: BtlBw / 2 for an RTprop;   probe: C_probe = min(5/4 BtlBw, C_f) for an RTprop, then at most
//!             BtlBw, max(3/4 BtlBw, 2 BtlBw - C_probe), then BtlBw for six;   cwnd = 2 BtlBw RTprop
//! Symbols:    BtlBw, max of delivery rate over 10 rounds -> `bandwidth`; C_f -> the argument `fair`
//! Deviations: what was delivered before the drain was over is no measure: BtlBw begins with the last sample in it. As
//!             in BBR, the cycle begins in a phase drawn at random. A probe that found an eighth more is followed by
//!             the next one, without the six phases between: the other place may be gone, and six round trips of each eight would be
//!             lost on the way back (`Params::keep_probing`). Without pacing margin, policers and allowance for
//!             clumps of ACKs.
//! Validity:   needs delivery-rate samples.     Checked by: tests of `sender`, tests/integration/conformance

use super::{LEAST_SEGMENTS, ROUNDS};
use crate::Why;
use crate::tcp::bbr::cycle::Cycle;
use crate::tcp::bbr::filter::MaxFilter;
use lasthop_signals::{Ack, DeliverySample};
use lasthop_units::{Bytes, Rate, Span, Stream, Time};

const DRAIN: f64 = 0.5;
const PROBE: f64 = 1.25;
/// A probe that found so many times as much is followed by another.
const FOUND: f64 = 1.125;
const LEAST_AFTER_PROBE: f64 = 0.75;
const CWND: f64 = 2.0;
/// How long an RTprop is probed for.
pub(super) const PROBE_RTT: Span = Span::from_millis(200);

/// The sender's state.
#[derive(Clone, Debug)]
pub(super) struct Cellular {
    phase: Phase,
    bandwidth: MaxFilter,
    /// BtlBw when the last probe began.
    before: Rate,
    keep_probing: bool,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Drain {
        until: Time,
    },
    Probe(Cycle),
    ProbeRtt {
        /// When it ends; `None` until little enough is in flight.
        until: Option<Time>,
        round_done: bool,
    },
}

/// An ACK, and what is known of the path by it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    pub(super) ack: &'a Ack,
    pub(super) min_rtt: Span,
    /// Rounds so far, and whether this ACK began one.
    pub(super) round: u64,
    pub(super) round_began: bool,
    /// RTprop has not been seen for ten seconds.
    pub(super) expired: bool,
}

impl Cellular {
    /// From now on another place is the narrowest; it has delivered at `rate` lately.
    pub(super) fn new(now: Time, (round, min_rtt): (u64, Span), rate: Rate, keep_probing: bool) -> Cellular {
        let mut bandwidth = MaxFilter::new(ROUNDS);
        bandwidth.update(round, rate);
        Cellular { phase: Phase::Drain { until: now + min_rtt }, bandwidth, before: Rate::MAX, keep_probing }
    }

    /// An ACK arrived.
    pub(super) fn on_ack(&mut self, now: Time, known: &Known<'_>, random: &mut Stream) {
        let Known { ack, min_rtt, round, round_began, expired } = *known;
        if let Some(DeliverySample { rate, app_limited, .. }) = ack.delivery {
            let measure = !matches!(self.phase, Phase::ProbeRtt { .. }) && !app_limited;
            if measure || rate >= self.bandwidth.get() {
                self.bandwidth.update(round, rate);
            }
        }
        match &mut self.phase {
            Phase::Drain { until } if now >= *until => {
                if let Some(sample) = ack.delivery {
                    self.bandwidth = MaxFilter::new(ROUNDS);
                    self.bandwidth.update(round, sample.rate);
                }
                self.probe(now, random);
            }
            Phase::Probe(_) if expired => self.phase = Phase::ProbeRtt { until: None, round_done: false },
            // Each phase lasts an RTprop, whatever is in flight.
            Phase::Probe(cycle) => {
                let (gain, bandwidth) = (cycle.gain(), self.bandwidth.get());
                cycle.on_ack(now, gain, min_rtt, Bytes::MAX, Bytes::ZERO, false);
                let drained = gain < 1.0 && cycle.gain() >= 1.0;
                if drained && self.keep_probing && bandwidth >= self.before.scale(FOUND) {
                    cycle.probe(now);
                }
                if cycle.is_probing() && (gain <= 1.0 || self.before == Rate::MAX) {
                    self.before = bandwidth;
                }
            }
            Phase::ProbeRtt { until: until @ None, .. } if ack.in_flight <= ack.mss * LEAST_SEGMENTS => {
                *until = Some(now + PROBE_RTT);
            }
            Phase::ProbeRtt { until: Some(until), round_done } => {
                *round_done |= round_began;
                if *round_done && now > *until {
                    self.probe(now, random);
                }
            }
            _ => {}
        }
    }

    fn probe(&mut self, now: Time, random: &mut Stream) {
        let mut cycle = Cycle::default();
        cycle.enter(now, random);
        self.phase = Phase::Probe(cycle);
    }

    /// How fast to send where the cell's fair share is `fair`.
    pub(super) fn pacing(&self, fair: Rate) -> Rate {
        let bandwidth = self.bandwidth.get();
        let probe = bandwidth.scale(PROBE).min(fair);
        match &self.phase {
            Phase::Drain { .. } => bandwidth.scale(DRAIN),
            Phase::Probe(cycle) if cycle.is_probing() => probe,
            Phase::Probe(cycle) if cycle.gain() < 1.0 => {
                (bandwidth * 2).saturating_sub(probe).max(bandwidth.scale(LEAST_AFTER_PROBE)).min(bandwidth)
            }
            Phase::Probe(_) | Phase::ProbeRtt { .. } => bandwidth,
        }
    }

    /// How much may be in flight.
    pub(super) fn window(&self, min_rtt: Span, mss: Bytes) -> Bytes {
        match self.phase {
            Phase::ProbeRtt { .. } => mss * LEAST_SEGMENTS,
            _ => self.bandwidth.get().scale(CWND).bytes_in(min_rtt),
        }
    }

    /// What it is doing.
    pub(super) fn why(&self) -> Why {
        match self.phase {
            Phase::Drain { .. } => Why::PbeDrain,
            Phase::Probe(_) => Why::PbeInternet,
            Phase::ProbeRtt { .. } => Why::BbrProbeRtt,
        }
    }
}
