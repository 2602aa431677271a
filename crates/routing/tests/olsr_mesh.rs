//! OLSR nodes in meshes of discs: a node within reach hears, or loses a packet now and then. Routes are compared with
//! those that breadth-first search finds on the true topology.

use lasthop_routing::olsr::{Olsr, Params};
use lasthop_units::{Seed, Span, Stream, Time};
use lasthop_wire::olsr::{Packet, kind};
use rand::RngExt;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;

/// How long a packet is on its way.
const FLIGHT: Span = Span::from_millis(1);

fn address(node: usize) -> Ipv4Addr {
    Ipv4Addr::from(0x0a00_0001 + node as u32)
}

/// Which nodes hear which: symmetric.
type Reach = Vec<BTreeSet<usize>>;

/// A connected mesh of nodes placed at random in a square, each of which reaches as far as it takes for about `degree` neighbours.
fn discs(nodes: usize, degree: f64, stream: &mut Stream) -> Reach {
    loop {
        let places: Vec<(f64, f64)> = (0..nodes).map(|_| (stream.random(), stream.random())).collect();
        let reach_squared = degree / (nodes as f64 * std::f64::consts::PI);
        let hears = |a: usize, b: usize| {
            let (dx, dy) = (places[a].0 - places[b].0, places[a].1 - places[b].1);
            a != b && dx * dx + dy * dy <= reach_squared
        };
        let reach: Reach = (0..nodes).map(|a| (0..nodes).filter(|b| hears(a, *b)).collect()).collect();
        if hops(&reach, 0).len() == nodes - 1 {
            return reach;
        }
    }
}

/// Nodes in a row.
fn row(nodes: usize) -> Reach {
    (0..nodes).map(|n| (0..nodes).filter(|other| n.abs_diff(*other) == 1).collect()).collect()
}

/// Hops from a node to each that there is a way to.
fn hops(reach: &Reach, from: usize) -> BTreeMap<usize, u16> {
    let (mut hops, mut queue) = (BTreeMap::from([(from, 0)]), VecDeque::from([from]));
    while let Some(node) = queue.pop_front() {
        for next in &reach[node] {
            if !hops.contains_key(next) {
                hops.insert(*next, hops[&node] + 1);
                queue.push_back(*next);
            }
        }
    }
    hops.remove(&from);
    hops
}

struct Mesh {
    nodes: Vec<Option<Olsr>>,
    reach: Reach,
    loss: f64,
    losses: Stream,
    now: Time,
    /// Packets on their way: when they come, from which node, and to which.
    flying: BTreeMap<(Time, u64), (usize, usize, Vec<u8>)>,
    serial: u64,
    /// Transmissions of TCs since they were counted last, and TCs made.
    transmissions: BTreeMap<usize, u64>,
    made: u64,
}

impl Mesh {
    fn new(reach: Reach, loss: f64, params: Params, seed: u64) -> Mesh {
        let new = |node: usize| {
            let stream = Seed(seed).stream(&format!("olsr/{node}"));
            Olsr::new(address(node), params, stream, Time::ZERO).expect("parameters are right")
        };
        Mesh {
            nodes: (0..reach.len()).map(|node| Some(new(node))).collect(),
            reach,
            loss,
            losses: Seed(seed).stream("losses"),
            now: Time::ZERO,
            flying: BTreeMap::new(),
            serial: 0,
            transmissions: BTreeMap::new(),
            made: 0,
        }
    }

    fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let timeouts = self.nodes.iter().flatten().map(Olsr::next_timeout);
            let arrivals = self.flying.keys().next().map(|(at, _)| *at);
            let next = timeouts.chain(arrivals).min().unwrap_or(Time::MAX);
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            let mut woken: Vec<usize> = Vec::new();
            while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= next) {
                let (from, to, bytes) = entry.remove();
                if let Some(node) = &mut self.nodes[to] {
                    node.on_packet(next, address(from), &bytes).expect("nodes send packets");
                    woken.push(to);
                }
            }
            let due = |node: &Option<Olsr>| node.as_ref().is_some_and(|node| node.next_timeout() <= next);
            woken.extend((0..self.nodes.len()).filter(|node| due(&self.nodes[*node])));
            woken.sort_unstable();
            woken.dedup();
            woken.into_iter().for_each(|node| self.serve(node));
        }
    }

    /// What a node has to send flies to all in reach.
    fn serve(&mut self, from: usize) {
        while let Some(bytes) = self.nodes[from].as_mut().and_then(|node| node.poll_transmit(self.now)) {
            let packet = Packet::decode(&bytes).expect("nodes send packets");
            for message in packet.messages.iter().filter(|message| message.header.kind == kind::TC) {
                *self.transmissions.entry(from).or_default() += 1;
                self.made += u64::from(message.header.hops == 0);
            }
            for to in self.reach[from].clone() {
                if self.losses.random::<f64>() >= self.loss {
                    self.serial += 1;
                    self.flying.insert((self.now + FLIGHT, self.serial), (from, to, bytes.clone()));
                }
            }
        }
    }

    fn node(&self, node: usize) -> &Olsr {
        self.nodes[node].as_ref().expect("it lives")
    }

    fn kill(&mut self, node: usize) {
        self.nodes[node] = None;
        for reached in &mut self.reach {
            reached.remove(&node);
        }
        self.reach[node].clear();
    }

    /// Pairs of nodes with a route that is not of the right number of hops, is missing or should not be, of all pairs.
    fn wrong(&self) -> (usize, usize) {
        let (mut wrong, mut all) = (0, 0);
        for (number, node) in self.nodes.iter().enumerate().filter_map(|(number, node)| Some((number, node.as_ref()?)))
        {
            let right = hops(&self.reach, number);
            for other in (0..self.nodes.len()).filter(|other| *other != number) {
                let route = node.routes().get(&address(other));
                all += 1;
                wrong += usize::from(route.map(|route| route.hops) != right.get(&other).copied());
            }
        }
        (wrong, all)
    }

    /// Fails unless routes lead where they say: the next node is in reach and is one hop nearer.
    fn assert_routes_lead(&self) {
        for (number, node) in self.nodes.iter().enumerate().filter_map(|(number, node)| Some((number, node.as_ref()?)))
        {
            for (destination, route) in node.routes() {
                let next = (u32::from(route.next) - u32::from(address(0))) as usize;
                assert!(self.reach[number].contains(&next), "{number} to {destination}: {next} is in reach");
                let further = self.node(next).routes().get(destination).map_or(0, |route| route.hops);
                assert_eq!(further + 1, route.hops, "{number} to {destination} through {next}");
            }
        }
    }

    /// Fails unless every node's relays are neighbours that cover all strict two-hop neighbours, of the true topology.
    fn assert_relays_cover(&self) {
        for (number, reached) in self.reach.iter().enumerate() {
            let node = self.node(number);
            let neighbours: BTreeSet<Ipv4Addr> = reached.iter().map(|n| address(*n)).collect();
            assert_eq!(node.neighbours().keys().copied().collect::<BTreeSet<_>>(), neighbours);
            let far: BTreeSet<usize> = reached.iter().flat_map(|n| self.reach[*n].iter().copied()).collect();
            let far = far.into_iter().filter(|far| *far != number && !reached.contains(far));
            for far in far {
                let covers = |relay: &Ipv4Addr| {
                    let relay = (u32::from(*relay) - u32::from(address(0))) as usize;
                    reached.contains(&relay) && self.reach[relay].contains(&far)
                };
                assert!(node.relays().iter().any(covers), "{number}: {far} is covered");
            }
        }
    }
}

/// Patient enough that hardly ever as many HELLOs in a row are lost as end a link: a fifth of each is lost, 12 in a row of 10^8.
fn patient() -> Params {
    let params = Params::default();
    Params { neighbour_hold: params.hello_interval * 12, topology_hold: params.tc_interval * 12, ..params }
}

#[test]
fn without_losses_all_routes_are_shortest_and_relays_cover() {
    for (seed, nodes, degree) in [(1, 5, 3.0), (2, 10, 5.0), (3, 20, 7.0), (4, 35, 9.0), (5, 50, 9.0), (6, 50, 16.0)] {
        let reach = discs(nodes, degree, &mut Seed(seed).stream("places"));
        let mut mesh = Mesh::new(reach, 0.0, Params::default(), seed);
        mesh.run(Span::from_secs(30));
        for s in 0..20 {
            assert_eq!(mesh.wrong().0, 0, "{nodes} nodes, seed {seed}, after {} s", 30 + s);
            mesh.run(Span::from_secs(1));
        }
        mesh.assert_routes_lead();
        mesh.assert_relays_cover();
    }
}

#[test]
fn with_losses_routes_are_shortest_once_nodes_are_patient() {
    for (seed, nodes, degree) in [(11, 5, 3.0), (12, 20, 8.0), (13, 50, 10.0)] {
        let reach = discs(nodes, degree, &mut Seed(seed).stream("places"));
        let mut mesh = Mesh::new(reach, 0.2, patient(), seed);
        mesh.run(Span::from_secs(90));
        for s in 0..60 {
            assert_eq!(mesh.wrong().0, 0, "{nodes} nodes, seed {seed}, after {} s", 90 + s);
            mesh.run(Span::from_secs(1));
        }
        mesh.assert_routes_lead();
        mesh.assert_relays_cover();
    }
}

