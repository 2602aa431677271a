//! FQ-CoDel for each receiver, and airtime fairness between receivers.
//! Source:     RFC 8290 sections 4.1 and 4.2 (flows, deficit round robin, CoDel); Høiland-Jørgensen et al., "Ending the
//!             Anomaly", USENIX ATC 2017, and the behaviour of Linux mac80211 since 5.x (airtime deficits per receiver,
//!             32 packets or half of the longest flow dropped on overflow).
//! Equations:  a receiver may send while its airtime deficit >= 0; each turn adds the quantum; each exchange subtracts
//!             the airtime it took, in both directions
//! Symbols:    deficit of a receiver -> `Station::deficit` (ns), of a flow -> `Flow::deficit` (bytes)
//! Deviations: frames are assembled when the channel is won, so there is no hardware queue and no queue limit for it
//!             (AQL). 1024 flows a receiver of its own, where mac80211 shares 4096 between all. CoDel does not relax for
//!             stations below 12 Mbit/s. A receiver leaves the schedule when it runs empty (mac80211: 100 ms later).
//! Validity:   any load.     Checked by: queue::tests::*

use super::FqCodelParams;
use super::codel::{Codel, Verdict};
use super::pool::{List, Pool};
use crate::Ecn;
use lasthop_units::{Span, Time};
use std::collections::VecDeque;

/// Flow queues a receiver, RFC 8290's default.
const FLOWS: usize = 1_024;
/// Packets that an overflow drops at most.
const BATCH: usize = 32;

#[derive(Debug)]
pub(crate) struct FqCodelAirtime {
    params: FqCodelParams,
    stations: Vec<Station>,
    /// Receivers in the order of their turns.
    schedule: VecDeque<usize>,
    waiting: usize,
}

/// One receiver.
#[derive(Debug, Default)]
struct Station {
    /// Empty until the first packet comes.
    flows: Vec<Flow>,
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    scheduled: bool,
    deficit: i64,
    packets: usize,
    bytes: u64,
}

#[derive(Clone, Debug)]
struct Flow {
    list: List,
    codel: Codel,
    deficit: i64,
    /// In `new` or `old`.
    active: bool,
}

impl FqCodelAirtime {
    pub fn new(params: FqCodelParams, slots: usize) -> FqCodelAirtime {
        let stations = (0..slots).map(|_| Station::default()).collect();
        FqCodelAirtime { params, stations, schedule: VecDeque::new(), waiting: 0 }
    }

    /// Takes the packet. What overflows goes to `victims`: never refused, but perhaps another's head lost.
    pub fn push(&mut self, pool: &mut Pool, slot: usize, id: u32, victims: &mut Vec<u32>) {
        let (hash, len) = (pool.get(id).flow_hash, pool.get(id).len);
        let station = &mut self.stations[slot];
        if station.flows.is_empty() {
            let idle = Flow { list: List::new(), codel: Codel::default(), deficit: 0, active: false };
            station.flows = vec![idle; FLOWS];
        }
        // Multiply-shift spreads hashes that differ only in a few bits.
        let index = (hash.wrapping_mul(0x9e37_79b1) >> 22) as usize;
        let flow = &mut station.flows[index];
        flow.list.push(pool, id);
        if !flow.active {
            flow.active = true;
            flow.deficit = i64::from(self.params.quantum);
            station.new.push_back(u16::try_from(index).expect("1024 flows"));
        }
        station.packets += 1;
        station.bytes += u64::from(len);
        self.waiting += 1;
        self.wake(slot);
        if self.waiting > self.params.packets {
            self.shorten_longest(pool, victims);
        }
    }

    /// Puts a receiver that has something to send into the schedule: first, as a receiver that still owes airtime goes
    /// to the back at once in `select`.
    pub fn wake(&mut self, slot: usize) {
        let station = &mut self.stations[slot];
        if !station.scheduled {
            station.scheduled = true;
            self.schedule.push_front(slot);
        }
    }

    /// Whose turn it is.
    pub fn select(&mut self, resend: &[u64]) -> Option<usize> {
        while let Some(&slot) = self.schedule.front() {
            let station = &mut self.stations[slot];
            if station.packets == 0 && resend[slot] == u64::MAX {
                station.scheduled = false;
                self.schedule.pop_front();
            } else if station.deficit < 0 {
                station.deficit += nanos(self.params.airtime_quantum);
                self.schedule.rotate_left(1);
            } else {
                return Some(slot);
            }
        }
        None
    }

