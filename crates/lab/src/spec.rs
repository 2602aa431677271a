//! What a run is made of.

use crate::address::{self, Family, HopId, MAX_NODES};
use crate::congestion;
use crate::error::{LabError, Result};
use crate::tap::MTU;
use crate::topology;
use crate::traffic::iperf3;
use lasthop_laws::{Place, Transport};
use lasthop_radio::wifi::Role;
use lasthop_report::StreamInfo;
use lasthop_scenario::graph::{Graph, HostRole, Medium};
use lasthop_scenario::{Hop, MeshRouting, Program, Scenario, SetUp, Stream, StreamKind};
use lasthop_signals::{HostId, Node};
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;

/// A run: hosts, hops, traffic.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Hosts, the links between them, and routes: the server first, then the host of the access points, the stations, and others.
    pub graph: Graph,
    /// The last hop: a BSS, or a cable to each station.
    pub hop: Hop,
    /// IP version of all traffic.
    pub family: Family,
    /// What hosts send to each other.
    pub streams: Vec<Stream>,
    /// The scenario's streams as reports name them: [`Stream::number`] is a place in this list.
    pub infos: Vec<StreamInfo>,
    /// The kernel's name of the congestion control of what each host sends over TCP, by [`HostId`].
    pub congestion: Vec<String>,
    /// How long the run lasts.
    pub duration: Span,
    /// The first part of it, which no figure covers.
    pub warm_up: Span,
    /// Seed of the hop's random draws.
    pub seed: Seed,
    /// A program to run in the access point's namespace.
    pub agent: Option<AgentSpec>,
    /// Programs that carry the TCP streams over the hop; without them TCP goes from end to end.
    pub tunnel: Option<TunnelSpec>,
    /// Programs on stations that bound the windows of the station's own uploads.
    pub terminals: Vec<TerminalSpec>,
    /// What the scenario has that only the simulator can have, as a sentence of which the subject is the lab or its senders.
    pub beyond: Option<String>,
    /// Stations with a monitor interface, by their place in `stations`: on a Wi-Fi hop only.
    pub monitors: Vec<usize>,
}

/// What the lab does not have of a scenario under a law.
fn beyond(scenario: &Scenario, law: &SetUp) -> Option<String> {
    if law.regulator().is_some() && (scenario.backhaul().is_some() || scenario.access_points().len() > 1) {
        return Some("the lab's edge proxy stands at the one access point".to_owned());
    }
    if matches!(scenario.hop(), Hop::Cell(_)) {
        return Some("the lab has no cells".to_owned());
    }
    if scenario.mesh_routing() != MeshRouting::Static {
        return Some("the lab's meshes have static routes".to_owned());
    }
    let terminals = law.parts.iter().any(|part| part.place == Place::Terminal);
    if terminals
        && matches!(scenario.hop(), Hop::Wifi(plan) if plan.params().nodes.iter().any(|node| node.role == Role::Peer))
    {
        return Some("the lab's mesh stations run no law that bounds the windows of their own connections".to_owned());
    }
    if law.senders().any(|sender| sender.transport() != Transport::TCP) {
        return Some(
            "senders are the kernel's, which has neither ATP nor TCP without SACK, and tells no capacity".to_owned(),
        );
    }
    // The kernel's congestion control has parameters of its own, or none.
    let adjusted = law.senders().find(|law| !law.settings().is_empty())?;
    Some(format!("senders are the kernel's, whose {} takes no parameters from a scenario", adjusted.name()))
}

