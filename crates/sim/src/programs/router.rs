//! Routing by OLSR in a simulated mesh: its packets cross the hop as group frames, in contention with all else, and what they tell
//! becomes the nodes' forwarding tables.
//!
//! Deviations: which hosts stand behind which node of the mesh is known (HNA messages would tell it); each of them is reached through that node.

use crate::agenda::Component;
use crate::context::Context;
use crate::payload::{Payload, ProgramId};
use crate::program::{Heard, Program};
use lasthop_routing::olsr::{Olsr, Params, Route, Routes};
use lasthop_scenario::graph::{Forwarding, Graph, Step};
use lasthop_signals::{HostId, Node};
use lasthop_units::{Seed, Time};
use std::net::Ipv4Addr;

/// One node of a mesh.
#[derive(Clone)]
pub(crate) struct Router {
    node: Node,
    host: HostId,
    olsr: Olsr,
    /// The routes that its forwarding table was made of.
    routes: Routes,
    /// For each host how it is reached, by its number; `None` for itself.
    ways: Vec<Option<Way>>,
    timer: Component,
}

/// How a host is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// It is this node of the mesh, or stands behind it.
    Mesh(Node),
    /// Over a cable of the node's own.
    Cable(Step),
}

/// An OLSR packet on its way.
#[derive(Clone, Debug)]
struct Octets {
    from: Ipv4Addr,
    bytes: Vec<u8>,
}

/// The address of a node of the hop.
fn address(node: Node) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 1)) + u32::from(node.0))
}

/// The node of an address, if it is one.
fn node_of(address: Ipv4Addr) -> Option<Node> {
    let number = u32::from(address).checked_sub(u32::from(Ipv4Addr::new(10, 0, 0, 1)))?;
    u16::try_from(number).ok().map(Node)
}

/// A router at each node of the last hop `link` of a mesh. `tables` are those of the true topology.
pub(crate) fn routers(graph: &Graph, link: usize, tables: &[Forwarding], seed: Seed) -> Vec<Router> {
    let ends = &graph.links[link].ends;
    let node_at = |host: HostId| ends.iter().position(|end| *end == Some(host)).map(|node| Node(node as u16));
    let over_air = |step: &Step| usize::from(step.link) == link;
    // Through the mesh along the true topology, to where it is left.
    let exit = |from: HostId, to: HostId| {
        let mut at = from;
        for _ in 0..ends.len() {
            match tables[at.index()].next(to).filter(over_air) {
                Some(step) => at = ends[step.to.index()]?,
                None => return node_at(at),
            }
        }
        None
    };
    let way = |host: HostId, to: HostId| match (node_at(to), tables[host.index()].next(to)) {
        _ if host == to => None,
        (Some(node), _) => Some(Way::Mesh(node)),
        (None, Some(step)) if !over_air(&step) => Some(Way::Cable(step)),
        (None, _) => exit(host, to).map(Way::Mesh),
    };
    let hosts: Vec<HostId> = (0..graph.hosts.len()).map(|host| HostId(host as u16)).collect();
    let router = |(node, host): (usize, HostId)| {
        let node = Node(node as u16);
        let stream = seed.stream(&format!("node{}/olsr", node.0));
        let olsr =
            Olsr::new(address(node), Params::default(), stream, Time::ZERO).expect("the RFC's parameters are right");
        let ways = hosts.iter().map(|to| way(host, *to)).collect();
        Router { node, host, olsr, routes: Routes::new(), ways, timer: Component(0) }
    };
    ends.iter().enumerate().filter_map(|(node, end)| Some(router((node, (*end)?)))).collect()
}

impl Router {
    /// The forwarding table that follows from the routes.
    fn table(&self, link: usize) -> Forwarding {
        let step =
            |route: &Route| Some(Step { link: u16::try_from(link).ok()?, from: self.node, to: node_of(route.next)? });
        let entry = |way: &Option<Way>| match (*way)? {
            Way::Cable(step) => Some(step),
            Way::Mesh(node) => self.routes.get(&address(node)).and_then(step),
        };
        Forwarding::of(self.ways.iter().map(entry).collect())
    }
}

impl Program for Router {
    /// Takes from its node what that does not know yet.
    fn begin(&mut self, context: &mut Context, own: ProgramId) {
        context.sockets.routes_are_found = true;
        context.net.tables[self.host.index()] = self.table(context.last_hop);
        context.listen(own, self.node);
        self.timer = context.timer(own, 0);
        context.agenda.set(self.timer, Some(self.olsr.next_timeout()));
    }

