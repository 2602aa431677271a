//! From a validated scenario to the record of one run.

use crate::access_point::Agent;
use crate::context::{AccessPoints, Context};
use crate::net::{Link, Net};
use crate::program::Program;
use crate::programs::atp::Atp;
use crate::programs::cell_monitor::CellMonitor;
use crate::programs::edge::Edge;
use crate::programs::probe::Probe;
use crate::programs::proxy::Proxy;
use crate::programs::relay::Relay;
use crate::programs::source::Source;
use crate::programs::tcp::Tcp;
use crate::programs::terminal::Terminal;
use crate::programs::transfer::Transfer;
use crate::programs::udp::Udp;
use crate::programs::{router, station};
use crate::sockets::Sockets;
use crate::world::World;
use lasthop_laws::aggregation::SLOT;
use lasthop_laws::{BuildError, Choice, HopLaw, ParamError, Place, Transport};
use lasthop_radio::LastHop;
use lasthop_radio::last_hop::Model;
use lasthop_radio::wired::Wire;
use lasthop_report::{Recorder, RunRecord, Window};
use lasthop_scenario::graph::{Graph, HostRole, Medium};
use lasthop_scenario::{MeshRouting, Part, Scenario, SetUp, Stream, StreamKind};
use lasthop_signals::Node;
use lasthop_units::{Seed, Span, Time};
use std::collections::BTreeSet;

/// Why a scenario cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// The parameters of the agent or of the regulator make no law.
    #[error("the law on the access point cannot be built")]
    Law(#[from] ParamError),
    /// A law that the simulator does not have.
    #[error("{source}: use the lab (--world lab), or one of {}", ours())]
    Build {
        /// Which, and why.
        #[from]
        source: BuildError,
    },
    /// A law that the scenario cannot have.
    #[error("{0}: use another law")]
    Unfit(String),
    /// Traffic that goes as fast as a regulator allows, and none.
    #[error("this law has no regulator, and UDP traffic without a rate needs one")]
    Unregulated,
}

/// The senders' laws that the simulator has.
fn ours() -> String {
    Place::Sender.laws().map(|law| law.name).collect::<Vec<_>>().join(", ")
}

/// How often the caller hears of progress and may stop, in virtual time.
const STEP: Span = Span::from_millis(100);

/// Simulates `scenario` under `law` with `seed`. `progress` is told the virtual time that has passed and answers whether to
/// go on; `None` if it said no.
///
/// # Errors
/// See [`SimError`].
pub fn run(
    scenario: &Scenario,
    law: &SetUp,
    seed: u64,
    keep_packets: bool,
    progress: &mut dyn FnMut(Span) -> bool,
) -> Result<Option<RunRecord>, SimError> {
    let world = build(scenario, law, Seed(seed), keep_packets)?;
    Ok(drive(world, scenario, STEP, &mut |_, done| progress(done)))
}

/// Simulates a world of `scenario` from its beginning to its end. `progress` is shown it after every `step` of virtual time, told how much has
/// passed, and answers whether to go on; `None` if it said no.
pub fn drive(
    mut world: World,
    scenario: &Scenario,
    step: Span,
    progress: &mut dyn FnMut(&World, Span) -> bool,
) -> Option<RunRecord> {
    let end = Time::ZERO + scenario.duration();
    let warm_up = Time::ZERO + scenario.warm_up();
    let mut until = Time::ZERO;
    let mut counted = false;
    while until < end {
        until = (until + step).min(end);
        if !counted && until >= warm_up {
            // Retransmissions of the warm-up are not counted: tell the recorder what there was at its end.
            world.run_until(warm_up);
            world.count_segments(warm_up);
            counted = true;
        }
        world.run_until(until);
        if !progress(&world, until.since(Time::ZERO)) {
            return None;
        }
    }
    Some(world.finish(end).finish())
}

/// The world of a scenario at its beginning.
///
/// # Errors
/// See [`SimError`].
pub fn build(scenario: &Scenario, law: &SetUp, seed: Seed, keep_packets: bool) -> Result<World, SimError> {
    build_with(scenario, law, seed, keep_packets, &mut |_, law| law)
}

