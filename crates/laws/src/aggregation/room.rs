//! A shorter interval where the hop's queue has no room for what comes in one.
//! Source:     own; decision 13. What is sent to the hop within a round waits there until the next.
//! Equations:  where a share l > 0.005 of what was sent is lost:  T' = max{0.7 T, 1.05 m},   otherwise T' = min{1.02 T, T̄}, or min{1.1 T, T̄} after 40 such slots in a row
//! Symbols:    l -> `lost`, T̄ -> `asked`, T -> `interval`, m -> `shortest`, the round in which packets are single
//! Deviations: none.
//! Validity:   losses at the hop's queue: a buffer of fewer packets than a round brings, or one that others fill, too. It would have lost nothing
//!             of a round of (1 - l) T. Where shorter ones lose packets three times, with few slots without losses in between, it is the air that
//!             loses them, in any round: T̄ is aimed at again, and nothing is tried for 120 slots. What is lost before the hop, or while it
//!             drains, says nothing of its queue.
//! Checked by: tests::*, crates/sim/tests/room.rs

/// Which interval the hop's queue has room for.
#[derive(Clone, Debug, PartialEq)]
pub struct Room {
    /// The target, seconds.
    asked: f64,
    /// What there is room for, seconds.
    interval: f64,
    /// What there should have been room for when packets were lost last, seconds.
    fits: f64,
    /// Slots in a row in which packets were lost, and in which none were.
    lossy: u32,
    clean: u32,
    /// How often packets were lost of rounds for which there should have been room, less what slots without losses make up for.
    doubt: f64,
    /// The last slot was one in which it was shortened: what is lost in the next was sent in rounds that were longer.
    shortened: bool,
    /// Slots in which losses are not its concern.
    futile: u32,
}

/// Share of the packets sent that are lost, from which on the queue has no room.
const LOSSY: f64 = 0.005;
/// Slots in a row that must say so while the target is aimed at: a hop that becomes slower loses what it is sent until that is known.
const PATIENCE: u32 = 2;
/// What an interval without room is multiplied by…
const SHORTER: f64 = 0.7;
/// …and one with room: it is what it was before after 18 slots, or after 36 if it became shorter twice…
const LONGER: f64 = 1.02;
/// …and from some more on there is another hop, or others have gone.
const CLEAN: u32 = 40;
const MUCH_LONGER: f64 = 1.1;
/// Above the shortest round by so much it is still one that can be had.
const LEAST: f64 = 1.05;
/// So often rounds for which there should have been room lose packets until that is not why…
const DOUBTS: f64 = 3.0;
/// …and so much of one time a slot without losses makes up for.
const SETTLED: f64 = 0.125;
/// Slots for which nothing is tried then: a minute, as slots are by default.
const FUTILE: u32 = 120;

impl Room {
    /// Room for all that comes within `asked` seconds.
    pub fn new(asked: f64) -> Room {
        Room { asked, interval: asked, fits: 0.0, lossy: 0, clean: 0, doubt: 0.0, shortened: false, futile: 0 }
    }

