//! CoDel: drops or marks when packets have stood in a queue for too long.
//! Source:     RFC 8289, sections 5.3 to 5.6 (pseudo-code); marking as in RFC 8290, section 4.2, and Linux's
//!             `net/codel_impl.h`.
//! Equations:  next drop = last + interval / sqrt(count)
//! Symbols:    count -> `count`, lastcount -> `last_count`, first_above_time -> `above_since` (the moment dropping may
//!             begin), MTU -> `Params::floor`
//! Deviations: sojourn times are compared in nanoseconds and the square root is taken in f64, which IEEE 754 rounds
//!             correctly, so results are equal everywhere (Linux: units of 1.024 us and one Newton step a drop).
//! Validity:   target <= interval.     Checked by: tests::*

use lasthop_units::{Span, Time};

/// What CoDel tolerates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Params {
    /// Sojourn time that is fine.
    pub target: Span,
    /// How long it must be exceeded before anything is dropped.
    pub interval: Span,
    /// A queue of no more bytes than this behind its head is never punished.
    pub floor: u64,
    /// Mark what can be marked instead of dropping it.
    pub ecn: bool,
}

/// What CoDel remembers of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Codel {
    dropping: bool,
    count: u32,
    last_count: u32,
    drop_next: Time,
    above_since: Option<Time>,
}

/// The queue that CoDel works on.
pub(crate) trait Line {
    /// Takes the head off and says when it came.
    fn take(&mut self) -> Option<(u32, Time)>;
    /// Bytes that wait behind what was taken.
    fn rest(&self) -> u64;
    /// Marks a packet; false if its sender does not understand marks.
    fn mark(&mut self, id: u32) -> bool;
    /// Gives a packet up.
    fn drop(&mut self, id: u32);
}

impl Codel {
    /// The next packet to be sent, after marks and drops.
    pub fn dequeue(&mut self, now: Time, params: &Params, line: &mut impl Line) -> Option<u32> {
        let Some((mut id, mut standing)) = self.take(now, params, line) else {
            self.dropping = false;
            return None;
        };
        if self.dropping {
            self.dropping = standing;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if params.ecn && line.mark(id) {
                    self.drop_next = control_law(self.drop_next, self.count, params);
                    return Some(id);
                }
                line.drop(id);
                let Some(next) = self.take(now, params, line) else {
                    self.dropping = false;
                    return None;
                };
                (id, standing) = next;
                // The schedule moves on from the time the drop was due, not from now.
                if standing {
                    self.drop_next = control_law(self.drop_next, self.count, params);
                } else {
                    self.dropping = false;
                }
            }
            return Some(id);
        }
        if !standing {
            return Some(id);
        }
        let mut sent = Some(id);
        if !(params.ecn && line.mark(id)) {
            line.drop(id);
            sent = self.take(now, params, line).map(|next| next.0);
        }
        self.dropping = true;
        // Dropping that ended not long ago resumes near the rate that controlled the queue then (5.5).
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now.since(self.drop_next) < params.interval * 16;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = control_law(now, self.count, params);
        self.last_count = self.count;
        sent
    }

    /// Takes the head and tells whether the queue has been standing for an interval (dodequeue).
    fn take(&mut self, now: Time, params: &Params, line: &mut impl Line) -> Option<(u32, bool)> {
        let Some((id, came)) = line.take() else {
            self.above_since = None;
            return None;
        };
        if now.since(came) < params.target || line.rest() <= params.floor {
            self.above_since = None;
            return Some((id, false));
        }
        let standing = match self.above_since {
            None => {
                self.above_since = Some(now + params.interval);
                false
            }
            Some(since) => now >= since,
        };
        Some((id, standing))
    }
}

