//! Many flows, and a bound on how many.

use super::Flow;
use lasthop_signals::{FlowId, FlowReport, Node};
use lasthop_units::{Bytes, Time};
use lasthop_wire::FlowKey;
use lasthop_wire::tcp::{Flags, TcpHeader};
use std::collections::BTreeMap;

/// The flows of one hop: what an eBPF map is to the agent, for worlds without one.
///
/// A flow enters with its first SYN and gets the next number. It leaves when its connection is over, when another
/// connection takes its addresses and ports, or when the table is full and it has been silent longest.
#[derive(Clone, Debug)]
pub struct Rewriter {
    /// By five-tuple of the downlink direction.
    flows: BTreeMap<FlowKey, Entry>,
    keys: BTreeMap<FlowId, FlowKey>,
    capacity: usize,
    next_id: u32,
    /// Counts packets: the order of last use, finer than time.
    uses: u64,
    gone: Vec<FlowId>,
}

#[derive(Clone, Debug)]
struct Entry {
    id: FlowId,
    station: Node,
    used: u64,
    flow: Flow,
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Down,
    Up,
}

impl Rewriter {
    /// A table of at most `capacity` flows (at least one).
    pub fn new(capacity: usize) -> Rewriter {
        Rewriter {
            flows: BTreeMap::new(),
            keys: BTreeMap::new(),
            capacity: capacity.max(1),
            next_id: 0,
            uses: 0,
            gone: Vec::new(),
        }
    }

    /// A segment towards `station` passes; `key` is its own five-tuple.
    pub fn on_downlink(&mut self, now: Time, key: FlowKey, station: Node, header: &TcpHeader) {
        if let Some(entry) = self.entry(Direction::Down, key, station, header) {
            let before = entry.flow.born();
            entry.flow.on_downlink(now, header);
            self.after(key, before);
        }
    }

    /// A segment from `station` passes; `key` is its own five-tuple. The window field to write into it, if it must
    /// change.
    #[must_use = "the segment must be rewritten, or the flow's state is wrong about what the sender has seen"]
    pub fn on_uplink(&mut self, now: Time, key: FlowKey, station: Node, header: &TcpHeader) -> Option<u16> {
        let key = key.reversed();
        let entry = self.entry(Direction::Up, key, station, header)?;
        let before = entry.flow.born();
        let window = entry.flow.on_uplink(now, header);
        self.after(key, before);
        window
    }

    /// Sets a flow's target (see [`Flow::set_target`]); false if the flow has gone.
    pub fn set_target(&mut self, id: FlowId, target: Option<Bytes>) -> bool {
        let entry = self.keys.get(&id).and_then(|key| self.flows.get_mut(key));
        entry.map(|entry| entry.flow.set_target(target)).is_some()
    }

    /// Reports every flow that can be managed, in the order of their numbers.
    pub fn report(&self, now: Time, mut each: impl FnMut(FlowReport)) {
        for entry in self.keys.values().filter_map(|key| self.flows.get(key)) {
            if entry.flow.is_manageable() {
                each(entry.flow.report(now, entry.id, entry.station));
            }
        }
    }

    /// The flows that have gone since this was last asked.
    pub fn take_gone(&mut self) -> Vec<FlowId> {
        std::mem::take(&mut self.gone)
    }

    /// The number of the flow with this five-tuple in its downlink direction.
    pub fn id(&self, key: FlowKey) -> Option<FlowId> {
        self.flows.get(&key).map(|entry| entry.id)
    }

    /// The five-tuple of a flow's downlink direction.
    pub fn key(&self, id: FlowId) -> Option<FlowKey> {
        self.keys.get(&id).copied()
    }

    /// A flow's state.
    pub fn flow(&self, id: FlowId) -> Option<&Flow> {
        Some(&self.flows.get(self.keys.get(&id)?)?.flow)
    }

    /// The entry of a flow, made if this is its first SYN.
    fn entry(&mut self, towards: Direction, key: FlowKey, station: Node, header: &TcpHeader) -> Option<&mut Entry> {
        self.uses += 1;
        let opens = header.flags.contains(Flags::SYN) && !header.flags.intersects(Flags::ACK | Flags::RST);
        if opens && !self.flows.contains_key(&key) {
            if self.flows.len() >= self.capacity {
                self.evict();
            }
            let id = self.number(key);
            self.flows.insert(key, Entry { id, station, used: self.uses, flow: Flow::default() });
        }
        let entry = self.flows.get_mut(&key)?;
        entry.used = self.uses;
        if towards == Direction::Down {
            // The flow follows its station to another access point's port.
            entry.station = station;
        }
        Some(entry)
    }

    /// Notes what a packet has done to a flow: ended it, or put another connection in its place.
    fn after(&mut self, key: FlowKey, born_before: Time) {
        let Some(entry) = self.flows.get(&key) else { return };
        let (id, flow) = (entry.id, entry.flow);
        if flow.is_over() {
            self.flows.remove(&key);
            self.forget(id);
        } else if born_before != Time::ZERO && flow.born() != born_before {
            self.forget(id);
            let id = self.number(key);
            if let Some(entry) = self.flows.get_mut(&key) {
                entry.id = id;
            }
        }
    }

    /// Removes the flow that has been silent longest. Linear, but only a SYN into a full table causes it.
    fn evict(&mut self) {
        let oldest = self.flows.iter().min_by_key(|(_, entry)| entry.used).map(|(key, entry)| (*key, entry.id));
        if let Some((key, id)) = oldest {
            self.flows.remove(&key);
            self.forget(id);
        }
    }

    fn number(&mut self, key: FlowKey) -> FlowId {
        let id = FlowId(self.next_id);
        self.next_id = self.next_id.wrapping_add(1);
        self.keys.insert(id, key);
        id
    }

    fn forget(&mut self, id: FlowId) {
        self.keys.remove(&id);
        self.gone.push(id);
    }
}
