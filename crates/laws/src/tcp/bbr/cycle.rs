//! The cycle of pacing gains that probes for bandwidth.
//! Source:     [draft-cardwell-iccrg-bbr-congestion-control-00] section 4.3.4.
//! Equations:  gains 5/4, 3/4, 1, 1, 1, 1, 1, 1, a phase being about an RTprop long; the start is random, not 3/4
//! Symbols:    BBR.cycle_index -> `phase`, BBR.cycle_stamp -> `began`
//! Deviations: none.     Validity: none.     Checked by: tests::*

use lasthop_units::{Bytes, Span, Stream, Time};
use rand::Rng;

/// Phases of a cycle.
pub(crate) const PHASES: usize = 8;
const GAINS: [f64; PHASES] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// Where in the cycle a flow is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cycle {
    phase: usize,
    began: Time,
}

impl Cycle {
    /// Begins anywhere but at the phase that drains, so that flows do not probe together.
    pub(crate) fn enter(&mut self, now: Time, random: &mut Stream) {
        let others = (PHASES - 1) as u64;
        let back = usize::try_from(random.next_u64() % others).expect("less than 7");
        self.phase = PHASES - 1 - back;
        self.advance(now);
    }

    /// Probes again at once.
    pub(crate) fn probe(&mut self, now: Time) {
        (self.phase, self.began) = (0, now);
    }

    fn advance(&mut self, now: Time) {
        self.phase = (self.phase + 1) % PHASES;
        self.began = now;
    }

    /// An ACK arrived. `gain` is the one in force; `in_network` is compared with `target`.
    pub(crate) fn on_ack(&mut self, now: Time, gain: f64, rtt: Span, in_network: Bytes, target: Bytes, lost: bool) {
        let whole = now.since(self.began) > rtt;
        let over = if gain > 1.0 {
            // Probing ends once it has had its effect, or where the path cannot hold it.
            whole && (lost || in_network >= target)
        } else if gain < 1.0 {
            whole || in_network <= target
        } else {
            whole
        };
        if over {
            self.advance(now);
        }
    }

    /// The pacing gain of the phase.
    pub(crate) fn gain(&self) -> f64 {
        GAINS[self.phase]
    }

    /// True in the phase that sends more than the estimate.
    pub(crate) fn is_probing(&self) -> bool {
        self.phase == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::Seed;

    const RTT: Span = Span::from_millis(20);

    #[test]
    fn flows_start_anywhere_but_in_the_draining_phase() {
        let mut random = Seed(7).stream("cycle");
        let mut seen = [false; 8];
        for _ in 0..500 {
            let mut cycle = Cycle::default();
            cycle.enter(Time::ZERO, &mut random);
            seen[cycle.phase] = true;
        }
        assert_eq!(seen, [true, false, true, true, true, true, true, true]);
    }

    #[test]
    fn probing_lasts_until_it_shows_and_draining_until_it_is_done() {
        let (b, late) = (Bytes::new, Time::ZERO + RTT * 2);
        let mut cycle = Cycle::default();
        cycle.on_ack(Time::ZERO + RTT / 2, 1.25, RTT, b(200), b(125), false);
        assert!(cycle.is_probing(), "a whole RTT at least");
        cycle.on_ack(late, 1.25, RTT, b(100), b(125), false);
        assert!(cycle.is_probing(), "not yet in flight");
        cycle.on_ack(late, 1.25, RTT, b(125), b(125), false);
        assert_eq!(cycle.gain(), 0.75);
        cycle.on_ack(late + RTT / 4, 0.75, RTT, b(110), b(100), false);
        assert_eq!(cycle.gain(), 0.75);
        cycle.on_ack(late + RTT / 2, 0.75, RTT, b(100), b(100), false);
        assert_eq!(cycle.gain(), 1.0);
    }

    #[test]
    fn loss_ends_probing() {
        let mut cycle = Cycle::default();
        cycle.on_ack(Time::ZERO + RTT * 2, 1.25, RTT, Bytes::ZERO, Bytes::new(125), true);
        assert_eq!(cycle.gain(), 0.75);
    }
}
