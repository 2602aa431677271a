//! A set of stream offsets, kept as disjoint ranges.
//!
//! Both ends need one: the receiver for what arrived out of order, the sender for what has been SACKed. New ranges
//! nearly always touch or follow the last one, so ordered insertion into a ring is cheap.

use std::collections::VecDeque;
use std::ops::Range;

/// Disjoint, non-touching ranges in ascending order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    ranges: VecDeque<Range<u64>>,
}

impl Ranges {
    /// Adds `added`, and returns the range of the set that it has become part of. Calls `fresh` with each part, in
    /// order, that was not in the set before.
    pub(crate) fn insert(&mut self, added: Range<u64>, mut fresh: impl FnMut(Range<u64>)) -> Range<u64> {
        // A range that merely touches is merged too, hence `<` here and `<=` below.
        let first = self.ranges.partition_point(|r| r.end < added.start);
        let mut whole = added.clone();
        let (mut covered, mut past) = (added.start, first);
        while let Some(old) = self.ranges.get(past).filter(|old| old.start <= added.end) {
            whole = whole.start.min(old.start)..whole.end.max(old.end);
            if covered < old.start {
                fresh(covered..old.start);
            }
            covered = covered.max(old.end);
            past += 1;
        }
        if covered < added.end {
            fresh(covered..added.end);
        }
        if past == first {
            self.ranges.insert(first, whole.clone());
        } else {
            self.ranges[first] = whole.clone();
            if past > first + 1 {
                self.ranges.drain(first + 1..past);
            }
        }
        whole
    }

    /// Forgets everything below `offset`.
    pub(crate) fn remove_below(&mut self, offset: u64) {
        while let Some(first) = self.ranges.front_mut() {
            if first.start >= offset {
                return;
            }
            if first.end > offset {
                first.start = offset;
                return;
            }
            self.ranges.pop_front();
        }
    }

    /// Removes and returns the lowest range if it begins at or below `offset`.
    pub(crate) fn take_front_at(&mut self, offset: u64) -> Option<Range<u64>> {
        self.ranges.front().is_some_and(|r| r.start <= offset).then(|| self.ranges.pop_front()).flatten()
    }

    /// The ranges in ascending order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Range<u64>> {
        self.ranges.iter()
    }

    /// The lowest range.
    pub(crate) fn first(&self) -> Option<&Range<u64>> {
        self.ranges.front()
    }

    /// Forgets all but the highest `count` ranges.
    pub(crate) fn keep_highest(&mut self, count: usize) {
        while self.ranges.len() > count {
            self.ranges.pop_front();
        }
    }

    /// Takes up to `most` offsets from the lowest range out of the set.
    pub(crate) fn take_lowest(&mut self, most: u64) -> Option<Range<u64>> {
        let first = self.ranges.front_mut()?;
        let taken = first.start..first.end.min(first.start.saturating_add(most));
        first.start = taken.end;
        if first.start == first.end {
            self.ranges.pop_front();
        }
        Some(taken)
    }

    /// True if an offset is in the set.
    pub(crate) fn contains(&self, offset: u64) -> bool {
        let at = self.ranges.partition_point(|r| r.end <= offset);
        self.ranges.get(at).is_some_and(|r| r.start <= offset)
    }

    /// True if a range neither overlaps nor touches what is in the set: to add it would make one range more.
    pub(crate) fn is_apart(&self, range: &Range<u64>) -> bool {
        let at = self.ranges.partition_point(|r| r.end < range.start);
        self.ranges.get(at).is_none_or(|r| r.start > range.end)
    }

    /// How many ranges there are.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// How many there is memory for.
    pub(crate) fn capacity(&self) -> usize {
        self.ranges.capacity()
    }

    /// Gives memory back.
    pub(crate) fn shrink(&mut self) {
        self.ranges.shrink_to_fit();
    }

    /// True if nothing is in the set.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_range_set_agrees_with_a_table_of_booleans(
            steps in prop::collection::vec((0u64..60, 1u64..20, 0u64..40), 1..60)
        ) {
            let (mut set, mut table, mut floor) = (Ranges::default(), [false; 80], 0);
            for (start, len, below) in steps {
                let mut fresh = Vec::new();
                let start = start.max(floor);
                let (apart, before) = (set.is_apart(&(start..start + len)), set.len());
                let whole = set.insert(start..start + len, |part| fresh.extend(part));
                let expected: Vec<u64> = (start..start + len).filter(|i| !table[*i as usize]).collect();
                prop_assert_eq!(fresh, expected);
                prop_assert_eq!(apart, set.len() == before + 1);
                (start..start + len).for_each(|i| table[i as usize] = true);
                prop_assert!(whole.clone().all(|i| table[i as usize]));
                prop_assert!(!table.get(whole.end as usize).copied().unwrap_or(false));
                floor = floor.max(below);
                set.remove_below(floor);
                (0..floor).for_each(|i| table[i as usize] = false);
                let members: Vec<u64> = set.ranges.iter().cloned().flatten().collect();
                let expected: Vec<u64> = (0..80).filter(|i| table[*i as usize]).collect();
                prop_assert_eq!(members, expected);
                prop_assert!((0..80).all(|i| set.contains(i) == table[i as usize]));
                let apart = set.ranges.iter().zip(set.ranges.iter().skip(1)).all(|(a, b)| a.end < b.start);
                prop_assert!(apart, "ranges touch or overlap: {:?}", set);
            }
        }
    }
}