fn control_law(from: Time, count: u32, params: &Params) -> Time {
    from + params.interval.scale(1.0 / f64::from(count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// 1000-byte packets by number, with their arrival times.
    #[derive(Default)]
    struct Queue {
        waiting: VecDeque<(u32, Time)>,
        arrived: u32,
        markable: bool,
        marked: Vec<u32>,
        dropped: Vec<u32>,
    }

    impl Queue {
        fn put(&mut self, at: Time) {
            self.waiting.push_back((self.arrived, at));
            self.arrived += 1;
        }
    }

    impl Line for Queue {
        fn take(&mut self) -> Option<(u32, Time)> {
            self.waiting.pop_front()
        }
        fn rest(&self) -> u64 {
            1_000 * self.waiting.len() as u64
        }
        fn mark(&mut self, id: u32) -> bool {
            if self.markable {
                self.marked.push(id);
            }
            self.markable
        }
        fn drop(&mut self, id: u32) {
            self.dropped.push(id);
        }
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_micros(us)
    }

    fn params(ecn: bool) -> Params {
        Params { target: Span::from_millis(5), interval: Span::from_millis(100), floor: 1_500, ecn }
    }

    /// One packet leaves every millisecond from a queue that always holds 20 more, each 20 ms old at its turn: when are
    /// packets dropped or marked, in milliseconds?
    fn standing(until_ms: u64, ecn: bool) -> Vec<u64> {
        let (mut codel, mut queue) = (Codel::default(), Queue { markable: ecn, ..Queue::default() });
        let mut signals = Vec::new();
        for ms in 0..=until_ms {
            while queue.waiting.len() < 20 {
                queue.put(Time::ZERO);
            }
            let before = queue.dropped.len() + queue.marked.len();
            // All packets are older than the target from the first moment on.
            codel.dequeue(at(20_000 + 1_000 * ms), &params(ecn), &mut queue).expect("never empty");
            let after = queue.dropped.len() + queue.marked.len();
            signals.extend(std::iter::repeat_n(ms, after - before));
        }
        signals
    }

    #[test]
    fn drops_of_a_standing_queue_follow_rfc_8289() {
        // By hand from 5.5: above since 0, so dropping begins at 100. Then drop_next = 100 + 100/sqrt(1) = 200; each
        // drop there adds 100/sqrt(count) to the time that was due: 200 + 70.71 = 270.71, + 57.74 = 328.45, + 50 =
        // 378.45, + 44.72 = 423.17, + 40.82 = 463.99, + 37.80 = 501.79; seen at the next whole millisecond.
        assert_eq!(standing(502, false), [100, 200, 271, 329, 379, 424, 464, 502]);
    }

    #[test]
    fn marks_come_when_drops_would() {
        assert_eq!(standing(502, true), standing(502, false));
    }

    #[test]
    fn several_drops_that_are_due_happen_at_once() {
        // Nothing leaves between 199 and 400 ms, and meanwhile four drops have come due.
        let (mut codel, mut queue) = (Codel::default(), Queue::default());
        for _ in 0..100 {
            queue.put(Time::ZERO);
        }
        for ms in [10, 110, 199] {
            codel.dequeue(at(1_000 * ms), &params(false), &mut queue);
        }
        // Above since 10, so the first drop is at 110 and the next due at 210.
        assert_eq!(queue.dropped, [1]);
        assert_eq!(codel.dequeue(at(400_000), &params(false), &mut queue), Some(8));
        assert_eq!(queue.dropped, [1, 4, 5, 6, 7], "due at 210, 280.7, 338.4 and 388.4; the next at 433.2");
    }

    #[test]
    fn dropping_that_ended_a_moment_ago_resumes_near_its_old_rate() {
        let (mut codel, mut queue) = (Codel::default(), Queue::default());
        let step = |codel: &mut Codel, queue: &mut Queue, ms: u64, age_ms: u64| {
            queue.waiting.clear();
            (0..20).for_each(|_| queue.put(at(1_000 * (ms - age_ms))));
            let before = queue.dropped.len();
            codel.dequeue(at(1_000 * ms), &params(false), queue);
            queue.dropped.len() - before
        };
        let mut drops = 0;
        for ms in 20..600 {
            drops += step(&mut codel, &mut queue, ms, 20);
        }
        // 120, 220, 290.7, 348.4, 398.4, 443.2, 484, 521.8, 557.1, 590.5.
        assert_eq!((drops, codel.count), (10, 10));
        // The queue is short for a moment, which ends dropping; then it stands again.
        assert_eq!(step(&mut codel, &mut queue, 600, 1), 0);
        assert!(!codel.dropping);
        let again: Vec<u64> = (601..900).filter(|&ms| step(&mut codel, &mut queue, ms, 20) > 0).collect();
        // delta = 10 - 1 = 9 drops after the last beginning, so count resumes at 9: 701, then 100/sqrt(9) = 33.3 ms,
        // 100/sqrt(10) = 31.6, 30.2, 28.9, 27.7, 26.7 later.
        assert_eq!(again, [701, 735, 766, 797, 825, 853, 880]);
    }

    #[test]
    fn short_stays_never_drop_and_the_last_packet_is_sent() {
        let (mut codel, mut queue) = (Codel::default(), Queue::default());
        for ms in 0..1_000u64 {
            queue.waiting.clear();
            (0..20).for_each(|_| queue.put(at(1_000 * ms)));
            assert!(codel.dequeue(at(1_000 * ms + 4_999), &params(false), &mut queue).is_some());
            queue.waiting.clear();
            queue.put(Time::ZERO);
            queue.put(Time::ZERO);
            assert!(codel.dequeue(at(1_000 * ms + 90_000), &params(false), &mut queue).is_some());
        }
        assert!(queue.dropped.is_empty());
        queue.waiting.clear();
        assert_eq!(codel.dequeue(at(2_000_000), &params(false), &mut queue), None);
    }
}
