//! Hosts and their interfaces: namespaces, addresses, routes and neighbours of a run.

use crate::address::{self, HopId, V4_PREFIX, V6_PREFIX, mac};
use crate::error::{LabError, Result};
use crate::netlink::Netlink;
use crate::netns::Namespace;
use crate::run_dir::RunDir;
use crate::stop::Stop;
use crate::tap::{self, Tap};
use lasthop_scenario::Scenario;
use lasthop_signals::{HostId, Node};
use std::ops::Range;

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
    /// Node 1 of the wire and node 0 of the last hop; absent where server and station share one cable.
    pub ap: Option<Namespace>,
    /// Nodes 1, 2… of the last hop.
    pub stations: Vec<Namespace>,
    /// Interfaces of the wire's nodes, then of the last hop's.
    pub taps: Vec<Vec<Tap>>,
}

impl Hosts {
    /// A server, an access point that routes, and `stations` stations.
    ///
    /// # Errors
    /// What the kernel refused, or [`LabError::Stopped`] as soon as `stop` is raised.
    pub fn behind_ap(run: &RunDir, stations: u16, stop: &Stop) -> Result<Hosts> {
        let server = Namespace::create(run, "server")?;
        let ap = Namespace::create(run, "ap")?;
        ap.make_router()?;
        let wire = vec![
            Port { name: "eth0", hop: WIRE, node: Node(0), peers: 1..2, gateway: Some(Node(1)) }.attach(&server)?,
            Port { name: "eth0", hop: WIRE, node: Node(1), peers: 0..1, gateway: None }.attach(&ap)?,
        ];
        let mut last =
            vec![Port { name: "wlan0", hop: LAST, node: AP, peers: 1..stations + 1, gateway: None }.attach(&ap)?];
        let mut spaces = Vec::new();
        for n in 1..=stations {
            // Each takes some 10 ms, and far more on a busy machine.
            if stop.is_raised() {
                return Err(LabError::Stopped);
            }
            let station = Namespace::create(run, &format!("sta{n}"))?;
            let port = Port { name: "wlan0", hop: LAST, node: Node(n), peers: 0..1, gateway: Some(AP) };
            last.push(port.attach(&station)?);
            spaces.push(station);
        }
        Ok(Hosts { server, ap: Some(ap), stations: spaces, taps: vec![wire, last] })
    }

    /// A server and one station at the two ends of one cable.
    pub fn on_one_wire(run: &RunDir) -> Result<Hosts> {
        let server = Namespace::create(run, "server")?;
        let station = Namespace::create(run, "sta1")?;
        let port =
            |node: u16| Port { name: "eth0", hop: WIRE, node: Node(node), peers: 1 - node..2 - node, gateway: None };
        let wire = vec![port(0).attach(&server)?, port(1).attach(&station)?];
        Ok(Hosts { server, ap: None, stations: vec![station], taps: vec![wire] })
    }

    /// The namespace of a host: the server, the access point, or a station; `None` for any other.
    pub fn of(&self, host: HostId) -> Option<&Namespace> {
        match host {
            Scenario::SERVER => Some(&self.server),
            Scenario::AP_HOST => self.ap.as_ref(),
            HostId(number) => self.stations.get(usize::from(number) - Scenario::station_host(0).index()),
        }
    }

    /// All of them, by [`HostId`].
    pub fn all(&self) -> impl Iterator<Item = &Namespace> {
        std::iter::once(&self.server).chain(&self.ap).chain(&self.stations)
    }

    /// Packets that any interface has dropped outside the models.
    pub fn dropped(&self) -> Result<u64> {
        let last = if self.ap.is_some() { "wlan0" } else { "eth0" };
        let mut sum = self.server.within(|| tap::dropped("eth0"))?;
        if let Some(ap) = &self.ap {
            sum += ap.within(|| Ok(tap::dropped("eth0")? + tap::dropped("wlan0")?))?;
        }
        for station in &self.stations {
            sum += station.within(|| tap::dropped(last))?;
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
    name: &'static str,
    hop: HopId,
    node: Node,
    /// The other nodes of the hop that it talks to.
    peers: Range<u16>,
    /// Who leads to everybody else, the other nodes of the hop included. Without one they are neighbours.
    gateway: Option<Node>,
}

impl Port {
    fn attach(&self, host: &Namespace) -> Result<Tap> {
        host.within(|| {
            let tap = Tap::create(self.name, mac(self.hop, self.node))?;
            let mut kernel = Netlink::open()?;
            let index = tap.index();
            kernel.set_up(index)?;
            let ipv6 = std::path::Path::new("/proc/sys/net/ipv6").exists();
            let (v4_prefix, v6_prefix) = match self.gateway {
                Some(_) => (32, 128),
                None => (V4_PREFIX, V6_PREFIX),
            };
            kernel.add_address(index, address::v4(self.hop, self.node).into(), v4_prefix)?;
            if ipv6 {
                kernel.add_address(index, address::v6(self.hop, self.node).into(), v6_prefix)?;
            }
            for peer in self.peers.clone().map(Node) {
                kernel.add_neighbour(index, address::v4(self.hop, peer).into(), mac(self.hop, peer))?;
                if ipv6 {
                    kernel.add_neighbour(index, address::v6(self.hop, peer).into(), mac(self.hop, peer))?;
                }
            }
            if let Some(gateway) = self.gateway {
                kernel.add_link_route(index, address::v4(self.hop, gateway).into())?;
                kernel.add_default_route(index, address::v4(self.hop, gateway).into())?;
                if ipv6 {
                    kernel.add_link_route(index, address::v6(self.hop, gateway).into())?;
                    kernel.add_default_route(index, address::v6(self.hop, gateway).into())?;
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
