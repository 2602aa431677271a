//! Token-bucket policers: a path that drops whatever exceeds a long-term rate.
//! Source:     Linux (`bbr_lt_bw_sampling`); Flach et al., "An Internet-wide analysis of traffic policing", SIGCOMM 2016.
//! Equations:  an interval runs from loss to loss, 4 to 16 rounds, with >= 20 % lost (50/256); two in a row with rates
//!             that differ by <= 1/8 or 4 kbit/s mean a policer; its rate is their mean, in force for 48 rounds of
//!             probing
//! Symbols:    lt_bw -> `rate`, lt_use_bw -> `in_force`, lt_rtt_cnt -> `rounds`
//! Deviations: none.     Validity: none.     Checked by: tests::*

use lasthop_signals::Ack;
use lasthop_units::{Bytes, Rate, Span, Time};

const MIN_ROUNDS: u32 = 4;
const MAX_ROUNDS: u32 = 4 * MIN_ROUNDS;
const ROUNDS_IN_FORCE: u32 = 48;
const LOSS_OF_256: u64 = 50;
const SAME_RATE: Rate = Rate::from_bps(4_000);
const SHORTEST: Span = Span::from_millis(1);

/// The detector.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    sampling: bool,
    in_force: bool,
    rate: Rate,
    rounds: u32,
    began: Time,
    delivered: Bytes,
    lost: Bytes,
    lost_total: Bytes,
}

impl Policer {
    /// The policed rate, while one is believed in.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.in_force.then_some(self.rate)
    }

    /// Folds in an ACK. True if the belief ends with it, so that probing should start again.
    pub(super) fn on_ack(&mut self, now: Time, round_began: bool, probing: bool, ack: &Ack, app_limited: bool) -> bool {
        self.lost_total += ack.newly_lost;
        let lost = !ack.newly_lost.is_zero();
        if self.in_force {
            self.rounds += u32::from(probing && round_began);
            let over = self.rounds >= ROUNDS_IN_FORCE;
            if over {
                self.reset(now, ack.delivered);
            }
            return over;
        }
        if !self.sampling {
            // The first loss: the bucket is empty now.
            if !lost {
                return false;
            }
            self.begin_interval(now, ack.delivered);
            self.sampling = true;
        }
        if app_limited {
            self.reset(now, ack.delivered);
            return false;
        }
        self.rounds += u32::from(round_began);
        if self.rounds > MAX_ROUNDS {
            self.reset(now, ack.delivered);
        } else if self.rounds >= MIN_ROUNDS && lost {
            self.end_interval(now, ack.delivered);
        }
        false
    }

    fn end_interval(&mut self, now: Time, delivered_total: Bytes) {
        let lost = self.lost_total - self.lost;
        let delivered = delivered_total.saturating_sub(self.delivered);
        if delivered.is_zero() || lost * 256 < delivered * LOSS_OF_256 {
            return;
        }
        let length = now.since(self.began);
        let Some(rate) = Rate::of(delivered, length).filter(|_| length >= SHORTEST) else { return };
        if !self.rate.is_zero() {
            let apart = rate.saturating_sub(self.rate).max(self.rate.saturating_sub(rate));
            if apart * 8 <= self.rate || apart <= SAME_RATE {
                self.rate = Rate::from_bps(rate.as_bps().midpoint(self.rate.as_bps()));
                self.in_force = true;
                self.rounds = 0;
                return;
            }
        }
        self.rate = rate;
        self.begin_interval(now, delivered_total);
    }

    fn begin_interval(&mut self, now: Time, delivered: Bytes) {
        self.began = now;
        self.delivered = delivered;
        self.lost = self.lost_total;
        self.rounds = 0;
    }

    fn reset(&mut self, now: Time, delivered: Bytes) {
        self.rate = Rate::ZERO;
        self.in_force = false;
        self.sampling = false;
        self.begin_interval(now, delivered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::test_signals::{MSS, ack};

    /// Feeds rounds of 20 ms, 10 segments delivered and `lost` lost in each; returns when a policer is believed in.
    fn rounds_until_believed(policer: &mut Policer, lost: u64) -> Option<u64> {
        (1..100).find(|round| {
            let mut ack = ack(10, 20);
            ack.delivered = MSS * (10 * round);
            ack.newly_lost = MSS * lost;
            policer.on_ack(Time::ZERO + Span::from_millis(20) * *round, true, true, &ack, false);
            policer.rate().is_some()
        })
    }

    #[test]
    fn two_lossy_intervals_of_equal_rate_are_a_policer() {
        let mut policer = Policer::default();
        assert!(rounds_until_believed(&mut policer, 3).is_some());
        // 10 segments of 1000 octets each 20 ms.
        assert_eq!(policer.rate(), Some(Rate::from_mbit(4)));
    }

    #[test]
    fn ordinary_loss_is_not() {
        assert_eq!(rounds_until_believed(&mut Policer::default(), 1), None);
    }

    #[test]
    fn the_belief_lasts_48_rounds_of_probing() {
        let mut policer = Policer::default();
        rounds_until_believed(&mut policer, 3).expect("believed");
        let ended = (1..100).find(|_| policer.on_ack(Time::ZERO, true, true, &ack(10, 20), false));
        assert_eq!(ended, Some(48));
        assert_eq!(policer.rate(), None);
    }
}
