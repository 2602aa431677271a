//! Flow queues that all receivers of an access point share, in mac80211 or in a queueing discipline.
//! Source:     Linux's `net/fq.h` and `net/fq_impl.h` as mac80211 uses them (4096 flows, 8192 packets, 16 MiB, 4 MiB where
//!             the radio knows no VHT, quantum 300); RFC 8290, sections 4.1 and 4.2.
//! Equations:  bucket = high bits of (hash times 2^32 / golden ratio);  a flow with deficit <= 0 gets a quantum and waits
//!             behind the old flows, another sends its head, which its deficit pays for
//! Symbols:    tin (a receiver in one access class) -> `Tin`, flow -> `Flow`, backlog -> `Table::packets`, memory usage
//!             -> `Table::memory`
//! Deviations: the hash is not salted, so runs repeat. Memory of a packet is what a driver with 2 KiB receive buffers
//!             would report (`truesize`). Segments are never merged, so each packet is one of Linux's (no GSO).
//!             As in Linux, a flow goes to its receiver's own default flow while another receiver holds its bucket, and
//!             may so be reordered when that bucket falls free.
//! Validity:   any load.     Checked by: queue::mac80211_tests::*, tests/integration/properties.rs

use super::codel::{self, Codel};
use super::pool::{List, Pool};
use crate::Ecn;
use lasthop_units::Time;
use std::collections::VecDeque;

/// Packets that an overflow takes from the fattest flow at most.
const BATCH: usize = 32;
/// No tin.
const NOBODY: u32 = u32::MAX;

/// The flow queues of one access point.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// The shared buckets, of which there are 2^`bits`, then one default flow a tin.
    flows: Vec<Flow>,
    bits: u32,
    tins: Vec<Tin>,
    /// Flows that hold packets, a bit each.
    busy: Vec<u64>,
    packets: usize,
    memory: u64,
    limit: usize,
    memory_limit: u64,
    quantum: i64,
    /// Packets that found their bucket held by another tin.
    collisions: u64,
}

/// One receiver in one access class.
#[derive(Clone, Debug, Default)]
struct Tin {
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    packets: usize,
    bytes: u64,
}

#[derive(Clone, Debug)]
struct Flow {
    list: List,
    codel: Codel,
    deficit: i64,
    /// The tin that has it while it is in one of the tin's lists.
    tin: u32,
}

impl Table {
    /// `buckets` is a power of two.
    pub fn new(buckets: usize, tins: usize, limit: usize, memory_limit: u64, quantum: u32) -> Table {
        let flow = Flow { list: List::new(), codel: Codel::default(), deficit: 0, tin: NOBODY };
        let flows = buckets + tins;
        assert!(flows < usize::from(u16::MAX), "{tins} receivers and classes are more than flow numbers reach");
        Table {
            flows: vec![flow; flows],
            bits: buckets.ilog2(),
            tins: (0..tins).map(|_| Tin::default()).collect(),
            busy: vec![0; flows.div_ceil(64)],
            packets: 0,
            memory: 0,
            limit,
            memory_limit,
            quantum: i64::from(quantum),
            collisions: 0,
        }
    }

    /// Takes a packet for a tin. What overflows, of any tin, goes to `victims`.
    pub fn push(&mut self, pool: &mut Pool, tin: usize, id: u32, victims: &mut Vec<u32>) {
        let (hash, len) = (pool.get(id).flow_hash, pool.get(id).len);
        let bucket = (hash.wrapping_mul(0x9e37_79b1) >> (32 - self.bits)) as usize;
        let owner = u32::try_from(tin).expect("few tins");
        let held = self.flows[bucket].tin != NOBODY && self.flows[bucket].tin != owner;
        self.collisions += u64::from(held);
        let index = if held { (1 << self.bits) + tin } else { bucket };
        let flow = &mut self.flows[index];
        if flow.tin == NOBODY {
            flow.tin = owner;
            flow.deficit = self.quantum;
            self.tins[tin].new.push_back(index as u16);
        }
        flow.list.push(pool, id);
        self.busy[index / 64] |= 1 << (index % 64);
        self.tins[tin].packets += 1;
        self.tins[tin].bytes += u64::from(len);
        self.packets += 1;
        self.memory += truesize(len);
        while self.packets > self.limit || self.memory > self.memory_limit {
            self.shorten_fattest(pool, victims);
        }
    }

    /// The next packet of a tin, in the order of its flows' deficits. What CoDel drops goes to `victims`.
    pub fn pop(
        &mut self,
        pool: &mut Pool,
        tin: usize,
        now: Time,
        params: &codel::Params,
        victims: &mut Vec<u32>,
    ) -> Option<u32> {
        loop {
            let from_new = !self.tins[tin].new.is_empty();
            let lists = &mut self.tins[tin];
            let index =
                if from_new { lists.new.front() } else { lists.old.front() }.map(|&index| usize::from(index))?;
            if self.flows[index].deficit <= 0 {
                self.flows[index].deficit += self.quantum;
                lists.leave(from_new);
                lists.old.push_back(index as u16);
                continue;
            }
            let mut codel = self.flows[index].codel;
            let mut line = FlowLine { table: self, pool, index, victims };
            let found = codel.dequeue(now, params, &mut line);
            self.flows[index].codel = codel;
            let Some(id) = found else {
                let lists = &mut self.tins[tin];
                lists.leave(from_new);
                // An emptied new flow passes through the old ones once, so that it cannot starve them (4.2).
                if from_new && !lists.old.is_empty() {
                    lists.old.push_back(index as u16);
                } else {
                    self.flows[index].tin = NOBODY;
                }
                continue;
            };
            self.flows[index].deficit -= i64::from(pool.get(id).len);
            return Some(id);
        }
    }

