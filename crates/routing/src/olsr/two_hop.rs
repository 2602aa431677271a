//! Neighbours of neighbours.
//! Source:     RFC 3626, sections 4.3.2 (2-hop neighbour set), 8.2.1 (how HELLOs change it).
//! Symbols:    N_neighbor_main_addr -> the first of the key, N_2hop_addr -> the second, N_time -> the value
//! Deviations: addresses of neighbours' interfaces are taken for main addresses, since MID messages are not acted on.

use lasthop_units::Time;
use lasthop_wire::olsr::{Hello, NeighbourType};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Pairs of a neighbour and a neighbour of that which are remembered: in a clique of 90 nodes there are as many.
pub const MOST_TWO_HOP: usize = 8192;

/// Which neighbour has which neighbours, and until when that holds.
#[derive(Clone, Debug, Default)]
pub(super) struct TwoHop(BTreeMap<(Ipv4Addr, Ipv4Addr), Time>);

impl TwoHop {
    /// What the neighbour `via` says of its own neighbours, valid `until` then. Returns whether the pairs are others now, and how many
    /// found no room.
    pub(super) fn hear(&mut self, via: Ipv4Addr, own: Ipv4Addr, hello: &Hello, until: Time) -> (bool, u64) {
        let (mut changed, mut refused) = (false, 0);
        let listed = hello.groups.iter().flat_map(|(code, all)| all.iter().map(|address| (code.neighbour(), *address)));
        for (neighbour, address) in listed.filter(|(_, address)| *address != own && *address != via) {
            let pair = (via, address);
            match neighbour {
                NeighbourType::No => changed |= self.0.remove(&pair).is_some(),
                NeighbourType::Symmetric | NeighbourType::Relay => {
                    if self.0.len() >= MOST_TWO_HOP && !self.0.contains_key(&pair) {
                        refused += 1;
                    } else {
                        changed |= self.0.insert(pair, until).is_none();
                    }
                }
            }
        }
        (changed, refused)
    }

    /// Forgets what neighbours that are none any more have said, and what is too old. True if there was something.
    pub(super) fn expire(&mut self, now: Time) -> bool {
        let before = self.0.len();
        self.0.retain(|_, until| *until > now);
        self.0.len() < before
    }

    /// Forgets what nodes have said that are no neighbours. True if there was something.
    pub(super) fn keep_of<T>(&mut self, neighbours: &BTreeMap<Ipv4Addr, T>) -> bool {
        let before = self.0.len();
        self.0.retain(|(via, _), _| neighbours.contains_key(via));
        self.0.len() < before
    }

    /// All pairs: neighbour, and neighbour of that. The second may be a neighbour of this node too.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (Ipv4Addr, Ipv4Addr)> {
        self.0.keys().copied()
    }

    /// When the next pair is too old.
    pub(super) fn next(&self) -> Option<Time> {
        self.0.values().copied().min()
    }

    /// How many pairs there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
