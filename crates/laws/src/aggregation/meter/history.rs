//! Which sequence numbers of a conversation have been received, and so which MPDUs of a frame were lost on the air.
//!
//! An originator of BlockAck sends what is unacknowledged first, in order, and then what is new. A number that has never
//! been received, between the first and the last number of an A-MPDU or between the highest number before it and its
//! first, was therefore in that A-MPDU, unless the originator had given it up. So was a number below the first that was
//! missing in the frame before, unless it was missing in too many by now: what the originator gave up, or what the
//! receiver had and a monitor beside it missed, does not come again.
//!
//! All of this holds for a radio that hears whole frames. One that hears a conversation in part, because it is far away or
//! belongs to nobody in it, misses frames as wholes, and their numbers never come again. A long run of numbers before
//! the first of a frame is such a frame, not what this one lost; and where most of what was missing never came, nothing can
//! be inferred.

use super::Part;
use lasthop_units::Span;

/// After this silence nothing is known: at full rate all 4096 numbers pass in little more.
pub const STALE: Span = Span::from_millis(100);

/// Numbers further apart than the largest BlockAck window (256, with HE) do not belong together.
const WINDOW: u16 = 256;
/// More MPDUs in a row than this are hardly ever lost one by one: a fifth of them lost, one frame in 3000.
pub const LONGEST_RUN: u16 = 4;
/// So many numbers at least must have gone for good, and more than have come late, before a conversation counts as heard in part.
const GONE: u32 = 3;
/// After so many numbers that came or went, older ones count half.
const REMEMBERED: u32 = 64;
/// In so many frames in a row a number is taken to have been lost: a fifth of the MPDUs lost, one in 600 is lost more often.
const PATIENCE: u8 = 4;
/// Sequence numbers are modulo this.
const MODULUS: u16 = 4_096;

/// How many MPDUs of a frame were lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lost {
    /// All of them.
    pub all: u32,
    /// Those that had not been missing in an earlier frame.
    pub first: u32,
}

/// The numbers received of late.
#[derive(Clone, Debug)]
pub struct History {
    highest: Option<u16>,
    /// How many numbers below the highest are known to have been received or not.
    known: u16,
    /// One bit a sequence number.
    seen: [u64; MODULUS as usize / 64],
    /// What was missing in the latest frame, and in how many frames in a row.
    missing: Vec<(u16, u8)>,
    /// Numbers that were missing and came in a later frame, and those that never did.
    came: u32,
    gone: u32,
}

impl Default for History {
    fn default() -> History {
        History { highest: None, known: 0, seen: [0; MODULUS as usize / 64], missing: Vec::new(), came: 0, gone: 0 }
    }
}

/// True if `to` comes after `from`.
pub fn rises(from: u16, to: u16) -> bool {
    (1..MODULUS / 2).contains(&distance(from, to))
}

/// True if `to` comes after `from`, within a BlockAck window.
pub fn follows(from: u16, to: u16) -> bool {
    (1..=WINDOW).contains(&distance(from, to))
}

/// How far `to` is ahead of `from`.
pub fn distance(from: u16, to: u16) -> u16 {
    to.wrapping_sub(from) % MODULUS
}

impl History {
    /// Forgets which numbers came, not how well this radio hears.
    pub fn clear(&mut self) {
        self.highest = None;
        self.missing.clear();
    }

    /// True if most of what was missing never came: it had been received, but not by this radio.
    pub fn is_heard_in_part(&self) -> bool {
        self.gone >= GONE && self.gone > self.came
    }