    /// Folds one slot in, of whose packets this share was `lost` at the hop, and in which a round could have lasted `shortest` seconds. True if
    /// the interval is shorter now, or the target again.
    pub fn update(&mut self, lost: f64, shortest: f64) -> bool {
        self.futile = self.futile.saturating_sub(1);
        if std::mem::take(&mut self.shortened) || self.futile > 0 {
            return false;
        }
        // Stations may have come.
        let least = (LEAST * shortest).min(self.asked);
        self.interval = self.interval.max(least);
        if lost <= LOSSY {
            let longer = if self.clean < CLEAN { LONGER } else { MUCH_LONGER };
            self.interval = (longer * self.interval).min(self.asked);
            (self.lossy, self.clean) = (0, self.clean.saturating_add(1));
            self.doubt = (self.doubt - SETTLED).max(0.0);
            return false;
        }
        (self.lossy, self.clean) = (self.lossy + 1, 0);
        if self.interval >= self.asked && self.lossy < PATIENCE {
            return false;
        }
        if self.interval <= self.fits {
            self.doubt += 1.0;
        }
        if self.doubt >= DOUBTS {
            *self = Room { futile: FUTILE, ..Room::new(self.asked) };
            return true;
        }
        let shorter = (SHORTER * self.interval).max(least);
        self.shortened = shorter < self.interval;
        if self.shortened {
            (self.fits, self.interval) = ((1.0 - lost) * self.interval, shorter);
        }
        self.shortened
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
            room.update(lost(room.interval()), 0.0);
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
            assert!(!room.update(0.3, 0.0), "one");
            assert!(!room.update(0.0, 0.0));
        }
        assert_eq!(room.interval(), 10e-3);
        assert!(!room.update(0.3, 0.0) && room.update(0.3, 0.0), "two in a row");
        assert!((room.interval() - 7e-3).abs() < 1e-9);
        assert!(!room.update(0.3, 0.0), "what was under way when the interval became shorter says nothing");
    }

    #[test]
    fn losses_that_any_interval_has_are_not_the_queues() {
        let mut room = Room::new(10e-3);
        // As a channel that fades has lost them: most in the slots in which it becomes worse.
        let shares = [0.064, 0.023, 0.042, 0.307, 0.062, 0.128, 0.036, 0.004, 0.026, 0.019, 0.006, 0.051, 0.006, 0.008];
        let tried: Vec<f64> = (0..14)
            .map(|slot| {
                room.update(shares[slot], 0.0);
                room.interval()
            })
            .collect();
        assert!(tried.iter().all(|interval| *interval > 1.6e-3), "{tried:?}");
        assert_eq!(tried[13], 10e-3, "{tried:?}");
        // For a minute nothing is tried.
        for slot in 0..FUTILE - 8 {
            assert!(!room.update(shares[slot as usize % 14], 0.0), "slot {slot}");
            assert_eq!(room.interval(), 10e-3, "slot {slot}");
        }
        assert!((0..20).any(|slot| room.update(shares[slot % 14], 0.0)), "then it is");
    }

    #[test]
    fn less_room_than_there_was_is_not_taken_for_losses_on_the_air() {
        let mut room = Room::new(10e-3);
        intervals(&mut room, 100, 9.7e-3);
        let short = intervals(&mut room, 100, 3e-3);
        assert!(short[30..].iter().all(|interval| (1.8e-3..3.2e-3).contains(interval)), "{:?}", &short[30..]);
    }

    #[test]
    fn hardly_any_room_is_found_all_the_same() {
        let mut room = Room::new(10e-3);
        let short = intervals(&mut room, 100, 0.5e-3);
        assert!(short[20..].iter().all(|interval| (0.3e-3..0.6e-3).contains(interval)), "{:?}", &short[20..]);
    }

    #[test]
    fn rounds_are_no_shorter_than_single_packets_make_them() {
        let mut room = Room::new(10e-3);
        for _ in 0..200 {
            room.update((1.0 - 1e-3 / room.interval()).max(0.0), 4e-3);
            assert!(room.interval() >= LEAST * 4e-3, "{}", room.interval());
        }
        // Those that come make the shortest longer.
        room.update(0.0, 6e-3);
        assert!(room.interval() >= LEAST * 6e-3, "{}", room.interval());
    }

    #[test]
    fn losses_on_the_air_do_not_keep_rounds_at_their_shortest() {
        for lost in [0.02, 0.1, 0.25] {
            let mut room = Room::new(5e-3);
            let short = (0..100).filter(|_| {
                room.update(lost, 3.5e-3);
                room.interval() < 5e-3
            });
            let short = short.count();
            assert!(short < 10, "{lost}: {short} slots of 100");
        }
    }

    #[test]
    fn what_others_have_left_is_used_within_35_seconds() {
        let mut room = Room::new(10e-3);
        intervals(&mut room, 100, 0.5e-3);
        let after = intervals(&mut room, 70, 1.0);
        assert_eq!(after.last(), Some(&10e-3));
    }
}
