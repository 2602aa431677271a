//! What stands in the hop's queue because more was sent than it could carry, and the rate that lets it drain.
//! Source:     own; to send less than is delivered until the queue has gone is the Drain of BBR.
//! Equations:  full (mu >= 0.95 N_max):  B' = max{B + (s - y) t, 0};   otherwise  B' = max{(s - y) t, 0}
//!             from full and B' > N_max + y T̄ on, as long as full and B' > N_max:   x <= y - (B' - N_max) / t
//! Symbols:    B -> `packets`, mu -> `level`, N_max -> `most`, s -> `sent`, y -> `arrived`, t -> `seconds`, T̄ -> `target`, x -> `clamp`
//! Deviations: none.
//! Validity:   packets of the same stream counted at both ends. Lost packets count as waiting, at most until a slot whose frames
//!             are not full: a frame with room has taken all that waited. What a slot without full frames leaves behind is
//!             kept for the next one only, for the hop may have become slower at its end.
//! Checked by: tests::*, tests/aggregation_loop.rs (capacity that falls within a slot), crates/sim/tests/regulated.rs

/// The queue of one station.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Backlog {
    /// Packets that were sent and have not arrived.
    packets: f64,
    /// Most packets a second, while the queue drains.
    clamp: Option<f64>,
    /// True if a queue was drained in the last slot.
    drained: bool,
}

/// One slot of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slot {
    /// Packets a second that were sent.
    pub sent: f64,
    /// Packets a second that arrived.
    pub arrived: f64,
    /// How long it lasted.
    pub seconds: f64,
    /// Mean packets a frame.
    pub level: f64,
    /// Most packets that a frame holds.
    pub most: f64,
    /// How long packets may wait, seconds: a queue no longer than that is the loop's, not an overrun.
    pub target: f64,
}

/// Share of the most that a frame holds, from which on it counts as full.
const FULL: f64 = 0.95;

impl Backlog {
    /// Folds one slot in.
    pub fn update(&mut self, slot: &Slot) {
        self.drained = self.clamp.is_some();
        let grown = (slot.sent - slot.arrived) * slot.seconds;
        let full = slot.level >= FULL * slot.most && slot.most > 1.0;
        self.packets = if full { (self.packets + grown).max(0.0) } else { grown.max(0.0) };
        let surplus = self.packets - slot.most;
        let bound = if self.drained { 0.0 } else { slot.arrived * slot.target };
        let drains = full && surplus > bound;
        self.clamp = drains.then(|| (slot.arrived - surplus / slot.seconds).max(0.0));
    }

    /// Nothing is known any more: no frame has come.
    pub fn forget(&mut self) {
        *self = Backlog::default();
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
        Slot { sent, arrived, seconds: 0.5, level, most: 64.0, target: 0.01 }
    }

    #[test]
    fn an_overrun_hop_gets_what_it_delivers_less_what_stands_in_its_queue() {
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
        backlog.forget();
        assert_eq!(backlog, Backlog::default());
    }
}