/// An edge proxy and the agents of the stations.
///
/// In their arguments `{keys}` becomes the proxy's file of keys, `{key}` that of the station's own key, `{station}` the station's
/// number, `{proxy}` the address at which stations reach the proxy, `{door}` that at which a station's agent takes requests
/// (HTTP CONNECT), `{monitor}` the station's monitor interface, `{log}` a file for the proxy's log, and `{station_log}` one for
/// the station's.
#[derive(Clone, Debug)]
pub struct TunnelSpec {
    /// The program.
    pub program: PathBuf,
    /// Makes a station's key; run once for each station before the others start.
    pub pair: Vec<String>,
    /// The proxy, in the access point's namespace.
    pub proxy: Vec<String>,
    /// A station's agent, in its namespace. It listens at `{door}` as soon as it runs.
    pub station: Vec<String>,
    /// Further arguments of a station's agent for each port `{local}` of its own that is to lead to `{target}`: for programs
    /// that cannot ask for a connection.
    pub forward: Vec<String>,
}

/// A program on a station that bounds the windows of the station's own uploads.
#[derive(Clone, Debug)]
pub struct TerminalSpec {
    /// The program.
    pub program: PathBuf,
    /// The station, by its place among the scenario's.
    pub station: usize,
    /// Its arguments. `{iface}` becomes the name of the station's interface on the last hop, `{cgroup}` the directory of the cgroup in which
    /// all sockets of the run are, `{key}` the file of a key that all stations share, `{bss}` the access point's BSSID, and
    /// `{log}` a file for the log, into which it writes once it looks after connections.
    pub arguments: Vec<String>,
}

/// A program that acts on the access point.
#[derive(Clone, Debug)]
pub struct AgentSpec {
    /// The program.
    pub program: PathBuf,
    /// Its arguments. `{driver}` becomes the path of the emulated driver's socket, `{iface}` the name of the wireless
    /// interface and `{wire}` that of the wired one. The program connects to the socket once it is ready.
    pub arguments: Vec<String>,
}

/// A link's number is one octet of its addresses.
const MOST_LINKS: usize = 250;

impl Spec {
    /// One run of `scenario` under `law`, without an agent. The wire, the hop and what crosses them are the
    /// scenario's.
    pub fn of(scenario: &Scenario, law: &SetUp, seed: u64) -> Spec {
        let hosts = scenario.hosts();
        Spec {
            graph: scenario.graph(),
            hop: scenario.hop_under(law),
            family: Family::V4,
            streams: scenario.streams_for(Seed(seed)),
            congestion: hosts.iter().map(|host| law.sender(&host.name).congestion().to_owned()).collect(),
            infos: scenario.stream_infos(),
            duration: scenario.duration(),
            warm_up: scenario.warm_up(),
            seed: Seed(seed),
            agent: None,
            tunnel: None,
            terminals: Vec::new(),
            beyond: beyond(scenario, law),
            monitors: scenario.monitors().to_vec(),
        }
    }

    /// The same with its streams numbered and named as a scenario's are: for one that was put together by hand.
    pub fn with_named_streams(mut self) -> Spec {
        self.streams.iter_mut().enumerate().for_each(|(number, stream)| stream.number = number);
        let name = |host| self.host_name(host).to_owned();
        self.infos = lasthop_scenario::stream_infos(&self.streams, name, |host| self.station_of(host));
        self
    }

