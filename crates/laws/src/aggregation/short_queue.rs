//! A shorter interval where the hop's queue has no room for what comes in one.
//! Source:     own; decision 13. What is sent to the hop within a round waits there until the next.
//! Equations:  where a share l > 0.005 of what was sent is lost:  T' = max{0.7 T, 1.05 m},   otherwise T' = min{g T, T̄}
//!             g = 1.1 where T < 0.85 b or after 40 slots without losses in a row;  1.01 where T < b;  1.02 beyond
//!             begun where 5 a - e > 11,   a slots with losses and e without, while T̄ is aimed at; never below 0
//!             a queue that lost l would have held rounds of (1 - l) T;   b is the longest of these that was not refuted
//!             refuted where T <= 0.75 b, or 0.7 T < 1.05 m, loses packets;   none counts as refuted after six in a row that were not
//!             refuted 4 times  =>  T' = T̄ for 120 slots, for 240 the next time, and so on up to 1920
//! Symbols:    l -> `lost`, T̄ -> `asked`, T -> `interval`, m -> `shortest` (the round in which packets are single), b -> `held`
//! Deviations: none.
//! Validity:   losses at the hop's queue: a buffer of fewer packets than a round brings, or one that others fill, too.
//!             * Its losses begin at the same interval again and again. What the air loses is lost of any round, down to the shortest.
//!             * What is lost before the hop, or while it drains, says nothing of its queue.
//! Checked by: tests::*, crates/sim/tests/integration/short_queue.rs

/// Which interval the hop's queue has room for.
#[derive(Clone, Debug, PartialEq)]
pub struct ShortQueue {
    /// The target, seconds.
    asked: f64,
    /// What is aimed at in its place, seconds.
    interval: f64,
    /// The longest that losses have said there is room for, since the target was aimed at last or that was refuted, seconds.
    held: Option<f64>,
    /// How often that was refuted, and how often in a row it was not.
    refuted: u32,
    confirmed: u32,
    /// Slots in which packets were lost while the target is aimed at, each worth [`WEIGHT`] of those in which none were, less those.
    lossy: u32,
    /// Slots in a row in which none were.
    clean: u32,
    /// The last slot was one in which it was shortened: what is lost in the next was sent in rounds that were longer.
    shortened: bool,
    /// Slots in which losses are not its concern, and how many it will be the next time.
    rest: u32,
    pause: u32,
}

/// Share of the packets sent that are lost, from which on the queue has no room.
const LOSSY: f64 = 0.005;
/// Three slots in a row must say so while the target is aimed at, or more than one in six for a while: a hop that becomes slower, or an access point that
/// begins beside this one, loses what it is sent until that is known, in two slots of three.
const WEIGHT: u32 = 5;
const PATIENCE: u32 = 12;
/// What an interval without room is multiplied by…
const SHORTER: f64 = 0.7;
/// …and one with room: where there is room for much longer ones, so that what lost packets for a moment costs little…
const MUCH_LONGER: f64 = 1.1;
const FAR: f64 = 0.85;
/// …up to what it can just be, which takes 18 slots in all, so that few of them lose packets…
const LITTLE_LONGER: f64 = 1.01;
/// …beyond that, where no losses are known of…
const LONGER: f64 = 1.02;
/// …and from so many slots on there is another hop, or others have gone.
const CLEAN: u32 = 40;
/// Above the shortest round by so much it is still one that can be had.
const LEAST: f64 = 1.05;
/// Shorter by less is as good as what it is.
const HARDLY: f64 = 0.95;
/// There is room for rounds that are by so much shorter than those for which there should be.
const CLEARLY: f64 = 0.75;
/// So often that is refuted until it is not the queue that loses packets…
const REFUTED: u32 = 4;
/// …unless losses begin where they did so often in a row.
const CONFIRMED: u32 = 6;
/// Slots for which nothing is tried then: from a minute, as slots are by default, to 16.
const PAUSE: [u32; 2] = [120, 1920];

impl ShortQueue {
    /// A queue with room for all that comes within `asked` seconds.
    pub fn new(asked: f64) -> ShortQueue {
        let (held, pause) = (None, PAUSE[0]);
        let (refuted, confirmed, lossy, clean, rest) = (0, 0, 0, 0, 0);
        ShortQueue { asked, interval: asked, held, refuted, confirmed, lossy, clean, shortened: false, rest, pause }
    }

