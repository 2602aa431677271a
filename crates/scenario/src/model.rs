//! What a validated scenario tells: holding one is proof that it can be built.

use crate::graph::{Cable, Graph, Host, HostRole, Link, Medium, Route};
use crate::read::nearest;
use crate::{MeshRouting, Program, SetUp, World};
use lasthop_laws::{Choice, Place, Transport};
use lasthop_radio::{AccessClass, LastHop, wifi};
use lasthop_report::{Direction, Key, NOBODY, StreamInfo};
use lasthop_signals::{HostId, Node};
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use rand::RngExt;
use std::collections::BTreeSet;
use std::fmt;

/// What is to be run. Built only by [`Scenario::load`] and [`Scenario::parse`].
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The file; put there once all of it is found right.
    pub(crate) text: String,
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) world: World,
    pub(crate) duration: Span,
    pub(crate) warm_up: Span,
    pub(crate) seeds: Vec<u64>,
    pub(crate) wire: Cable,
    pub(crate) backhaul: Option<Cable>,
    pub(crate) hop: LastHop,
    pub(crate) mesh_routing: MeshRouting,
    pub(crate) host_delay: Span,
    pub(crate) stations: Vec<String>,
    pub(crate) further: Further,
    pub(crate) access_points: Vec<String>,
    pub(crate) monitors: Vec<usize>,
    pub(crate) small_queues: Vec<usize>,
    pub(crate) streams: Vec<Stream>,
    pub(crate) laws: Vec<SetUp>,
    pub(crate) measures: Vec<Key>,
}

impl Scenario {
    /// The file's name without directory and extension.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file as it was read, so that a result can be made again where the file has changed or is gone.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// One line for tables and reports.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// What it shows, and where its parameters come from; may be empty.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Where it wants to run.
    pub fn world(&self) -> World {
        self.world
    }

    /// How long one run lasts, warm-up included.
    pub fn duration(&self) -> Span {
        self.duration
    }

    /// The first part of the run, which no figure covers; shorter than [`Scenario::duration`].
    pub fn warm_up(&self) -> Span {
        self.warm_up
    }

    /// One run each; at least one, all different.
    pub fn seeds(&self) -> &[u64] {
        &self.seeds
    }

    /// The link between server and access point, equal in both directions.
    pub fn wire(&self) -> &Cable {
        &self.wire
    }

    /// The link between where an edge proxy stands and the access point, if there is one.
    pub fn backhaul(&self) -> Option<&Cable> {
        self.backhaul.as_ref()
    }

    /// The last hop with its own queue.
    pub fn hop(&self) -> &LastHop {
        &self.hop
    }

    /// From a frame's last bit on a Wi-Fi hop until the node's network stack has what it carried; zero on any other hop. For the
    /// simulator: the hosts of the lab take their own time.
    pub fn host_delay(&self) -> Span {
        self.host_delay
    }

    /// The same over another radio, for what no file can say.
    ///
    /// # Panics
    /// If the last hop is no Wi-Fi, or one of another number of nodes.
    pub fn with_wifi(mut self, plan: wifi::Plan) -> Scenario {
        let LastHop::Wifi(own) = &mut self.hop else { panic!("the last hop is no Wi-Fi") };
        assert_eq!(own.params().nodes.len(), plan.params().nodes.len(), "nodes of the last hop");
        *own = plan.into();
        self
    }

    /// The last hop under `law`: with the law's queue where it has one.
    ///
    /// # Panics
    /// If `law` is not this scenario's and its queue cannot be.
    pub fn hop_under(&self, law: &SetUp) -> LastHop {
        let mut hop = self.hop.clone();
        if let Some(queue) = law.queue {
            assert!(hop.plan_mut().set_queue(queue), "checked when the scenario was read");
        }
        // Receivers that tell of their cell are shown what a recorded link could carry.
        if law.senders().any(|sender| sender.transport() == Transport::ReceiverFeedback) {
            hop.plan_mut().show_capacity();
        }
        hop
    }

    /// The access point on its hop.
    pub const AP: Node = Node(0);

    /// The access point of a station, by its place in [`Scenario::stations`].
    ///
    /// # Panics
    /// If there is no such station.
    pub fn access_point_of(&self, station: usize) -> Node {
        self.hop.plan().access_point_of(station)
    }

    /// Names of the further access points: all but the hop's own, in the order of their nodes, which are the hop's last.
    pub fn further_access_points(&self) -> &[String] {
        &self.access_points
    }