    /// Packets and bytes that wait for a tin.
    pub fn backlog(&self, tin: usize) -> (usize, u64) {
        (self.tins[tin].packets, self.tins[tin].bytes)
    }

    /// The oldest packet that waits for a tin.
    pub fn oldest(&self, pool: &Pool, tin: usize) -> Option<u32> {
        self.oldest_of(pool, tin, |_| true)
    }

    /// The oldest of the packets at the heads of a tin's flows that `counts` says yes to.
    pub fn oldest_of(&self, pool: &Pool, tin: usize, counts: impl Fn(u32) -> bool) -> Option<u32> {
        let lists = self.tins[tin].new.iter().chain(&self.tins[tin].old);
        let heads = lists.filter_map(|&index| self.flows[usize::from(index)].list.front());
        heads.filter(|id| counts(*id)).min_by_key(|&id| pool.get(id).order)
    }

    /// Packets that found their bucket held by another tin.
    #[cfg(test)]
    pub fn collisions(&self) -> u64 {
        self.collisions
    }

    /// Drops from the head of the flow with the most bytes: half of it, at most a batch, at least one packet.
    fn shorten_fattest(&mut self, pool: &mut Pool, victims: &mut Vec<u32>) {
        let mut fattest = (0, 0);
        for (word, bits) in self.busy.iter().enumerate() {
            let mut bits = *bits;
            while bits != 0 {
                let index = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let bytes = self.flows[index].list.bytes();
                if bytes > fattest.0 {
                    fattest = (bytes, index);
                }
            }
        }
        let index = fattest.1;
        let batch = (self.flows[index].list.len() / 2).clamp(1, BATCH);
        for _ in 0..batch {
            let Some(id) = self.take(pool, index) else { break };
            victims.push(id);
        }
    }

    /// Takes a flow's head off.
    fn take(&mut self, pool: &mut Pool, index: usize) -> Option<u32> {
        let flow = &mut self.flows[index];
        let id = flow.list.pop(pool)?;
        let len = pool.get(id).len;
        let tin = &mut self.tins[flow.tin as usize];
        tin.packets -= 1;
        tin.bytes -= u64::from(len);
        self.packets -= 1;
        self.memory -= truesize(len);
        if self.flows[index].list.len() == 0 {
            self.busy[index / 64] &= !(1 << (index % 64));
        }
        Some(id)
    }
}

impl Tin {
    /// Takes the first flow off its list.
    fn leave(&mut self, from_new: bool) {
        if from_new {
            self.new.pop_front()
        } else {
            self.old.pop_front()
        };
    }
}

/// One flow as CoDel sees it.
struct FlowLine<'a> {
    table: &'a mut Table,
    pool: &'a mut Pool,
    index: usize,
    victims: &'a mut Vec<u32>,
}

impl codel::Line for FlowLine<'_> {
    fn take(&mut self) -> Option<(u32, Time)> {
        let id = self.table.take(self.pool, self.index)?;
        Some((id, self.pool.get(id).queued_at))
    }

    fn rest(&self) -> u64 {
        self.table.flows[self.index].list.bytes()
    }

    fn mark(&mut self, id: u32) -> bool {
        let meta = self.pool.get_mut(id);
        let able = meta.ecn != Ecn::NotEct;
        if able {
            meta.ecn = Ecn::Ce;
        }
        able
    }

    fn drop(&mut self, id: u32) {
        self.victims.push(id);
    }
}

/// Memory that a packet occupies while it waits (`skb->truesize`): its buffer, a power of two with room for headers and
/// `skb_shared_info`, and the `sk_buff` itself.
fn truesize(len: u32) -> u64 {
    const HEADROOM_AND_INFO: u32 = 14 + 64 + 320;
    const SK_BUFF: u64 = 256;
    u64::from((len + HEADROOM_AND_INFO).next_power_of_two().max(512)) + SK_BUFF
}

#[cfg(test)]
mod tests {
    use super::super::pool::Meta;
    use super::*;
    use crate::AccessClass;
    use lasthop_units::Span;

    /// RFC 8290, section 4.2: else a flow with a packet now and then would be new each time, and starve the old ones.
    #[test]
    fn a_new_flow_that_is_empty_takes_its_turn_behind_old_ones() {
        let (bulk, sparse) = (7, 9);
        let mut table = Table::new(16, 1, 1000, u64::MAX, 1500);
        let (mut pool, mut victims) = (Pool::new(), Vec::new());
        let params =
            codel::Params { target: Span::from_millis(5), interval: Span::from_millis(100), ecn: false, floor: 0 };
        let mut push = |table: &mut Table, pool: &mut Pool, flow: u32, len: u32| {
            let meta = Meta::new(0, Time::ZERO, len, flow, 0, 1, AccessClass::BestEffort, Ecn::NotEct);
            let id = pool.insert(meta);
            table.push(pool, 0, id, &mut victims);
        };
        let pop = |table: &mut Table, pool: &mut Pool| {
            let id = table.pop(pool, 0, Time::ZERO, &params, &mut Vec::new()).expect("something waits");
            pool.get(id).flow_hash
        };
        (0..10).for_each(|_| push(&mut table, &mut pool, bulk, 500));
        // Three use up its quantum; with the fourth it is an old flow.
        (0..4).for_each(|_| assert_eq!(pop(&mut table, &mut pool), bulk));
        push(&mut table, &mut pool, sparse, 100);
        assert_eq!(pop(&mut table, &mut pool), sparse);
        assert_eq!(pop(&mut table, &mut pool), bulk);
        // It is in the list of old flows still.
        push(&mut table, &mut pool, sparse, 100);
        assert_eq!(pop(&mut table, &mut pool), bulk);
    }
}