#[test]
fn with_losses_and_rfc_times_nearly_all_routes_are_shortest() {
    let reach = discs(50, 10.0, &mut Seed(21).stream("places"));
    let mut mesh = Mesh::new(reach, 0.2, Params::default(), 21);
    mesh.run(Span::from_secs(60));
    let (mut wrong, mut all) = (0, 0);
    for _ in 0..120 {
        mesh.run(Span::from_secs(1));
        let (more_wrong, more) = mesh.wrong();
        (wrong, all) = (wrong + more_wrong, all + more);
    }
    let share = wrong as f64 / all as f64;
    println!("a fifth of all packets lost: {:.2} % of routes are not the shortest", 100.0 * share);
    // Three HELLOs in a row are lost 0.8 % of the time, and a link that is believed lost changes the way to many.
    assert!(share < 0.15, "{share}");
}

#[test]
fn a_node_that_dies_is_gone_within_its_holding_times() {
    // In the middle of a mesh that stays connected, and at the end of a row.
    let (mut stream, params) = (Seed(31).stream("places"), Params::default());
    let reach = loop {
        let reach = discs(30, 9.0, &mut stream);
        let mut without = reach.clone();
        without.iter_mut().for_each(|reached| {
            reached.remove(&0);
        });
        without[0].clear();
        if hops(&without, 1).len() == 28 {
            break reach;
        }
    };
    for reach in [reach, row(6)] {
        let mut mesh = Mesh::new(reach, 0.0, params, 31);
        mesh.run(Span::from_secs(40));
        assert_eq!(mesh.wrong().0, 0);
        mesh.kill(0);
        // Neighbours forget it after their holding time, or stop to advertise it; those far away hear no more of it.
        let granularity = params.hello_interval / 8;
        mesh.run(params.neighbour_hold + granularity);
        let neighbours =
            |mesh: &Mesh| mesh.nodes.iter().flatten().any(|node| node.neighbours().contains_key(&address(0)));
        assert!(!neighbours(&mesh), "a neighbour is left");
        mesh.run(params.topology_hold + granularity);
        assert_eq!(mesh.wrong().0, 0, "routes to it are left, or others are not as short as they can be");
        mesh.assert_routes_lead();
    }
}

#[test]
fn a_partition_heals() {
    let whole = row(10);
    let mut parted = whole.clone();
    parted[4].remove(&5);
    parted[5].remove(&4);
    let params = Params::default();
    let mut mesh = Mesh::new(whole.clone(), 0.0, params, 41);
    mesh.run(Span::from_secs(40));
    assert_eq!(mesh.wrong(), (0, 90));
    mesh.reach = parted;
    mesh.run(params.neighbour_hold + params.topology_hold + params.hello_interval);
    assert_eq!(mesh.wrong(), (0, 90), "each half knows itself alone");
    mesh.reach = whole;
    mesh.run(Span::from_secs(20));
    assert_eq!(mesh.wrong(), (0, 90));
    mesh.assert_routes_lead();
}

#[test]
fn numbers_wrap_around_without_anybody_noticing() {
    // With 20 HELLOs a second, and as many TCs, 65536 messages are made in half an hour.
    let interval = Span::from_millis(50);
    let params = Params { tc_interval: interval, topology_hold: interval * 6, ..Params::with_interval(interval) };
    let mut mesh = Mesh::new(row(4), 0.0, params, 51);
    mesh.run(Span::from_secs(5));
    let sent = |mesh: &Mesh| mesh.node(1).account().sent;
    let mut minutes = 0;
    while sent(&mesh) < 70_000 {
        for _ in 0..20 {
            mesh.run(Span::from_secs(3));
            assert_eq!(mesh.wrong(), (0, 12), "after {minutes} min");
        }
        minutes += 1;
    }
}

#[test]
fn only_relays_forward_and_far_fewer_than_all() {
    let reach = discs(50, 16.0, &mut Seed(61).stream("places"));
    let mut mesh = Mesh::new(reach, 0.0, Params::default(), 61);
    mesh.run(Span::from_secs(60));
    (mesh.made, mesh.transmissions) = (0, BTreeMap::new());
    mesh.run(Span::from_secs(60));
    let relays: BTreeSet<Ipv4Addr> =
        mesh.nodes.iter().flatten().flat_map(|node| node.relays().iter().copied()).collect();
    for node in mesh.transmissions.keys() {
        assert!(relays.contains(&address(*node)), "{node} is nobody's relay");
    }
    let all: u64 = mesh.transmissions.values().sum();
    let share = all as f64 / (mesh.made * 50) as f64;
    println!("{} TCs of {} relays, each sent {:.1} times; flooding: 50 times", mesh.made, relays.len(), 50.0 * share);
    assert!(mesh.made > 100 && share < 0.5, "{} TCs, {share}", mesh.made);
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    let run = || {
        let mut mesh = Mesh::new(discs(20, 7.0, &mut Seed(71).stream("places")), 0.2, Params::default(), 71);
        mesh.run(Span::from_secs(60));
        let accounts: Vec<_> =
            mesh.nodes.iter().flatten().map(|node| (node.account(), node.routes().clone())).collect();
        (accounts, mesh.serial)
    };
    assert_eq!(run(), run());
}