    /// A station on its hop, by its place in [`Scenario::stations`].
    pub fn station_node(station: usize) -> Node {
        Node(u16::try_from(station + 1).expect("a hop holds at most 1024 nodes"))
    }

    /// Names of the stations; at least one, all different. Everything that refers to a station does so by its place
    /// in this list.
    pub fn stations(&self) -> &[String] {
        &self.stations
    }

    /// Places of the stations with a TCP that keeps the queue in the station small, rising.
    pub fn small_queues(&self) -> &[usize] {
        &self.small_queues
    }

    /// Places of the stations that have a monitor interface, rising.
    pub fn monitors(&self) -> &[usize] {
        &self.monitors
    }

    /// The server of the short form.
    pub const SERVER: HostId = HostId(0);

    /// The host that the access points are.
    pub const AP_HOST: HostId = HostId(1);

    /// The host of a station, by its place in [`Scenario::stations`].
    pub fn station_host(station: usize) -> HostId {
        HostId(u16::try_from(station + 2).expect("a hop holds at most 1024 nodes"))
    }

    /// The host called `name`.
    ///
    /// # Errors
    /// [`UnknownHost`] says which names there are.
    pub fn host(&self, name: &str) -> Result<HostId, UnknownHost> {
        let known: Vec<String> = self.hosts().into_iter().map(|host| host.name).collect();
        match known.iter().position(|host| host == name).map(u16::try_from) {
            Some(Ok(place)) => Ok(HostId(place)),
            _ => Err(UnknownHost { name: name.to_owned(), scenario: self.name.clone(), known }),
        }
    }

    /// The station that a host is, as its place in [`Scenario::stations`]; `None` for any other host.
    pub fn station_of(&self, host: HostId) -> Option<usize> {
        host.index().checked_sub(2).filter(|place| *place < self.stations.len())
    }

    /// Every host: the server, the access point, the stations, the edge where there is a backhaul, and every `[[host]]`.
    pub fn hosts(&self) -> Vec<Host> {
        let host = |name: &str, role| Host { name: name.to_owned(), role };
        let mut hosts = vec![host("server", HostRole::Wired), host("ap", HostRole::AccessPoint)];
        hosts.extend(self.stations.iter().enumerate().map(|(place, name)| host(name, HostRole::Station(place))));
        hosts.extend(self.backhaul.iter().map(|_| host("edge", HostRole::Edge)));
        hosts.extend(self.further.hosts.iter().map(|name| host(name, HostRole::Wired)));
        hosts
    }

    /// The host at which edge proxies stand.
    pub fn edge(&self) -> HostId {
        match self.backhaul {
            Some(_) => Scenario::station_host(self.stations.len()),
            None => Scenario::AP_HOST,
        }
    }

    /// The world as hosts, links and routes.
    pub fn graph(&self) -> Graph {
        let cable = |cable: &Cable, ends: [HostId; 2]| Link {
            medium: Medium::Cable(cable.clone()),
            ends: ends.map(Some).to_vec(),
        };
        let mut ends = vec![None; self.hop.plan().nodes(self.stations.len())];
        let mut radio = Vec::new();
        for place in 0..self.stations.len() {
            let (station, ap) = (Scenario::station_node(place), self.access_point_of(place));
            ends[station.index()] = Some(Scenario::station_host(place));
            ends[ap.index()] = Some(Scenario::AP_HOST);
            radio.push((ap, station));
        }
        if let Some(mesh) = self.hop.plan().mesh() {
            radio = mesh;
        }
        let mut links =
            vec![cable(&self.wire, [Scenario::SERVER, self.edge()]), Link { medium: Medium::LastHop, ends }];
        links.extend(self.backhaul.iter().map(|backhaul| cable(backhaul, [self.edge(), Scenario::AP_HOST])));
        links.extend(self.further.cables.iter().map(|(further, ends)| cable(further, *ends)));
        Graph { hosts: self.hosts(), links, radio, routes: self.further.routes.clone() }
    }

    /// The access points on the last hop, its own first. One without stations is left out.
    pub fn access_points(&self) -> Vec<Node> {
        let homes: BTreeSet<Node> = (0..self.stations.len()).map(|place| self.access_point_of(place)).collect();
        let others = homes.into_iter().filter(|home| *home != Scenario::AP);
        std::iter::once(Scenario::AP).chain(others).collect()
    }

