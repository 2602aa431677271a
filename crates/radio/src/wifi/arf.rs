//! Auto rate fallback, and its adaptive form.
//! Source:     A. Kamerman and L. Monteban, "WaveLAN-II: a high-performance wireless LAN for the unlicensed band", Bell Labs
//!             Technical Journal 2(3), 1997 (ARF); M. Lacage, M. H. Manshaei and T. Turletti, "IEEE 802.11 rate adaptation:
//!             a practical approach", MSWiM 2004 (AARF). State machine and constants: ns-3's ArfWifiManager and
//!             AarfWifiManager.
//! Equations:  one rate up after `successes` frames in a row or `timer` frames in all were sent since the last change,
//!             the last of them acknowledged;  one down if the first frame after a step up fails (the recovery), else
//!             after every second failure in a row;  AARF: a failed recovery doubles `successes`, up to 50, and
//!             `timer`, and a fall outside a recovery sets both back
//! Symbols:    success threshold -> `successes_needed`, timer threshold -> `timer_needed`, recovery -> `recovering`
//! Deviations: AARF's bound is the paper's 50 (ns-3: 60). As in ns-3, a recovery lasts until a frame is acknowledged,
//!             and failures in it beyond the first change nothing; frames count, not milliseconds. Rates stand in their
//!             order; ns-3 has the DSSS rates of 802.11g before all others, so that 6 Mbit/s follows 11.
//! Validity:   frames of one MPDU: 802.11a and g.
//! Checked by: tests::* (sequences worked by hand), wifi::tests::*

/// Frames acknowledged in a row before a higher rate is tried.
const SUCCESSES: u32 = 10;
/// Frames sent before a higher rate is tried all the same.
const TIMER: u32 = 15;
/// AARF: the highest that the number of frames in a row becomes.
const MOST_SUCCESSES: u32 = 50;

/// The rate control of one transmitter towards one receiver. It begins at the lowest rate.
#[derive(Clone, Debug)]
pub(super) struct Arf {
    /// Modes by rising rate.
    modes: Vec<u16>,
    /// The one in use.
    current: usize,
    adaptive: bool,
    /// Frames sent since the rate last changed, or since two in a row last failed.
    timer: u32,
    /// Frames acknowledged, and frames failed, in a row.
    successes: u32,
    failures: u32,
    /// Since a step up, until a frame is acknowledged.
    recovering: bool,
    successes_needed: u32,
    timer_needed: u32,
}

impl Arf {
    /// A control over `modes`, which stand in the order of their rates; `adaptive` for AARF.
    pub fn new(modes: Vec<u16>, adaptive: bool) -> Arf {
        debug_assert!(!modes.is_empty());
        Arf {
            modes,
            current: 0,
            adaptive,
            timer: 0,
            successes: 0,
            failures: 0,
            recovering: false,
            successes_needed: SUCCESSES,
            timer_needed: TIMER,
        }
    }

    /// The mode of the next frame, a retransmission included.
    pub fn current(&self) -> u16 {
        self.modes[self.current]
    }

    /// What became of a data frame.
    pub fn report(&mut self, acknowledged: bool) {
        self.timer += 1;
        if acknowledged { self.succeeded() } else { self.failed() }
    }

    fn succeeded(&mut self) {
        self.successes += 1;
        self.failures = 0;
        self.recovering = false;
        let due = self.successes == self.successes_needed || self.timer == self.timer_needed;
        if due && self.current + 1 < self.modes.len() {
            self.current += 1;
            (self.timer, self.successes, self.recovering) = (0, 0, true);
        }
    }

