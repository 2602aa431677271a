//! Refusing packets that were there before.
//! Source:     RFC 4303 section 3.4.3 and appendix A2; the ring of words of RFC 6479.
//! Equations:  seen: highest - 2048 < number, and its bit is set; too old: number <= highest - 2048
//! Deviations: none.     Validity: the caller has authenticated a number before it is entered.
//! Checked by: tests::*

/// Numbers that may arrive late.
pub(super) const WINDOW: u64 = 2048;
const WORDS: usize = 64;

/// The numbers that have been seen.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    /// One more than the highest.
    next: u64,
    /// A bit a number, as a ring that is a word's length and more longer than the window.
    bits: [u64; WORDS],
}

impl Replay {
    pub(crate) fn new() -> Replay {
        Replay { next: 0, bits: [0; WORDS] }
    }

    /// True if the number may still come.
    pub(crate) fn is_fresh(&self, number: u64) -> bool {
        number >= self.next
            || (number.saturating_add(WINDOW) >= self.next && self.bits[word(number)] & bit(number) == 0)
    }

    /// Enters a number that is fresh.
    pub(crate) fn enter(&mut self, number: u64) {
        if number >= self.next {
            let (from, to) = (self.next.div_ceil(64), number / 64);
            // Words that come into use anew; more than there are need not be cleared twice.
            let count = (to + 1).saturating_sub(from).min(WORDS as u64);
            for n in 0..count {
                self.bits[((to - n) % WORDS as u64) as usize] = 0;
            }
            self.next = number.saturating_add(1);
        }
        self.bits[word(number)] |= bit(number);
    }

    /// True if the number is higher than all before.
    pub(super) fn is_highest(&self, number: u64) -> bool {
        number >= self.next
    }
}

fn word(number: u64) -> usize {
    (number / 64 % WORDS as u64) as usize
}

fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_agrees_with_a_set(steps in prop::collection::vec((any::<bool>(), 0u64..6000), 1..300)) {
            let (mut replay, mut seen) = (Replay::new(), BTreeSet::new());
            let mut highest: Option<u64> = None;
            for (ahead, by) in steps {
                let base = highest.unwrap_or(0);
                let number = if ahead { base + by } else { base.saturating_sub(by) };
                let in_window = highest.is_none_or(|highest| number + WINDOW > highest);
                let expected = in_window && !seen.contains(&number);
                prop_assert_eq!(replay.is_fresh(number), expected, "{}", number);
                if expected {
                    replay.enter(number);
                    seen.insert(number);
                    highest = Some(highest.map_or(number, |highest| highest.max(number)));
                }
            }
        }
    }

    #[test]
    fn the_last_number_there_is_does_no_harm() {
        let mut replay = Replay::new();
        replay.enter(u64::MAX - 1);
        assert!(!replay.is_fresh(u64::MAX - 1) && replay.is_fresh(u64::MAX - 2) && !replay.is_fresh(5));
    }
}