    /// What of this scenario cannot be run under a law; `None` if all can.
    pub fn unfit(&self, law: &SetUp) -> Option<String> {
        let atp = |host: HostId| {
            let hosts = self.hosts();
            law.sender(&hosts[host.index()].name).transport() == Transport::Atp
        };
        let speaks_atp = law.senders().any(|sender| sender.transport() == Transport::Atp);
        if speaks_atp && !matches!(self.hop, LastHop::Wifi(_)) {
            let hop = self.hop.plan().is();
            return Some(format!("ATP goes by the delays that nodes of a Wi-Fi channel tell, and this hop is {hop}"));
        }
        let fetches =
            self.streams.iter().any(|stream| matches!(stream.kind, StreamKind::Fetch { .. }) && atp(stream.from));
        fetches.then(|| "traffic of kind \"fetch\" needs TCP, and ATP carries bulk traffic only".to_owned())
    }

    /// True if the stations forward each other's packets.
    pub fn is_mesh(&self) -> bool {
        self.hop.plan().mesh().is_some()
    }

    /// Where the routes of a mesh's nodes come from; static for whatever is no mesh.
    pub fn mesh_routing(&self) -> MeshRouting {
        self.mesh_routing
    }

    /// True if there are hosts, links or routes beside the short form's.
    pub fn is_extended(&self) -> bool {
        self.further != Further::default()
    }

    /// The streams: `"each"` and parallel flows spelled out, one stream for each connection or probe.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// The streams as reports name them, in the order of [`Scenario::streams`].
    pub fn stream_infos(&self) -> Vec<StreamInfo> {
        let hosts = self.hosts();
        stream_infos(&self.streams, |host| hosts[host.index()].name.clone(), |host| self.station_of(host))
    }

    /// The streams as they run with `seed`, the same in every world. Those that repeat begin at a random part of their
    /// interval after their start: all would otherwise act at the same moments, run after run, which no real ones do.
    /// One that would begin only after its end is left out.
    pub fn streams_for(&self, seed: Seed) -> Vec<Stream> {
        let mut phases = seed.stream("traffic/phase");
        let streams = self.streams.iter().map(|stream| {
            // Every stream draws, so that a stream's phase does not depend on what those before it are.
            let phase = phases.random::<f64>();
            Stream { start: stream.start + stream.every().unwrap_or(Span::ZERO).scale(phase), ..*stream }
        });
        streams.filter(|stream| stream.start < stream.stop).collect()
    }

    /// The laws to compare, in the order of the file; at least one.
    pub fn laws(&self) -> &[SetUp] {
        &self.laws
    }

    /// The law called `name`: one of the table, or a bare sender law.
    ///
    /// # Errors
    /// [`UnknownLaw`] says which names there are.
    pub fn law(&self, name: &str) -> Result<SetUp, UnknownLaw> {
        if let Some(law) = self.laws.iter().find(|law| law.name == name) {
            return Ok(law.clone());
        }
        if let Some(sender) = Choice::named(Place::Sender, name) {
            return Ok(SetUp::bare(name, sender));
        }
        let mut known: Vec<String> = self.laws.iter().map(|law| law.name.clone()).collect();
        for sender in Place::Sender.laws().map(|law| law.name.to_owned()) {
            if !known.contains(&sender) {
                known.push(sender);
            }
        }
        Err(UnknownLaw { name: name.to_owned(), scenario: self.name.clone(), known })
    }

    /// The figures to report: those that were asked for, else all that the traffic can yield.
    pub fn measures(&self) -> &[Key] {
        &self.measures
    }
}

/// Streams as reports name them, by the names of their hosts and the places of those that are stations.
pub fn stream_infos(
    streams: &[Stream],
    name: impl Fn(HostId) -> String,
    station_of: impl Fn(HostId) -> Option<usize>,
) -> Vec<StreamInfo> {
    let mut infos: Vec<StreamInfo> = Vec::with_capacity(streams.len());
    for stream in streams {
        let (from, to) = (name(stream.from), name(stream.to));
        let kind = match stream.kind {
            StreamKind::Bulk { .. } => "bulk",
            StreamKind::Probe { .. } => "probe",
            // As fast as a regulator allows is what bulk traffic is.
            StreamKind::Udp { rate: None, .. } => "bulk-udp",
            StreamKind::Udp { .. } => "udp",
            StreamKind::Fetch { .. } => "fetch",
        };
        let (direction, station) = match [station_of(stream.from), station_of(stream.to)] {
            [None, Some(to)] => (Direction::Down, Some(to)),
            [Some(from), None] => (Direction::Up, Some(from)),
            [Some(_), Some(to)] => (Direction::Across, Some(to)),
            [None, None] => (Direction::Wired, None),
        };
        let plain = format!("{kind} {from} to {to}");
        let earlier = infos.iter().filter(|info| info.kind == kind && info.from == from && info.to == to).count();
        let name = if earlier == 0 { plain } else { format!("{plain} #{}", earlier + 1) };
        let station = station.map_or(NOBODY, Scenario::station_node);
        infos.push(StreamInfo { name, kind: kind.to_owned(), from, to, direction, station });
    }
    infos
}

