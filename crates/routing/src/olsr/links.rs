//! Link sensing: the nodes that are heard, and those that hear us.
//! Source:     RFC 3626, sections 4.2.1 (link set), 7.1 (how HELLOs change it), 6.2 (what HELLOs say of it).
//! Symbols:    L_ASYM_time -> `heard`, L_SYM_time -> `symmetric`, L_time -> `kept`, L_neighbor_iface_addr -> the map's key
//! Deviations: no hysteresis (section 14, an option): one HELLO is enough.

use lasthop_units::{Span, Time};
use lasthop_wire::olsr::{Hello, LinkCode, LinkType, NeighbourType, Willingness};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Links that are remembered: a HELLO that lists them all fits into an Ethernet frame.
pub const MOST_LINKS: usize = 256;

/// A link with an interface of a neighbour. Moments are the first at which something holds no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Link {
    main: Ipv4Addr,
    willingness: Willingness,
    heard: Time,
    symmetric: Time,
    kept: Time,
}

/// A neighbour with which there is a symmetric link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// The address to which packets for it, or through it, go: that of its interface on the link.
    pub address: Ipv4Addr,
    /// Whether it would forward for others.
    pub willingness: Willingness,
}

/// All links of the node's interface, by the address of the other end.
#[derive(Clone, Debug, Default)]
pub(super) struct Links(BTreeMap<Ipv4Addr, Link>);

impl Links {
    /// A HELLO of the node `main` came from `from`, and is valid for `validity`. `own` is this node's address, `hold` its
    /// NEIGHB_HOLD_TIME. False if there is no room for another link.
    pub(super) fn hear(
        &mut self,
        now: Time,
        (from, main, own): (Ipv4Addr, Ipv4Addr, Ipv4Addr),
        hello: &Hello,
        (validity, hold): (Span, Span),
    ) -> bool {
        if self.0.len() >= MOST_LINKS && !self.0.contains_key(&from) {
            return false;
        }
        let willingness = hello.willingness;
        let fresh = Link { main, willingness, heard: now, symmetric: Time::ZERO, kept: now };
        let link = self.0.entry(from).or_insert(fresh);
        (link.main, link.willingness) = (main, willingness);
        link.heard = now + validity;
        let ours = hello.groups.iter().filter(|(_, neighbours)| neighbours.contains(&own));
        for (code, _) in ours {
            match code.link() {
                LinkType::Lost => link.symmetric = Time::ZERO,
                LinkType::Symmetric | LinkType::Asymmetric => {
                    link.symmetric = now + validity;
                    link.kept = link.symmetric + hold;
                }
                LinkType::Unspecified => {}
            }
        }
        link.kept = link.kept.max(link.heard);
        true
    }

    /// True if both ends hear each other.
    pub(super) fn is_symmetric(&self, now: Time, from: Ipv4Addr) -> bool {
        self.0.get(&from).is_some_and(|link| link.symmetric > now)
    }

    /// The main address of the node with this interface.
    pub(super) fn main_of(&self, from: Ipv4Addr) -> Option<Ipv4Addr> {
        self.0.get(&from).map(|link| link.main)
    }

    /// Neighbours by their main addresses, and all addresses of symmetric links. Of several links with one neighbour the least address
    /// counts, unless the main address is one.
    pub(super) fn neighbours(&self, now: Time) -> BTreeMap<Ipv4Addr, Neighbour> {
        let mut neighbours = BTreeMap::new();
        for (address, link) in self.symmetric(now) {
            let neighbour = Neighbour { address, willingness: link.willingness };
            let known = neighbours.entry(link.main).or_insert(neighbour);
            if address == link.main {
                *known = neighbour;
            }
        }
        neighbours
    }

    /// Addresses of symmetric links' other ends.
    pub(super) fn addresses(&self, now: Time) -> BTreeSet<Ipv4Addr> {
        self.symmetric(now).map(|(address, _)| address).collect()
    }

    fn symmetric(&self, now: Time) -> impl Iterator<Item = (Ipv4Addr, &Link)> {
        self.0.iter().filter(move |(_, link)| link.symmetric > now).map(|(address, link)| (*address, link))
    }

