//! What stands in the hop's queue because more was sent than it could carry, and the rate that lets it drain.
//! Source:     own; to send less than is delivered until the queue has gone is the Drain of BBR.
//! Equations:  full:  mu >= 0.95 N_max,   or   d > 3 mu/x  and frames are not short (`is_short`)
//!             full:  B' = max{B + (s - y - lost) t, 0};   otherwise  B' = max{(s - y - lost) t, 0}
//!             from full and B' > M + y T̄ on, as long as full and B' > M:   x <= y - (B' - M) / t
//!             M = N_max if mu >= 0.95 N_max, otherwise mu
//!             h' = min{max{1.005 h, mu/N_max}, 1},   H' = max{mu/N_max, H/1.05}
//!             h' is at most H' where a drain of frames below 0.95 N_max begins
//!             mu/N_max and that count, and H changes, only in slots of which w is sure
//! Symbols:    B -> `packets`, mu -> `level`, N_max -> `most`, h -> `holds`, H -> `seen`, d -> `late`, mu/x -> `interval`, s -> `sent`,
//!             y -> `arrived`, t -> `seconds`, T̄ -> `target_interval`, x -> `clamp`
//! Deviations: none.
//! Validity:   packets of the same stream, counted at both ends.
//!             * Lost packets that nobody counts seem to wait until a slot with frames that are not full: a frame with
//!               room has taken all that waited.
//!             * What a slot without full frames leaves behind is kept for the next one only: the hop may have become slower at its end.
//!             * Where MPDUs are sent again frames are full before they hold the most that one can: the window of the Block Ack
//!               (IEEE 802.11-2020, 10.25.6) stands on the oldest that is missing.
//!             * That shows only in delays, and not where these are not told: what comes later than three frames has found no room in
//!               two. (A packet behind one that is sent again waits for it, a frame or two.)
//!             * What frames hold is a share of N_max, and so of the mean w of a slot. In a slot in which the data rate has become
//!               another, or of which none was told, the share says nothing; in no slot is it more than 1.
//!             * What comes late after six slots of that all the same is not the hop's (`Earliest::drained`), and what was found
//!               meanwhile is taken back (`take_back`).
//! Checked by: tests::*, tests/integration/aggregation_loop.rs (capacity that falls within a slot), crates/sim/tests/long/regulated.rs

use super::backhaul::is_short;

/// The queue of one station.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backlog {
    /// Packets that were sent and have not arrived.
    packets: f64,
    /// Most packets a second, while the queue drains.
    clamp: Option<f64>,
    /// True if a queue was drained in the last slot.
    drained: bool,
    /// Share of the packets that a frame can hold at most, that its frames were found to hold.
    holds: f64,
    /// And what that was before packets became late.
    before: f64,
    /// The most that they have held lately, as a share of that.
    seen: f64,
    /// True if that was found in the last slot.
    found: bool,
    /// True if packets of the last slot were later than its frames explain.
    late: bool,
    /// True if its frames had no room.
    full: bool,
}

/// One slot of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slot {
    /// Packets a second that were sent.
    pub sent: f64,
    /// Packets a second that arrived.
    pub arrived: f64,
    /// Packets a second that are known to be lost.
    pub lost: f64,
    /// How long it lasted.
    pub seconds: f64,
    /// Mean packets a frame.
    pub level: f64,
    /// Packets a frame that were aimed at.
    pub target_level: f64,
    /// Mean time between frames, seconds.
    pub interval: f64,
    /// By how much packets were later than they can be, seconds; `None` where that is not measured.
    pub late: Option<f64>,
    /// Most packets that a frame can hold.
    pub most: f64,
    /// True if that was the same all slot long, as far as is known.
    pub steady: bool,
    /// How long packets may wait, seconds: a queue no longer than that is the loop's, not an overrun.
    pub target_interval: f64,
}

/// Share of the most that a frame holds, from which on it counts as full.
const FULL: f64 = 0.95;
/// Packets that are later than so many frames are apart have found no room in them, unless these are short: then packets do not
/// reach the hop.
const FRAMES: f64 = 3.0;
/// What frames were found to hold grows by this factor a slot, for the air may have become better: by a third in half a minute.
const GROWS: f64 = 1.005;
/// The most that they have held lately fades by this factor, for the air may have become worse: by a third in four seconds.
const FADES: f64 = 1.05;

impl Default for Backlog {
    fn default() -> Backlog {
        Backlog {
            packets: 0.0,
            clamp: None,
            drained: false,
            holds: 1.0,
            before: 1.0,
            seen: 0.0,
            found: false,
            late: false,
            full: false,
        }
    }
}

