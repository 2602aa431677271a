//! What the control channel of a recorded link's cell would have shown its terminal: the link's opportunities, a subframe a millisecond.
//! Source:     mahimahi's rules, as in the file above: times are whole milliseconds.
//! Deviations: a recorded link has no other terminals and no PRBs: an opportunity stands for sixteen of equal size, and what nobody used is
//!             idle. A subframe is shown when a packet that it carried arrives.
//! Checked by: tests of the folder

use lasthop_signals::{Block, CellSubframe, Dci, Rnti};
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::delivery::{DeliveryTrace, OPPORTUNITY};
use std::collections::VecDeque;

/// PRB pairs that stand for an opportunity: 94 octets each.
const PARTS: u64 = 16;
const PART: u64 = OPPORTUNITY.get() / PARTS;
/// The terminal's number: it is alone.
const OWN: Rnti = Rnti(61);
const SUBFRAME: Span = Span::from_millis(1);

/// What is shown of one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    /// The next subframe.
    next: u64,
    /// Subframes of which something was used, and how much.
    used: VecDeque<(u64, Bytes)>,
}

impl Shown {
    /// An opportunity at `at` has carried so much.
    pub fn on_served(&mut self, at: Time, octets: Bytes) {
        let number = number(at);
        match self.used.back_mut().filter(|(last, _)| *last == number) {
            Some((_, used)) => *used += octets,
            None => self.used.push_back((number, octets)),
        }
    }

    /// When the next subframe is shown; packets take `delay`.
    pub fn next_event(&self, delay: Span) -> Time {
        Time::ZERO + SUBFRAME * self.next + delay
    }

    /// What is shown of the next subframe.
    pub fn show(&mut self, trace: &DeliveryTrace) -> CellSubframe {
        let number = self.next;
        self.next += 1;
        let before = number.checked_sub(1).map_or(0, |before| trace.until(Time::ZERO + SUBFRAME * before));
        let opportunities = trace.until(Time::ZERO + SUBFRAME * number) - before;
        let used = self.used.front().filter(|(of, _)| *of == number).map_or(Bytes::ZERO, |(_, used)| *used);
        if !used.is_zero() {
            self.used.pop_front();
        }
        let prb = |octets: u64| u16::try_from(octets.div_ceil(PART)).unwrap_or(u16::MAX);
        let (all, given) = (prb(opportunities * OPPORTUNITY.get()), prb(used.get()));
        let bits = u32::from(given) * PART as u32 * 8;
        let block = Block { mcs: 0, redundancy: 0, new_data: true, bits };
        let dci = Dci { rnti: OWN, prb: given, process: 0, blocks: [Some(block), None] };
        let dcis = if given > 0 { vec![dci] } else { Vec::new() };
        CellSubframe { carrier: 0, number, prb: all, own: Some(OWN), dcis }
    }
}

fn number(at: Time) -> u64 {
    at.as_nanos() / SUBFRAME.as_nanos()
}
