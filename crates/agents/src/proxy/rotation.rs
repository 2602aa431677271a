//! Turns of sessions to be looked after: each once in [`PERIOD`], some at a time, since what is due meanwhile waits for
//! them.

use lasthop_units::{Span, Time};
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// Where the round stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rotation {
    /// The session that was looked after last.
    last: u32,
    /// When.
    at: Time,
}

/// How often everybody is looked after.
pub(super) const PERIOD: Span = Span::from_millis(2);
/// A round has so many parts at most while packets are due. With fewer a part of a hundred stations takes longer than packets may be late.
const PARTS: usize = 8;
/// One in so many at most has its turn at once then, when time was lost.
const MOST: u64 = 4;

/// Whether packets wait for their turn: a long part of a round would make them late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hurry {
    /// They do.
    Packets,
    /// Nothing waits: all have their turn together, since every part is a wake-up.
    Nothing,
}

impl Rotation {
    /// When the next part of a round is due that so many take part in.
    pub(super) fn next(&self, all: usize, hurry: Hurry) -> Time {
        let parts = if hurry == Hurry::Packets { all.clamp(1, PARTS) } else { 1 };
        self.at + PERIOD / parts as u64
    }

    /// The sessions that have their turn, as many as the time that has passed demands; none before [`Rotation::next`].
    pub(super) fn turn<T>(&mut self, now: Time, all: &BTreeMap<u32, T>, hurry: Hurry) -> Vec<u32> {
        if now < self.next(all.len(), hurry) || all.is_empty() {
            return Vec::new();
        }
        // Nobody catches up on rounds that were missed, nor on a whole one at once.
        self.at = self.at.max(now.saturating_sub(PERIOD));
        let len = all.len() as u64;
        let most = if hurry == Hurry::Packets { len.div_ceil(MOST) } else { len };
        let count = (now.since(self.at).as_nanos() * len / PERIOD.as_nanos()).min(most);
        self.at += PERIOD * count / len;
        let behind = all.range((Excluded(self.last), Unbounded)).chain(all.range(..=self.last));
        let turn: Vec<u32> = behind.map(|(number, _)| *number).take(count as usize).collect();
        self.last = turn.last().copied().unwrap_or(self.last);
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::Hurry::{Nothing, Packets};
    use super::*;

    fn at(us: u64) -> Time {
        Time::from_nanos((1_000_000 + us) * 1000)
    }

    #[test]
    fn every_session_has_one_turn_per_period() {
        for all in [1, 2, 7, 8, 9, 100, 333] {
            let sessions: BTreeMap<u32, ()> = (0..all).map(|n| (n * 3, ())).collect();
            let (mut rotation, mut seen) = (Rotation::default(), BTreeMap::new());
            while rotation.next(sessions.len(), Packets) <= at(0) {
                rotation.turn(at(0), &sessions, Packets);
            }
            // Calls at odd times.
            for us in (0..100_000).step_by(70) {
                let turn = rotation.turn(at(us), &sessions, Packets);
                assert!(turn.len() <= sessions.len().div_ceil(5), "{} of {all} at once", turn.len());
                for number in turn {
                    if let Some(before) = seen.insert(number, us) {
                        assert!((1600..=2400).contains(&(us - before)), "{number} of {all} after {} us", us - before);
                    }
                }
            }
            assert_eq!(seen.len(), sessions.len());
        }
    }

    #[test]
    fn who_comes_late_looks_after_all_once_and_not_at_once() {
        let sessions: BTreeMap<u32, ()> = (0..50).map(|n| (n, ())).collect();
        let mut rotation = Rotation::default();
        while rotation.next(50, Packets) <= at(0) {
            rotation.turn(at(0), &sessions, Packets);
        }
        assert_eq!(rotation.turn(at(249), &sessions, Packets), [0; 0]);
        let mut turns: Vec<Vec<u32>> = Vec::new();
        while rotation.next(50, Packets) <= at(90_000) {
            turns.push(rotation.turn(at(90_000), &sessions, Packets));
        }
        assert!(turns.iter().all(|turn| turn.len() <= 13), "{turns:?}");
        let mut all = turns.concat();
        all.sort_unstable();
        assert_eq!(all, (0..50).collect::<Vec<u32>>());
        assert_eq!(rotation.next(50, Packets), at(90_250));
        assert_eq!((rotation.next(1, Packets), rotation.next(0, Packets)), (at(92_000), at(92_000)));
        assert_eq!(rotation.turn(at(99_000), &BTreeMap::<u32, ()>::new(), Packets), [0; 0]);
    }

    #[test]
    fn where_nothing_waits_all_have_their_turn_at_once() {
        let sessions: BTreeMap<u32, ()> = (0..50).map(|n| (n, ())).collect();
        let mut rotation = Rotation::default();
        assert_eq!(rotation.turn(at(0), &sessions, Nothing).len(), 50);
        assert_eq!(rotation.next(50, Nothing), at(2000));
        assert_eq!(rotation.turn(at(1999), &sessions, Nothing), [0; 0]);
        assert_eq!(rotation.turn(at(2005), &sessions, Nothing).len(), 50);
        // The first packet makes it go on in parts.
        assert_eq!(rotation.next(50, Packets), at(2255));
    }
}