/// Is given an access point's place among them, and the law that the set-up has for it, and answers which law its agent has; with `None` it
/// has no agent.
pub type Agents<'a> = dyn FnMut(usize, Option<Box<dyn HopLaw>>) -> Option<Box<dyn HopLaw>> + 'a;

/// The same with other agents on its access points.
///
/// # Errors
/// See [`SimError`].
pub fn build_with(
    scenario: &Scenario,
    law: &SetUp,
    seed: Seed,
    keep_packets: bool,
    agent: &mut Agents<'_>,
) -> Result<World, SimError> {
    let greedy = |stream: &Stream| matches!(stream.kind, StreamKind::Udp { rate: None, .. });
    if let Some(kernel) = law.senders().find(|sender| sender.is_kernel()) {
        return Err(BuildError::Kernel { name: kernel.name().to_owned() }.into());
    }
    if let Some(what) = scenario.unfit(law) {
        return Err(SimError::Unfit(what));
    }
    if law.regulator().is_none() && scenario.streams().iter().any(greedy) {
        return Err(SimError::Unregulated);
    }
    let graph = scenario.graph();
    let last_hop = graph.links.iter().position(|link| link.medium == Medium::LastHop);
    let hop = scenario.hop_under(law);
    let radio = matches!(hop, LastHop::Wifi(_));
    let stations = scenario.stations().iter().enumerate();
    let stations = stations.map(|(place, name)| (Scenario::station_node(place), name.clone()));
    let window = Window { warm_up: Time::ZERO + scenario.warm_up(), end: Time::ZERO + scenario.duration() };
    let mut recorder = Recorder::new(window, stations);
    recorder.set_streams(scenario.stream_infos());
    if keep_packets {
        recorder.keep_packets();
    }
    let access_points = access_points(scenario);
    let last_hop = last_hop.expect("a scenario has a last hop");
    let relays = relays(law, &hop);
    let proxy = law.regulator().map(|choice| proxies(&access_points, choice, law, (scenario, seed))).transpose()?;
    let station = |role: HostRole| match role {
        HostRole::Station(place) => Some(Scenario::station_node(place)),
        _ => None,
    };
    let stations = graph.hosts.iter().map(|host| station(host.role)).collect();
    let terminals = terminals(scenario, law, seed)?;
    let senders: Vec<Choice> = graph.hosts.iter().map(|host| law.sender(&host.name).clone()).collect();
    let tells = senders.iter().any(|sender| sender.transport() == Transport::ReceiverFeedback);
    let small_queues: BTreeSet<Node> =
        scenario.small_queues().iter().map(|place| Scenario::station_node(*place)).collect();
    let count = scenario.stations().len();
    let completions = !small_queues.is_empty() || !relays.is_empty() || !terminals.is_empty();
    let net = net(&graph, hop, count, completions, seed);
    let sockets = Sockets { laws: senders, counted: small_queues.clone(), small_queues, ..Sockets::default() };
    let context = Context::new((net, last_hop), access_points, stations, sockets, recorder, seed);
    let mut world = World::new(context, radio, scenario.host_delay());
    let names = std::iter::once(SetUp::AP).chain(scenario.further_access_points().iter().map(String::as_str));
    for (place, name) in names.enumerate() {
        let own = law.part(Place::AccessPoint, name).map(|part| part.law.hop()).transpose()?;
        if let Some(law) = agent(place, own) {
            world.add_hook(Scenario::AP_HOST, Box::new(Agent::with_law(law, world.radio(place))));
        }
    }
    for (node, (host, service)) in graph.links[last_hop].ends.iter().zip(relays).enumerate() {
        if let Some(host) = host {
            world.add_hook(*host, Box::new(Relay::new((last_hop, Node(node as u16)), service)));
        }
    }
    // In the order in which they act where they are due at the same time.
    world.add(Box::new(Tcp));
    for (place, stream) in scenario.streams_for(seed).into_iter().enumerate() {
        let sender = law.sender(&graph.hosts[stream.from.index()].name);
        world.add_stream(program_of(Source::new(stream, place, seed), sender));
    }
    if let Some((proxies, stations)) = proxy {
        world.add(Box::new(Edge::new(proxies, stations, scenario.edge())));
    }
    terminals.into_iter().for_each(|terminal| world.add(Box::new(terminal)));
    if scenario.mesh_routing() == MeshRouting::Olsr {
        let routers = router::routers(&graph, last_hop, &graph.forwarding(), seed);
        routers.into_iter().for_each(|router| world.add(Box::new(router)));
    }
    if tells {
        world.add(Box::new(CellMonitor(count)));
    }
    Ok(world.ready())
}