    fn failed(&mut self) {
        self.failures += 1;
        self.successes = 0;
        if self.recovering {
            if self.failures == 1 {
                if self.adaptive {
                    self.successes_needed = (self.successes_needed * 2).min(MOST_SUCCESSES);
                    self.timer_needed = self.timer_needed.saturating_mul(2);
                }
                self.current = self.current.saturating_sub(1);
            }
            self.timer = 0;
            return;
        }
        if self.failures.is_multiple_of(2) {
            (self.successes_needed, self.timer_needed) = (SUCCESSES, TIMER);
            self.current = self.current.saturating_sub(1);
        }
        if self.failures >= 2 {
            self.timer = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports a frame each for `+` (acknowledged) and `-`, and returns the place of the rate after each.
    fn drive(arf: &mut Arf, frames: &str) -> Vec<u16> {
        let step = |frame: char| {
            arf.report(frame == '+');
            arf.current()
        };
        frames.chars().map(step).collect()
    }

    fn eight(adaptive: bool) -> Arf {
        Arf::new((0..8).collect(), adaptive)
    }

    #[test]
    fn ten_acknowledged_frames_raise_the_rate() {
        let mut arf = eight(false);
        assert_eq!(drive(&mut arf, "+++++++++"), [0; 9]);
        assert_eq!(drive(&mut arf, "+"), [1]);
        assert_eq!(drive(&mut arf, "+++++++++"), [1; 9]);
        assert_eq!(drive(&mut arf, "+"), [2]);
    }

    #[test]
    fn fifteen_frames_raise_the_rate_if_no_two_in_a_row_fail() {
        let mut arf = eight(false);
        // Never ten in a row. The 15th frame is acknowledged.
        assert_eq!(drive(&mut arf, "+++++++-++++++"), [0; 14]);
        assert_eq!(drive(&mut arf, "+"), [1]);
        // Had the 15th failed, the moment would have been missed: ten in a row count from there.
        let mut arf = eight(false);
        assert_eq!(drive(&mut arf, "+++++++-++++++-+++++++++"), [0; 24]);
        assert_eq!(drive(&mut arf, "+"), [1]);
    }

    #[test]
    fn every_second_failure_in_a_row_lowers_the_rate() {
        let mut arf = eight(false);
        drive(&mut arf, &"+".repeat(40));
        assert_eq!(arf.current(), 4);
        drive(&mut arf, "+");
        assert_eq!(drive(&mut arf, "-+-+-"), [4; 5]);
        assert_eq!(drive(&mut arf, "---------"), [3, 3, 2, 2, 1, 1, 0, 0, 0]);
    }

    #[test]
    fn the_first_frame_after_a_step_up_decides_alone() {
        let mut arf = eight(false);
        drive(&mut arf, &"+".repeat(20));
        assert_eq!(drive(&mut arf, "-"), [1]);
        // Still recovering: further failures change nothing until a frame is acknowledged.
        assert_eq!(drive(&mut arf, "---+--"), [1, 1, 1, 1, 1, 0]);
    }

    #[test]
    fn arf_probes_a_rate_that_never_works_every_eleventh_frame() {
        let mut arf = eight(false);
        for _ in 0..20 {
            assert_eq!(drive(&mut arf, "++++++++++-"), [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
        }
    }

    #[test]
    fn aarf_waits_twice_as_long_after_each_failed_probe() {
        let mut arf = eight(true);
        let mut waits = Vec::new();
        for _ in 0..5 {
            let frames = (1..).find(|_| drive(&mut arf, "+") == [1]);
            waits.extend(frames);
            assert_eq!(drive(&mut arf, "-"), [0]);
        }
        // 10, 20, 40, then its bound of 50; the timer of 15, 30, 60, 120 never comes first.
        assert_eq!(waits, [10, 20, 40, 50, 50]);
        // A fall outside a recovery sets both back.
        drive(&mut arf, &"+".repeat(50));
        assert_eq!(drive(&mut arf, "+--"), [1, 1, 0]);
        assert_eq!(drive(&mut arf, &"+".repeat(10)).last(), Some(&1));
    }

    #[test]
    fn the_rate_stays_within_the_list() {
        let mut arf = Arf::new(vec![7, 9], false);
        assert_eq!(drive(&mut arf, &"-".repeat(9)), [7; 9]);
        drive(&mut arf, &"+".repeat(100));
        assert_eq!(arf.current(), 9);
    }
}