    /// Takes the MPDUs of one frame in, in rising order, and returns what between them was lost.
    pub fn take(&mut self, parts: &[Part]) -> Lost {
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Lost::default() };
        let (first, last) = (first.sequence, last.sequence);
        let near = |highest| [first, last].iter().all(|&at| follows(highest, at) || distance(at, highest) < WINDOW);
        let highest = self.highest.filter(|&highest| near(highest));
        // Nothing is known of what came before: no gap can be told from a number received earlier.
        let before = highest.unwrap_or_else(|| {
            self.known = 0;
            self.clear_bit(first);
            first
        });
        self.reach(before, last);
        for part in parts {
            self.set_bit(part.sequence);
        }
        if highest.is_none() {
            self.missing.clear();
            return Lost::default();
        }
        let mut start = if rises(before, first) { (before + 1) % MODULUS } else { first };
        if distance(start, first) > LONGEST_RUN && rises(start, first) {
            (0..distance(start, first)).for_each(|ahead| self.set_bit((start + ahead) % MODULUS));
            start = first;
            self.gone += 1;
        }
        let earlier = std::mem::take(&mut self.missing);
        self.count_fates(&earlier, start);
        let again = |at: u16| earlier.iter().find(|(number, _)| *number == at).map_or(0, |(_, times)| *times);
        let within = (0..=distance(start, last)).map(|ahead| (start + ahead) % MODULUS);
        let within = within.filter(|&at| self.is_lost(at)).map(|at| (at, again(at).saturating_add(1)));
        let still = |&&(at, times): &&(u16, u8)| rises(at, start) && times < PATIENCE && self.is_lost(at);
        let below = earlier.iter().filter(still).map(|&(at, times)| (at, times + 1));
        self.missing = below.chain(within).collect();
        let count = |all: usize| u32::try_from(all).unwrap_or(u32::MAX);
        let first = self.missing.iter().filter(|(_, times)| *times == 1).count();
        Lost { all: count(self.missing.len()), first: count(first) }
    }

    /// Whether what was missing so far has come by now, or will not come any more.
    fn count_fates(&mut self, earlier: &[(u16, u8)], start: u16) {
        for &(at, times) in earlier {
            if !self.is_lost(at) {
                self.came += 1;
            } else if rises(at, start) && times >= PATIENCE {
                self.gone += 1;
            }
        }
        if self.came + self.gone > REMEMBERED {
            (self.came, self.gone) = (self.came / 2, self.gone / 2);
        }
    }

    /// Moves the highest number up to `to`, if that is higher than `from`: nothing between has been received yet.
    fn reach(&mut self, from: u16, to: u16) {
        self.highest = Some(from);
        if rises(from, to) {
            let ahead = distance(from, to);
            (1..=ahead).for_each(|step| self.clear_bit((from + step) % MODULUS));
            self.known = (self.known + ahead).min(MODULUS / 2);
            self.highest = Some(to);
        }
    }

    /// True if `at` is known not to have been received.
    fn is_lost(&self, at: u16) -> bool {
        let known = self.highest.is_some_and(|highest| distance(at, highest) <= self.known);
        known && self.seen[usize::from(at / 64)] & 1 << (at % 64) == 0
    }

    fn set_bit(&mut self, at: u16) {
        self.seen[usize::from(at % MODULUS / 64)] |= 1 << (at % 64);
    }

    fn clear_bit(&mut self, at: u16) {
        self.seen[usize::from(at % MODULUS / 64)] &= !(1 << (at % 64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(history: &mut History, numbers: &[u16]) -> u32 {
        let parts: Vec<Part> = numbers.iter().map(|&sequence| Part { sequence, retry: false }).collect();
        history.take(&parts).all
    }

    #[test]
    fn only_gaps_never_received_count_as_lost() {
        let mut history = History::default();
        assert_eq!(frame(&mut history, &[10, 11, 13]), 0, "12 may have come before the capture began");
        assert_eq!(frame(&mut history, &[14, 15, 18, 19]), 2);
        assert_eq!(frame(&mut history, &[16, 20, 21]), 1, "17 was lost again, 18 and 19 are there");
        assert_eq!(frame(&mut history, &[17, 22]), 0);
        assert_eq!(frame(&mut history, &[25]), 2, "23 and 24 were sent before 25");
        assert_eq!(frame(&mut history, &[24, 26]), 1, "23 was lost again");
        // It never comes: the transmitter gave it up.
        let after: Vec<u32> = (27..32).map(|at| frame(&mut history, &[at])).collect();
        assert_eq!(after, [1, 1, 0, 0, 0]);
    }

    #[test]
    fn frames_that_were_not_heard_are_no_losses_of_the_next() {
        // Of three A-MPDUs of 16 one is heard, as a neighbour far away.
        let mut history = History::default();
        let lost: Vec<u32> = (0..8).map(|n| frame(&mut history, &(n * 48..n * 48 + 16).collect::<Vec<_>>())).collect();
        assert_eq!(lost, [0; 8]);
        assert!(history.is_heard_in_part());
        // Single packets between that were not heard are counted until it is plain that they never come.
        let mut history = History::default();
        let lost: Vec<u32> = (0..40).map(|n| frame(&mut history, &[2 * n])).collect();
        assert!(history.is_heard_in_part() && lost.iter().all(|lost| *lost <= u32::from(PATIENCE)), "{lost:?}");
        // Losses that come again, a fifth of all and some of them twice, say nothing of the kind.
        let mut history = History::default();
        for n in 0..100u16 {
            let at = n * 10;
            frame(&mut history, &[at, at + 1, at + 2, at + 4, at + 5, at + 7, at + 9]);
            frame(&mut history, &[at + 3, at + 8]);
            frame(&mut history, &[at + 6]);
            assert!(!history.is_heard_in_part(), "{n}");
        }
    }

    #[test]
    fn numbers_wrap() {
        let mut history = History::default();
        assert_eq!(frame(&mut history, &[4_090, 4_091]), 0);
        assert_eq!(frame(&mut history, &[4_092, 4_095, 1]), 3);
        assert_eq!(frame(&mut history, &[4_093, 4_094, 0]), 0);
        for round in 0..3 {
            for at in (2..4_096).step_by(64) {
                let all: Vec<u16> = (at..at + 64).map(|n| n % 4_096).collect();
                let lost = frame(&mut history, &all);
                assert!(lost == 0, "round {round}: {lost} lost at {at}");
            }
        }
    }

    #[test]
    fn a_conversation_that_starts_anew_is_not_full_of_holes() {
        let mut history = History::default();
        frame(&mut history, &[10, 11]);
        assert_eq!(frame(&mut history, &[3_000, 3_002]), 0);
        assert_eq!(frame(&mut history, &[3_003, 3_005]), 1);
        history.clear();
        assert_eq!(frame(&mut history, &[3_010, 3_012]), 0);
    }
}
