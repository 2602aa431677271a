//! The routing table: shortest paths by hops, from what neighbours and TCs have told.
//! Source:     RFC 3626, section 10, steps 1 to 3.
//! Deviations: none in what is reached and at how many hops. Of several ways of one length the more willing neighbour is taken for two
//!             hops, and then the least address, so that equal sets give equal tables.
//! Checked by: tests/olsr_mesh.rs, against breadth-first search on the true topology

use super::links::Neighbour;
use super::topology::Topology;
use super::two_hop::TwoHop;
use lasthop_wire::olsr::Willingness;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// The way to a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// The address, of a neighbour, that packets are handed to. The destination itself, or another address of it, if `hops` is 1.
    pub next: Ipv4Addr,
    /// Hops to the destination, at least 1.
    pub hops: u16,
}

/// Routes by destination, a node's address.
pub type Routes = BTreeMap<Ipv4Addr, Route>;

/// The table of the node `own`: `addresses` are those of symmetric links' other ends.
pub(super) fn compute(
    own: Ipv4Addr,
    neighbours: &BTreeMap<Ipv4Addr, Neighbour>,
    addresses: &BTreeSet<Ipv4Addr>,
    two_hop: &TwoHop,
    topology: &Topology,
) -> Routes {
    let mut routes: Routes = addresses.iter().map(|address| (*address, Route { next: *address, hops: 1 })).collect();
    for (main, neighbour) in neighbours {
        routes.entry(*main).or_insert(Route { next: neighbour.address, hops: 1 });
    }
    let mut ways: BTreeMap<Ipv4Addr, (Willingness, Reverse<Ipv4Addr>)> = BTreeMap::new();
    for (via, far) in two_hop.pairs().filter(|(_, far)| *far != own && !routes.contains_key(far)) {
        let willing = neighbours.get(&via).filter(|neighbour| neighbour.willingness > Willingness::NEVER);
        if let Some(neighbour) = willing {
            let way = (neighbour.willingness, Reverse(via));
            ways.entry(far).and_modify(|best| *best = way.max(*best)).or_insert(way);
        }
    }
    let mut frontier = Vec::with_capacity(ways.len());
    for (far, (_, Reverse(via))) in ways {
        routes.insert(far, Route { next: neighbours[&via].address, hops: 2 });
        frontier.push(far);
    }
    // Sorted, so the least last hop is the one that counts.
    let mut hops: u16 = 2;
    while !frontier.is_empty() {
        hops = hops.saturating_add(1);
        let mut further = Vec::new();
        for last in frontier {
            let next = routes[&last].next;
            for destination in topology.of(last).filter(|destination| *destination != own) {
                routes.entry(destination).or_insert_with(|| {
                    further.push(destination);
                    Route { next, hops }
                });
            }
        }
        further.sort_unstable();
        frontier = further;
    }
    routes
}
