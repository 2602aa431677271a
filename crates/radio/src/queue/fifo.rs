//! One queue with one packet limit, in order of arrival.
//!
//! A frame serves the receiver of the oldest packet and takes that receiver's packets from anywhere in the queue. So
//! one list per receiver and the arrival number of each head are enough: a turn costs one look per receiver, however
//! many packets wait.

use super::pool::{List, Pool};

#[derive(Clone, Debug)]
pub(crate) struct Fifo {
    lists: Vec<List>,
    limit: usize,
    /// Packets waiting, all receivers together.
    waiting: usize,
}

impl Fifo {
    pub fn new(limit: usize, slots: usize) -> Fifo {
        Fifo { lists: vec![List::new(); slots], limit, waiting: 0 }
    }

    /// Takes the packet, unless the limit is reached.
    #[inline]
    pub fn push(&mut self, pool: &mut Pool, slot: usize, id: u32, in_flight: usize) -> bool {
        if self.waiting + in_flight >= self.limit {
            return false;
        }
        self.lists[slot].push(pool, id);
        self.waiting += 1;
        true
    }

    /// The receiver with the oldest packet, those to be sent again included.
    #[inline]
    pub fn select(&self, resend: &[u64]) -> Option<usize> {
        let oldest = |slot: &usize| self.lists[*slot].order().min(resend[*slot]);
        let slot = (0..self.lists.len()).min_by_key(oldest)?;
        (oldest(&slot) != u64::MAX).then_some(slot)
    }

    #[inline]
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
