//! Queues of an access point or station: which packets wait, and which receiver has its turn.
//!
//! A queue sorts packets by *slot*: one for each receiver that its node may send to, and one for group packets.

mod codel;
mod fifo;
mod fq;
mod mac80211;
#[cfg(test)]
mod mac80211_tests;
mod of_hop;
mod pie;
mod pool;
mod qdisc;
#[cfg(test)]
mod qdisc_tests;
mod round_robin;
#[cfg(test)]
mod tests;

pub(crate) use codel::{Codel, Line, Params as CodelParams};
use fifo::Fifo;
pub(crate) use fq::Table;
use lasthop_units::{Bytes, Span, Time};
pub(crate) use mac80211::Link;
use mac80211::Mac80211;
pub use of_hop::{HopQueue, Limit, LinkKind};
pub use pie::PieParams;
pub(crate) use pie::{Pie, Verdict};
pub(crate) use pool::{Meta, Pool};
use qdisc::Qdisc;
use round_robin::RoundRobin;

/// A queue discipline and its limits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// One queue with one packet limit, in order of arrival: the head packet's receiver is served, and its frame takes
    /// that receiver's packets from anywhere in the queue.
    Fifo {
        /// Packets it holds, unacknowledged ones included.
        packets: usize,
    },
    /// One queue per receiver, served in turn, one frame each.
    RoundRobin {
        /// Packets that each receiver's queue holds, unacknowledged ones included.
        packets: usize,
    },
    /// FQ-CoDel per receiver, airtime fairness between them and airtime queue limits, as Linux's mac80211 does.
    FqCodelAirtime(FqCodelParams),
    /// FQ-CoDel for all receivers together, above the driver's own queue, as Linux's access points had before mac80211 got
    /// queues for each station.
    FqCodel(QdiscParams),
}

/// Parameters of FQ-CoDel above a driver's queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QdiscParams {
    /// Sojourn time in the discipline that CoDel tolerates as standing.
    pub target: Span,
    /// How long the sojourn time must stay above `target` before CoDel acts.
    pub interval: Span,
    /// Bytes that a flow may send a turn.
    pub quantum: u32,
    /// Packets in the discipline, all flows; beyond, the fattest flow loses its head.
    pub packets: usize,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Packets that the driver holds of a class, unacknowledged ones included.
    pub driver_packets: usize,
}

impl Default for QdiscParams {
    /// OpenWrt 15.05's on ath9k: target 5 ms, interval 100 ms, quantum 300 bytes, 1024 packets, marking on; 123 packets in the
    /// driver.
    fn default() -> QdiscParams {
        QdiscParams {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            quantum: 300,
            packets: 1_024,
            ecn: true,
            driver_packets: 123,
        }
    }
}

/// Parameters of FQ-CoDel with airtime fairness.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FqCodelParams {
    /// Sojourn time that CoDel tolerates as standing.
    pub target: Span,
    /// How long the sojourn time must stay above `target` before CoDel acts.
    pub interval: Span,
    /// Bytes that a flow may send a turn.
    pub quantum: u32,
    /// Packets over all receivers, classes and flows; beyond, the fattest flow loses from its head.
    pub packets: usize,
    /// Memory of those packets, counted as Linux counts it (2304 bytes for one of 1500); `None`: Linux's 16 MiB, 4 MiB
    /// where the radio knows no VHT.
    pub memory: Option<Bytes>,
    /// Airtime credit that a receiver gets a turn.
    pub airtime_quantum: Span,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Target 50 ms, interval 300 ms and no marks for a receiver with an expected throughput below 6 Mbit/s times the
    /// receivers, as Linux did from 4.8 to 6.15.
    pub relax_slow: bool,
    /// Airtime queue limits of what the hardware holds; `None`: none.
    pub aql: Option<Aql>,
    /// Aggregates in the hardware of an access class, the one on the air included. 0: as many packets as the airtime
    /// limits let through, 2048 at most, which the radio's firmware aggregates by itself.
    pub hardware_aggregates: u16,
}

/// Limits of the expected airtime that the hardware holds (mac80211's AQL).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aql {
    /// Below this a receiver may always hand more over.
    pub low: Span,
    /// Below this it may as long as the hardware holds less than `total`.
    pub high: Span,
    /// For all receivers and classes together.
    pub total: Span,
}

