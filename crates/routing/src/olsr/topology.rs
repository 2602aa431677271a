//! What TC messages have told: which node is the last hop to which.
//! Source:     RFC 3626, sections 4.4 (topology set), 9.5 (how TCs change it).
//! Symbols:    T_last_addr -> the map's key, T_dest_addr -> the inner key, T_seq -> `ansn`, T_time -> the inner value
//! Deviations: none.

use lasthop_units::Time;
use lasthop_wire::olsr::{Sequence, TopologyControl};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Pairs of a last hop and a destination that are remembered: 1000 nodes that forward for 16 each.
pub const MOST_TOPOLOGY: usize = 16_384;

/// What a node has advertised last. It advertises something: what is empty is forgotten.
#[derive(Clone, Debug)]
struct Advertised {
    ansn: Sequence,
    neighbours: BTreeMap<Ipv4Addr, Time>,
}

/// The topology set.
#[derive(Clone, Debug, Default)]
pub(super) struct Topology {
    by_last: BTreeMap<Ipv4Addr, Advertised>,
    len: usize,
}

/// What a TC has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Heard {
    /// The set is another one.
    pub(super) changed: bool,
    /// Pairs for which there was no room.
    pub(super) refused: u64,
}

impl Topology {
    /// A TC of `last` says for which nodes it forwards; valid `until` then.
    pub(super) fn hear(&mut self, last: Ipv4Addr, tc: &TopologyControl, until: Time) -> Heard {
        let mut heard = Heard::default();
        if let Some(known) = self.by_last.get(&last) {
            if known.ansn.is_newer_than(tc.ansn) {
                return heard;
            }
            if tc.ansn.is_newer_than(known.ansn) {
                // What is advertised still comes again below.
                let gone = known.neighbours.keys().filter(|address| !tc.neighbours.contains(address)).count();
                heard.changed = gone > 0;
                let known = self.by_last.get_mut(&last).expect("as just now");
                known.ansn = tc.ansn;
                known.neighbours.retain(|address, _| tc.neighbours.contains(address));
                self.len -= gone;
            }
        }
        for address in &tc.neighbours {
            let is_known = self.by_last.get(&last).is_some_and(|known| known.neighbours.contains_key(address));
            if !is_known && self.len >= MOST_TOPOLOGY {
                heard.refused += 1;
                continue;
            }
            let fresh = || Advertised { ansn: tc.ansn, neighbours: BTreeMap::new() };
            let known = self.by_last.entry(last).or_insert_with(fresh);
            known.neighbours.insert(*address, until);
            self.len += usize::from(!is_known);
            heard.changed |= !is_known;
        }
        if self.by_last.get(&last).is_some_and(|known| known.neighbours.is_empty()) {
            self.by_last.remove(&last);
        }
        heard
    }

    /// The nodes that a node forwards for.
    pub(super) fn of(&self, last: Ipv4Addr) -> impl Iterator<Item = Ipv4Addr> {
        self.by_last.get(&last).into_iter().flat_map(|known| known.neighbours.keys().copied())
    }

    /// Forgets what is too old. True if there was something.
    pub(super) fn expire(&mut self, now: Time) -> bool {
        let before = self.len;
        self.by_last.retain(|_, known| {
            known.neighbours.retain(|_, until| *until > now);
            !known.neighbours.is_empty()
        });
        self.len = self.by_last.values().map(|known| known.neighbours.len()).sum();
        self.len < before
    }

    /// When the next pair is too old.
    pub(super) fn next(&self) -> Option<Time> {
        self.by_last.values().flat_map(|known| known.neighbours.values().copied()).min()
    }

    /// How many pairs there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::Span;

    fn node(n: u32) -> Ipv4Addr {
        Ipv4Addr::from(0x0a00_0000 + n)
    }

    fn tc(ansn: u16, neighbours: &[u32]) -> TopologyControl {
        TopologyControl { ansn: Sequence(ansn), neighbours: neighbours.iter().map(|n| node(*n)).collect() }
    }

    fn at(s: u64) -> Time {
        Time::ZERO + Span::from_secs(s)
    }

    fn of(topology: &Topology, last: u32) -> Vec<Ipv4Addr> {
        topology.of(node(last)).collect()
    }

    #[test]
    fn newer_advertisements_replace_older_ones_across_the_wrap() {
        let mut topology = Topology::default();
        let changed = Heard { changed: true, refused: 0 };
        assert_eq!(topology.hear(node(1), &tc(65_534, &[2, 3]), at(15)), changed);
        assert_eq!(topology.hear(node(1), &tc(65_534, &[2, 3]), at(20)), Heard::default(), "the same again");
        assert_eq!(topology.hear(node(1), &tc(1, &[3, 4]), at(20)), changed);
        assert_eq!(of(&topology, 1), [node(3), node(4)]);
        assert_eq!(topology.hear(node(1), &tc(65_535, &[2]), at(30)), Heard::default(), "late");
        assert_eq!(of(&topology, 1), [node(3), node(4)]);
        assert_eq!(topology.hear(node(1), &tc(2, &[]), at(30)), changed);
        assert_eq!((of(&topology, 1), topology.len()), (vec![], 0));
    }

    #[test]
    fn parts_of_one_advertisement_add_up() {
        let mut topology = Topology::default();
        topology.hear(node(1), &tc(7, &[2]), at(15));
        topology.hear(node(1), &tc(7, &[3]), at(20));
        assert_eq!((of(&topology, 1), topology.next()), (vec![node(2), node(3)], Some(at(15))));
        assert!(!topology.expire(at(14)) && topology.expire(at(15)));
        assert_eq!((of(&topology, 1), topology.len()), (vec![node(3)], 1));
    }

    #[test]
    fn forged_nodes_find_no_room_once_it_is_full() {
        let mut topology = Topology::default();
        let all: Vec<u32> = (0..100).collect();
        let refused: u64 = (0..1000).map(|n| topology.hear(node(1000 + n), &tc(0, &all), at(15)).refused).sum();
        assert_eq!((topology.len(), refused), (MOST_TOPOLOGY, 100_000 - MOST_TOPOLOGY as u64));
        assert_eq!(topology.hear(node(1000), &tc(1, &all), at(20)), Heard::default(), "what is known is renewed");
        assert!(topology.expire(at(15)));
        assert_eq!(topology.len(), 100);
        assert_eq!(topology.by_last.len(), 1, "nothing is kept of who advertises nothing");
    }
}
