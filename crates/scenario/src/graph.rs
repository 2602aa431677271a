//! The world of a scenario as a graph: hosts, links between them, and routes.
//!
//! A scenario file describes a street in short form: a server, a wire, an access point, stations. It is lowered to this graph, and
//! worlds are built from the graph alone.
//!
//! Routes are those of fewest links; among equals the one over the link that comes first in the graph. A `[[route]]` of the file
//! comes before them.

use crate::Scenario;
use lasthop_radio::wired;
use lasthop_signals::{HostId, Node};
use lasthop_units::Span;
use std::collections::VecDeque;

/// A host of the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name, unique in the world.
    pub name: String,
    /// What it is.
    pub role: HostRole,
}

/// What a host is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostRole {
    /// A machine on cables: the server, and every `[[host]]`.
    Wired,
    /// The access points of the last hop: one host, with a radio interface for each of them.
    AccessPoint,
    /// Where edge proxies stand, if that is not the access point.
    Edge,
    /// A station, by its place in [`crate::Scenario::stations`].
    Station(usize),
}

/// What connects hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// What it is.
    pub medium: Medium,
    /// The host of each of its nodes; `None` for a node that is no host's, such as a neighbouring BSS.
    pub ends: Vec<Option<HostId>>,
}

/// What a link is.
#[derive(Clone, Debug, PartialEq)]
pub enum Medium {
    /// A full-duplex cable between node 0 and node 1.
    Cable(Cable),
    /// The last hop: [`crate::Scenario::hop_under`].
    LastHop,
}

/// A cable.
#[derive(Clone, Debug, PartialEq)]
pub struct Cable {
    /// From node 0 to node 1, and back.
    pub lines: [wired::Params; 2],
    /// What befalls it.
    pub impairments: wired::Impairments,
}

impl Cable {
    /// A cable that is equal in both directions and never impaired.
    pub fn plain(line: wired::Params) -> Cable {
        Cable { lines: [line; 2], impairments: wired::Impairments::default() }
    }

    /// What a packet spends on it at best, both ways: propagation.
    pub fn round_trip(&self) -> Span {
        self.lines[0].delay + self.lines[1].delay
    }
}

/// The next step of a packet: over which link, from which of its nodes, to which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Place of the link in [`Graph::links`].
    pub link: u16,
    /// The interface that it leaves by.
    pub from: Node,
    /// The interface at the link's other side.
    pub to: Node,
}

/// A route that a file names: packets of `at` for `to` go to `via` next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Route {
    pub at: HostId,
    pub to: HostId,
    pub via: HostId,
}

/// Hosts, links, routes.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// [`HostId`]`(i)` is `hosts[i]`.
    pub hosts: Vec<Host>,
    /// The wire first, then the last hop, the backhaul if there is one, and every `[[link]]`.
    pub links: Vec<Link>,
    /// Pairs of nodes of the last hop that exchange packets, in both directions.
    pub(crate) radio: Vec<(Node, Node)>,
    pub(crate) routes: Vec<Route>,
}

/// The forwarding table of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forwarding {
    /// Where everything goes for which there is no entry.
    default: Option<Step>,
    /// By host number; empty where the default is all.
    entries: Vec<Option<Step>>,
}

impl Forwarding {
    /// A table of these steps alone, by host number.
    pub fn of(entries: Vec<Option<Step>>) -> Forwarding {
        Forwarding { default: None, entries }
    }

    /// The next step towards `to`; `None` if there is no way.
    #[inline]
    pub fn next(&self, to: HostId) -> Option<Step> {
        self.entries.get(to.index()).copied().flatten().or(self.default)
    }

    /// Where everything goes for which [`Forwarding::entries`] has nothing.
    pub fn fallback(&self) -> Option<Step> {
        self.default
    }

    /// Hosts with a step of their own, by number.
    pub fn entries(&self) -> impl Iterator<Item = (HostId, Step)> + '_ {
        let entries = (0..).map(HostId).zip(&self.entries);
        entries.filter_map(|(host, step)| Some((host, (*step)?)))
    }
}

impl Graph {
    /// A street: a server, a wire, and an access point with these stations on a last hop.
    pub fn street(wire: &Cable, stations: &[String]) -> Graph {
        let host = |name: &str, role| Host { name: name.to_owned(), role };
        let mut hosts = vec![host("server", HostRole::Wired), host("ap", HostRole::AccessPoint)];
        hosts.extend(stations.iter().enumerate().map(|(place, name)| host(name, HostRole::Station(place))));
        let ends = [Scenario::SERVER, Scenario::AP_HOST].map(Some).to_vec();
        let wire = Link { medium: Medium::Cable(wire.clone()), ends };
        let places = 0..stations.len();
        let mut ends = vec![Some(Scenario::AP_HOST)];
        ends.extend(places.clone().map(|place| Some(Scenario::station_host(place))));
        let links = vec![wire, Link { medium: Medium::LastHop, ends }];
        let radio = places.map(|place| (Scenario::AP, Scenario::station_node(place))).collect();
        Graph { hosts, links, radio, routes: Vec::new() }
    }

