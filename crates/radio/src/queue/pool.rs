//! Where waiting packets live: one pool a hop, reused slots, and lists threaded through it, so that queueing a packet
//! allocates nothing once the pool has grown to the hop's backlog.

use crate::{AccessClass, Ecn};
use lasthop_units::Time;

/// "No packet": the end of a list.
pub(crate) const NIL: u32 = u32::MAX;

/// What queues and the MAC need to know of a packet. Its payload lies elsewhere, under the same number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meta {
    /// Number of its arrival at the hop.
    pub order: u64,
    pub queued_at: Time,
    pub len: u32,
    pub flow_hash: u32,
    pub src: u16,
    /// Receiver, or `u16::MAX` for a group packet.
    pub dst: u16,
    pub class: AccessClass,
    pub ecn: Ecn,
    /// Airtime that the queue expects it to take, in units of 4 us, once it was handed to the hardware.
    pub airtime: u16,
    /// The receiver's slot, where a queue must find it again.
    pub slot: u16,
    /// The next packet of the list it is in, or of the free ones.
    next: u32,
}

impl Meta {
    /// A packet in no list.
    #[allow(clippy::too_many_arguments)]
    #[inline]
    pub fn new(
        order: u64,
        queued_at: Time,
        len: u32,
        flow_hash: u32,
        src: u16,
        dst: u16,
        class: AccessClass,
        ecn: Ecn,
    ) -> Meta {
        Meta { order, queued_at, len, flow_hash, src, dst, class, ecn, airtime: 0, slot: 0, next: NIL }
    }
}

/// Every packet that is inside a hop.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    metas: Vec<Meta>,
    free: u32,
}

impl Pool {
    pub fn new() -> Pool {
        Pool { metas: Vec::new(), free: NIL }
    }

    /// Takes a packet in and numbers it. Numbers are dense and reused.
    #[inline]
    pub fn insert(&mut self, meta: Meta) -> u32 {
        if self.free == NIL {
            let id = u32::try_from(self.metas.len()).expect("fewer than 2^32 packets in a hop");
            self.metas.push(meta);
            return id;
        }
        let id = self.free;
        let place = &mut self.metas[id as usize];
        self.free = place.next;
        *place = meta;
        id
    }

    /// Gives a number back. The packet must be in no list.
    #[inline]
    pub fn remove(&mut self, id: u32) {
        self.metas[id as usize].next = self.free;
        self.free = id;
    }

    #[inline]
    pub fn get(&self, id: u32) -> &Meta {
        &self.metas[id as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, id: u32) -> &mut Meta {
        &mut self.metas[id as usize]
    }
}

/// A first-in first-out list of packets of one pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    head: u32,
    tail: u32,
    len: u32,
    bytes: u64,
    /// `order` of the head, or `u64::MAX`: comparing lists needs no look into the pool.
    order: u64,
}

impl List {
    pub const fn new() -> List {
        List { head: NIL, tail: NIL, len: 0, bytes: 0, order: u64::MAX }
    }

    #[inline]
    pub fn push(&mut self, pool: &mut Pool, id: u32) {
        let meta = pool.get_mut(id);
        meta.next = NIL;
        self.bytes += u64::from(meta.len);
        self.len += 1;
        if self.head == NIL {
            self.head = id;
            self.order = meta.order;
        } else {
            pool.get_mut(self.tail).next = id;
        }
        self.tail = id;
    }

    #[inline]
    pub fn pop(&mut self, pool: &mut Pool) -> Option<u32> {
        let id = self.front()?;
        let meta = pool.get(id);
        self.head = meta.next;
        self.len -= 1;
        self.bytes -= u64::from(meta.len);
        self.order = if self.head == NIL { u64::MAX } else { pool.get(self.head).order };
        Some(id)
    }

    #[inline]
    pub fn front(&self) -> Option<u32> {
        (self.head != NIL).then_some(self.head)
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The head's arrival number, `u64::MAX` if there is none.
    #[inline]
    pub fn order(&self) -> u64 {
        self.order
    }
}
