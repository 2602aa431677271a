//! A queueing discipline above a driver's own queue: access points before mac80211 had queues for each station.
//! Source:     Linux 3.18 with OpenWrt 15.05's defaults: `sch_mq` with an `sch_fq_codel` for each access class (limit 1024 packets,
//!             1024 flows, target 5 ms, interval 100 ms, quantum 300), and ath9k (`ATH_MAX_QDEPTH`, 123 packets a class;
//!             `ath_txq_schedule`, which serves the stations in turn).
//! Equations:  a packet goes from the discipline to the driver while waiting + unacknowledged < depth
//! Symbols:    pending_frames -> waiting + unacknowledged, ATH_MAX_QDEPTH -> `depth`
//! Deviations: a packet that meets a full driver stays where it is; Linux takes it out, puts it back (`requeues`) and sends it
//!             first. CoDel looks at the bytes of the flow, not at those of the whole discipline, before it spares a short queue.
//! Validity:   any load.     Checked by: queue::qdisc_tests::*, tests/integration/properties.rs

use super::fq::Table;
use super::pool::Pool;
use super::round_robin::RoundRobin;
use super::{QdiscParams, codel};
use lasthop_units::Time;

/// CoDel spares a flow with no more than one packet of an Ethernet behind its head.
const FLOOR: u64 = 1_514;

/// The queue of one access class.
#[derive(Clone, Debug)]
pub(crate) struct Qdisc {
    codel: codel::Params,
    depth: usize,
    /// Its flow table, of which it uses the only tin.
    table: usize,
    driver: RoundRobin,
    /// Per slot: packets and bytes in the discipline.
    above: Vec<(usize, u64)>,
}

impl Qdisc {
    /// For `slots` receivers, the last of them the group.
    pub fn new(params: &QdiscParams, slots: usize, table: usize) -> Qdisc {
        let QdiscParams { target, interval, ecn, driver_packets, .. } = *params;
        Qdisc {
            codel: codel::Params { target, interval, ecn, floor: FLOOR },
            depth: driver_packets,
            table,
            driver: RoundRobin::new(usize::MAX, slots),
            above: vec![(0, 0); slots],
        }
    }

    /// Takes the packet. What overflows goes to `victims`: never refused, but perhaps another flow's head lost.
    pub fn push(&mut self, pool: &mut Pool, tables: &mut [Table], slot: usize, id: u32, victims: &mut Vec<u32>) {
        let meta = pool.get_mut(id);
        meta.slot = u16::try_from(slot).expect("few receivers");
        let (above, len) = (&mut self.above[slot], u64::from(meta.len));
        (above.0, above.1) = (above.0 + 1, above.1 + len);
        let known = victims.len();
        tables[self.table].push(pool, 0, id, victims);
        self.forget(pool, &victims[known..]);
    }

    /// Hands packets to the driver while it has room; it holds `unacknowledged` more than wait in it. What CoDel drops goes to
    /// `victims`.
    pub fn hand_over(
        &mut self,
        pool: &mut Pool,
        tables: &mut [Table],
        now: Time,
        unacknowledged: usize,
        victims: &mut Vec<u32>,
    ) {
        while self.driver.waiting() + unacknowledged < self.depth {
            let known = victims.len();
            let next = tables[self.table].pop(pool, 0, now, &self.codel, victims);
            self.forget(pool, &victims[known..]);
            let Some(id) = next else { return };
            self.forget(pool, &[id]);
            let slot = usize::from(pool.get(id).slot);
            self.driver.push(pool, slot, id, 0);
        }
    }

    /// The receiver of the packets that the driver sends next.
    pub fn select(&mut self, resend: &[u64]) -> Option<usize> {
        self.driver.select(resend)
    }

    /// The next packet that the driver holds for a receiver.
    pub fn pop(&mut self, pool: &mut Pool, slot: usize) -> Option<u32> {
        self.driver.pop(pool, slot)
    }

    /// Packets that the driver holds and has not sent yet.
    pub fn staged(&self) -> usize {
        self.driver.waiting()
    }

    /// Packets and bytes that wait for a receiver, in the discipline or the driver.
    pub fn backlog(&self, slot: usize) -> (usize, u64) {
        let ((packets, bytes), driver) = (self.above[slot], self.driver.list(slot));
        (packets + driver.len(), bytes + driver.bytes())
    }

    /// The oldest packet that waits for a receiver.
    pub fn oldest(&self, pool: &Pool, tables: &[Table], slot: usize) -> Option<u32> {
        let of_slot = |id: u32| usize::from(pool.get(id).slot) == slot;
        let above = || tables[self.table].oldest_of(pool, 0, of_slot);
        self.driver.list(slot).front().or_else(above)
    }

    /// These have left the discipline.
    fn forget(&mut self, pool: &Pool, gone: &[u32]) {
        for id in gone {
            let (slot, len) = (pool.get(*id).slot, u64::from(pool.get(*id).len));
            let above = &mut self.above[usize::from(slot)];
            (above.0, above.1) = (above.0 - 1, above.1 - len);
        }
    }
}
