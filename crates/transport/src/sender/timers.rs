//! The sender's timers, and what happens when they expire.

use super::ack::tell_lost;
use super::{Recovery, Sender, TailProbe};
use lasthop_laws::LossRecovery;
use lasthop_signals::Signal;
use lasthop_units::{Span, Time};

/// When something is due; `None`: not armed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timers {
    /// RFC 6298 retransmission timer.
    pub(super) retransmission: Option<Time>,
    /// RFC 8985 tail loss probe; never after the retransmission timer.
    pub(super) tail_probe: Option<Time>,
    /// RFC 8985 reordering timer: a segment will count as lost then.
    pub(super) reordering: Option<Time>,
    /// RFC 9293 persist timer: a closed window is to be probed.
    pub(super) persist: Option<Time>,
    /// The next departure of a paced sender.
    pub(super) pacing: Option<Time>,
    /// The law wants to be asked again.
    pub(super) revisit: Option<Time>,
    /// Probes of the same closed window, for backoff.
    pub(super) persist_backoff: u32,
}

impl Timers {
    /// The earliest; `Time::MAX` if none is armed. Asked after every call, so it is kept free of branches.
    pub(super) fn next(&self) -> Time {
        let at = |timer: Option<Time>| timer.unwrap_or(Time::MAX);
        let recovery = at(self.retransmission).min(at(self.tail_probe)).min(at(self.reordering));
        recovery.min(at(self.persist)).min(at(self.pacing)).min(at(self.revisit))
    }

    /// Starts the persist timer if it does not run.
    pub(super) fn arm_persist(&mut self, now: Time, rto: Span) {
        if self.persist.is_none() {
            let wait = (rto * (1 << self.persist_backoff.min(16))).min(Span::from_secs(60).max(rto));
            self.persist = Some(now + wait);
        }
    }
}

/// True, and disarmed, if the timer is due.
fn expired(timer: &mut Option<Time>, now: Time) -> bool {
    let due = timer.is_some_and(|at| at <= now);
    if due {
        *timer = None;
    }
    due
}

impl Sender {
    /// When `on_timeout` wants to be called; `Time::MAX` for never.
    pub(crate) fn next_timeout(&self) -> Time {
        self.timers.next()
    }

    /// Acts on whatever is due. False if the peer must be given up.
    pub(crate) fn on_timeout(&mut self, now: Time) -> bool {
        if expired(&mut self.timers.reordering, now) {
            self.on_reordering_timeout(now);
        }
        if expired(&mut self.timers.tail_probe, now) {
            self.probe = TailProbe::Due;
            // The probe takes the timeout's place once, even where both are due.
            self.timers.retransmission = Some(now + self.rtt.rto());
        }
        if expired(&mut self.timers.retransmission, now) {
            if self.rtt.backoff() >= self.max_retries {
                return false;
            }
            self.on_retransmission_timeout(now);
        }
        if expired(&mut self.timers.persist, now) {
            self.probe_window = true;
            self.timers.persist_backoff += 1;
        }
        if expired(&mut self.timers.revisit, now) {
            self.tell(now, &Signal::Wakeup);
        }
        true
    }

    fn on_reordering_timeout(&mut self, now: Time) {
        let prior = self.board.in_flight();
        let lost = self.detect_losses(now);
        if lost > 0 {
            self.enter_recovery(now, prior, lost);
        }
    }

    fn on_retransmission_timeout(&mut self, now: Time) {
        if self.board.is_empty() {
            return;
        }
        self.rtt.back_off();
        self.counters.timeouts += 1;
        self.begin_anew(now);
    }

    /// What is in the network counts as lost.
    pub(super) fn begin_anew(&mut self, now: Time) {
        let prior_in_flight = self.board.in_flight();
        let patience = match self.loss_recovery {
            LossRecovery::Rack => self.rack.rtt() + self.reorder_window(),
            _ => Span::ZERO,
        };
        let Sender { board, law, .. } = self;
        let lost = board.time_out(now, patience, |segment| tell_lost(law.as_mut(), now, segment));
        self.duplicates.begin_anew(self.board.nxt());
        self.board.forget_departures();
        self.timed_out_at = now;
        self.probe = TailProbe::None;
        self.timers.tail_probe = None;
        self.timers.reordering = None;
        // A timeout during the repair of another does not make that one right or wrong.
        if !matches!(self.recovery, Recovery::Loss(_)) {
            self.first_repair = None;
        }
        self.recovery = Recovery::Loss(self.board.nxt());
        self.force = true;
        self.timers.retransmission = Some(now + self.rtt.rto());
        self.tell(now, &Signal::Timeout(self.loss(prior_in_flight, lost)));
    }
}
