//! PIE: drops or marks at the tail with a probability that a controller of the queueing delay sets.
//! Source:     RFC 8033, sections 4 and 5; constants of its section 4 and appendix A, which Linux's `sch_pie` has, too.
//! Equations:  p += alpha (delay - target) + beta (delay - old delay), every `UPDATE`, scaled for small p
//! Symbols:    PIE->drop_prob_ -> `probability`, PIE->accu_prob_ -> `accumulated`, burst_allowance_ -> `burst`
//! Deviations: the delay is how long the oldest packet has waited (section 5.2's timestamps, but seen at the update and not at
//!             the last departure, so that a link that stands still counts).
//! Validity:   any rate.     Checked by: tests::*

use lasthop_units::{Bytes, Span, Stream, Time};
use rand::RngExt;

/// What PIE tolerates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PieParams {
    /// The delay that it steers to.
    pub target: Span,
    /// Packets that it holds; beyond, the newest is dropped.
    pub packets: usize,
    /// Mark what can be marked instead of dropping it, while the probability is below a tenth.
    pub ecn: bool,
}

impl Default for PieParams {
    /// RFC 8033's target of 15 ms, and Linux's 1000 packets and marking off.
    fn default() -> PieParams {
        PieParams { target: Span::from_millis(15), packets: 1000, ecn: false }
    }
}

const UPDATE: Span = Span::from_millis(15);
const BURST: Span = Span::from_millis(150);
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
/// Above it packets are dropped even if they could be marked.
const MARK_UP_TO: f64 = 0.1;
/// Queues of no more than two packets are never punished.
const SHORT: Bytes = Bytes::new(2 * 1500);

/// What shall become of a packet that arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Take,
    Mark,
    Drop,
}

/// What PIE remembers of a queue.
#[derive(Clone, Debug)]
pub(crate) struct Pie {
    params: PieParams,
    probability: f64,
    accumulated: f64,
    burst: Span,
    old_delay: Span,
    next_update: Time,
    chance: Stream,
}

impl Pie {
    pub fn new(params: PieParams, chance: Stream) -> Pie {
        Pie {
            params,
            probability: 0.0,
            accumulated: 0.0,
            burst: BURST,
            old_delay: Span::ZERO,
            next_update: Time::ZERO + UPDATE,
            chance,
        }
    }

    /// Runs the updates that are due by `now`, before the queue changes; `oldest` is when its head came.
    pub fn catch_up(&mut self, now: Time, oldest: Option<Time>) {
        while self.next_update <= now {
            let delay = oldest.map_or(Span::ZERO, |came| self.next_update.since(came));
            self.update(delay);
            self.next_update += UPDATE;
            if oldest.is_none() && self.rests() {
                // Nothing changes any more while the queue is empty.
                let missed = now.since(self.next_update).as_nanos() / UPDATE.as_nanos();
                self.next_update += UPDATE * missed;
            }
        }
    }

    /// Decides on a packet that finds `bytes` in `packets` before it; `markable` if its sender understands marks.
    pub fn arrives(&mut self, bytes: Bytes, packets: usize, markable: bool) -> Verdict {
        if packets >= self.params.packets {
            return Verdict::Drop;
        }
        if !self.burst.is_zero() || !self.strikes(bytes) {
            return Verdict::Take;
        }
        match markable && self.params.ecn && self.probability <= MARK_UP_TO {
            true => Verdict::Mark,
            false => Verdict::Drop,
        }
    }

    /// Random, but neither too soon nor too late after the last time (section 5.4).
    fn strikes(&mut self, bytes: Bytes) -> bool {
        let calm = self.old_delay < self.params.target.scale(0.5) && self.probability < 0.2;
        if calm || bytes <= SHORT {
            return false;
        }
        self.accumulated = if self.probability > 0.0 { self.accumulated + self.probability } else { 0.0 };
        let strikes = match self.accumulated {
            short if short < 0.85 => false,
            long if long >= 8.5 => true,
            _ => self.chance.random::<f64>() < self.probability,
        };
        if strikes {
            self.accumulated = 0.0;
        }
        strikes
    }