    /// It is due, or has heard something.
    fn wake(&mut self, context: &mut Context, _: u32) {
        while let Some(bytes) = self.olsr.poll_transmit(context.now) {
            let (len, from) = (bytes.len(), address(self.node));
            // In the class of the agent's packets (CS6).
            context.broadcast(self.node, len, u32::from(self.node.0), Payload::own(Octets { from, bytes }));
        }
        if self.routes != *self.olsr.routes() {
            self.routes.clone_from(self.olsr.routes());
            context.net.tables[self.host.index()] = self.table(context.last_hop);
        }
        context.agenda.set(self.timer, Some(self.olsr.next_timeout()));
    }

    /// An OLSR packet of another node.
    fn overheard(&mut self, context: &mut Context, at: Time, _: Node, heard: &Heard<'_>) {
        let Heard::Packet(packet) = heard else { return };
        let Some(octets) = packet.payload.content.message::<Octets>() else { return };
        let read = self.olsr.on_packet(at, octets.from, &octets.bytes);
        debug_assert!(read.is_ok(), "nodes send packets: {read:?}");
        // What follows from it follows at its own event: deliveries are not a place to send from.
        context.agenda.set(self.timer, Some(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{World, run::build};
    use lasthop_scenario::Scenario;
    use lasthop_units::Span;

    /// A grid of three by three nodes, 100 m apart, each of which hears those beside it; the gateway in a corner, and a host behind
    /// a cable at the opposite one.
    fn grid() -> Scenario {
        let stations: String = (1..9)
            .map(|n| {
                let (x, y) = (100 * (n % 3), 100 * (n / 3));
                format!("[[station]]\nname = \"n{n}\"\nrate = \"24 Mbit/s\"\nposition = [\"{x} m\", \"{y} m\"]\n")
            })
            .collect();
        let text = format!(
            "title = \"Grid\"\nduration = \"60 s\"\nwarm-up = \"5 s\"\n[wire]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n\
             [[host]]\nname = \"far\"\n[[link]]\nbetween = [\"n8\", \"far\"]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n\
             [hop.wifi]\nstandard = \"802.11a\"\nqueue = {{ kind = \"fifo\", limit = \"100 packets\" }}\n\
             mesh = {{ range = \"110 m\", routing = \"olsr\" }}\n{stations}\
             [[traffic]]\nkind = \"bulk\"\nfrom = \"n8\"\nto = \"server\"\nstart = \"50 s\"\n[laws.cubic]\nsender = \"cubic\"\n"
        );
        Scenario::parse("grid", &text, std::path::Path::new(".")).unwrap_or_else(|error| panic!("{}", error.plain()))
    }

    /// Hosts that a packet passes from one to another; `None` if it does not arrive.
    fn hops(graph: &Graph, tables: &[Forwarding], from: HostId, to: HostId) -> Option<usize> {
        let mut at = from;
        for passed in 0..graph.hosts.len() {
            if at == to {
                return Some(passed);
            }
            let step = tables[at.index()].next(to)?;
            at = graph.links[usize::from(step.link)].ends[step.to.index()]?;
        }
        None
    }

    #[test]
    fn tables_become_those_of_the_true_topology() {
        let scenario = grid();
        let (graph, law) = (scenario.graph(), &scenario.laws()[0]);
        let given = graph.forwarding();
        let hosts: Vec<HostId> = (0..graph.hosts.len()).map(|host| HostId(host as u16)).collect();
        for seed in [1, 2] {
            let mut world = build(&scenario, law, Seed(seed), false).expect("it can be built");
            let ways = |world: &World| {
                let pairs = hosts.iter().flat_map(|from| hosts.iter().map(move |to| (*from, *to)));
                pairs.map(|(from, to)| hops(&graph, &world.context.net.tables, from, to)).collect::<Vec<_>>()
            };
            let [n4, n8] = ["n4", "n8"].map(|name| scenario.host(name).expect("a host"));
            assert_eq!(hops(&graph, &world.context.net.tables, n4, n8), None, "nobody knows a way at first");
            let right: Vec<_> =
                hosts.iter().flat_map(|from| hosts.iter().map(|to| hops(&graph, &given, *from, *to))).collect();
            assert!(right.iter().all(Option::is_some));
            for s in 30..50 {
                world.run_until(Time::ZERO + Span::from_secs(s));
                assert_eq!(ways(&world), right, "seed {seed}, after {s} s");
            }
        }
    }
}
