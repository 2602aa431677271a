//! HyStart: leaving slow start before the queue overflows.
//! Source:     Ha and Rhee, "Taming the elephants: new TCP slow start", Computer Networks 55, 2011; constants and the
//!             two detectors as in Linux (`hystart_update`), which RFC 9406 does not cover.
//! Equations:  train: ACKs no more than 2 ms apart for longer than (min_rtt + a) / 2 since the round began,
//!             a = min(1 ms, 4 * 64 KiB / pacing rate);
//!             delay: least RTT of a round's first 8 samples > min_rtt + clamp(min_rtt / 8, 4 ms, 16 ms)
//! Symbols:    round -> `round_end` in payload sent; `curr_rtt` -> `least`
//! Deviations: none from Linux without a pacing queue.     Validity: windows of 16 segments or more.
//! Checked by: tests::*

use lasthop_units::{Bytes, Rate, Span, Time};

/// The detector of one slow start.
#[derive(Clone, Debug, Default)]
pub(super) struct HyStart {
    round_began: Time,
    /// The round ends when this much has been acknowledged.
    round_end: Bytes,
    last_in_train: Time,
    least: Span,
    samples: u32,
    found: bool,
}

/// Two ACKs this close belong to one train.
const TRAIN_GAP: Span = Span::from_millis(2);
const MIN_SAMPLES: u32 = 8;
const DELAY_MIN: Span = Span::from_millis(4);
const DELAY_MAX: Span = Span::from_millis(16);
/// Four super-packets of the largest size: what a host may add to an ACK train by itself.
const HOST_BURST: Bytes = Bytes::new(4 * 65_536);
const HOST_DELAY_MAX: Span = Span::from_millis(1);

/// What the detector sees of one ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) rtt: Span,
    pub(super) min_rtt: Span,
    /// Payload acknowledged, and sent, since the connection began.
    pub(super) acked: Bytes,
    pub(super) sent: Bytes,
    /// The window is large enough for trains to mean something; rounds are counted regardless.
    pub(super) eligible: bool,
    /// Twice the window a smoothed RTT: the rate at which Linux sizes bursts in slow start.
    pub(super) rate: Rate,
}

impl HyStart {
    pub(super) fn new() -> HyStart {
        HyStart { least: Span::MAX, ..HyStart::default() }
    }

    /// A new slow start begins.
    pub(super) fn restart(&mut self, now: Time, sent: Bytes) {
        self.found = false;
        self.begin_round(now, sent);
    }

    fn begin_round(&mut self, now: Time, sent: Bytes) {
        self.round_began = now;
        self.last_in_train = now;
        self.round_end = sent;
        self.least = Span::MAX;
        self.samples = 0;
    }

    /// Folds in an ACK that arrived in slow start. True, once, when slow start should end.
    pub(super) fn on_ack(&mut self, now: Time, sample: &Sample) -> bool {
        if self.found {
            return false;
        }
        if sample.acked > self.round_end {
            self.begin_round(now, sample.sent);
        }
        if !sample.eligible {
            return false;
        }
        if now.since(self.last_in_train) <= TRAIN_GAP {
            self.last_in_train = now;
            let host = sample.rate.time_for(HOST_BURST).unwrap_or(Span::MAX).min(HOST_DELAY_MAX);
            self.found |= now.since(self.round_began) > (sample.min_rtt + host) / 2;
        }
        self.least = self.least.min(sample.rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
        } else {
            let slack = (sample.min_rtt / 8).clamp(DELAY_MIN, DELAY_MAX);
            self.found |= self.least > sample.min_rtt + slack;
        }
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_micros(us)
    }

    fn sample(rtt_ms: u64, acked: u64) -> Sample {
        Sample {
            rtt: Span::from_millis(rtt_ms),
            min_rtt: Span::from_millis(20),
            acked: Bytes::new(acked),
            sent: Bytes::new(acked + 100_000),
            eligible: true,
            rate: Rate::from_mbit(10),
        }
    }

    #[test]
    fn a_train_of_half_the_rtt_ends_slow_start() {
        let mut hystart = HyStart::new();
        hystart.restart(at(0), Bytes::new(1_000_000));
        // An ACK each 240 us. (20 ms + 1 ms) / 2 = 10.5 ms: the 44th, at 10.56 ms, is the first beyond.
        let ended = (1..100).find(|n| hystart.on_ack(at(240 * n), &sample(20, 1000)));
        assert_eq!(ended, Some(44));
    }

    #[test]
    fn a_small_window_counts_rounds_and_decides_nothing() {
        let mut hystart = HyStart::new();
        hystart.restart(at(0), Bytes::new(1_000));
        let small = Sample { eligible: false, ..sample(90, 2_000) };
        assert!(!hystart.on_ack(at(30_000), &small));
        assert_eq!(hystart.round_began, at(30_000));
    }

    #[test]
    fn a_gap_breaks_the_train() {
        let mut hystart = HyStart::new();
        hystart.restart(at(0), Bytes::new(1_000_000));
        assert!((1..100).all(|n| !hystart.on_ack(at(2_100 * n), &sample(20, 1000))));
    }

    #[test]
    fn eight_late_samples_end_slow_start_at_the_ninth() {
        let mut hystart = HyStart::new();
        hystart.restart(at(0), Bytes::new(1_000_000));
        // 20 ms / 8 is below the least slack of 4 ms, so 25 ms is late and 24 ms is not.
        assert!((1..30).all(|n| !hystart.on_ack(at(3_000 * n), &sample(24, 1000))));
        hystart.restart(at(100_000), Bytes::new(1_000_000));
        let ended = (1..30).find(|n| hystart.on_ack(at(100_000 + 3_000 * n), &sample(25, 1000)));
        assert_eq!(ended, Some(9));
        assert!(!hystart.on_ack(at(200_000), &sample(90, 1000)), "found once");
    }

    #[test]
    fn one_early_sample_excuses_the_round() {
        let mut hystart = HyStart::new();
        hystart.restart(at(0), Bytes::new(1_000_000));
        hystart.on_ack(at(3_000), &sample(20, 1000));
        assert!((2..50).all(|n| !hystart.on_ack(at(3_000 * n), &sample(60, 1000))));
    }
}
