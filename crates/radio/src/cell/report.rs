//! What a cell's control channels show of a subframe.

use super::harq::Assignment;
use super::model::Cell;
use super::numbers::{BASE, at};
use crate::Outbox;
use lasthop_signals::{CellSubframe, Dci, Rnti, Signal};
use lasthop_units::Time;

impl<P> Cell<P> {
    /// Tells what the control channels of a subframe have shown: node 0 what was sent, stations what they have decoded.
    pub(super) fn report(&mut self, now: Time, subframe: u64, out: &mut impl Outbox<P>) {
        let truth = self.params.truth;
        if !truth && self.terminals.iter().all(|terminal| terminal.decoder.is_none()) {
            return;
        }
        for (number, carrier) in self.carriers.iter().enumerate() {
            let sent: Vec<Dci> = carrier.harq.in_subframe(subframe).map(Assignment::dci).collect();
            let shown = |own: Option<Rnti>, dcis: Vec<Dci>| {
                let (carrier, prb) = (number as u8, u16::from(carrier.prb));
                Signal::Subframe(CellSubframe { carrier, number: subframe, prb, own, dcis })
            };
            for terminal in &mut self.terminals {
                let (Some(node), Some(decoder)) = (terminal.node, &mut terminal.decoder) else { continue };
                let seen = decoder.see(carrier.prb, &sent);
                // Between cells there is none to listen to.
                if terminal.course.is_away(at(subframe)) {
                    continue;
                }
                let own = terminal.carriers.has(number, subframe, &self.rule).then_some(terminal.rnti);
                out.driver(now, node, &shown(own, seen));
            }
            if truth {
                out.driver(now, BASE, &shown(None, sent));
            }
        }
    }
}