impl Default for FqCodelParams {
    /// mac80211's values for a station: target 20 ms, interval 100 ms, quantum 300 bytes, 8192 packets, an airtime
    /// weight of 256 us, marking on, airtime limits on; and the two aggregates that ath9k keeps in hardware.
    fn default() -> FqCodelParams {
        FqCodelParams {
            target: Span::from_millis(20),
            interval: Span::from_millis(100),
            quantum: 300,
            packets: 8192,
            memory: None,
            airtime_quantum: Span::from_micros(256),
            ecn: true,
            relax_slow: false,
            aql: Some(Aql::default()),
            hardware_aggregates: 2,
        }
    }
}

impl Default for Aql {
    /// mac80211's: 5 ms and 12 ms a station, 24 ms in all.
    fn default() -> Aql {
        Aql { low: Span::from_millis(5), high: Span::from_millis(12), total: Span::from_millis(24) }
    }
}

/// Memory of waiting packets that mac80211 allows, with and without VHT.
const MEMORY: [Bytes; 2] = [Bytes::new(4 << 20), Bytes::new(16 << 20)];

/// Flow buckets of a node's queues in mac80211, and of a discipline.
const MAC80211_FLOWS: usize = 4_096;
const QDISC_FLOWS: usize = 1_024;

/// Adds the flow tables that the queues of one node use, where their kind has some: one that all its classes share, or one
/// each. `lanes` counts its receivers with the group.
pub(crate) fn add_tables(kind: &Kind, lanes: usize, classes: usize, vht: bool, tables: &mut Vec<Table>) {
    match kind {
        Kind::FqCodelAirtime(params) => {
            let memory = params.memory.unwrap_or(MEMORY[usize::from(vht)]);
            tables.push(Table::new(MAC80211_FLOWS, lanes * classes, params.packets, memory.get(), params.quantum));
        }
        Kind::FqCodel(params) => {
            let table = Table::new(QDISC_FLOWS, 1, params.packets, u64::MAX, params.quantum);
            tables.extend(std::iter::repeat_n(table, classes));
        }
        Kind::Fifo { .. } | Kind::RoundRobin { .. } => {}
    }
}

/// A queue with its discipline.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    discipline: Discipline,
    /// Per slot: arrival number of the oldest packet that the MAC must send again, `u64::MAX` for none.
    resend: Vec<u64>,
    /// Slots with something to send again.
    resending: usize,
    /// Per slot: packets that the MAC holds and that still count against a packet limit.
    in_flight: Vec<usize>,
    in_flight_total: usize,
}

#[derive(Clone, Debug)]
enum Discipline {
    Fifo(Fifo),
    RoundRobin(RoundRobin),
    Mac80211(Mac80211),
    Qdisc(Qdisc),
}

impl Queue {
    /// A queue for `slots` receivers, the last of them the group, of the `class`th of `classes` access classes. A kind that has
    /// flow tables uses the last ones added.
    pub fn new(kind: &Kind, slots: usize, (class, classes): (usize, usize), tables: &[Table]) -> Queue {
        let discipline = match kind {
            Kind::Fifo { packets } => Discipline::Fifo(Fifo::new(*packets, slots)),
            Kind::RoundRobin { packets } => Discipline::RoundRobin(RoundRobin::new(*packets, slots)),
            Kind::FqCodelAirtime(params) => {
                let table = tables.len().checked_sub(1).expect("its table was added before");
                Discipline::Mac80211(Mac80211::new(*params, slots, table, class * slots))
            }
            Kind::FqCodel(params) => {
                let first = tables.len().checked_sub(classes).expect("its tables were added before");
                Discipline::Qdisc(Qdisc::new(params, slots, first + class))
            }
        };
        let resend = vec![u64::MAX; slots];
        Queue { discipline, resend, resending: 0, in_flight: vec![0; slots], in_flight_total: 0 }
    }

    /// Offers a packet; false if it is refused. Packets that must go in its stead are added to `victims`.
    #[inline]
    pub fn push(
        &mut self,
        pool: &mut Pool,
        tables: &mut [Table],
        slot: usize,
        id: u32,
        victims: &mut Vec<u32>,
    ) -> bool {
        match &mut self.discipline {
            Discipline::Fifo(queue) => queue.push(pool, slot, id, self.in_flight_total),
            Discipline::RoundRobin(queue) => queue.push(pool, slot, id, self.in_flight[slot]),
            Discipline::Mac80211(queue) => {
                queue.push(pool, tables, slot, id, victims);
                true
            }
            Discipline::Qdisc(queue) => {
                queue.push(pool, tables, slot, id, victims);
                true
            }
        }
    }

