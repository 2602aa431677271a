//! What waits for opportunities: one queue in order of arrival, under one of the disciplines that `mm-link` has.

use crate::queue::{Codel, CodelParams, Limit, Line, LinkKind, Pie, Verdict};
use crate::{Drop, Ecn, Outbox, Packet};
use lasthop_units::{Bytes, Stream, Time};
use std::collections::VecDeque;

/// What stands before a packet on a TUN interface, and counts.
pub(super) const HEADER: Bytes = Bytes::new(4);

/// A packet and when it came.
#[derive(Clone, Debug)]
pub(super) struct Waiting<P> {
    pub came: Time,
    pub packet: Packet<P>,
}

impl<P> Waiting<P> {
    /// What it takes of opportunities.
    pub fn cost(&self) -> Bytes {
        self.packet.len + HEADER
    }
}

/// A queue at work.
#[derive(Clone, Debug)]
pub(super) struct Queue<P> {
    waiting: VecDeque<Waiting<P>>,
    /// Network-layer bytes of what waits.
    bytes: Bytes,
    /// As a limit counts them.
    cost: Bytes,
    discipline: LinkKind,
    codel: Codel,
    pie: Option<Pie>,
}

impl<P> Queue<P> {
    pub fn new(discipline: LinkKind, chance: Stream) -> Queue<P> {
        let pie = match discipline {
            LinkKind::Pie(params) => Some(Pie::new(params, chance)),
            _ => None,
        };
        let codel = Codel::default();
        Queue { waiting: VecDeque::new(), bytes: Bytes::ZERO, cost: Bytes::ZERO, discipline, codel, pie }
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    pub fn oldest(&self) -> Option<Time> {
        self.waiting.front().map(|waiting| waiting.came)
    }

    /// Takes a packet, or drops it.
    pub fn push(&mut self, mut coming: Waiting<P>, out: &mut impl Outbox<P>) {
        let (now, oldest) = (coming.came, self.oldest());
        let why = match self.discipline {
            LinkKind::Infinite => None,
            LinkKind::DropTail(Limit::Packets(most)) | LinkKind::Codel { packets: most, .. } => {
                (self.waiting.len() >= most).then_some(Drop::QueueFull)
            }
            LinkKind::DropTail(Limit::Bytes(most)) => (self.cost + coming.cost() > most).then_some(Drop::QueueFull),
            LinkKind::Pie(params) => {
                let pie = self.pie.as_mut().expect("made with it");
                pie.catch_up(now, oldest);
                match pie.arrives(self.bytes, self.waiting.len(), coming.packet.ecn != Ecn::NotEct) {
                    Verdict::Take => None,
                    Verdict::Mark => {
                        coming.packet.ecn = Ecn::Ce;
                        None
                    }
                    Verdict::Drop if self.waiting.len() >= params.packets => Some(Drop::QueueFull),
                    Verdict::Drop => Some(Drop::QueueManagement),
                }
            }
        };
        match why {
            Some(why) => out.dropped(now, coming.packet, why),
            None => {
                self.bytes += coming.packet.len;
                self.cost += coming.cost();
                self.waiting.push_back(coming);
            }
        }
    }

    /// The next packet to be served.
    pub fn pop(&mut self, now: Time, out: &mut impl Outbox<P>) -> Option<Waiting<P>> {
        let oldest = self.oldest();
        match self.discipline {
            LinkKind::Codel { target, interval, ecn, .. } => {
                let params = CodelParams { target, interval, floor: 1_500, ecn };
                let mut codel = std::mem::take(&mut self.codel);
                let mut head = Head { queue: self, taken: None, dropped: Vec::new() };
                let found = codel.dequeue(now, &params, &mut head);
                let Head { taken, dropped, .. } = head;
                self.codel = codel;
                dropped.into_iter().for_each(|gone| out.dropped(now, gone.packet, Drop::QueueManagement));
                found.and(taken)
            }
            _ => {
                if let Some(pie) = &mut self.pie {
                    pie.catch_up(now, oldest);
                }
                self.take()
            }
        }
    }

    fn take(&mut self) -> Option<Waiting<P>> {
        let waiting = self.waiting.pop_front()?;
        self.bytes -= waiting.packet.len;
        self.cost -= waiting.cost();
        Some(waiting)
    }
}

/// The queue as CoDel works on it: one packet at a time is off it.
struct Head<'a, P> {
    queue: &'a mut Queue<P>,
    taken: Option<Waiting<P>>,
    dropped: Vec<Waiting<P>>,
}

/// The name of the packet that is off the queue.
const TAKEN: u32 = 0;

impl<P> Line for Head<'_, P> {
    fn take(&mut self) -> Option<(u32, Time)> {
        self.taken = self.queue.take();
        self.taken.as_ref().map(|taken| (TAKEN, taken.came))
    }

    fn rest(&self) -> u64 {
        self.queue.bytes.get()
    }

    fn mark(&mut self, _id: u32) -> bool {
        let markable = self.taken.as_mut().filter(|taken| taken.packet.ecn != Ecn::NotEct);
        markable.map(|taken| taken.packet.ecn = Ecn::Ce).is_some()
    }

    fn drop(&mut self, _id: u32) {
        self.dropped.extend(self.taken.take());
    }
}