impl Backlog {
    /// Folds one slot in.
    pub fn update(&mut self, slot: &Slot) {
        self.drained = self.clamp.is_some();
        let share = if slot.steady { (slot.level / slot.most).min(1.0) } else { 0.0 };
        if slot.steady {
            self.seen = share.max(self.seen / FADES);
        }
        self.holds = (GROWS * self.holds).max(share).min(1.0);
        let grown = (slot.sent - slot.arrived - slot.lost) * slot.seconds;
        let most = slot.level >= FULL * slot.most && slot.most > 1.0;
        self.late = slot.late.is_some_and(|late| late > FRAMES * slot.interval);
        if !self.late {
            self.before = self.holds;
        }
        self.full = most || self.late && !is_short(slot.level, slot.target_level);
        self.packets = if self.full { (self.packets + grown).max(0.0) } else { grown.max(0.0) };
        let room = if most { slot.most } else { slot.level };
        let surplus = self.packets - room;
        let bound = if self.drained { 0.0 } else { slot.arrived * slot.target_interval };
        let drains = self.full && surplus > bound;
        self.found = drains && !most && !self.drained && slot.steady;
        if self.found {
            self.holds = self.holds.min(self.seen);
        }
        self.clamp = drains.then(|| (slot.arrived - surplus / slot.seconds).max(0.0));
    }

    /// Nothing is known any more: no frame has come.
    pub fn forget(&mut self) {
        *self = Backlog { holds: self.holds, before: self.before, seen: self.seen, ..Backlog::default() };
    }

    /// It was not frames that packets have waited for since they became late.
    pub fn take_back(&mut self) {
        *self =
            Backlog { holds: self.before.max(self.holds), before: self.before, seen: self.seen, ..Backlog::default() };
    }

    /// Share of the packets that a frame can hold at most, that its frames were found to hold.
    pub fn holds(&self) -> f64 {
        self.holds
    }

    /// True if the last slot has shown that frames hold fewer packets than was thought.
    pub fn has_found(&self) -> bool {
        self.found
    }

    /// True if packets of the last slot were later than its frames explain.
    pub fn is_late(&self) -> bool {
        self.late
    }

    /// True if frames of the last slot had no room, so that what was sent and has not arrived waits for them.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Most packets a second that let the queue drain; `None` while none is to.
    pub fn clamp(&self) -> Option<f64> {
        self.clamp
    }