/// The program of a stream, with this law at its sender.
fn program_of(source: Source, sender: &Choice) -> Box<dyn Program> {
    match source.stream.kind {
        StreamKind::Probe { size, .. } => Box::new(Probe::new(source, size)),
        StreamKind::Udp { size, rate, .. } => Box::new(Udp::new(source, size, rate)),
        StreamKind::Bulk { .. } if sender.transport() == Transport::Atp => Box::new(Atp::new(source, sender.clone())),
        StreamKind::Bulk { .. } | StreamKind::Fetch { .. } => Box::new(Transfer::new(source)),
    }
}

/// Every link at its beginning, and the forwarding tables. `completions`: the world wants to know what stations have sent.
fn net(graph: &Graph, hop: LastHop, stations: usize, completions: bool, seed: Seed) -> Net {
    let mut hop = Some(hop);
    let links = graph.links.iter().enumerate().map(|(place, link)| {
        let (model, stations) = match &link.medium {
            Medium::Cable(cable) => {
                let [there, back] = cable.lines;
                let wire = Wire::new(Node(0), Node(1), there, back);
                (Model::Cable(wire.impaired(&cable.impairments, seed, &format!("cable/{place}"))), 0)
            }
            Medium::LastHop => (hop.take().expect("a graph has one last hop").build(stations, seed), stations),
        };
        let completions = link.medium == Medium::LastHop && completions;
        Link { model, hosts: link.ends.clone(), stations, completions }
    });
    Net { links: links.collect(), tables: graph.forwarding() }
}

/// The access points, and where stations belong.
fn access_points(scenario: &Scenario) -> AccessPoints {
    let homes: Vec<Node> = (0..scenario.stations().len()).map(|place| scenario.access_point_of(place)).collect();
    let nodes = scenario.access_points();
    let place = |home: &Node| nodes.iter().position(|node| node == home).expect("a home is an access point");
    AccessPoints { homes: homes.iter().map(place).collect(), nodes }
}

/// What a lone packet takes at each relay: all nodes of a radio hop, if a sender speaks ATP.
fn relays(law: &SetUp, hop: &LastHop) -> Vec<Span> {
    let atp = law.senders().any(|sender| sender.transport() == Transport::Atp);
    if atp { hop.plan().lone_exchanges() } else { Vec::new() }
}

/// The stations that bound their own windows.
fn terminals(scenario: &Scenario, law: &SetUp, seed: Seed) -> Result<Vec<Terminal>, BuildError> {
    let stations = scenario.stations().iter().enumerate();
    let part = |(place, name): (usize, &String)| Some((place, law.part(Place::Terminal, name)?));
    let terminal = |(place, part): (usize, &Part)| {
        let own = (Scenario::station_node(place), Scenario::station_host(place));
        Terminal::new(&part.law, own, scenario.access_point_of(place), seed)
    };
    stations.filter_map(part).map(terminal).collect()
}

/// An edge proxy for each access point, which knows nothing of the others, and the agents of the stations.
fn proxies(
    access_points: &AccessPoints,
    choice: &Choice,
    law: &SetUp,
    (scenario, seed): (&Scenario, Seed),
) -> Result<(Vec<Proxy>, Vec<station::Agent>), BuildError> {
    let homes = access_points.homes.iter().enumerate();
    let members = |place| homes.clone().filter(|(_, home)| **home == place).map(|(station, _)| station).collect();
    let proxies = (0..access_points.nodes.len()).map(|place| Proxy::new(choice, members(place)));
    let interval = choice.interval().unwrap_or(SLOT);
    let agent = |(place, name): (usize, &String)| {
        let node = Scenario::station_node(place);
        let own = law.receiver(name).receiver(station::slots(node, interval))?;
        Ok::<_, BuildError>(station::Agent::new(node, own, station::host(law.frames(), node, seed)))
    };
    let agents = scenario.stations().iter().enumerate().map(agent);
    Ok((proxies.collect::<Result<_, _>>()?, agents.collect::<Result<_, _>>()?))
}
