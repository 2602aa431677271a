//! The world's side of the link between where edge proxies stand and the access points, where a scenario has one: without it both
//! are one place.

use crate::agenda::Component;
use crate::cargo::{Cargo, Tunnel};
use crate::world::{BACKHAUL, CHANGER, GATEWAY, SERVER, World, collect};
use lasthop_radio::wired::Wire;
use lasthop_radio::{Dest, Hop, Packet};
use lasthop_scenario::{Backhaul as Plan, Scenario};
use lasthop_signals::Node;
use lasthop_units::{Rate, Span, Time};

/// The link. On it the edge is node `SERVER`, and `GATEWAY` stands for all access points.
pub struct Backhaul {
    link: Wire<Cargo>,
    /// Rates to come, the next one last.
    changes: Vec<(Time, Rate)>,
}

impl Backhaul {
    /// The link of a scenario at its beginning.
    pub fn new(plan: &Plan) -> Backhaul {
        let changes = plan.changes.iter().rev().copied().collect();
        Backhaul { link: Wire::new(SERVER, GATEWAY, plan.link, plan.link), changes }
    }

    /// Packets that wait for it at the edge, as of its last event.
    pub fn backlog(&self) -> usize {
        self.link.backlog(SERVER)
    }

    /// When its rate changes next.
    pub(crate) fn next_change(&self) -> Option<Time> {
        self.changes.last().map(|(at, _)| *at)
    }
}

impl World {
    /// One of the backhaul's components is due.
    pub(crate) fn wake_backhaul(&mut self, component: Component) {
        let Some(backhaul) = &mut self.backhaul else { return };
        let out = &mut collect(BACKHAUL, &self.access_points, &mut self.effects);
        match component {
            CHANGER => {
                if let Some((_, rate)) = backhaul.changes.pop() {
                    backhaul.link.set_rate(self.now, rate, out);
                }
            }
            _ => backhaul.link.advance(self.now, out),
        }
        self.agenda.set(BACKHAUL, backhaul.link.next_event());
        self.agenda.set(CHANGER, backhaul.next_change());
    }

    /// A packet for `station` leaves the edge.
    #[inline(always)]
    pub(crate) fn send_down(&mut self, station: Node, packet: Packet<Cargo>) {
        if self.backhaul.is_some() {
            return self.send_backhaul(Packet { src: SERVER, dst: Dest::Node(GATEWAY), ..packet });
        }
        self.send_hop(Packet { src: self.access_points.of(station), dst: Dest::Node(station), ..packet });
    }

    /// A packet of a station leaves its access point.
    #[inline(always)]
    pub(crate) fn send_up_to_edge(&mut self, packet: Packet<Cargo>) {
        if self.backhaul.is_some() {
            return self.send_backhaul(Packet { src: GATEWAY, dst: Dest::Node(SERVER), ..packet });
        }
        self.at_edge(packet);
    }

    fn send_backhaul(&mut self, packet: Packet<Cargo>) {
        let Some(backhaul) = &mut self.backhaul else { return };
        backhaul.link.enqueue(self.now, packet, &mut collect(BACKHAUL, &self.access_points, &mut self.effects));
        self.agenda.set(BACKHAUL, backhaul.link.next_event());
    }

    /// A packet has crossed the backhaul.
    pub(crate) fn over_backhaul(&mut self, to: Node, packet: Packet<Cargo>) {
        if to == SERVER {
            return self.at_edge(packet);
        }
        let station = self.station_of(&packet.payload);
        self.send_hop(Packet { src: self.access_points.of(station), dst: Dest::Node(station), ..packet });
    }

    /// A packet of a station has come to where its proxy may stand, and the wire begins.
    fn at_edge(&mut self, packet: Packet<Cargo>) {
        let station = self.station_of(&packet.payload);
        match packet.payload {
            Cargo::Tunnel(tunnel) => self.at_proxy(station, tunnel),
            _ => self.send_wire(Packet { src: GATEWAY, dst: Dest::Node(SERVER), ..packet }),
        }
    }

    /// The station that a packet is for, or comes from.
    fn station_of(&self, cargo: &Cargo) -> Node {
        match cargo {
            Cargo::Tcp { connection, .. } | Cargo::Tunnel(Tunnel::Open { connection }) => self.pairs[*connection].node,
            Cargo::Tunnel(Tunnel::Data { connection, .. }) => self.pairs[*connection as usize].node,
            Cargo::Tunnel(Tunnel::Ack { station, .. }) => *station,
            Cargo::Tunnel(Tunnel::Feedback(feedback)) => feedback.station,
            Cargo::Probe { source, .. } | Cargo::Udp { source, .. } => {
                Scenario::station_node(self.sources[*source].stream.station)
            }
        }
    }

    /// The backhaul takes another route, which is longer by `by`, each way. Without one nothing happens.
    pub fn lengthen_backhaul(&mut self, by: Span) {
        let Some(backhaul) = &mut self.backhaul else { return };
        backhaul.link.lengthen(self.now, by, &mut collect(BACKHAUL, &self.access_points, &mut self.effects));
        self.agenda.set(BACKHAUL, backhaul.link.next_event());
    }

    /// The backhaul, if there is one.
    pub fn backhaul(&self) -> Option<&Backhaul> {
        self.backhaul.as_ref()
    }
}