/// What a file says beside the short form.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Further {
    /// Names of the hosts.
    pub hosts: Vec<String>,
    pub cables: Vec<(Cable, [HostId; 2])>,
    pub routes: Vec<Route>,
}

/// A law that the scenario does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[error("the scenario {scenario} knows no law `{name}`")]
#[diagnostic(code(scenario::unknown_law), help("its laws are {}", known.join(", ")))]
pub struct UnknownLaw {
    /// The name that was asked for.
    pub name: String,
    /// The scenario's name.
    pub scenario: String,
    /// The names that it knows.
    pub known: Vec<String>,
}

/// A host that the scenario does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the scenario {scenario} has no host `{name}`")]
pub struct UnknownHost {
    /// The name that was asked for.
    pub name: String,
    /// The scenario's name.
    pub scenario: String,
    /// The names that it has, by [`HostId`].
    pub known: Vec<String>,
}

impl miette::Diagnostic for UnknownHost {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new("scenario::unknown_host"))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let near = nearest(&self.name, self.known.iter().map(String::as_str));
        let known = format!("its hosts are {}", self.known.join(", "));
        Some(Box::new(near.map_or(known.clone(), |near| format!("did you mean `{near}`? {known}"))))
    }
}

/// One connection or one probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream {
    /// Its place in [`Scenario::streams`].
    pub number: usize,
    /// The host that has the data.
    pub from: HostId,
    /// The host that receives it.
    pub to: HostId,
    /// When it begins.
    pub start: Time,
    /// When it ends; not after the run.
    pub stop: Time,
    /// Access category of its packets, both ways.
    pub class: AccessClass,
    /// What it is.
    pub kind: StreamKind,
}

impl Stream {
    /// True for what always has more to send: TCP, or UDP as fast as a regulator allows.
    pub fn is_bulk(&self) -> bool {
        matches!(self.kind, StreamKind::Bulk { .. } | StreamKind::Udp { rate: None, .. })
    }

    /// The interval of one that repeats.
    pub fn every(&self) -> Option<Span> {
        match self.kind {
            StreamKind::Bulk { .. } => None,
            StreamKind::Probe { every, .. } | StreamKind::Fetch { every, .. } => Some(every),
            StreamKind::Udp { size, rate, .. } => rate?.time_for(size + UDP_HEADERS),
        }
    }
}

/// IPv4 and UDP headers.
pub const UDP_HEADERS: Bytes = Bytes::new(28);

/// What a station sends to ask for a [`StreamKind::Fetch`]: an HTTP request with the usual headers.
pub const REQUEST: Bytes = Bytes::new(300);

/// What a stream is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StreamKind {
    /// One TCP download.
    Bulk {
        /// What is sent in all; `None` is as much as goes.
        size: Option<Bytes>,
        /// The program that sends in the lab.
        program: Program,
        /// What may be written and not acknowledged; `None` is what the world allows.
        send_buffer: Option<Bytes>,
    },
    /// UDP packets at a fixed interval.
    Probe {
        /// UDP payload.
        size: Bytes,
        /// Interval; not zero.
        every: Span,
    },
    /// UDP packets without end.
    Udp {
        /// UDP payload of each.
        size: Bytes,
        /// Network-layer rate; `None` for as fast as the law's regulator allows.
        rate: Option<Rate>,
        /// Packets leave exactly one interval apart. Otherwise each leaves at a random moment of its own interval.
        periodic: bool,
    },
    /// Short TCP downloads at a fixed interval, each on a connection of its own, begun whether or not the one before
    /// has ended.
    Fetch {
        /// Payload of each.
        size: Bytes,
        /// Interval; not zero.
        every: Span,
    },
}
