//! The window during loss recovery.
//! Source:     [draft-cardwell-iccrg-bbr-congestion-control-00] section 4.2.3.4; Linux
//!             (`bbr_set_cwnd_to_recover_or_restore`, `bbr_save_cwnd`).
//! Equations:  first round of recovery: cwnd = max(cwnd - lost, pipe + delivered);   at its end: the saved window
//! Symbols:    BBR.prior_cwnd -> `saved`, BBR.packet_conservation -> `conserving`
//! Deviations: none.     Validity: none.     Checked by: tests::*

use lasthop_signals::Ack;
use lasthop_units::Bytes;

/// What recovery does to the window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recovery {
    state: State,
    /// The state when the last ACK was processed.
    before: State,
    conserving: bool,
    saved: Bytes,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Open,
    Fast,
    Loss,
}

impl Recovery {
    /// Remembers the window as the last good one; while it is cut anyway (`cut`), only if it is larger.
    pub(super) fn save(&mut self, cwnd: Bytes, cut: bool) {
        self.saved = if cut || self.before != State::Open { self.saved.max(cwnd) } else { cwnd };
    }

    /// The window that was saved.
    pub(super) fn saved(&self) -> Bytes {
        self.saved
    }

    /// Fast recovery begins.
    pub(super) fn on_loss(&mut self) {
        self.state = State::Fast;
    }

    /// The timer expired.
    pub(super) fn on_timeout(&mut self) {
        self.state = State::Loss;
        self.before = State::Loss;
        self.conserving = false;
    }

    /// Recovery is over.
    pub(super) fn on_recovered(&mut self) {
        self.state = State::Open;
    }

    /// A round began: conservation lasts one.
    pub(super) fn on_round(&mut self) {
        self.conserving = false;
    }

    /// The window after `ack`, and whether it is final: while conserving, nothing else may change it.
    pub(super) fn on_ack(&mut self, cwnd: Bytes, ack: &Ack, mss: Bytes) -> (Bytes, bool) {
        let mut cwnd = cwnd.saturating_sub(ack.newly_lost).max(mss);
        let conserved = ack.in_flight + ack.newly_delivered;
        if self.state == State::Fast && self.before != State::Fast {
            self.conserving = true;
            cwnd = conserved;
        } else if self.before != State::Open && self.state == State::Open {
            cwnd = cwnd.max(self.saved);
            self.conserving = false;
        }
        self.before = self.state;
        if self.conserving { (cwnd.max(conserved), true) } else { (cwnd, false) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::test_signals::{MSS, ack};

    #[test]
    fn conservation_for_a_round_then_growth_then_the_old_window() {
        let mut recovery = Recovery::default();
        recovery.save(MSS * 100, false);
        recovery.on_loss();
        // 60 in flight before the ACK, one delivered.
        assert_eq!(recovery.on_ack(MSS * 100, &ack(1, 60), MSS), (MSS * 60, true));
        recovery.on_round();
        assert_eq!(recovery.on_ack(MSS * 60, &ack(1, 60), MSS), (MSS * 60, false));
        recovery.on_recovered();
        assert_eq!(recovery.on_ack(MSS * 60, &ack(1, 60), MSS), (MSS * 100, false));
    }

    #[test]
    fn a_window_already_cut_is_not_what_is_restored() {
        let mut recovery = Recovery::default();
        recovery.save(MSS * 100, false);
        recovery.save(MSS * 4, true);
        assert_eq!(recovery.saved(), MSS * 100);
    }
}