    /// The interfaces of a host, each as its link and its node there, in the order of links.
    pub fn interfaces(&self, host: HostId) -> impl Iterator<Item = (usize, Node)> + '_ {
        let nodes = move |(place, link): (usize, &Link)| {
            let own = link.ends.iter().enumerate().filter(move |(_, end)| **end == Some(host));
            own.map(|(node, _)| (place, Node(node as u16))).collect::<Vec<_>>()
        };
        self.links.iter().enumerate().flat_map(nodes)
    }

    /// The step by which packets of `from` come to `to`; `None` if there is no way, or the two are one.
    pub fn arrival(&self, from: HostId, to: HostId) -> Option<Step> {
        let tables = self.forwarding();
        let (mut at, mut last) = (from, None);
        // No way is longer than there are hosts.
        for _ in 0..self.hosts.len() {
            if at == to {
                return last;
            }
            let step = tables.get(at.index())?.next(to)?;
            at = self.links[usize::from(step.link)].ends[step.to.index()]?;
            last = Some(step);
        }
        None
    }

    /// The host called `name`.
    pub fn host(&self, name: &str) -> Option<HostId> {
        let place = self.hosts.iter().position(|host| host.name == name)?;
        u16::try_from(place).ok().map(HostId)
    }

    /// The steps from a host to its neighbours, in the order of links.
    pub(crate) fn steps(&self, at: HostId) -> impl Iterator<Item = (Step, HostId)> + '_ {
        let step = move |link: usize, from: Node, to: Node| {
            let ends = &self.links[link].ends;
            let here = ends.get(from.index()).copied().flatten() == Some(at);
            let there = ends.get(to.index()).copied().flatten().filter(|_| here)?;
            Some((Step { link: u16::try_from(link).ok()?, from, to }, there))
        };
        let pairs = |link: &Link| match link.medium {
            Medium::Cable(_) => &CABLE[..],
            Medium::LastHop => &self.radio[..],
        };
        let links = self.links.iter().enumerate();
        links.flat_map(move |(place, link)| {
            pairs(link).iter().flat_map(move |(a, b)| [(*a, *b), (*b, *a)]).filter_map(move |(a, b)| step(place, a, b))
        })
    }

    /// The forwarding table of every host, by number.
    pub fn forwarding(&self) -> Vec<Forwarding> {
        let neighbours: Vec<Vec<(Step, HostId)>> =
            (0..self.hosts.len()).map(|host| self.steps(HostId(host as u16)).collect()).collect();
        let mut tables: Vec<Forwarding> = Vec::with_capacity(self.hosts.len());
        for (host, around) in neighbours.iter().enumerate() {
            tables.push(match around.as_slice() {
                [(only, _)] => Forwarding { default: Some(*only), entries: Vec::new() },
                several => Forwarding { default: None, entries: nearest(host, several, &neighbours) },
            });
        }
        for route in &self.routes {
            let around = &neighbours[route.at.index()];
            let step = around.iter().find(|(_, there)| *there == route.via).map(|(step, _)| *step);
            let table = &mut tables[route.at.index()];
            if table.entries.is_empty() {
                table.entries = vec![None; self.hosts.len()];
            }
            table.entries[route.to.index()] = step;
        }
        tables
    }
}

/// The nodes of a cable.
const CABLE: [(Node, Node); 1] = [(Node(0), Node(1))];

/// The first step from a host to each other one, by a search in breadth from the host.
fn nearest(host: usize, around: &[(Step, HostId)], neighbours: &[Vec<(Step, HostId)>]) -> Vec<Option<Step>> {
    let mut first: Vec<Option<Step>> = vec![None; neighbours.len()];
    let mut queue = VecDeque::new();
    for (step, there) in around.iter().filter(|(_, there)| there.index() != host) {
        if first[there.index()].is_none() {
            first[there.index()] = Some(*step);
            queue.push_back(*there);
        }
    }
    while let Some(at) = queue.pop_front() {
        let step = first[at.index()];
        for (_, there) in &neighbours[at.index()] {
            if there.index() != host && first[there.index()].is_none() {
                first[there.index()] = step;
                queue.push_back(*there);
            }
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::Rate;
    use lasthop_units::Span;

    fn cable(a: u16, b: u16) -> Link {
        let line = wired::Params { rate: Rate::from_mbit(1), delay: Span::ZERO, queue_packets: 1 };
        let cable = Cable::plain(line);
        Link { medium: Medium::Cable(cable), ends: vec![Some(HostId(a)), Some(HostId(b))] }
    }

    fn graph(count: u16, links: Vec<Link>) -> Graph {
        let host = |n| Host { name: format!("h{n}"), role: HostRole::Wired };
        Graph { hosts: (0..count).map(host).collect(), links, radio: Vec::new(), routes: Vec::new() }
    }

    #[test]
    fn routes_take_the_fewest_links_and_the_first_of_equals() {
        // 0 - 1 - 3 and 0 - 2 - 3, then 3 - 4.
        let graph = graph(5, vec![cable(0, 1), cable(0, 2), cable(1, 3), cable(2, 3), cable(3, 4)]);
        let tables = graph.forwarding();
        let link = |at: usize, to: u16| tables[at].next(HostId(to)).map(|step| step.link);
        assert_eq!((link(0, 3), link(0, 4), link(0, 2)), (Some(0), Some(0), Some(1)));
        assert_eq!((link(4, 0), link(3, 0), link(1, 2)), (Some(4), Some(2), Some(0)));
    }

    #[test]
    fn a_route_of_the_file_comes_first_and_none_leads_nowhere() {
        let mut graph = graph(5, vec![cable(0, 1), cable(0, 2), cable(1, 3), cable(2, 3)]);
        graph.routes.push(Route { at: HostId(0), to: HostId(3), via: HostId(2) });
        let tables = graph.forwarding();
        assert_eq!(tables[0].next(HostId(3)).map(|step| step.link), Some(1));
        assert_eq!(tables[0].next(HostId(4)), None);
    }
}