    /// Folds one slot in: the share of packets that was `lost` at the hop, and the `shortest` round there could have
    /// been, in seconds. True if the interval is shorter now, or the target again.
    pub fn update(&mut self, lost: f64, shortest: f64) -> bool {
        self.rest = self.rest.saturating_sub(1);
        if std::mem::take(&mut self.shortened) || self.rest > 0 {
            return false;
        }
        // Stations may have come.
        let least = (LEAST * shortest).min(self.asked);
        self.interval = self.interval.max(least);
        if lost <= LOSSY {
            self.lengthen();
            return false;
        }
        (self.lossy, self.clean) = (self.lossy + WEIGHT, 0);
        if self.interval >= self.asked && self.lossy < PATIENCE {
            return false;
        }
        self.lossy = 0;
        self.judge(lost, least);
        if self.refuted >= REFUTED {
            let pause = (2 * self.pause).min(PAUSE[1]);
            *self = ShortQueue { rest: self.pause, pause, ..ShortQueue::new(self.asked) };
            return true;
        }
        let shorter = (SHORTER * self.interval).max(least);
        self.shortened = shorter < HARDLY * self.interval;
        self.interval = self.interval.min(shorter);
        self.shortened
    }

    /// Nothing was lost.
    fn lengthen(&mut self) {
        let below = |share: f64| self.held.is_some_and(|held| self.interval < share * held);
        let longer = match () {
            () if self.clean >= CLEAN || below(FAR) => MUCH_LONGER,
            () if below(1.0) => LITTLE_LONGER,
            () => LONGER,
        };
        self.interval = (longer * self.interval).min(self.asked);
        (self.lossy, self.clean) = (self.lossy.saturating_sub(1), self.clean.saturating_add(1));
        if self.interval >= self.asked {
            (self.held, self.refuted, self.confirmed) = (None, 0, 0);
            if self.clean >= PAUSE[0] {
                self.pause = PAUSE[0];
            }
        }
    }

