//! Round-trip time and retransmission timeout.
//! Source:     RFC 6298 section 2 (rules 2.1 to 2.4), 5.5 and 5.7; the peak-keeping variance is Linux's
//!             (`tcp_rtt_estimator`), because RFC 6298 assumes one sample a round and a modern sender takes hundreds.
//! Equations:  dev' = 3/4 dev + 1/4 |srtt - r|;   srtt' = 7/8 srtt + 1/8 r;   rttvar = peak of dev over a round, decaying
//!             by 1/4 of the difference a round;   rto = (srtt + max(4 rttvar, min_rto)) * 2^backoff
//! Symbols:    srtt -> `srtt`, dev -> `deviation`, rttvar -> `variance`, r -> the `sample` argument (all `Span`)
//! Deviations: the floor is on the variance term, not on the timeout: rto >= srtt + min_rto, as in Linux, so a queue
//!             that builds up quickly does not fire the timer.     Validity: Karn's rule is the caller's.
//! Checked by: tests::*

use lasthop_units::Span;

/// The estimator of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct RttEstimator {
    srtt: Option<Span>,
    deviation: Span,
    /// Largest deviation of the current round.
    peak: Span,
    variance: Span,
    min_rtt: Option<Span>,
    backoff: u32,
    min_rto: Span,
    max_rto: Span,
    initial_rto: Span,
    /// Samples so far, their sum, and that of the deviations after each of them.
    samples: u64,
    sum: Span,
    deviations: Span,
}

/// Timeout of the first data after a SYN that was repeated (RFC 6298, rule 5.7).
const AFTER_REPEATED_SYN: Span = Span::from_secs(3);

impl RttEstimator {
    /// An estimator without samples.
    pub(crate) fn new(min_rto: Span, max_rto: Span, initial_rto: Span) -> RttEstimator {
        RttEstimator { min_rto, max_rto, initial_rto, ..RttEstimator::default() }
    }

    /// How many samples there were, their sum, and that of the deviations after each of them.
    pub(crate) fn total(&self) -> (u64, Span, Span) {
        (self.samples, self.sum, self.deviations)
    }

    /// Folds in a sample and forgets the backoff. `round_over`: everything in the network at the last such call has
    /// been acknowledged.
    pub(crate) fn sample(&mut self, sample: Span, round_over: bool) {
        self.backoff = 0;
        self.samples += 1;
        self.sum += sample;
        let Some(srtt) = self.srtt else {
            self.srtt = Some(sample);
            self.deviation = sample / 2;
            self.peak = self.deviation;
            self.variance = self.deviation;
            self.deviations += self.deviation;
            return;
        };
        let error = if sample > srtt { sample - srtt } else { srtt - sample };
        // A falling RTT is no reason to raise the timeout: only an eighth of the usual gain then, as Linux.
        let error =
            if sample < srtt && error > self.deviation { self.deviation + (error - self.deviation) / 8 } else { error };
        // Order is normative: the deviation uses the *old* mean.
        self.deviation = (self.deviation * 3 + error) / 4;
        self.deviations += self.deviation;
        self.srtt = Some((srtt * 7 + sample) / 8);
        self.peak = self.peak.max(self.deviation);
        self.variance = self.variance.max(self.peak);
        if round_over {
            self.variance = self.variance - self.variance.saturating_sub(self.peak) / 4;
            self.peak = self.deviation;
        }
    }

    /// The handshake has given no sample, since its SYN was repeated: the timeout before the first one is longer
    /// (rule 5.7).
    pub(crate) fn unmeasured(&mut self) {
        self.initial_rto = self.initial_rto.max(AFTER_REPEATED_SYN);
    }

    /// Notes an RTT for the minimum. Apart from `sample`, because that one includes delayed ACKs.
    pub(crate) fn observe_min(&mut self, rtt: Span) {
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
    }

    /// Doubles the timeout (rule 5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// Forgets the backoff although there is no sample.
    pub(crate) fn answered(&mut self) {
        self.backoff = 0;
    }

    /// The current timeout, backoff included.
    pub(crate) fn rto(&self) -> Span {
        // 2^20 times the smallest timeout is beyond every cap.
        (self.base_rto() * (1 << self.backoff.min(20))).min(self.max_rto)
    }

    /// The timeout without backoff.
    pub(crate) fn base_rto(&self) -> Span {
        match self.srtt {
            Some(srtt) => srtt + (self.variance * 4).max(self.min_rto),
            None => self.initial_rto,
        }
    }

    /// The smoothed RTT.
    pub(crate) fn srtt(&self) -> Option<Span> {
        self.srtt
    }

    /// Its smoothed mean deviation.
    pub(crate) fn deviation(&self) -> Span {
        self.deviation
    }

    /// Smallest RTT so far.
    pub(crate) fn min_rtt(&self) -> Option<Span> {
        self.min_rtt
    }

    /// Timeouts since anything was answered last.
    pub(crate) fn backoff(&self) -> u32 {
        self.backoff
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Span = Span::from_millis;

    fn estimator() -> RttEstimator {
        RttEstimator::new(MS(200), Span::from_secs(120), Span::from_secs(1))
    }

    #[test]
    fn the_first_sample_sets_mean_and_half_of_it_as_variance() {
        let mut rtt = estimator();
        assert_eq!(rtt.rto(), Span::from_secs(1));
        rtt.sample(MS(300), false);
        assert_eq!(rtt.srtt(), Some(MS(300)));
        assert_eq!(rtt.rto(), MS(300 + 4 * 150));
    }

    #[test]
    fn the_deviation_uses_the_old_mean() {
        let mut rtt = estimator();
        rtt.sample(MS(400), false);
        rtt.sample(MS(480), false);
        // By hand: dev = 3/4 * 200 + 1/4 * 80 = 170; srtt = 7/8 * 400 + 1/8 * 480 = 410; the peak stays at 200.
        assert_eq!(rtt.deviation, MS(170));
        assert_eq!(rtt.total(), (2, MS(880), MS(370)));
        assert_eq!(rtt.srtt(), Some(MS(410)));
        assert_eq!(rtt.rto(), MS(410 + 800));
    }

    #[test]
    fn a_steady_path_comes_down_to_the_floor_above_the_mean() {
        let mut rtt = estimator();
        (0..100).for_each(|_| rtt.sample(MS(20), true));
        assert_eq!(rtt.rto(), MS(220));
    }

    #[test]
    fn backoff_doubles_until_the_cap_and_a_sample_ends_it() {
        let mut rtt = estimator();
        (0..50).for_each(|_| rtt.sample(MS(20), true));
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto(), MS(880));
        (0..60).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(), Span::from_secs(120));
        rtt.sample(MS(20), false);
        assert_eq!(rtt.rto(), MS(220));
    }
}
