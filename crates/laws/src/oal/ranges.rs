//! A set of octets, as ranges that do not touch.

use std::collections::BTreeMap;

/// Ranges of octets, first included and last excluded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds a range; nothing if it is empty.
    pub fn insert(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        while let Some((left, right)) = self.0.range(..=end).next_back().map(|(left, right)| (*left, *right)) {
            if right < start {
                break;
            }
            self.0.remove(&left);
            (start, end) = (start.min(left), end.max(right));
        }
        self.0.insert(start, end);
    }

    /// Removes what lies below an octet.
    pub fn remove_below(&mut self, octet: u64) {
        while let Some(first) = self.0.first_entry().filter(|first| *first.key() < octet) {
            let end = first.remove();
            if end > octet {
                self.0.insert(octet, end);
            }
        }
    }

    /// What of a range is not in the set, from its beginning on.
    pub fn gaps(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let covering = self.0.range(..=start).next_back().map(|(_, right)| *right);
        let mut from = covering.map_or(start, |right| right.max(start));
        let mut inside = self.0.range(start.saturating_add(1)..end.max(start.saturating_add(1)));
        std::iter::from_fn(move || {
            while from < end {
                let (left, right) = inside.next().map_or((end, end), |(left, right)| (*left, *right));
                let gap = (from, left.min(end));
                from = right.max(from);
                if gap.0 < gap.1 {
                    return Some(gap);
                }
            }
            None
        })
    }

    /// How many ranges there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_holds_what_a_list_of_octets_holds(
            ranges in prop::collection::vec((0u64..60, 0u64..20), 0..20),
            below in 0u64..40,
            (start, len) in (0u64..60, 0u64..30),
        ) {
            let (mut set, mut octets) = (Ranges::default(), [false; 100]);
            for (left, len) in ranges {
                set.insert(left, left + len);
                (left..left + len).for_each(|octet| octets[octet as usize] = true);
            }
            set.remove_below(below);
            (0..below).for_each(|octet| octets[octet as usize] = false);
            let gaps: Vec<(u64, u64)> = set.gaps(start, start + len).collect();
            for octet in start..start + len {
                let missing = gaps.iter().any(|(left, right)| (*left..*right).contains(&octet));
                prop_assert_eq!(missing, !octets[octet as usize], "{}", octet);
            }
            prop_assert!(gaps.iter().all(|(left, right)| start <= *left && left < right && *right <= start + len));
            let apart: Vec<(u64, u64)> = set.0.iter().map(|(left, right)| (*left, *right)).collect();
            prop_assert!(apart.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }
}
