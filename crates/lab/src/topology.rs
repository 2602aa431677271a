//! Hosts and their interfaces: namespaces, addresses, routes and neighbours of a run.

use crate::address::{self, Family, HopId, V4_PREFIX, V6_PREFIX, mac};
use crate::error::{LabError, Result};
use crate::netlink::Netlink;
use crate::netns::Namespace;
use crate::run_dir::RunDir;
use crate::stop::Stop;
use crate::tap::{self, Tap};
use lasthop_scenario::Scenario;
use lasthop_scenario::graph::{Forwarding, Graph, HostRole, Medium, Step};
use lasthop_signals::{HostId, Node};
use std::collections::BTreeSet;

/// The hop between server and access point, or between server and station where there is no access point.
pub const WIRE: HopId = HopId(0);
/// The last hop, between access point and stations.
pub const LAST: HopId = HopId(1);
/// A station's monitor interface.
pub const MONITOR: &str = "mon0";
/// The access point's number on the last hop.
pub const AP: Node = Node(0);

/// The hosts of a run.
#[derive(Debug)]
pub struct Hosts {
    /// Node 0 of the wire.
    pub server: Namespace,
    /// All access points; absent where server and station share one cable.
    pub ap: Option<Namespace>,
    /// The stations.
    pub stations: Vec<Namespace>,
    /// The edge, if there is one, and every further host.
    pub others: Vec<Namespace>,
    /// By link and node: the interfaces of those nodes that are hosts'.
    pub taps: Vec<Vec<Option<Tap>>>,
    /// The access points' nodes on the last hop, and what their interfaces are called.
    pub radios: Vec<(Node, String)>,
    /// By [`HostId`]: what the host's interfaces are called.
    interfaces: Vec<Vec<String>>,
}

impl Hosts {
    /// A namespace for every host of `graph`, an interface for each of its nodes, and the routes between them.
    ///
    /// # Errors
    /// What the kernel refused, or [`LabError::Stopped`] as soon as `stop` is raised.
    pub fn of_graph(run: &RunDir, graph: &Graph, stop: &Stop) -> Result<Hosts> {
        let tables = graph.forwarding();
        let mut taps: Vec<Vec<Option<Tap>>> =
            graph.links.iter().map(|link| link.ends.iter().map(|_| None).collect()).collect();
        let (mut spaces, mut interfaces, mut radios) = (Vec::new(), Vec::new(), Vec::new());
        for (place, host) in graph.hosts.iter().enumerate() {
            // Each takes some 10 ms, and far more on a busy machine.
            if stop.is_raised() {
                return Err(LabError::Stopped);
            }
            let id = HostId(place as u16);
            let role = match host.role {
                HostRole::AccessPoint => "ap".to_owned(),
                HostRole::Station(station) => format!("sta{}", station + 1),
                HostRole::Edge | HostRole::Wired => host.name.clone(),
            };
            let space = Namespace::create(run, &role)?;
            if tables[place].fallback().is_none() {
                space.make_router()?;
            }
            let mut names: Vec<String> = Vec::new();
            for (link, node) in graph.interfaces(id) {
                let kind = match graph.links[link].medium {
                    Medium::Cable(_) => "eth",
                    Medium::LastHop => "wlan",
                };
                let name = format!("{kind}{}", names.iter().filter(|name| name.starts_with(kind)).count());
                taps[link][node.index()] = Some(Port::of(graph, &tables[place], (link, node), &name).attach(&space)?);
                if host.role == HostRole::AccessPoint && graph.links[link].medium == Medium::LastHop {
                    radios.push((node, name.clone()));
                }
                names.push(name);
            }
            interfaces.push(names);
            spaces.push(space);
        }
        let stations = graph.hosts.iter().filter(|host| matches!(host.role, HostRole::Station(_))).count();
        let mut spaces = spaces.into_iter();
        let (Some(server), ap) = (spaces.next(), spaces.next()) else {
            return Err(LabError::Spec("a world without hosts".into()));
        };
        let stations = spaces.by_ref().take(stations).collect();
        Ok(Hosts { server, ap, stations, others: spaces.collect(), taps, radios, interfaces })
    }

    /// A server and one station at the two ends of one cable.
    pub fn on_one_wire(run: &RunDir) -> Result<Hosts> {
        let server = Namespace::create(run, "server")?;
        let station = Namespace::create(run, "sta1")?;
        let port = |node: u16| Port {
            name: "eth0".into(),
            hop: WIRE,
            node: Node(node),
            whole: true,
            neighbours: vec![Node(1 - node)],
            gateway: None,
            routes: Vec::new(),
        };
        let wire = vec![Some(port(0).attach(&server)?), Some(port(1).attach(&station)?)];
        let interfaces = vec![vec!["eth0".into()], Vec::new(), vec!["eth0".into()]];
        let (stations, others, radios) = (vec![station], Vec::new(), Vec::new());
        Ok(Hosts { server, ap: None, stations, others, taps: vec![wire], radios, interfaces })
    }

    /// The namespace of a host; `None` if there is none of that number.
    pub fn of(&self, host: HostId) -> Option<&Namespace> {
        let first_station = Scenario::station_host(0).index();
        match host {
            Scenario::SERVER => Some(&self.server),
            Scenario::AP_HOST => self.ap.as_ref(),
            HostId(number) => {
                let place = usize::from(number) - first_station;
                self.stations.get(place).or_else(|| self.others.get(place.checked_sub(self.stations.len())?))
            }
        }
    }

