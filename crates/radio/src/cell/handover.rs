//! A station's handovers: for a time nothing is sent to it, and then it goes on under another number.
//! Source:     3GPP TS 36.300 section 10.1.2 (what has not arrived is forwarded to the new cell), 36.323 section 5.2 (PDCP sends
//!             again what was not acknowledged), 36.331 (secondary carriers are released, the C-RNTI changes); TR 36.881 (how long).
//! Equations:  away from the first subframe at or after a handover's time, for `interruption`
//! Deviations: the new cell is the old one: the same carriers, others and queues. Blocks on their way are lost, and what they
//!             carried is sent again whole. The path to the base station does not change.
//! Checked by: tests/integration/cell_handover.rs

use super::numbers::{SUBFRAME, rnti};
use super::station::Handovers;
use crate::wired::Impairments;
use lasthop_signals::Rnti;
use lasthop_units::{Rate, Span, Time};

/// The handovers of one terminal, and its numbers in the cells that it comes to.
#[derive(Clone, Debug, Default)]
pub(super) struct Course {
    at: Vec<Time>,
    interruption: Span,
    numbers: Vec<Rnti>,
    /// How many have begun.
    begun: usize,
}

impl Course {
    /// The course of a station. Its numbers are those of `fresh` and on; the next that is free comes back in it.
    pub fn new(handovers: &Handovers, fresh: &mut usize) -> Course {
        let whole = |time: &Time| Time::ZERO + SUBFRAME * time.as_nanos().div_ceil(SUBFRAME.as_nanos());
        let Handovers { at, interruption } = handovers;
        let numbers = (*fresh..*fresh + at.len()).map(rnti).collect();
        *fresh += at.len();
        Course { at: at.iter().map(whole).collect(), interruption: *interruption, numbers, begun: 0 }
    }

    /// When the next one begins.
    pub fn next(&self) -> Option<Time> {
        self.at.get(self.begun).copied()
    }

    /// If one begins at `now` or has begun since the last question: the number that the terminal has from then on.
    pub fn begin(&mut self, now: Time) -> Option<Rnti> {
        let begun = self.at.partition_point(|at| *at <= now);
        let is_new = begun > self.begun;
        self.begun = begun;
        is_new.then(|| self.numbers[begun - 1])
    }

    /// True while nothing is sent to the terminal.
    pub fn is_away(&self, now: Time) -> bool {
        let last = self.begun.checked_sub(1).map(|last| self.at[last]);
        last.is_some_and(|left| now < left + self.interruption)
    }
}

/// What handovers make of a station's uplink of that rate: nothing leaves in an interruption.
pub(super) fn uplink(handovers: &Handovers, rate: Rate) -> Impairments {
    let away = |from: &Time| [(*from, Rate::ZERO), (*from + handovers.interruption, rate)];
    let changes =
        if handovers.interruption.is_zero() { Vec::new() } else { handovers.at.iter().flat_map(away).collect() };
    Impairments { changes, ..Impairments::default() }
}
