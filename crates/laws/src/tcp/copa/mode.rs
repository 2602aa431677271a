//! Whether somebody else fills the queue, and how hard Copa then competes.
//! Source:     Arun, Balakrishnan, "Copa: practical delay-based congestion control for the Internet", NSDI 2018, section 2.2.
//! Equations:  nearly empty: d_q < 0.1 (RTT_max - RTT_min);   competitive: not nearly empty for five round trips
//!             competitive, once a round trip: 1/delta' = 1/delta + 1 without a loss, 1/delta / 2 after one, at least that of the default
//! Symbols:    d_q, the standing round trip beyond the least; RTT_max over four round trips; 1/delta -> `Mode::worth`
//! Deviations: none.
//! Validity:   a flow of Copa empties the queue every five round trips, and so does a number of them together.     Checked by: tests::*

use lasthop_units::{Span, Time};

/// Round trips within which a queue that Copa has for itself is nearly empty.
const PATIENCE: u64 = 5;
/// A queue is nearly empty below this part of what round trips vary by.
const NEARLY_EMPTY: f64 = 0.1;

/// What delta is, and why.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mode {
    /// 1/delta of the default mode.
    least: f64,
    /// Whether there is any other mode.
    switching: bool,
    /// 1/delta: packets that a flow keeps queued.
    worth: f64,
    /// When the queue was nearly empty last; `None` before the first round trip.
    empty: Option<Time>,
    competitive: bool,
    /// Since when the round trip lasts that the next step ends, and whether anything was lost in it.
    since: Time,
    lost: bool,
}

impl Mode {
    /// The default mode, with this delta.
    pub(super) fn new(delta: f64, switching: bool) -> Mode {
        let least = 1.0 / delta;
        Mode { least, switching, worth: least, empty: None, competitive: false, since: Time::ZERO, lost: false }
    }

    /// Packets that the flow keeps queued: 1/delta.
    pub(super) fn worth(&self) -> f64 {
        self.worth
    }

    /// True while it competes with a flow that fills the queue.
    pub(super) fn is_competitive(&self) -> bool {
        self.competitive
    }

    /// Something was lost.
    pub(super) fn on_loss(&mut self) {
        self.lost = true;
    }

    /// A round trip was measured: `queueing` of it, of which `swing` is what round trips vary by; `srtt`, smoothed.
    pub(super) fn on_round_trip(&mut self, now: Time, queueing: Span, swing: Span, srtt: Span) {
        if !self.switching {
            return;
        }
        if self.empty.is_none() || queueing.as_secs_f64() < NEARLY_EMPTY * swing.as_secs_f64() || swing.is_zero() {
            self.empty = Some(now);
        }
        let competitive = self.empty.is_some_and(|empty| now.since(empty) > srtt * PATIENCE);
        if competitive != self.competitive {
            (self.competitive, self.worth, self.since, self.lost) = (competitive, self.least, now, false);
        }
        if competitive && now.since(self.since) >= srtt {
            self.worth = if self.lost { (self.worth / 2.0).max(self.least) } else { self.worth + 1.0 };
            (self.since, self.lost) = (now, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::brief::at;

    const RTT: Span = Span::from_millis(100);

    /// Round trips up to `to`, each with so much queueing out of a swing of 100 ms.
    fn run(mode: &mut Mode, (from, to): (u64, u64), queueing: u64) {
        for round in from..to {
            mode.on_round_trip(at(100 * round), Span::from_millis(queueing), RTT, RTT);
        }
    }

    #[test]
    fn five_queued_rtts_make_it_compete_until_the_queue_empties() {
        let mut mode = Mode::new(0.5, true);
        run(&mut mode, (0, 6), 50);
        assert!(!mode.is_competitive() && mode.worth() == 2.0, "five, and not more");
        run(&mut mode, (6, 10), 50);
        // At the sixth it begins with that of the default, and grows by one a round trip.
        assert!(mode.is_competitive());
        assert_eq!(mode.worth(), 5.0);
        mode.on_loss();
        run(&mut mode, (10, 11), 50);
        assert_eq!(mode.worth(), 2.5);
        mode.on_loss();
        run(&mut mode, (11, 12), 50);
        assert_eq!(mode.worth(), 2.0, "no less than that of the default");
        // 9 of 100 ms are nearly empty, 11 are not.
        run(&mut mode, (12, 13), 11);
        assert!(mode.is_competitive());
        run(&mut mode, (13, 14), 9);
        assert!(!mode.is_competitive() && mode.worth() == 2.0);
    }

    #[test]
    fn without_switching_there_is_one_mode() {
        let mut mode = Mode::new(0.25, false);
        run(&mut mode, (0, 20), 50);
        assert!(!mode.is_competitive() && mode.worth() == 4.0);
    }
}
