//! Whether the hop or the path before it is the bottleneck.
//! Source:     aggregation.md C.4, "backhaul detector" (designed there; the predecessor trained a classifier).
//! Equations:  for 3 slots: goodput / x < 0.97 and mu < 0.8 N_target   =>   x <= 0.95 goodput
//! Symbols:    goodput -> `arrived`, x -> `sent`, mu -> `level`, N_target -> `target`; all a slot
//! Deviations: the clamp is lifted by a twentieth a slot, so that a path that recovers is found again; the specification
//!             does not say how it ends.
//! Validity:   packets of the same stream counted at both ends over slots that cover each other but for the path's delay.
//! Checked by: tests::*

/// The detector of one station's stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detector {
    /// Slots in a row that looked like a bottleneck in the backhaul.
    suspicious: u32,
    /// Most packets a second, while the backhaul is the bottleneck.
    clamp: Option<f64>,
}

/// One slot of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slot {
    /// Packets a second that were sent.
    pub sent: f64,
    /// Packets a second that arrived.
    pub arrived: f64,
    /// Mean packets a frame.
    pub level: f64,
    /// Packets a frame that were aimed at.
    pub target: f64,
}

const GOODPUT: f64 = 0.97;
const LEVEL: f64 = 0.8;
const PATIENCE: u32 = 3;
const RETREAT: f64 = 0.95;
const PROBE: f64 = 1.05;

impl Detector {
    /// Folds one slot in.
    pub fn update(&mut self, slot: &Slot) {
        // On a hop that is too slow, frames fill up; on a backhaul that is too slow, packets vanish or wait elsewhere.
        let missing = slot.arrived < GOODPUT * slot.sent;
        let short = slot.level < LEVEL * slot.target;
        if !missing || !short {
            self.suspicious = 0;
            self.clamp = self.clamp.map(|clamp| clamp * PROBE).filter(|clamp| *clamp < 2.0 * slot.sent.max(1.0));
            return;
        }
        self.suspicious += 1;
        if self.suspicious >= PATIENCE {
            self.clamp = Some(RETREAT * slot.arrived);
            self.suspicious = 0;
        }
    }

    /// Most packets a second that the path before the hop carries; `None` while it is not the bottleneck.
    pub fn clamp(&self) -> Option<f64> {
        self.clamp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(sent: f64, arrived: f64, level: f64) -> Slot {
        Slot { sent, arrived, level, target: 40.0 }
    }

    #[test]
    fn three_slots_of_missing_packets_in_short_frames_are_a_backhaul() {
        let mut detector = Detector::default();
        for n in 0..3 {
            assert_eq!(detector.clamp(), None, "after {n}");
            detector.update(&slot(10_000.0, 8_000.0, 12.0));
        }
        assert_eq!(detector.clamp(), Some(7_600.0));
    }

    #[test]
    fn full_frames_or_whole_streams_are_not() {
        let mut detector = Detector::default();
        for _ in 0..10 {
            detector.update(&slot(10_000.0, 8_000.0, 48.0));
            detector.update(&slot(10_000.0, 9_900.0, 12.0));
        }
        assert_eq!(detector.clamp(), None);
        // Two bad slots and a good one, again and again, are not three in a row.
        for _ in 0..10 {
            detector.update(&slot(10_000.0, 8_000.0, 12.0));
            detector.update(&slot(10_000.0, 8_000.0, 12.0));
            detector.update(&slot(10_000.0, 10_000.0, 12.0));
        }
        assert_eq!(detector.clamp(), None);
    }

    #[test]
    fn a_path_that_recovers_is_found_again() {
        let mut detector = Detector::default();
        (0..3).for_each(|_| detector.update(&slot(10_000.0, 5_000.0, 12.0)));
        let mut slots = 0;
        while let Some(clamp) = detector.clamp() {
            detector.update(&slot(clamp.min(10_000.0), clamp.min(10_000.0), 30.0));
            slots += 1;
            assert!(slots < 60, "{clamp}");
        }
    }
}