    /// This share was lost: does it fit what was known of the queue?
    fn judge(&mut self, lost: f64, least: f64) {
        let holds = (1.0 - lost).max(0.0) * self.interval;
        let refutes = |held: f64| self.interval <= CLEARLY * held || SHORTER * self.interval < least;
        match self.held {
            Some(held) if refutes(held) => {
                (self.held, self.refuted, self.confirmed) = (Some(holds), self.refuted + 1, 0);
            }
            held => {
                self.held = Some(held.map_or(holds, |held| held.max(holds)));
                self.confirmed += 1;
                if self.confirmed >= CONFIRMED {
                    self.refuted = 0;
                }
            }
        }
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
    fn intervals(short_queue: &mut ShortQueue, slots: usize, fits: f64) -> Vec<f64> {
        let lost = |interval: f64| (1.0 - fits / interval).max(0.0);
        let step = |short_queue: &mut ShortQueue| {
            short_queue.update(lost(short_queue.interval()), 0.0);
            short_queue.interval()
        };
        (0..slots).map(|_| step(short_queue)).collect()
    }

    #[test]
    fn the_interval_shrinks_to_what_fits_and_recovers() {
        let mut short_queue = ShortQueue::new(10e-3);
        let short = intervals(&mut short_queue, 100, 4e-3);
        assert!(short[20..].iter().all(|interval| (2.5e-3..4.2e-3).contains(interval)), "{:?}", &short[20..]);
        // Slots with losses are few: one in eighteen.
        let lossy = short[20..].iter().filter(|interval| **interval > 4e-3 / (1.0 - LOSSY)).count();
        assert!(lossy <= 5, "{lossy} of 80");
        let long = intervals(&mut short_queue, 100, 1.0);
        assert_eq!(long.last(), Some(&10e-3));
    }

    #[test]
    fn losses_while_a_hop_slows_are_not_blamed_on_the_queue() {
        let mut short_queue = ShortQueue::new(10e-3);
        for slot in 0..60 {
            assert!(!short_queue.update(if slot % 12 < 2 { 0.3 } else { 0.0 }, 0.0), "two, and then none for a while");
            assert!(!short_queue.update(0.0, 0.0));
        }
        for slot in 0..60 {
            assert!(!short_queue.update(if slot % 6 == 0 { 0.3 } else { 0.0 }, 0.0), "one of six");
        }
        assert_eq!(short_queue.interval(), 10e-3);
        (0..PATIENCE).for_each(|_| assert!(!short_queue.update(0.0, 0.0)));
        assert!(
            !short_queue.update(0.3, 0.0) && !short_queue.update(0.3, 0.0) && short_queue.update(0.3, 0.0),
            "three in a row"
        );
        assert!((short_queue.interval() - 7e-3).abs() < 1e-9);
        assert!(!short_queue.update(0.3, 0.0), "what was under way when the interval became shorter says nothing");
    }

    /// A sequence that looks random: shares of 1, evenly.
    fn noise() -> impl Iterator<Item = f64> {
        let mut state = 1_u64;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1_u64 << 31) as f64
        })
    }

    /// The mean interval of slots with these losses, as a share of the target, where rounds of single packets last `shortest`.
    fn kept(shortest: f64, lost: impl Iterator<Item = f64>) -> f64 {
        let mut short_queue = ShortQueue::new(10e-3);
        let (mut sum, mut slots) = (0.0, 0.0);
        for lost in lost {
            short_queue.update(lost, shortest);
            (sum, slots) = (sum + short_queue.interval() / 10e-3, slots + 1.0);
        }
        sum / slots
    }

    #[test]
    fn losses_that_any_interval_has_are_not_the_queues() {
        for shortest in [0.0, 0.5e-3, 1.5e-3, 2.9e-3, 6.4e-3, 7e-3, 9e-3] {
            for lost in [0.006, 0.02, 0.1, 0.25, 0.35, 0.6] {
                let always = kept(shortest, std::iter::repeat_n(lost, 1200));
                assert!(always > 0.9, "{lost} always, {shortest}: {always}");
            }
        }
        // As a channel that fades has lost them: most in the slots in which it becomes worse.
        let shares = [0.064, 0.023, 0.042, 0.307, 0.062, 0.128, 0.036, 0.004, 0.026, 0.019, 0.006, 0.051, 0.006, 0.008];
        let fading = kept(1.5e-3, shares.into_iter().cycle().take(1200));
        assert!(fading > 0.93, "{fading}");
    }

    #[test]
    fn neither_are_losses_now_and_then() {
        for every in 2..40 {
            let lost = (0..2400).map(|slot| if slot % every == 0 || slot == 1 { 0.05 } else { 0.0 });
            let now_and_then = kept(1.5e-3, lost);
            assert!(now_and_then > 0.6, "every {every}: {now_and_then}");
        }
        for often in [0.02, 0.05, 0.1, 0.2, 0.3, 0.5] {
            let lost = noise().map(|at| if at < often { 0.05 } else { 0.0 }).take(2400);
            let at_random = kept(1.5e-3, lost);
            assert!(at_random > 0.6, "{often} of the slots: {at_random}");
        }
    }

    #[test]
    fn slightly_varying_queue_room_is_found() {
        for fits in [1e-3, 2e-3, 4e-3, 6e-3, 8e-3, 9.5e-3] {
            let mut short_queue = ShortQueue::new(10e-3);
            let mut lost = 0.0;
            for at in noise().take(2400) {
                let share = (1.0 - fits * (0.9 + 0.2 * at) / short_queue.interval()).max(0.0);
                lost += share;
                short_queue.update(share, 0.0);
            }
            // The target would lose all that does not fit.
            let (share, whole) = (lost / 2400.0, 1.0 - fits / 10e-3);
            assert!(share < 0.02 && share < 0.3 * whole, "{fits}: {share} of {whole}");
        }
    }

    #[test]
    fn less_room_than_there_was_is_not_taken_for_losses_on_the_air() {
        let mut short_queue = ShortQueue::new(10e-3);
        intervals(&mut short_queue, 100, 9.7e-3);
        let short = intervals(&mut short_queue, 100, 3e-3);
        let fit = short[30..].iter().filter(|interval| (1.8e-3..3.2e-3).contains(*interval)).count();
        // But for those in which the target is tried again.
        assert!(fit >= 66, "{fit} of 70: {short:?}");
    }

    #[test]
    fn hardly_any_room_is_found_all_the_same() {
        let mut short_queue = ShortQueue::new(10e-3);
        let short = intervals(&mut short_queue, 100, 0.5e-3);
        assert!(short[20..].iter().all(|interval| (0.3e-3..0.6e-3).contains(interval)), "{:?}", &short[20..]);
    }

    #[test]
    fn rounds_are_no_shorter_than_single_packets_make_them() {
        let mut short_queue = ShortQueue::new(10e-3);
        for _ in 0..200 {
            short_queue.update((1.0 - 1e-3 / short_queue.interval()).max(0.0), 4e-3);
            assert!(short_queue.interval() >= LEAST * 4e-3, "{}", short_queue.interval());
        }
        // Those that come make the shortest longer.
        short_queue.update(0.0, 6e-3);
        assert!(short_queue.interval() >= LEAST * 6e-3, "{}", short_queue.interval());
    }

    #[test]
    fn what_others_have_left_is_used_within_35_seconds() {
        let mut short_queue = ShortQueue::new(10e-3);
        intervals(&mut short_queue, 100, 0.5e-3);
        let after = intervals(&mut short_queue, 70, 1.0);
        assert_eq!(after.last(), Some(&10e-3));
    }
}
