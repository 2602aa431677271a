//! The least or the greatest value of the last while.
//! Source:     the monotonic queue of sliding-window extremes.
//! Equations:  none     Symbols: none     Deviations: none.
//! Validity:   times never decrease. At most as many values are kept as came in the while.     Checked by: tests::*

use lasthop_units::{Span, Time};
use std::collections::VecDeque;

/// Which end of the values counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Least,
    Greatest,
}

/// The values of the last while that may yet be its extreme, the present one first.
#[derive(Clone, Debug)]
pub(super) struct Extremes {
    end: End,
    values: VecDeque<(Time, Span)>,
}

impl Extremes {
    /// Without values.
    pub(super) fn new(end: End) -> Extremes {
        Extremes { end, values: VecDeque::new() }
    }

    /// Adds a value, forgets those that are older than `window`, and gives the extreme.
    pub(super) fn add(&mut self, now: Time, value: Span, window: Span) -> Span {
        let beaten = |old: Span| match self.end {
            End::Least => old >= value,
            End::Greatest => old <= value,
        };
        while self.values.back().is_some_and(|(_, old)| beaten(*old)) {
            self.values.pop_back();
        }
        self.values.push_back((now, value));
        while self.values.front().is_some_and(|(at, _)| now.since(*at) > window) {
            self.values.pop_front();
        }
        self.values.front().map_or(value, |(_, extreme)| *extreme)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_extreme_of_all_that_is_no_older(values in prop::collection::vec((0u64..40, 1u64..50), 1..60), window in 0u64..100) {
            for end in [End::Least, End::Greatest] {
                let (mut extremes, mut now, mut all) = (Extremes::new(end), 0, Vec::new());
                for (gap, value) in &values {
                    now += gap;
                    all.push((now, *value));
                    let recent = all.iter().filter(|(at, _)| now - at <= window).map(|(_, value)| *value);
                    let want = if end == End::Least { recent.min() } else { recent.max() };
                    let (at, value) = (Time::ZERO + Span::from_millis(now), Span::from_millis(*value));
                    let got = extremes.add(at, value, Span::from_millis(window));
                    prop_assert_eq!(Some(got), want.map(Span::from_millis));
                }
            }
        }
    }
}