    /// What a HELLO says of all links, the chosen `relays` among the neighbours marked.
    pub(super) fn groups(&self, now: Time, relays: &BTreeSet<Ipv4Addr>) -> Vec<(LinkCode, Vec<Ipv4Addr>)> {
        let neighbours = self.neighbours(now);
        let mut groups: BTreeMap<LinkCode, Vec<Ipv4Addr>> = BTreeMap::new();
        for (address, link) in &self.0 {
            let kind = match link {
                link if link.symmetric > now => LinkType::Symmetric,
                link if link.heard > now => LinkType::Asymmetric,
                _ => LinkType::Lost,
            };
            let neighbour = match link.main {
                main if !neighbours.contains_key(&main) => NeighbourType::No,
                main if relays.contains(&main) => NeighbourType::Relay,
                _ => NeighbourType::Symmetric,
            };
            let code = LinkCode::new(kind, neighbour).expect("who has a symmetric link is a neighbour");
            groups.entry(code).or_default().push(*address);
        }
        groups.into_iter().collect()
    }

    /// Forgets links that are out of date.
    pub(super) fn expire(&mut self, now: Time) {
        self.0.retain(|_, link| link.kept > now);
    }

    /// The next moment at which a link changes by itself.
    pub(super) fn next(&self, now: Time) -> Option<Time> {
        let moments = self.0.values().flat_map(|link| [link.heard, link.symmetric, link.kept]);
        moments.filter(|moment| *moment > now).min()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_wire::olsr::Validity;

    const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn hello(said: Option<(LinkType, NeighbourType)>) -> Hello {
        let groups = said.map(|(link, neighbour)| (LinkCode::new(link, neighbour).expect("a code"), vec![OWN]));
        let interval = Validity::at_least(Span::from_secs(2));
        Hello { interval, willingness: Willingness::DEFAULT, groups: groups.into_iter().collect() }
    }

    fn at(s: u64) -> Time {
        Time::ZERO + Span::from_secs(s)
    }

    fn kind(links: &Links, now: Time) -> Option<(LinkType, NeighbourType)> {
        let groups = links.groups(now, &BTreeSet::new());
        groups.first().map(|(code, _)| (code.link(), code.neighbour()))
    }

    #[test]
    fn a_link_is_heard_then_symmetric_then_lost_then_forgotten() {
        use LinkType::{Asymmetric, Lost, Symmetric};
        let mut links = Links::default();
        let hold = (Span::from_secs(6), Span::from_secs(6));
        let hear = |links: &mut Links, s, said| links.hear(at(s), (PEER, PEER, OWN), &hello(said), hold);
        assert!(hear(&mut links, 0, None));
        assert_eq!(kind(&links, at(0)), Some((Asymmetric, NeighbourType::No)));
        assert!(hear(&mut links, 2, Some((Asymmetric, NeighbourType::No))));
        assert_eq!(kind(&links, at(2)), Some((Symmetric, NeighbourType::Symmetric)));
        assert_eq!(links.next(at(2)), Some(at(8)));
        // Heard on, but not heard by it any more: the link is asymmetric once the word of it is old.
        assert!(hear(&mut links, 7, None));
        assert_eq!(kind(&links, at(7)), Some((Symmetric, NeighbourType::Symmetric)));
        assert_eq!(kind(&links, at(8)), Some((Asymmetric, NeighbourType::No)));
        assert!(!links.is_symmetric(at(8), PEER));
        assert_eq!(kind(&links, at(13)), Some((Lost, NeighbourType::No)));
        links.expire(at(13));
        assert_eq!(links.len(), 1, "lost links are told for a holding time");
        links.expire(at(14));
        assert_eq!((links.len(), links.next(at(14))), (0, None));
    }

    #[test]
    fn a_neighbour_that_calls_the_link_lost_is_none_at_once() {
        let mut links = Links::default();
        let hold = (Span::from_secs(6), Span::from_secs(6));
        for (s, said) in
            [(0, (LinkType::Symmetric, NeighbourType::Symmetric)), (1, (LinkType::Lost, NeighbourType::No))]
        {
            assert!(links.hear(at(s), (PEER, PEER, OWN), &hello(Some(said)), hold));
            assert_eq!(links.is_symmetric(at(s), PEER), s == 0);
        }
        assert_eq!(kind(&links, at(1)), Some((LinkType::Asymmetric, NeighbourType::No)));
    }

    #[test]
    fn no_more_links_are_remembered_than_there_is_room_for() {
        let mut links = Links::default();
        let hold = (Span::from_secs(6), Span::from_secs(6));
        let forged = |n: u32| Ipv4Addr::from(0x0a01_0000 + n);
        let heard = (0..1000).filter(|n| links.hear(at(0), (forged(*n), forged(*n), OWN), &hello(None), hold)).count();
        assert_eq!((heard, links.len()), (MOST_LINKS, MOST_LINKS));
        assert!(links.hear(at(1), (forged(3), forged(3), OWN), &hello(None), hold), "those that are known stay");
    }
}
