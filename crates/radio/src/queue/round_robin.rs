//! One queue per receiver, each with its own packet limit, served in turn, one frame each.

use super::pool::{List, Pool};

#[derive(Clone, Debug)]
pub(crate) struct RoundRobin {
    lists: Vec<List>,
    limit: usize,
    waiting: usize,
    /// The receiver that was served last.
    last: usize,
}

impl RoundRobin {
    pub fn new(limit: usize, slots: usize) -> RoundRobin {
        RoundRobin { lists: vec![List::new(); slots], limit, waiting: 0, last: 0 }
    }

    /// Takes the packet, unless its receiver's limit is reached.
    pub fn push(&mut self, pool: &mut Pool, slot: usize, id: u32, in_flight: usize) -> bool {
        if self.lists[slot].len() + in_flight >= self.limit {
            return false;
        }
        self.lists[slot].push(pool, id);
        self.waiting += 1;
        true
    }

    /// The next receiver after the last one that something waits for.
    pub fn select(&mut self, resend: &[u64]) -> Option<usize> {
        let slots = self.lists.len();
        let next = (1..=slots)
            .map(|step| (self.last + step) % slots)
            .find(|&slot| self.lists[slot].len() > 0 || resend[slot] != u64::MAX)?;
        self.last = next;
        Some(next)
    }

    pub fn pop(&mut self, pool: &mut Pool, slot: usize) -> Option<u32> {
        let id = self.lists[slot].pop(pool)?;
        self.waiting -= 1;
        Some(id)
    }

    pub fn list(&self, slot: usize) -> &List {
        &self.lists[slot]
    }

    pub fn waiting(&self) -> usize {
        self.waiting
    }
}
