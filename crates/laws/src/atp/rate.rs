//! The rate of an ATP sender: what the slowest hop of the path tells it.
//! Source:     Zhang, Buck, Zappala 2011 (three phases, quick start); its rule for feedback that does not come: ATP
//!             (Sundaresan et al. 2005), not checked against the original.
//! Equations:  R = 1 / D_avg;   S > R: S' = R;   S < R - phi S: S' = S + (R - S) / k;   otherwise S' = S
//! Symbols:    S -> `rate`, packets a second; R from `PathDelay`; 1 / k -> `Params::step`; phi = 0.1 -> `THRESHOLD`
//! Deviations: D below the time of a lone packet on the fastest hop would be a lie: R is at most 100 000 packets a second. D above 4 s
//!             counts as 4 s, and an epoch as one from 40 ms to 1 s: the report may be forged.
//! Validity:   every packet counts alike, however long it is.     Checked by: tests::*, tests/integration/conformance

use super::{LONGEST_DELAY, Params, believed_epoch};
use crate::{Decision, SenderLaw, Why};
use lasthop_signals::{PathDelay, Signal};
use lasthop_units::{Span, Time};

/// The least share of S by which R must exceed it before S rises.
const THRESHOLD: f64 = 0.1;
/// The least D that is believed.
const LEAST: Span = Span::from_micros(10);
/// An epoch without feedback is over after this part of it more.
const PATIENCE: f64 = 1.5;
/// Epochs without feedback after which the sender stops.
const MISSED: u32 = 3;

/// The law of one sender.
#[derive(Clone, Debug)]
pub struct Rate {
    params: Params,
    /// Packets a second; `None` while the path is unknown.
    rate: Option<f64>,
    /// How often feedback comes.
    epoch: Span,
    /// Epochs in a row in which none came, and when the present one is over.
    missed: u32,
    due: Option<Time>,
    why: Why,
}

impl Rate {
    /// A sender that knows nothing of its path.
    pub fn new(params: Params) -> Rate {
        Rate { params, rate: None, epoch: Span::ZERO, missed: 0, due: None, why: Why::Probing }
    }

    fn on_feedback(&mut self, now: Time, told: &PathDelay) {
        let feedback = 1.0 / told.average.clamp(LEAST, LONGEST_DELAY).as_secs_f64();
        let (rate, why) = match self.rate {
            // Quick start: what the probe met is what the path has.
            None => (feedback, Why::QuickStart),
            Some(rate) if rate > feedback => (feedback, Why::Decrease),
            Some(rate) if rate < feedback - THRESHOLD * rate => {
                (rate + (feedback - rate) * self.params.step(), Why::Increase)
            }
            Some(rate) => (rate, Why::Maintain),
        };
        (self.rate, self.why) = (Some(rate), why);
        (self.epoch, self.missed) = (believed_epoch(told.epoch), 0);
        self.due = Some(now + self.epoch.scale(PATIENCE));
    }

    fn on_wakeup(&mut self, now: Time) {
        let Some(due) = self.due.filter(|due| *due <= now) else { return };
        self.missed += 1;
        if self.missed >= MISSED {
            (self.rate, self.due, self.why) = (None, None, Why::Probing);
            return;
        }
        self.rate = self.rate.map(|rate| rate / 2.0);
        (self.due, self.why) = (Some(due + self.epoch), Why::Decrease);
    }
}

impl SenderLaw for Rate {
    fn sense(&mut self, now: Time, signal: &Signal) {
        match signal {
            Signal::PathDelay(told) => self.on_feedback(now, told),
            Signal::Wakeup => self.on_wakeup(now),
            _ => {}
        }
    }

    fn decide(&self, _now: Time) -> Decision {
        let gap = self.rate.map_or(Span::MAX, |rate| Span::from_secs_f64(1.0 / rate));
        Decision { gap: Some(gap), revisit: self.due, ..Decision::unlimited(self.why) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::brief::at;

    fn told(us: u64) -> Signal {
        Signal::PathDelay(PathDelay { average: Span::from_micros(us), epoch: Span::from_secs(1) })
    }

    /// Packets a second after feedback of these delays in microseconds, a second apart.
    fn rates(increase: f64, delays: &[u64]) -> Vec<(u64, Why)> {
        let mut law = Rate::new(Params { increase, ..Params::default() });
        let seen = |(second, delay): (u64, &u64)| {
            law.sense(at(second * 1000), &told(*delay));
            let decision = law.decide(at(second * 1000));
            ((1.0 / decision.gap.expect("paced").as_secs_f64()).round() as u64, decision.why)
        };
        (0..).zip(delays).map(seen).collect()
    }

    #[test]
    fn the_three_phases_by_hand() {
        // R = 100: quick start. R = 200: 100 + 100 / 5. R = 125: above 120, but not by a tenth of it. R = 50: at once.
        let seen = rates(0.2, &[10_000, 5_000, 8_000, 20_000]);
        let want = [(100, Why::QuickStart), (120, Why::Increase), (120, Why::Maintain), (50, Why::Decrease)];
        assert_eq!(seen, want);
        assert_eq!(rates(0.5, &[10_000, 5_000])[1], (150, Why::Increase));
    }

    #[test]
    fn without_feedback_the_rate_halves_twice_then_stops() {
        let mut law = Rate::new(Params::default());
        assert_eq!(law.decide(at(0)).gap, Some(Span::MAX));
        law.sense(at(0), &told(10_000));
        let mut seen = Vec::new();
        while let Some(due) = law.decide(at(0)).revisit {
            law.sense(due, &Signal::Wakeup);
            seen.push((due, law.decide(due).gap.expect("paced")));
        }
        let ms = Span::from_millis;
        assert_eq!(seen, [(at(1500), ms(20)), (at(2500), ms(40)), (at(3500), Span::MAX)]);
        law.sense(at(9000), &told(5_000));
        assert_eq!(law.decide(at(9000)).gap, Some(ms(5)), "a probe that is answered starts it again");
    }

    #[test]
    fn feedback_begins_the_count_of_missed_epochs_anew() {
        let mut law = Rate::new(Params::default());
        law.sense(at(0), &told(10_000));
        for missed_at in [1500, 2500] {
            law.sense(at(missed_at), &Signal::Wakeup);
        }
        law.sense(at(3000), &told(10_000));
        assert_eq!(law.decide(at(3000)).revisit, Some(at(4500)));
        // The third without feedback since the beginning, and the first since the last feedback.
        law.sense(at(4500), &Signal::Wakeup);
        assert_ne!(law.decide(at(4500)).gap, Some(Span::MAX));
    }

    #[test]
    fn no_report_makes_it_wait_longer_than_a_receiver_could() {
        let forged = Span::from_micros(u64::from(u32::MAX));
        let mut law = Rate::new(Params::default());
        law.sense(at(0), &Signal::PathDelay(PathDelay { average: forged, epoch: forged }));
        let decision = law.decide(at(0));
        assert_eq!((decision.gap, decision.revisit), (Some(LONGEST_DELAY), Some(at(1_500))));
    }
}
