//! What the last hop would carry to a station that asks for all it can get: the truth that estimates of capacity are held against.
//!
//! The world is copied and the copy floods the station's queue. What the copy delivers is what this world could have.

use crate::context::Context;
use crate::payload::{Address, Payload, packet};
use crate::programs::connection::Connection;
use crate::world::World;
use lasthop_laws::Why;
use lasthop_radio::plan::Observe;
use lasthop_radio::{AccessClass, Dest, Packet};
use lasthop_scenario::Scenario;
use lasthop_signals::{CellCapacity, Node};
use lasthop_units::{Bytes, Rate, Span};

/// Packets of the flood: more than the queue of a cell's station holds unless a file says otherwise.
const FLOOD: usize = 4096;
/// Length of each.
const LEN: Bytes = Bytes::new(1500);

/// What a station could have had, in octets of packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Could {
    /// What the hop would have carried. In a cell: what would have been decoded, whether what came before it was or not.
    pub carried: Rate,
    /// What would have come out of it. In a cell blocks that come again hold back those behind them.
    pub handed_up: Rate,
}

impl World {
    /// Octets of packets a second that the last hop would bring to `station` from `settle` on, for `over`, if its queue were full
    /// from now on. Everybody else does what they would have done.
    ///
    /// # Panics
    /// If `over` is zero, or the world has no such station.
    pub fn saturated(&self, station: Node, settle: Span, over: Span) -> Could {
        let mut fork = self.clone();
        let Context { now, last_hop, .. } = fork.context;
        // The flood goes no further than to the station, where no program takes it.
        let to = Address::nobody(fork.context.host_of(station));
        for _ in 0..FLOOD {
            let content = Payload::Udp { sent: now, packet: None };
            let packet = packet((Scenario::AP_HOST, to), LEN, AccessClass::BestEffort, 0, content);
            fork.context.enqueue(last_hop, Packet { src: Scenario::AP, dst: Dest::Node(station), ..packet });
        }
        fork.run_until(now + settle);
        let before = fork.has_had(station);
        fork.run_until(now + settle + over);
        let after = fork.has_had(station);
        let rate = |of: usize| Rate::of(after[of] - before[of], over).expect("a time that is not zero");
        Could { carried: rate(0), handed_up: rate(1) }
    }

    /// What has been carried to a station, and what has come out of the hop there.
    fn has_had(&self, station: Node) -> [Bytes; 2] {
        let out = self.carried(station);
        [self.last_hop().decoded(station).unwrap_or(out), out]
    }

    fn last_hop(&self) -> &dyn Observe {
        self.context.net.links[self.context.last_hop].model.observe()
    }

    /// The connection that tells its sender of a station's cell, if one does, and what it tells.
    fn telling(&self, station: Node) -> Option<(&Connection, CellCapacity)> {
        let host = self.context.host_of(station);
        let connections = &self.context.sockets.connections;
        connections.iter().find_map(|connection| Some((connection, connection.told_from(host)?.latest()?)))
    }

    /// What a station's connection tells its sender of the cell, if one does.
    pub fn told(&self, station: Node) -> Option<CellCapacity> {
        self.telling(station).map(|(_, told)| told)
    }

    /// The least round trip that the sender of that connection has seen lately, if it has seen one.
    pub fn least_round_trip(&self, station: Node) -> Option<Span> {
        self.telling(station)?.0.sender().stats().min_rtt
    }

    /// Octets that wait for a station at the last hop's other end, where its packets have a queue of their own: in a cell.
    pub fn waits(&self, station: Node) -> Bytes {
        self.last_hop().octets_waiting(station)
    }

    /// How many carriers of a cell a station has; zero elsewhere.
    pub fn active_carriers(&mut self, station: Node) -> usize {
        self.context.net.links[self.context.last_hop].model.observe_mut().active_carriers(station)
    }

    /// The rate at which the sender of that connection sends, by its law, if that says one.
    pub fn pace(&self, station: Node) -> Option<Rate> {
        self.telling(station)?.0.sender().decision().pacing
    }

    /// What the sender of that connection does, by its law.
    pub fn does(&self, station: Node) -> Option<Why> {
        self.telling(station).map(|(connection, _)| connection.sender().decision().why)
    }
}
