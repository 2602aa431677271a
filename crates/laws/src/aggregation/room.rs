//! A shorter interval where the hop's queue has no room for what comes in one.
//! Source:     own; decision 13. What is sent to the hop within a round waits there until the next.
//! Equations:  where more than 0.5 % of what was sent is lost:  T' = max{0.7 T, 0.05 T̄},   otherwise T' = min{1.02 T, T̄}
//! Symbols:    T̄ -> `asked`, T -> `interval`
//! Deviations: none.
//! Validity:   losses at the hop's queue: a buffer of fewer packets than a round brings, or one that others fill, too. What the air loses is
//!             lost in any round: where half of the first share is lost still when T is T̄/3, T̄ is aimed at again, and nothing
//!             is tried for a minute. What is lost before the hop, or while it drains, says nothing of its queue.
//! Checked by: tests::*, crates/sim/tests/room.rs

/// Which interval the hop's queue has room for.
#[derive(Clone, Debug, PartialEq)]
pub struct Room {
    /// The target, seconds.
    asked: f64,
    /// What there is room for, seconds.
    interval: f64,
    /// The share that was lost when the interval was first shortened.
    first: Option<f64>,
    /// Slots in a row that say so while the target is aimed at.
    lossy: u32,
    /// The last slot was one in which it was shortened: what is lost in the next was sent in rounds that were longer.
    shortened: bool,
    /// Slots in which losses are not its concern.
    futile: u32,
}

/// Share of the packets sent that are lost, from which on the queue has no room.
const LOSSY: f64 = 0.005;
/// Slots in a row that must say so: a hop that becomes slower loses what it is sent until that is known.
const PATIENCE: u32 = 2;
/// What an interval without room is multiplied by…
const SHORTER: f64 = 0.7;
/// …and one with room: a third of the target is the target again after half a minute.
const LONGER: f64 = 1.02;
/// Least share of the target.
const LEAST: f64 = 0.05;
/// At this share of the target it must have helped…
const SHOWN: f64 = 0.35;
/// …so that less than this share of the first losses is left.
const HELPED: f64 = 0.5;
/// Slots for which nothing is tried after it has not.
const FUTILE: u32 = 120;

impl Room {
    /// Room for all that comes within `asked` seconds.
    pub fn new(asked: f64) -> Room {
        Room { asked, interval: asked, first: None, lossy: 0, shortened: false, futile: 0 }
    }

    /// Folds one slot in, of whose packets this share was lost at the hop. True if the interval is shorter now, or the target
    /// again.
    pub fn update(&mut self, lost: f64) -> bool {
        self.futile = self.futile.saturating_sub(1);
        if std::mem::take(&mut self.shortened) || self.futile > 0 {
            return false;
        }
        if lost <= LOSSY {
            self.interval = (LONGER * self.interval).min(self.asked);
            self.lossy = 0;
            if self.interval >= self.asked {
                self.first = None;
            }
            return false;
        }
        self.lossy += 1;
        if self.first.is_none() && self.lossy < PATIENCE {
            return false;
        }
        let first = *self.first.get_or_insert(lost);
        let helped = self.interval > SHOWN * self.asked || lost < HELPED * first;
        if helped {
            self.interval = (SHORTER * self.interval).max(LEAST * self.asked);
            self.shortened = true;
        } else {
            *self = Room { futile: FUTILE, ..Room::new(self.asked) };
        }
        true
    }

    /// The interval that there is room for, seconds.
    pub fn interval(&self) -> f64 {
        self.interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds slots of a hop whose queue holds what comes in `fits` seconds, and loses what does not fit; gives the intervals.
    fn intervals(room: &mut Room, slots: usize, fits: f64) -> Vec<f64> {
        let lost = |interval: f64| (1.0 - fits / interval).max(0.0);
        let step = |room: &mut Room| {
            room.update(lost(room.interval()));
            room.interval()
        };
        (0..slots).map(|_| step(room)).collect()
    }

    #[test]
    fn the_interval_shrinks_to_what_fits_and_comes_back_when_more_does() {
        let mut room = Room::new(10e-3);
        let short = intervals(&mut room, 100, 4e-3);
        assert!(short[20..].iter().all(|interval| (2.5e-3..4.2e-3).contains(interval)), "{:?}", &short[20..]);
        // Slots with losses are few: one in eighteen.
        let lossy = short[20..].iter().filter(|interval| **interval > 4e-3 / (1.0 - LOSSY)).count();
        assert!(lossy <= 5, "{lossy} of 80");
        let long = intervals(&mut room, 100, 1.0);
        assert_eq!(long.last(), Some(&10e-3));
    }

    #[test]
    fn one_slot_with_losses_is_a_hop_that_became_slower() {
        let mut room = Room::new(10e-3);
        for _ in 0..10 {
            assert!(!room.update(0.3), "one");
            assert!(!room.update(0.0));
        }
        assert_eq!(room.interval(), 10e-3);
        assert!(!room.update(0.3) && room.update(0.3), "two in a row");
        assert!((room.interval() - 7e-3).abs() < 1e-9);
        assert!(!room.update(0.3), "what was under way when the interval became shorter says nothing");
    }

    #[test]
    fn losses_that_any_interval_has_are_not_the_queues() {
        let mut room = Room::new(10e-3);
        let least = (0..12)
            .map(|_| {
                room.update(0.04);
                room.interval()
            })
            .fold(1.0, f64::min);
        assert!((3e-3..3.5e-3).contains(&least), "{least}");
        // For a minute nothing is tried.
        for slot in 12..FUTILE {
            assert!(!room.update(0.04), "slot {slot}");
            assert_eq!(room.interval(), 10e-3, "slot {slot}");
        }
        assert!((0..20).any(|_| room.update(0.04)), "then it is");
    }

    #[test]
    fn it_never_asks_for_next_to_nothing() {
        let mut room = Room::new(10e-3);
        let least = intervals(&mut room, 200, 1e-5).into_iter().fold(1.0, f64::min);
        assert!(least >= LEAST * 10e-3, "{least}");
    }
}
