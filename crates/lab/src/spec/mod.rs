//! What a run is made of.

mod check;
mod programs;

pub(crate) use programs::forwarded;
pub use programs::{AccountSpec, CarrierSpec, Cause, DOOR, ProgramSpec, Ready};

use crate::address::{self, Family, HopId};
use crate::topology;
use lasthop_laws::{Choice, Transport};
use lasthop_radio::LastHop;
use lasthop_report::StreamInfo;
use lasthop_scenario::graph::{Graph, HostRole, Medium};
use lasthop_scenario::{Scenario, SetUp, Stream, StreamKind};
use lasthop_signals::{HostId, Node};
use lasthop_units::{Seed, Span};
use std::net::{IpAddr, SocketAddr};

/// A run: hosts, hops, traffic.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Hosts, the links between them, and routes: the server first, then the host of the access points, the stations, and others.
    pub graph: Graph,
    /// The last hop: a BSS, or a cable to each station.
    pub hop: LastHop,
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
    /// Programs beside the traffic, in the order of their start.
    pub programs: Vec<ProgramSpec>,
    /// What carries the bulk transfers of each host, by [`HostId`]: programs with a transport of their own, or `None` for the kernel's TCP.
    pub carriers: Vec<Option<CarrierSpec>>,
    /// What the scenario has that only the simulator can have, as a sentence of which the subject is the lab or its senders.
    pub beyond: Option<String>,
    /// Stations with a monitor interface, by their place in `stations`: on a Wi-Fi hop only.
    pub monitors: Vec<usize>,
}

/// The kernel's name of the congestion control of a host's TCP: Linux's own choice where its law is of another transport.
fn congestion(sender: &Choice) -> &str {
    if sender.transport() == Transport::TCP && !sender.is_ours_alone() { sender.congestion() } else { "cubic" }
}

/// ATP's port (`lasthop recv`).
const FIRST_CARRIED: u16 = 4900;

impl Spec {
    /// One run of `scenario` under `law`, without programs beside the traffic. The wire, the hop and what crosses them are the
    /// scenario's.
    pub fn of(scenario: &Scenario, law: &SetUp, seed: u64) -> Spec {
        let hosts = scenario.hosts();
        Spec {
            graph: scenario.graph(),
            hop: scenario.hop_under(law),
            family: Family::V4,
            streams: scenario.streams_for(Seed(seed)),
            congestion: hosts.iter().map(|host| congestion(law.sender(&host.name)).to_owned()).collect(),
            infos: scenario.stream_infos(),
            duration: scenario.duration(),
            warm_up: scenario.warm_up(),
            seed: Seed(seed),
            programs: Vec::new(),
            carriers: vec![None; hosts.len()],
            beyond: check::beyond(scenario, law),
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

    /// The station that a stream's figures count for: the receiver, or else the sender; `None` if neither is one.
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
        self.hop.plan().mesh().is_some()
    }

    /// The access points on the last hop, its own first.
    pub fn access_points(&self) -> Vec<Node> {
        let ends = &self.graph.links[usize::from(topology::LAST.0)].ends;
        (0..).map(Node).zip(ends).filter(|(_, end)| **end == Some(Scenario::AP_HOST)).map(|(node, _)| node).collect()
    }

    /// The nodes of the last hop with a socket of their driver, and their hosts: the access points, and all nodes of a mesh.
    pub fn reporters(&self) -> Vec<(Node, HostId)> {
        let ends = &self.graph.links[usize::from(topology::LAST.0)].ends;
        let hosts = (0..).map(Node).zip(ends).filter_map(|(node, end)| end.map(|host| (node, host)));
        hosts.filter(|(_, host)| *host == Scenario::AP_HOST || self.is_mesh()).collect()
    }

    /// Where programs of a host find one that opens connections for them; `None` if none does.
    pub(crate) fn door(&self, host: HostId) -> Option<SocketAddr> {
        let opens = |program: &&ProgramSpec| program.host == host && !program.forward.is_empty();
        self.programs.iter().find(opens).map(|_| DOOR)
    }

    /// True for what is opened through such a door: downloads over TCP from a wired host to a station.
    pub(crate) fn is_proxied(&self, stream: &Stream) -> bool {
        self.door(stream.to).is_some() && self.station_of(stream.from).is_none()
    }

    /// What carries a stream in place of the kernel's TCP, if anything does.
    pub fn carrier(&self, stream: &Stream) -> Option<&CarrierSpec> {
        self.carriers.get(stream.from.index())?.as_ref().filter(|_| matches!(stream.kind, StreamKind::Bulk { .. }))
    }

    /// The UDP port of stream `number`, which a carrier carries: the first ones of its receiver, in the order of streams.
    pub fn carried_at(&self, number: usize) -> u16 {
        let to = self.streams[number].to;
        let before = self.streams[..number].iter().filter(|stream| stream.to == to && self.carrier(stream).is_some());
        FIRST_CARRIED + before.count() as u16
    }

    /// The UDP ports that carriers use: at least one, for what a user may start.
    pub fn carried_ports(&self) -> impl Iterator<Item = u16> + use<> {
        let carried = (0..self.streams.len()).filter(|number| self.carrier(&self.streams[*number]).is_some());
        FIRST_CARRIED..=carried.map(|number| self.carried_at(number)).max().unwrap_or(FIRST_CARRIED)
    }
}