    /// The slot that has its turn: one with waiting packets, or with something to send again.
    #[inline]
    pub fn select(&mut self) -> Option<usize> {
        match &mut self.discipline {
            Discipline::Fifo(queue) => queue.select(&self.resend),
            Discipline::RoundRobin(queue) => queue.select(&self.resend),
            Discipline::Mac80211(queue) => queue.select(&self.resend),
            Discipline::Qdisc(queue) => queue.select(&self.resend),
        }
    }

    /// The next packet for a slot, which the MAC holds from now on until it is released.
    #[inline]
    pub fn pop(&mut self, pool: &mut Pool, slot: usize) -> Option<u32> {
        let id = match &mut self.discipline {
            Discipline::Fifo(queue) => queue.pop(pool, slot),
            Discipline::RoundRobin(queue) => queue.pop(pool, slot),
            Discipline::Mac80211(queue) => queue.pop(pool, slot),
            Discipline::Qdisc(queue) => queue.pop(pool, slot),
        }?;
        self.in_flight[slot] += 1;
        self.in_flight_total += 1;
        Some(id)
    }

    /// The MAC is done with a packet.
    #[inline]
    pub fn release(&mut self, slot: usize) {
        self.in_flight[slot] -= 1;
        self.in_flight_total -= 1;
    }

    /// Says what the MAC must send again: the arrival number of its oldest packet, `u64::MAX` for nothing.
    pub fn set_resend(&mut self, slot: usize, oldest: u64) {
        let before = std::mem::replace(&mut self.resend[slot], oldest);
        self.resending += usize::from(oldest != u64::MAX);
        self.resending -= usize::from(before != u64::MAX);
        if let (Discipline::Mac80211(queue), true) = (&mut self.discipline, oldest != u64::MAX) {
            queue.resend(slot);
        }
    }

    /// Charges a slot for airtime, where the discipline cares.
    #[inline]
    pub fn charge(&mut self, slot: usize, airtime: Span) {
        if let Discipline::Mac80211(queue) = &mut self.discipline {
            queue.charge(slot, airtime);
        }
    }

    /// What stands between queue and channel, where the discipline has a hardware queue.
    #[inline]
    pub fn hardware(&mut self) -> Option<&mut Mac80211> {
        match &mut self.discipline {
            Discipline::Mac80211(queue) => Some(queue),
            _ => None,
        }
    }

    /// Fills the driver's own queue from the discipline above it, where there is one.
    #[inline]
    pub fn fill_driver(&mut self, pool: &mut Pool, tables: &mut [Table], now: Time, victims: &mut Vec<u32>) {
        if let Discipline::Qdisc(queue) = &mut self.discipline {
            queue.hand_over(pool, tables, now, self.in_flight_total, victims);
        }
    }

    /// Expected airtime of what the hardware holds, zero where there is no hardware queue.
    pub fn pending(&self) -> Span {
        match &self.discipline {
            Discipline::Mac80211(queue) => queue.pending(),
            _ => Span::ZERO,
        }
    }

    /// True if nothing can be sent: nothing waits where the channel is served from, and nothing is to be sent again.
    #[inline]
    pub fn is_empty(&self) -> bool {
        let ready = match &self.discipline {
            Discipline::Fifo(queue) => queue.waiting(),
            Discipline::RoundRobin(queue) => queue.waiting(),
            Discipline::Mac80211(queue) => queue.staged(),
            Discipline::Qdisc(queue) => queue.staged(),
        };
        ready == 0 && self.resending == 0
    }

    /// Packets and bytes that wait for a slot.
    pub fn backlog(&self, tables: &[Table], slot: usize) -> (usize, u64) {
        match &self.discipline {
            Discipline::Fifo(queue) => (queue.list(slot).len(), queue.list(slot).bytes()),
            Discipline::RoundRobin(queue) => (queue.list(slot).len(), queue.list(slot).bytes()),
            Discipline::Mac80211(queue) => queue.backlog(tables, slot),
            Discipline::Qdisc(queue) => queue.backlog(slot),
        }
    }

    /// The oldest packet that waits for a slot.
    pub fn oldest(&self, pool: &Pool, tables: &[Table], slot: usize) -> Option<u32> {
        match &self.discipline {
            Discipline::Fifo(queue) => queue.list(slot).front(),
            Discipline::RoundRobin(queue) => queue.list(slot).front(),
            Discipline::Mac80211(queue) => queue.oldest(pool, tables, slot),
            Discipline::Qdisc(queue) => queue.oldest(pool, tables, slot),
        }
    }
}
