//! What the last hop would carry to a station that asks for all it can get: the truth that estimates of capacity are held against.
//!
//! The world is copied and the copy floods the station's queue. What the copy delivers is what this world could have.

use crate::cargo::{Cargo, Datagram};
use crate::net::Net;
use crate::world::World;
use lasthop_laws::Why;
use lasthop_radio::{AccessClass, Dest, Ecn, Packet};
use lasthop_scenario::Scenario;
use lasthop_signals::{CellCapacity, MacAddress, Node, Notice};
use lasthop_units::{Bytes, Rate, Span};

/// Packets of the flood: more than the queue of a cell's station holds unless a file says otherwise.
const FLOOD: usize = 4096;
/// Length of each.
const LEN: Bytes = Bytes::new(1500);

impl World {
    /// Octets of packets a second that the last hop would bring to `station` from `settle` on, for `over`, if its queue were full
    /// from now on. Everybody else does what they would have done.
    ///
    /// # Panics
    /// If `over` is zero, or the world has no such station.
    pub fn saturated(&self, station: Node, settle: Span, over: Span) -> Rate {
        let mut fork = self.clone();
        let (now, host) = (fork.now, fork.host_of(station));
        for _ in 0..FLOOD {
            // A notice goes no further than to the station, which makes nothing of it.
            let notice = Notice {
                bssid: MacAddress([0; 6]),
                terminal: 0,
                sequence: 0,
                flows: 0,
                rate: Rate::ZERO,
                drains: false,
            };
            let payload = Datagram { cargo: Cargo::Notice(Box::new(notice)), from: Scenario::AP_HOST, to: host };
            let packet = Packet {
                len: LEN,
                src: Scenario::AP,
                dst: Dest::Node(station),
                class: AccessClass::BestEffort,
                flow_hash: 0,
                ecn: Ecn::NotEct,
                payload,
            };
            let next = fork.net.enqueue(fork.last_hop, now, packet, &mut fork.effects);
            fork.agenda.set(Net::component(fork.last_hop), next);
        }
        fork.run_until(now + settle);
        let before = fork.carried(station);
        fork.run_until(now + settle + over);
        Rate::of(fork.carried(station) - before, over).expect("a time that is not zero")
    }

    /// What a station's connection tells its sender of the cell, if one does.
    pub fn told(&self, station: Node) -> Option<CellCapacity> {
        let host = self.host_of(station);
        self.pairs.iter().find_map(|pair| pair.told_from(host))
    }

    /// What the sender of that connection does, by its law.
    pub fn does(&self, station: Node) -> Option<Why> {
        let host = self.host_of(station);
        let pair = self.pairs.iter().find(|pair| pair.told_from(host).is_some())?;
        Some(pair.sender().decision().why)
    }
}