    /// True if the rate of the last slot was cut to drain the queue: its frames are not what the law aimed at.
    pub fn was_draining(&self) -> bool {
        self.drained
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(sent: f64, arrived: f64, level: f64) -> Slot {
        Slot {
            sent,
            arrived,
            lost: 0.0,
            seconds: 0.5,
            level,
            target_level: 48.0,
            interval: 0.01,
            late: None,
            most: 64.0,
            steady: true,
            target_interval: 0.01,
        }
    }

    #[test]
    fn an_overrun_hop_gets_its_delivery_rate_less_the_backlog() {
        let mut backlog = Backlog::default();
        backlog.update(&slot(9200.0, 4400.0, 64.0));
        // 2400 packets stand; all but a frame of them are to leave within the slot: 4400 - 2336 / 0.5 is below nothing.
        assert_eq!((backlog.clamp(), backlog.was_draining()), (Some(0.0), false));
        backlog.update(&slot(1000.0, 4400.0, 64.0));
        assert_eq!((backlog.clamp(), backlog.was_draining()), (Some(4400.0 - (700.0 - 64.0) / 0.5), true));
        backlog.update(&slot(3128.0, 4400.0, 64.0));
        // A frame's packets are left, and the loop may learn again after this slot.
        assert_eq!((backlog.clamp(), backlog.was_draining()), (None, true));
        backlog.update(&slot(4400.0, 4400.0, 50.0));
        assert_eq!((backlog.clamp(), backlog.was_draining()), (None, false));
    }

    #[test]
    fn frames_with_room_leave_no_queue_however_much_was_lost() {
        let mut backlog = Backlog::default();
        for _ in 0..100 {
            backlog.update(&slot(9200.0, 8000.0, 40.0));
            assert_eq!(backlog.clamp(), None);
        }
        // What the last slot lost may stand in the queue of a hop that has become slower at its end.
        backlog.update(&slot(4000.0, 4000.0, 64.0));
        assert_eq!(backlog.clamp(), Some(4000.0 - (600.0 - 64.0) / 0.5));
    }

    #[test]
    fn a_queue_within_the_target_is_the_loops_to_shorten() {
        let mut backlog = Backlog::default();
        // 100 packets are 64 and less than the 80 that arrive in 10 ms.
        backlog.update(&slot(8200.0, 8000.0, 64.0));
        assert_eq!(backlog.clamp(), None);
        backlog.update(&slot(8200.0, 8000.0, 64.0));
        assert_eq!(backlog.clamp(), Some(8000.0 - (200.0 - 64.0) / 0.5));
    }

    #[test]
    fn silence_is_not_a_queue() {
        let mut backlog = Backlog::default();
        backlog.update(&slot(9200.0, 4400.0, 64.0));
        let held = backlog.holds();
        backlog.forget();
        assert_eq!((backlog.clamp(), backlog.was_draining(), backlog.holds()), (None, false, held));
        backlog.update(&slot(4500.0, 4400.0, 64.0));
        assert_eq!(backlog.clamp(), None, "the 2400 packets of before are no more");
    }

    /// Frames of 39 packets every 8 ms, as where one MPDU in twenty is sent again, and packets that are 40 ms late.
    fn late(sent: f64, arrived: f64) -> Slot {
        Slot { interval: 0.008, late: Some(0.04), ..slot(sent, arrived, 39.0) }
    }

    #[test]
    fn packets_later_than_the_frame_gap_mean_a_standing_queue() {
        let mut backlog = Backlog::default();
        backlog.update(&late(5190.0, 4590.0));
        // 300 packets stand; all but a frame of 39 leave within the slot.
        assert_eq!(backlog.clamp(), Some(4590.0 - (300.0 - 39.0) / 0.5));
        assert!(backlog.has_found() && (backlog.holds() - 39.0 / 64.0).abs() < 1e-12);
        // The drain that goes on finds nothing new.
        backlog.update(&late(4100.0, 4590.0));
        assert!(!backlog.has_found() && backlog.was_draining());
        // The air becomes better, or may have: it takes half a minute to find out.
        let fine = Slot { late: Some(0.005), interval: 0.005, ..slot(4500.0, 4500.0, 24.0) };
        (0..60).for_each(|_| backlog.update(&fine));
        assert!((0.8..0.85).contains(&backlog.holds()), "{}", backlog.holds());
        (0..60).for_each(|_| backlog.update(&fine));
        assert_eq!(backlog.holds(), 1.0);
    }

    #[test]
    fn findings_from_packets_delayed_by_the_path_are_reverted() {
        let mut backlog = Backlog::default();
        backlog.update(&slot(4500.0, 4500.0, 48.0));
        (0..4).for_each(|_| backlog.update(&late(5190.0, 4590.0)));
        assert!(backlog.is_late() && backlog.is_full() && backlog.holds() < 0.8, "{}", backlog.holds());
        backlog.take_back();
        assert_eq!((backlog.clamp(), backlog.holds()), (None, 1.0));
    }

    #[test]
    fn frame_capacity_follows_recent_slots_not_a_single_one() {
        let mut backlog = Backlog::default();
        backlog.update(&slot(4500.0, 4500.0, 48.0));
        backlog.update(&Slot { level: 30.0, ..late(5190.0, 4590.0) });
        assert!(backlog.has_found() && (backlog.holds() - 48.0 / 64.0 / FADES).abs() < 1e-12, "{}", backlog.holds());
    }

    #[test]
    fn a_slot_with_a_rate_change_does_not_set_frame_capacity() {
        let mut found = Backlog::default();
        found.update(&late(5190.0, 4590.0));
        let holds = found.holds();
        // Frames of 45 packets, before the rate fell to one at which they hold 30: more than all, and in the mean of the slot 38.
        for (most, steady) in [(30.0, false), (30.0, true), (38.0, false)] {
            let mut backlog = found;
            backlog.update(&Slot { most, steady, ..slot(4500.0, 4500.0, 45.0) });
            let want = if steady { 1.0 } else { GROWS * holds };
            assert!((backlog.holds() - want).abs() < 1e-12, "{most} {steady}: {}", backlog.holds());
            // What is found next is not what that slot has shown.
            (0..5).for_each(|_| backlog.update(&Slot { late: None, ..slot(4590.0, 4590.0, 39.0) }));
            backlog.update(&late(5190.0, 4590.0));
            let most = if steady { 0.8 } else { 39.0 / 64.0 };
            assert!(backlog.has_found() && backlog.holds() <= most + 1e-12, "{most} {steady}: {}", backlog.holds());
        }
        let mut backlog = Backlog::default();
        backlog.update(&Slot { steady: false, ..late(5190.0, 4590.0) });
        assert!(
            backlog.clamp().is_some() && !backlog.has_found() && backlog.holds() == 1.0,
            "it drains, and finds nothing"
        );
    }

    #[test]
    fn air_that_becomes_worse_is_known_within_seconds() {
        let mut backlog = Backlog::default();
        (0..50).for_each(|_| backlog.update(&slot(4500.0, 4500.0, 48.0)));
        // Where one MPDU in five is sent again, frames hold 26.
        (0..10).for_each(|_| backlog.update(&Slot { target_level: 36.0, ..slot(3000.0, 3000.0, 26.0) }));
        backlog.update(&Slot { target_level: 36.0, level: 26.0, ..late(3600.0, 3000.0) });
        assert!(backlog.has_found() && backlog.holds() < 0.5, "{}", backlog.holds());
    }

    #[test]
    fn late_short_frames_and_losses_are_no_standing_queue() {
        for slot in [Slot { level: 20.0, ..late(5190.0, 4590.0) }, Slot { lost: 600.0, ..late(5190.0, 4590.0) }] {
            let mut backlog = Backlog::default();
            (0..20).for_each(|_| backlog.update(&slot));
            assert_eq!((backlog.clamp(), backlog.holds()), (None, 1.0), "{slot:?}");
        }
    }
}
