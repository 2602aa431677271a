//! CoDel: drops or marks when packets have stood in a queue for too long.
//! Source:     RFC 8289, sections 5.3 to 5.5; marking as in RFC 8290, section 4.2.
//! Equations:  next drop = last + interval / sqrt(count)
//! Symbols:    count -> `count`, first_above_time -> `above_since` (the moment dropping may begin)
//! Deviations: sojourn times are compared in nanoseconds and the square root is taken in f64, which IEEE 754 rounds
//!             correctly, so results are equal everywhere.     Validity: target <= interval.
//! Checked by: tests::*

use super::FqCodelParams;
use lasthop_units::{Span, Time};

/// What CoDel remembers of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Codel {
    dropping: bool,
    count: u32,
    last_count: u32,
    drop_next: Time,
    above_since: Option<Time>,
}

/// What to do with the packet at the head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// Send it.
    Pass,
    /// Mark or drop it; if dropped, judge the next.
    Signal,
}

impl Codel {
    /// Judges the head of a queue that `sojourn` long waited and leaves `rest` bytes behind. After a drop the next head
    /// is judged with `again` set.
    pub fn judge(&mut self, now: Time, sojourn: Span, rest: u64, again: bool, params: &FqCodelParams) -> Verdict {
        let standing = self.standing(now, sojourn, rest, params);
        if self.dropping {
            if !standing {
                self.dropping = false;
            } else if now >= self.drop_next {
                // After a drop the schedule moves on from the time it was due, not from now.
                self.count += 1;
                self.drop_next = control_law(self.drop_next, self.count, params);
                return Verdict::Signal;
            }
            return Verdict::Pass;
        }
        // A head judged after a drop has ended the dropping state or has not; it never begins one anew.
        if !standing || again {
            return Verdict::Pass;
        }
        self.dropping = true;
        // Dropping that ended not long ago resumes near the rate that controlled the queue then (5.5).
        let since = now.since(self.drop_next);
        let delta = self.count.saturating_sub(self.last_count);
        self.count = if delta > 1 && since < params.interval * 16 { delta } else { 1 };
        self.drop_next = control_law(now, self.count, params);
        self.last_count = self.count;
        Verdict::Signal
    }

    /// An empty queue stands nowhere.
    pub fn ran_empty(&mut self) {
        self.above_since = None;
        self.dropping = false;
    }

    /// True once the sojourn time has been at or above the target for an interval.
    fn standing(&mut self, now: Time, sojourn: Span, rest: u64, params: &FqCodelParams) -> bool {
        // With less than a packet behind it the queue is as short as it gets.
        if sojourn < params.target || rest <= MTU {
            self.above_since = None;
            return false;
        }
        let due = *self.above_since.get_or_insert(now + params.interval);
        now >= due
    }
}

/// Bytes of one full packet.
const MTU: u64 = 1_500;

fn control_law(from: Time, count: u32, params: &FqCodelParams) -> Time {
    from + params.interval.scale(1.0 / f64::from(count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Span = Span::from_millis(50);

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn a_short_stay_is_never_punished() {
        let (mut codel, params) = (Codel::default(), FqCodelParams::default());
        for ms in 0..1_000 {
            assert_eq!(codel.judge(at(ms), Span::from_millis(19), 9_000, false, &params), Verdict::Pass);
        }
    }

    #[test]
    fn a_standing_queue_is_signalled_after_an_interval_and_then_ever_faster() {
        let (mut codel, params) = (Codel::default(), FqCodelParams::default());
        let signals: Vec<u64> =
            (0..=500).filter(|&ms| codel.judge(at(ms), LONG, 9_000, false, &params) == Verdict::Signal).collect();
        // 100 ms of standing, then 100/sqrt(1), 100/sqrt(2) = 70.7, 100/sqrt(3) = 57.7, ... milliseconds apart.
        assert_eq!(signals, [100, 200, 271, 329, 379, 424, 464]);
    }

    #[test]
    fn the_last_packet_is_always_sent() {
        let (mut codel, params) = (Codel::default(), FqCodelParams::default());
        for ms in 0..1_000 {
            assert_eq!(codel.judge(at(ms), LONG, 0, false, &params), Verdict::Pass);
        }
    }
}