    /// The name of a station's interface on the last hop.
    pub(crate) fn interface(&self, host: HostId) -> &str {
        self.interfaces.get(host.index()).and_then(|names| names.first()).map_or("wlan0", String::as_str)
    }

    /// All of them, by [`HostId`].
    pub fn all(&self) -> impl Iterator<Item = &Namespace> {
        std::iter::once(&self.server).chain(&self.ap).chain(&self.stations).chain(&self.others)
    }

    /// Packets that any interface has dropped outside the models.
    pub fn dropped(&self) -> Result<u64> {
        let mut sum = 0;
        for (place, names) in self.interfaces.iter().enumerate() {
            let Some(host) = self.of(HostId(place as u16)) else { continue };
            sum += host.within(|| names.iter().map(|name| tap::dropped(name)).sum::<Result<u64>>())?;
        }
        Ok(sum)
    }

    /// Datagrams that a host's kernel threw away because a program there did not take them in time.
    pub fn untaken_datagrams(&self) -> Result<u64> {
        let count = |host: &Namespace| host.within(|| Ok(untaken(|name| std::fs::read_to_string(name).ok())));
        self.all().map(count).sum()
    }
}

/// From the counters of the calling thread's network namespace, as far as there are any.
fn untaken(read: impl Fn(&str) -> Option<String>) -> u64 {
    let v4 = read("/proc/thread-self/net/snmp").and_then(|text| {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
        let place = lines.next()?.split(' ').position(|name| name == "RcvbufErrors")?;
        lines.next()?.split(' ').nth(place)?.parse::<u64>().ok()
    });
    let v6 = read("/proc/thread-self/net/snmp6").and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("Udp6RcvbufErrors"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    v4.unwrap_or(0) + v6.unwrap_or(0)
}

/// One interface to be.
struct Port {
    name: String,
    hop: HopId,
    node: Node,
    /// Its network is the whole hop: everybody there is a neighbour.
    whole: bool,
    /// The other nodes of the hop that it sends to.
    neighbours: Vec<Node>,
    /// The node that leads to all destinations without a route.
    gateway: Option<Node>,
    /// Addresses of others, and the neighbour that leads to each.
    routes: Vec<(HopId, Node, Node)>,
}

impl Port {
    /// The interface at node `node` of link `link`, of a host that forwards by `table`.
    fn of(graph: &Graph, table: &Forwarding, (link, node): (usize, Node), name: &str) -> Port {
        let hop_of = |link: usize| HopId(u8::try_from(link).expect("checked: few links"));
        let here = |step: &Step| usize::from(step.link) == link && step.from == node;
        let gateway = table.fallback().filter(here).map(|step| step.to);
        let own = || table.entries().filter(|(_, step)| here(step));
        let neighbours: BTreeSet<Node> = own().map(|(_, step)| step.to).chain(gateway).collect();
        let mut routes = Vec::new();
        for (host, step) in own() {
            let others = graph.interfaces(host).filter(|interface| *interface != (link, step.to));
            routes.extend(others.map(|(link, node)| (hop_of(link), node, step.to)));
        }
        let ends = &graph.links[link].ends;
        let others = (0..).map(Node).zip(ends).filter(|(other, end)| *other != node && end.is_some());
        let whole = gateway.is_none() && others.into_iter().all(|(other, _)| neighbours.contains(&other));
        let neighbours = neighbours.into_iter().collect();
        Port { name: name.to_owned(), hop: hop_of(link), node, whole, neighbours, gateway, routes }
    }

    fn attach(&self, host: &Namespace) -> Result<Tap> {
        host.within(|| {
            let tap = Tap::create(&self.name, mac(self.hop, self.node))?;
            let mut kernel = Netlink::open()?;
            let index = tap.index();
            kernel.set_up(index)?;
            let ipv6 = std::path::Path::new("/proc/sys/net/ipv6").exists();
            for family in [Family::V4, Family::V6].into_iter().filter(|family| ipv6 || *family == Family::V4) {
                let at = |hop, node| address::ip(family, hop, node);
                let prefix = match (family, self.whole) {
                    (Family::V4, true) => V4_PREFIX,
                    (Family::V6, true) => V6_PREFIX,
                    (Family::V4, false) => 32,
                    (Family::V6, false) => 128,
                };
                kernel.add_address(index, at(self.hop, self.node), prefix)?;
                for peer in &self.neighbours {
                    kernel.add_neighbour(index, at(self.hop, *peer), mac(self.hop, *peer))?;
                    if !self.whole {
                        kernel.add_link_route(index, at(self.hop, *peer))?;
                    }
                }
                if let Some(gateway) = self.gateway {
                    kernel.add_default_route(index, at(self.hop, gateway))?;
                }
                for (hop, node, via) in &self.routes {
                    kernel.add_host_route(index, at(*hop, *node), at(self.hop, *via))?;
                }
            }
            Ok(tap)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_that_nobody_took_are_counted_for_both_families() {
        let text = |name: &str| {
            match name {
            "/proc/thread-self/net/snmp" => Some(
                "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\nUdp: 517793 0 72034 1233 72034 0\n\
                 UdpLite: InDatagrams NoPorts\nUdpLite: 0 0\n"
                    .to_owned(),
            ),
            "/proc/thread-self/net/snmp6" => {
                Some("Udp6InErrors                    \t9\nUdp6RcvbufErrors                \t7\n".to_owned())
            }
            other => panic!("{other}"),
        }
        };
        assert_eq!(untaken(text), 72_041);
        assert_eq!(untaken(|_| None), 0);
    }
}