    /// The next packet for a receiver, in the order of its flows' deficits. What CoDel drops goes to `victims`.
    pub fn pop(&mut self, pool: &mut Pool, slot: usize, now: Time, victims: &mut Vec<u32>) -> Option<u32> {
        let station = &mut self.stations[slot];
        loop {
            let from_new = !station.new.is_empty();
            let &index = if from_new { station.new.front() } else { station.old.front() }?;
            let flow = &mut station.flows[usize::from(index)];
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.params.quantum);
                leave(station, from_new);
                station.old.push_back(index);
                continue;
            }
            let before = victims.len();
            let (packets, bytes) = (flow.list.len(), flow.list.bytes());
            let found = flow.dequeue(pool, now, &self.params, victims);
            debug_assert_eq!(packets - flow.list.len(), victims.len() - before + usize::from(found.is_some()));
            station.packets -= packets - flow.list.len();
            station.bytes -= bytes - flow.list.bytes();
            self.waiting -= packets - flow.list.len();
            let Some(id) = found else {
                leave(station, from_new);
                // An emptied new flow passes through the old ones once, so that it cannot starve them (4.2).
                if from_new && !station.old.is_empty() {
                    station.old.push_back(index);
                } else {
                    station.flows[usize::from(index)].active = false;
                }
                continue;
            };
            station.flows[usize::from(index)].deficit -= i64::from(pool.get(id).len);
            return Some(id);
        }
    }

    /// Charges a receiver for the time its exchange took.
    pub fn charge(&mut self, slot: usize, airtime: Span) {
        self.stations[slot].deficit -= nanos(airtime);
    }

    /// Drops from the head of the flow with the most bytes.
    fn shorten_longest(&mut self, pool: &mut Pool, victims: &mut Vec<u32>) {
        let mut longest = (0, 0, 0);
        for (slot, station) in self.stations.iter().enumerate() {
            for &index in station.new.iter().chain(&station.old) {
                let bytes = station.flows[usize::from(index)].list.bytes();
                if bytes > longest.0 {
                    longest = (bytes, slot, usize::from(index));
                }
            }
        }
        let (_, slot, index) = longest;
        let station = &mut self.stations[slot];
        let list = &mut station.flows[index].list;
        let batch = (list.len() / 2).clamp(1, BATCH);
        for _ in 0..batch {
            let Some(id) = list.pop(pool) else { break };
            station.packets -= 1;
            station.bytes -= u64::from(pool.get(id).len);
            self.waiting -= 1;
            victims.push(id);
        }
    }

    /// Packets and bytes that wait for a receiver.
    pub fn backlog(&self, slot: usize) -> (usize, u64) {
        (self.stations[slot].packets, self.stations[slot].bytes)
    }

    /// The oldest packet that waits for a receiver.
    pub fn oldest(&self, pool: &Pool, slot: usize) -> Option<u32> {
        let station = &self.stations[slot];
        let heads = station.new.iter().chain(&station.old);
        heads.filter_map(|&index| station.flows[usize::from(index)].list.front()).min_by_key(|&id| pool.get(id).order)
    }

    pub fn waiting(&self) -> usize {
        self.waiting
    }
}

impl Flow {
    /// CoDel's dequeue: packets pass, are marked, or go to `victims`.
    fn dequeue(&mut self, pool: &mut Pool, now: Time, params: &FqCodelParams, victims: &mut Vec<u32>) -> Option<u32> {
        let mut again = false;
        while let Some(id) = self.list.pop(pool) {
            let meta = pool.get_mut(id);
            match self.codel.judge(now, now.since(meta.queued_at), self.list.bytes(), again, params) {
                Verdict::Pass => return Some(id),
                Verdict::Signal if params.ecn && meta.ecn != Ecn::NotEct => {
                    meta.ecn = Ecn::Ce;
                    return Some(id);
                }
                Verdict::Signal => {
                    victims.push(id);
                    again = true;
                }
            }
        }
        self.codel.ran_empty();
        None
    }
}

/// Takes the first flow off its list.
fn leave(station: &mut Station, from_new: bool) {
    if from_new {
        station.new.pop_front()
    } else {
        station.old.pop_front()
    };
}

fn nanos(span: Span) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}