    /// The address of each station on the last hop, node 1 first.
    pub fn station_addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        (0..self.stations().len()).map(|place| address::ip(self.family, topology::LAST, Scenario::station_node(place)))
    }

    /// The stations' names; nodes 1, 2… of the last hop.
    pub fn stations(&self) -> Vec<&str> {
        let stations = self.graph.hosts.iter().filter(|host| matches!(host.role, HostRole::Station(_)));
        stations.map(|host| host.name.as_str()).collect()
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> usize {
        self.graph.hosts.len()
    }

    /// The host called `name`: `server`, `ap`, a station's name, or that of another host.
    pub fn host(&self, name: &str) -> Option<HostId> {
        self.graph.host(name)
    }

    /// What a host is called.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn host_name(&self, host: HostId) -> &str {
        &self.graph.hosts[host.index()].name
    }

    /// The station that a host is, as its place in `stations`; `None` for any other.
    pub fn station_of(&self, host: HostId) -> Option<usize> {
        match self.graph.hosts.get(host.index())?.role {
            HostRole::Station(place) => Some(place),
            _ => None,
        }
    }

    /// The station whose figures a stream counts for: the receiver, or else the sender; `None` if neither is one.
    pub fn concerned(&self, stream: &Stream) -> Option<usize> {
        self.station_of(stream.to).or(self.station_of(stream.from))
    }

    /// The address at which `to` is reached from `from`: that of the interface at which packets arrive. Its own first one, if the two
    /// are one.
    ///
    /// # Panics
    /// If no way leads there.
    pub fn address(&self, to: HostId, from: HostId) -> IpAddr {
        let arrives = self.graph.arrival(from, to).map(|step| (usize::from(step.link), step.to));
        // A station's own address, and the access point's, is that on the last hop.
        let own = || {
            let last = |(link, _): &(usize, Node)| self.graph.links[*link].medium == Medium::LastHop;
            self.graph.interfaces(to).find(last).or(self.graph.interfaces(to).next())
        };
        let (link, node) = arrives.or_else(own).expect("checked: every host leads to every other");
        address::ip(self.family, HopId(link as u8), node)
    }

    /// True if stations forward each other's packets.
    pub(crate) fn is_mesh(&self) -> bool {
        matches!(&self.hop, Hop::Wifi(plan) if plan.params().nodes.iter().any(|node| node.role == Role::Peer))
    }

    /// The access points on the last hop, its own first.
    pub fn access_points(&self) -> Vec<Node> {
        let ends = &self.graph.links[usize::from(topology::LAST.0)].ends;
        (0..).map(Node).zip(ends).filter(|(_, end)| **end == Some(Scenario::AP_HOST)).map(|(node, _)| node).collect()
    }

    /// True for what an edge proxy carries: downloads over TCP from a wired host to a station.
    pub(crate) fn is_proxied(&self, stream: &Stream) -> bool {
        self.tunnel.is_some() && self.station_of(stream.to).is_some() && self.station_of(stream.from).is_none()
    }

    /// Everything that can be found wrong before anything is built.
    ///
    /// # Errors
    /// [`LabError::Spec`], or [`LabError::Missing`] for what the machine lacks.
    pub fn check(&self) -> Result<()> {
        let wrong = |why: String| Err(LabError::Spec(why));
        if self.stations().is_empty() || self.stations().len() >= usize::from(MAX_NODES) {
            return wrong(format!("{} stations: the lab has room for 1 to {}", self.stations().len(), MAX_NODES - 1));
        }
        if self.duration.is_zero() || self.warm_up >= self.duration {
            return wrong(format!("a warm-up of {} in a run of {}", self.warm_up, self.duration));
        }
        if self.family == Family::V6 && !std::path::Path::new("/proc/sys/net/ipv6").exists() {
            return wrong("IPv6 is wanted, and this kernel has none".into());
        }
        if let Some(what) = &self.beyond {
            return wrong(format!("{what}: use the simulator (--world sim)"));
        }
        if self.congestion.len() < self.hosts() {
            return wrong(format!("congestion controls for {} of {} hosts", self.congestion.len(), self.hosts()));
        }
        if let Some(place) = self.monitors.iter().find(|place| **place >= self.stations().len()) {
            return wrong(format!("a monitor interface for station {place} of {}", self.stations().len()));
        }
        if matches!(self.hop, Hop::Wired(_) | Hop::Trace(_)) && !self.monitors.is_empty() {
            return wrong("a monitor interface on a hop that has no radio".into());
        }
        let last = match &self.hop {
            Hop::Wired(hop) => hop.down.rate.min(hop.up.rate),
            Hop::Cell(_) => return wrong("an LTE cell, and the lab has none: use the simulator (--world sim)".into()),
            Hop::Wifi(plan) if plan.params().nodes.len() <= self.stations().len() => {
                return wrong(format!(
                    "{} stations on a hop with {} nodes",
                    self.stations().len(),
                    plan.params().nodes.len()
                ));
            }
            Hop::Wifi(_) | Hop::Trace(_) => Rate::MAX,
        };
        let cables = self.graph.links.iter().filter_map(|link| match &link.medium {
            Medium::Cable(cable) => Some(cable.lines[0].rate.min(cable.lines[1].rate)),
            Medium::LastHop => None,
        });
        if cables.chain([last]).any(Rate::is_zero) {
            return wrong("a wire with a rate of zero carries nothing".into());
        }
        let ends = self.graph.links.iter().flat_map(|link| link.ends.iter().rposition(Option::is_some));
        if let Some(node) = ends.max().filter(|node| *node >= usize::from(MAX_NODES)) {
            return wrong(format!("node {node} of a hop: the lab has room for {MAX_NODES}"));
        }
        if self.graph.links.len() > MOST_LINKS {
            return wrong(format!("{} links: the lab has room for {MOST_LINKS}", self.graph.links.len()));
        }
        self.streams.iter().try_for_each(|stream| self.check_stream(stream))?;
        let over_tcp = |kind| matches!(kind, StreamKind::Bulk { .. } | StreamKind::Fetch { .. });
        let senders = self.streams.iter().filter(|stream| over_tcp(stream.kind)).map(|stream| stream.from.index());
        senders.collect::<BTreeSet<usize>>().into_iter().try_for_each(|host| self.check_congestion(host))
    }

    /// As [`Spec::check`], for a world in which every host may open connections of any kind.
    ///
    /// # Errors
    /// As [`Spec::check`].
    pub fn check_for_programs(&self) -> Result<()> {
        self.check()?;
        (0..self.hosts()).try_for_each(|host| self.check_congestion(host))
    }

    fn check_congestion(&self, host: usize) -> Result<()> {
        let name = &self.congestion[host];
        if congestion::exists(name) {
            return Ok(());
        }
        Err(LabError::no_congestion_control(name))
    }

    fn check_stream(&self, stream: &Stream) -> Result<()> {
        let wrong = |why: String| Err(LabError::Spec(why));
        if let Some(host) = [stream.from, stream.to].into_iter().find(|host| host.index() >= self.hosts()) {
            return wrong(format!("a stream of host {} of {}", host.0, self.hosts()));
        }
        if stream.from == stream.to {
            return wrong(format!("a stream from {} to itself", self.host_name(stream.from)));
        }
        if stream.stop <= stream.start || stream.stop > Time::ZERO + self.duration {
            return wrong(format!(
                "a stream from {:?} to {:?} in a run of {}",
                stream.start, stream.stop, self.duration
            ));
        }
        match stream.kind {
            StreamKind::Bulk { program: Program::Iperf3, .. } if !iperf3::is_installed() => Err(LabError::Missing {
                what: "the program iperf3".into(),
                get: "install it (on Debian: apt-get install iperf3), or let the traffic have program = \"own\"".into(),
            }),
            StreamKind::Probe { size, .. } | StreamKind::Udp { size, .. } if size > self.largest_datagram() => {
                let most = self.largest_datagram();
                wrong(format!("datagrams of {size}: the lab sends at most {most}, which fits one packet"))
            }
            StreamKind::Probe { every, .. } | StreamKind::Fetch { every, .. } if every.is_zero() => {
                wrong("an interval of zero".into())
            }
            StreamKind::Udp { rate: None, .. } => {
                let why =
                    "in the lab UDP traffic needs a rate of its own: give it one, or use the simulator (--world sim)";
                wrong(why.into())
            }
            StreamKind::Udp { .. } if stream.every().is_none_or(Span::is_zero) => {
                wrong("UDP traffic with a rate of zero, or without end".into())
            }
            _ => Ok(()),
        }
    }

    /// UDP payload that fits one packet.
    fn largest_datagram(&self) -> Bytes {
        let headers = match self.family {
            Family::V4 => 28,
            Family::V6 => 48,
        };
        Bytes::new(u64::from(MTU) - headers)
    }
}
