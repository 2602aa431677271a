//! Losses without SACK: duplicate acknowledgements are counted.
//! Source:     Jacobson 1988 (Tahoe), RFC 5681 section 3.2 (Reno), RFC 6582 section 3.2 (NewReno), RFC 3042 (limited transmit).
//! Equations:  each duplicate tells that one segment has arrived: pipe' = pipe - MSS, which is the RFCs' inflation of cwnd;
//!             partial acknowledgement of A: pipe' = pipe - A + (A - MSS), of which the retransmission is the MSS
//! Symbols:    recover -> `recover`, one more than there; pipe -> `Scoreboard::in_flight`; FlightSize -> what is outstanding
//! Deviations: limited transmit sends on the first two duplicates by the same sum, and not in Tahoe.
//! Validity:   a receiver that acknowledges every second segment at least, and each one out of order at once.
//! Checked by: tests/integration/tahoe.rs, tests/integration/newreno.rs, tests/integration/props.rs

use super::ack::tell_lost;
use super::{Recovery, Sender};
use crate::scoreboard::DUPLICATES;
use lasthop_laws::LossRecovery;
use lasthop_signals::Signal;
use lasthop_units::Time;

/// What is counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Duplicates {
    /// Acknowledgements that have repeated the last one.
    repeated: u64,
    /// What had been sent when everything began anew last, or NewReno's last recovery: duplicates of less do not tell of a new loss.
    recover: u64,
    /// Acknowledgements in this recovery that were of new data and not of all.
    partial: u32,
}

impl Duplicates {
    /// True if the last acknowledgement was a duplicate.
    pub(super) fn seen(&self) -> bool {
        self.repeated > 0
    }

    /// True if the retransmission timer is not to be started anew: only the first partial acknowledgement does that (RFC 6582, section 3.2).
    pub(super) fn timer_runs_on(&self) -> bool {
        self.partial > 1
    }

    /// Everything up to `nxt` counts as lost.
    pub(super) fn begin_anew(&mut self, nxt: u64) {
        *self = Duplicates { repeated: self.repeated, recover: nxt, partial: 0 };
    }
}

impl Sender {
    /// An acknowledgement has come that `repeats` the last one, or covers `advanced` beyond `una`.
    pub(super) fn count_duplicates(&mut self, now: Time, repeats: bool, una: u64, advanced: u64) {
        if repeats {
            self.duplicates.repeated += 1;
            self.on_duplicate(now, una);
            return;
        }
        self.duplicates.repeated = 0;
        if advanced > 0 && self.loss_recovery != LossRecovery::GoBackN {
            self.on_progress(now, advanced);
        }
    }

    fn on_duplicate(&mut self, now: Time, una: u64) {
        let may_tell = self.recovery == Recovery::Open && una > self.duplicates.recover;
        let third = self.duplicates.repeated == DUPLICATES && may_tell;
        if self.loss_recovery == LossRecovery::GoBackN {
            if third {
                // What a timeout does, but that the timer is not backed off.
                self.counters.recoveries += 1;
                self.begin_anew(now);
            }
            return;
        }
        if may_tell || matches!(self.recovery, Recovery::Fast(_)) {
            self.board.depart(self.mss);
        }
        if third {
            self.retransmit_fast(now);
        }
    }

    /// The third duplicate: the first segment leaves again, whatever the window.
    fn retransmit_fast(&mut self, now: Time) {
        let nxt = self.board.nxt();
        let flight = nxt - self.board.una();
        self.duplicates.partial = 0;
        // Reno takes each hole for a loss of its own.
        if self.loss_recovery == LossRecovery::NewReno {
            self.duplicates.recover = nxt;
        }
        self.recovery = Recovery::Fast(nxt);
        self.counters.recoveries += 1;
        let lost = self.resend_first(now);
        // What limited transmit has sent does not count (RFC 5681, equation 4).
        let prior = flight.saturating_sub((DUPLICATES - 1) * self.mss).max(self.mss);
        self.tell(now, &Signal::Loss(self.loss(prior, lost)));
    }

    /// New data is acknowledged.
    fn on_progress(&mut self, now: Time, advanced: u64) {
        let Recovery::Fast(point) = self.recovery else {
            self.board.forget_departures();
            return;
        };
        let whole = self.board.una() >= point;
        if whole || self.loss_recovery == LossRecovery::Reno {
            self.board.forget_departures();
            self.duplicates.partial = 0;
            if !whole {
                self.recovery = Recovery::Open;
                self.tell(now, &Signal::Recovered);
            }
            return;
        }
        self.duplicates.partial += 1;
        self.board.name_departures(advanced.saturating_sub(self.mss));
        self.resend_first(now);
    }

    fn resend_first(&mut self, now: Time) -> u64 {
        let Sender { board, law, .. } = self;
        let lost = board.lose_first(|segment| tell_lost(law.as_mut(), now, segment));
        self.force = lost > 0;
        lost
    }
}
