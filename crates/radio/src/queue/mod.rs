//! Queues of an access point or station: which packets wait, and whose turn it is.
//!
//! A queue sorts packets by *slot*: one for each receiver that its node may send to, and one for group packets.

mod codel;
mod fifo;
mod fq_codel_airtime;
mod pool;
mod round_robin;
#[cfg(test)]
mod tests;

use fifo::Fifo;
use fq_codel_airtime::FqCodelAirtime;
use lasthop_units::{Span, Time};
pub(crate) use pool::{Meta, Pool};
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
    /// FQ-CoDel per receiver and airtime fairness between them, as Linux's mac80211 does.
    FqCodelAirtime(FqCodelParams),
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
    /// Packets over all receivers and flows; beyond, the longest flow loses its head.
    pub packets: usize,
    /// Airtime credit that a receiver gets a turn.
    pub airtime_quantum: Span,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for FqCodelParams {
    /// mac80211's values for a station: target 20 ms, interval 100 ms, quantum 300 bytes, 8192 packets, an airtime
    /// weight of 256 us, marking on.
    fn default() -> FqCodelParams {
        FqCodelParams {
            target: Span::from_millis(20),
            interval: Span::from_millis(100),
            quantum: 300,
            packets: 8192,
            airtime_quantum: Span::from_micros(256),
            ecn: true,
        }
    }
}

/// A queue with its discipline.
#[derive(Debug)]
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

#[derive(Debug)]
enum Discipline {
    Fifo(Fifo),
    RoundRobin(RoundRobin),
    FqCodelAirtime(FqCodelAirtime),
}

impl Queue {
    pub fn new(kind: &Kind, slots: usize) -> Queue {
        let discipline = match kind {
            Kind::Fifo { packets } => Discipline::Fifo(Fifo::new(*packets, slots)),
            Kind::RoundRobin { packets } => Discipline::RoundRobin(RoundRobin::new(*packets, slots)),
            Kind::FqCodelAirtime(params) => Discipline::FqCodelAirtime(FqCodelAirtime::new(*params, slots)),
        };
        let resend = vec![u64::MAX; slots];
        Queue { discipline, resend, resending: 0, in_flight: vec![0; slots], in_flight_total: 0 }
    }

    /// Offers a packet; false if it is refused. Packets that must go in its stead are added to `victims`.
    pub fn push(&mut self, pool: &mut Pool, slot: usize, id: u32, victims: &mut Vec<u32>) -> bool {
        match &mut self.discipline {
            Discipline::Fifo(queue) => queue.push(pool, slot, id, self.in_flight_total),
            Discipline::RoundRobin(queue) => queue.push(pool, slot, id, self.in_flight[slot]),
            Discipline::FqCodelAirtime(queue) => {
                queue.push(pool, slot, id, victims);
                true
            }
        }
    }

    /// Whose turn it is: a slot with waiting packets, or with something to send again.
    pub fn select(&mut self) -> Option<usize> {
        match &mut self.discipline {
            Discipline::Fifo(queue) => queue.select(&self.resend),
            Discipline::RoundRobin(queue) => queue.select(&self.resend),
            Discipline::FqCodelAirtime(queue) => queue.select(&self.resend),
        }
    }

    /// The next packet for a slot, which the MAC holds from now on until it is released. What queue management takes
    /// out goes to `victims`.
    pub fn pop(&mut self, pool: &mut Pool, slot: usize, now: Time, victims: &mut Vec<u32>) -> Option<u32> {
        let id = match &mut self.discipline {
            Discipline::Fifo(queue) => queue.pop(pool, slot),
            Discipline::RoundRobin(queue) => queue.pop(pool, slot),
            Discipline::FqCodelAirtime(queue) => queue.pop(pool, slot, now, victims),
        }?;
        self.in_flight[slot] += 1;
        self.in_flight_total += 1;
        Some(id)
    }

    /// The MAC is done with a packet.
    pub fn release(&mut self, slot: usize) {
        self.in_flight[slot] -= 1;
        self.in_flight_total -= 1;
    }

    /// Says what the MAC must send again: the arrival number of its oldest packet, `u64::MAX` for nothing.
    pub fn set_resend(&mut self, slot: usize, oldest: u64) {
        let before = std::mem::replace(&mut self.resend[slot], oldest);
        self.resending += usize::from(oldest != u64::MAX);
        self.resending -= usize::from(before != u64::MAX);
        if let (Discipline::FqCodelAirtime(queue), true) = (&mut self.discipline, oldest != u64::MAX) {
            queue.wake(slot);
        }
    }

    /// Charges a slot for airtime, where the discipline cares.
    pub fn charge(&mut self, slot: usize, airtime: Span) {
        if let Discipline::FqCodelAirtime(queue) = &mut self.discipline {
            queue.charge(slot, airtime);
        }
    }

    /// True if nothing waits and nothing is to be sent again.
    pub fn is_empty(&self) -> bool {
        self.waiting() == 0 && self.resending == 0
    }

    /// Packets that wait, all slots together.
    pub fn waiting(&self) -> usize {
        match &self.discipline {
            Discipline::Fifo(queue) => queue.waiting(),
            Discipline::RoundRobin(queue) => queue.waiting(),
            Discipline::FqCodelAirtime(queue) => queue.waiting(),
        }
    }

    /// Packets and bytes that wait for a slot.
    pub fn backlog(&self, slot: usize) -> (usize, u64) {
        match &self.discipline {
            Discipline::Fifo(queue) => (queue.list(slot).len(), queue.list(slot).bytes()),
            Discipline::RoundRobin(queue) => (queue.list(slot).len(), queue.list(slot).bytes()),
            Discipline::FqCodelAirtime(queue) => queue.backlog(slot),
        }
    }

    /// The oldest packet that waits for a slot.
    pub fn oldest(&self, pool: &Pool, slot: usize) -> Option<u32> {
        match &self.discipline {
            Discipline::Fifo(queue) => queue.list(slot).front(),
            Discipline::RoundRobin(queue) => queue.list(slot).front(),
            Discipline::FqCodelAirtime(queue) => queue.oldest(pool, slot),
        }
    }
}