    fn update(&mut self, delay: Span) {
        let (target, now, old) = (self.params.target.as_secs_f64(), delay.as_secs_f64(), self.old_delay.as_secs_f64());
        let mut step = (ALPHA * (now - target) + BETA * (now - old)) * scale(self.probability);
        if self.probability >= 0.1 {
            step = step.min(0.02);
        }
        // What protects against long standing delays, as Linux has it.
        if delay > Span::from_millis(250) {
            step += 0.02;
        }
        self.probability += step;
        if delay.is_zero() && self.old_delay.is_zero() {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.burst = self.burst.saturating_sub(UPDATE);
        let calm = |delay: Span| delay < self.params.target.scale(0.5);
        if self.probability == 0.0 && calm(delay) && calm(self.old_delay) {
            self.burst = BURST;
        }
        self.old_delay = delay;
    }

    /// True if an update at an empty queue changes nothing.
    fn rests(&self) -> bool {
        self.probability == 0.0 && self.old_delay.is_zero() && self.burst == BURST
    }
}

/// How much of a step is taken at a small probability (section 4.2's table).
fn scale(probability: f64) -> f64 {
    const STEPS: [(f64, f64); 7] = [
        (0.000_001, 1.0 / 2048.0),
        (0.000_01, 1.0 / 512.0),
        (0.000_1, 1.0 / 128.0),
        (0.001, 1.0 / 32.0),
        (0.01, 1.0 / 8.0),
        (0.1, 1.0 / 2.0),
        (f64::INFINITY, 1.0),
    ];
    STEPS.iter().find(|(below, _)| probability < *below).map_or(1.0, |(_, scale)| *scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::Seed;

    fn pie(ecn: bool) -> Pie {
        Pie::new(PieParams { ecn, ..PieParams::default() }, Seed(1).stream("pie"))
    }

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    #[test]
    fn the_probability_follows_the_rfcs_equation() {
        let mut pie = pie(false);
        // By hand, a head that came at 0: delays 15, 30, 45 ms at the updates. p below 1e-6 takes 1/2048 of a step.
        pie.catch_up(ms(15), Some(Time::ZERO));
        let first = 1.25 * 0.015 / 2048.0;
        assert!((pie.probability - first).abs() < 1e-15, "{}", pie.probability);
        // Then below 1e-5: 1/512.
        pie.catch_up(ms(30), Some(Time::ZERO));
        let second = first + (0.125 * 0.015 + 1.25 * 0.015) / 512.0;
        assert!((pie.probability - second).abs() < 1e-15, "{}", pie.probability);
        assert_eq!(pie.burst, Span::from_millis(120));
    }

    #[test]
    fn a_burst_passes_and_a_standing_queue_is_struck() {
        let mut pie = pie(false);
        let bytes = Bytes::new(150_000);
        pie.catch_up(ms(149), Some(Time::ZERO));
        assert!((0..500).all(|_| pie.arrives(bytes, 100, false) == Verdict::Take), "the burst allowance");
        pie.catch_up(ms(3_000), Some(Time::ZERO));
        let struck = (0..1000).filter(|_| pie.arrives(bytes, 100, false) == Verdict::Drop).count();
        let expected = pie.probability * 1000.0;
        assert!(pie.probability > 0.5 && (struck as f64) < expected * 1.2, "{struck} of 1000 at {}", pie.probability);
        assert_eq!(pie.arrives(Bytes::new(3000), 2, false), Verdict::Take, "two packets are no queue");
        assert_eq!(pie.arrives(bytes, 1000, false), Verdict::Drop, "full");
    }

    #[test]
    fn an_empty_queue_forgets_and_marks_come_before_drops() {
        let mut pie = pie(true);
        pie.catch_up(ms(600), Some(Time::ZERO));
        pie.probability = 0.05;
        let marked = (0..1000).filter(|_| pie.arrives(Bytes::new(150_000), 100, true) == Verdict::Mark).count();
        // One in twenty, spread by the accumulated probability: between 1/(8.5/0.05) and 1/(0.85/0.05).
        assert!((6..=59).contains(&marked), "{marked} of 1000");
        pie.catch_up(ms(3_600_000), None);
        assert_eq!((pie.probability, pie.burst), (0.0, BURST));
        assert!(pie.next_update > ms(3_600_000) && pie.next_update <= ms(3_600_015));
    }
}
