//! From the queue to the radio's hardware or its driver, where an access point has such a border.
//! Source:     Linux, `net/mac80211`: drivers pull packets, or wake the discipline above them, when some arrive and when transmissions
//!             complete.
//! Deviations: none of its own; see `queue::mac80211` and `queue::qdisc`.     Checked by: tests/integration/mac80211.rs, tests/integration/properties.rs

use super::model::Wifi;
use super::phy::{Mode, Standard};
use crate::queue::Link;
use crate::{Drop, Outbox};
use lasthop_units::{Span, Time};

impl<P: Clone> Wifi<P> {
    /// Fills the hardware of a contender as far as its queue lets it.
    #[inline]
    pub(super) fn hand_over(&mut self, now: Time, contender: usize, out: &mut impl Outbox<P>) {
        // Hops without such queues pay for this one look only.
        if self.tables.is_empty() {
            return;
        }
        if self.queues[contender].hardware().is_some() {
            self.fill(now, contender, out);
        } else {
            self.fill_driver(now, contender, out);
        }
    }

    /// Fills the driver's queue from the discipline above it, where a contender has such.
    fn fill_driver(&mut self, now: Time, contender: usize, out: &mut impl Outbox<P>) {
        self.queues[contender].fill_driver(&mut self.pool, &mut self.tables, now, &mut self.victims);
        if !self.victims.is_empty() {
            self.drop_victims(now, contender / self.classes, Drop::QueueManagement, out);
        }
    }

    fn fill(&mut self, now: Time, contender: usize, out: &mut impl Outbox<P>) {
        let classes = self.classes;
        let node = contender / classes;
        let pending = |queue: usize| self.queues[queue].pending();
        let all = (node * classes..(node + 1) * classes).map(pending).sum::<Span>();
        let elsewhere = all - pending(contender);
        loop {
            let Some(hardware) = self.queues[contender].hardware() else { return };
            let Some(slot) = hardware.turn(&self.tables, elsewhere) else { break };
            let link = self.link(node, slot, now);
            let Some(hardware) = self.queues[contender].hardware() else { return };
            let (pool, tables) = (&mut self.pool, &mut self.tables);
            hardware.hand_over(pool, tables, slot, &link, now, elsewhere, &mut self.victims);
        }
        if !self.victims.is_empty() {
            self.drop_victims(now, node, Drop::QueueManagement, out);
        }
    }

    /// A contender's exchange is over: its hardware has room, and other classes of its node may have got airtime.
    pub(super) fn exchange_over(&mut self, now: Time, contender: usize, out: &mut impl Outbox<P>) {
        if self.tables.is_empty() {
            return;
        }
        let Some(hardware) = self.queues[contender].hardware() else {
            return self.fill_driver(now, contender, out);
        };
        hardware.landed();
        let classes = self.classes;
        let first = contender - contender % classes;
        for class in (0..classes).rev() {
            self.hand_over(now, first + class, out);
            if first + class != contender && !self.queues[first + class].is_empty() {
                self.medium.awake((first + class) as u16, now);
            }
        }
    }

    /// The link from a node to one of its receivers now; for the group slot that of the lowest basic rate.
    fn link(&mut self, node: usize, slot: usize, now: Time) -> Link {
        let he = matches!(self.plan.phy(node).standard, Standard::Dot11ax(_));
        let Some(&to) = self.ports[node].receivers.get(slot) else {
            let mode = Mode::lowest(self.plan.phy(node).standard);
            return Link { rate: mode.rate(), preamble: mode.preamble(), packets: 1, psdu: u32::MAX, overhead: 0, he };
        };
        let index = self.mode(node, usize::from(to), now);
        let mode = self.plan.modes()[usize::from(index)];
        let overhead = mode.framing.append(0, mode.framing.mpdu(0));
        // An aggregate of A-MSDUs holds as many packets as its MPDUs may.
        let packets = self.ports[node].most_mpdus.saturating_mul(self.ports[node].most_packets);
        let (rate, preamble) = (mode.phy.rate(), mode.phy.preamble());
        Link { rate, preamble, packets, psdu: mode.max_psdu, overhead, he }
    }
}
