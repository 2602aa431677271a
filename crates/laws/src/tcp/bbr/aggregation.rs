//! ACKs that come in clumps: how much more than the bandwidth explains has been acknowledged at once.
//! Source:     Linux (`bbr_update_ack_aggregation`), described in Priyaranjan Jha et al., IETF 104 ICCRG, 2019. It is
//!             what lets BBR fill Wi-Fi, where a BlockAck releases the ACKs of a whole A-MPDU.
//! Equations:  extra = acked since the epoch began - bandwidth * its length;   max over 5 to 10 rounds, at most 100 ms'
//!             worth; a new epoch begins when the ACKs fall behind the bandwidth
//! Deviations: the cap on an epoch is in bytes of 2^20 segments, as Linux.     Validity: none.     Checked by: tests::*

use lasthop_units::{Bytes, Rate, Span, Time};

const WINDOW_ROUNDS: u32 = 5;
const CAP: Span = Span::from_millis(100);
const EPOCH_SEGMENTS: u64 = 1 << 20;

/// The estimator.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    epoch_began: Time,
    epoch_acked: Bytes,
    /// Maximum of the current and of the previous half window.
    extra: [Bytes; 2],
    current: usize,
    rounds: u32,
}

impl Aggregation {
    /// Sending resumes after idling.
    pub(super) fn restart(&mut self, now: Time) {
        self.epoch_began = now;
        self.epoch_acked = Bytes::ZERO;
    }

    /// An ACK delivered `delivered`.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        round_began: bool,
        delivered: Bytes,
        bandwidth: Rate,
        cwnd: Bytes,
        mss: Bytes,
    ) {
        if round_began {
            self.rounds += 1;
            if self.rounds >= WINDOW_ROUNDS {
                self.rounds = 0;
                self.current = 1 - self.current;
                self.extra[self.current] = Bytes::ZERO;
            }
        }
        let mut expected = bandwidth.bytes_in(now.since(self.epoch_began));
        if self.epoch_acked <= expected || self.epoch_acked + delivered >= mss * EPOCH_SEGMENTS {
            self.restart(now);
            expected = Bytes::ZERO;
        }
        self.epoch_acked += delivered;
        let extra = self.epoch_acked.saturating_sub(expected).min(cwnd);
        self.extra[self.current] = self.extra[self.current].max(extra);
    }

    /// What to allow in flight beyond the estimate of the path.
    pub(super) fn extra(&self, bandwidth: Rate) -> Bytes {
        self.extra[0].max(self.extra[1]).min(bandwidth.bytes_in(CAP))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::brief::at;

    const MSS: Bytes = Bytes::new(1000);
    const RATE: Rate = Rate::from_mbit(8);

    #[test]
    fn a_clump_shows_and_is_forgotten_after_ten_rounds() {
        let mut aggregation = Aggregation::default();
        // 8 Mbit/s are 1000 octets a millisecond. 20 of them in one ACK after 20 ms are a clump of 20.
        aggregation.on_ack(at(20), true, MSS * 20, RATE, MSS * 100, MSS);
        assert_eq!(aggregation.extra(RATE), MSS * 20);
        // 25 ms of silence end the epoch; from then on ACKs keep pace.
        (45..55).for_each(|ms| aggregation.on_ack(at(ms), true, MSS, RATE, MSS * 100, MSS));
        assert!(aggregation.extra(RATE) < MSS * 20, "{}", aggregation.extra(RATE));
    }

    #[test]
    fn the_allowance_is_at_most_the_window_and_a_tenth_of_a_second() {
        let mut aggregation = Aggregation::default();
        aggregation.on_ack(at(20), true, MSS * 500, RATE, MSS * 200, MSS);
        assert_eq!(aggregation.extra(RATE), MSS * 100);
        assert_eq!(aggregation.extra(Rate::from_mbit(80)), MSS * 200);
    }
}
