//! One run from beginning to end.

use crate::agent::{Agent, driver_path};
use crate::clean::clean;
use crate::clock::Clock;
use crate::control_channel::ControlChannels;
use crate::doubts::{self, Unread};
use crate::driver::DriverSocket;
use crate::emulator::{Emulator, Model, Segment};
use crate::error::{LabError, Result};
use crate::log::EmulatorLog;
use crate::monitor::{Hears, Monitor, View};
use crate::outcome::Outcome;
use crate::pbe;
use crate::regulated;
use crate::run_dir::RunDir;
use crate::spec::Spec;
use crate::stop::Stop;
use crate::tap::Tap;
use crate::terminal;
use crate::topology::{Hosts, LAST, WIRE};
use crate::traffic::all::Traffic;
use crate::traffic::{Period, TICK};
use crate::tunnel::Tunnel;
use lasthop_laws::atp::HopDelay;
use lasthop_radio::cell::Cell;
use lasthop_radio::star::Star;
use lasthop_radio::trace;
use lasthop_radio::wifi::Wifi;
use lasthop_radio::wired::Wire;
use lasthop_report::{AgentAccount, PbeAccount, RelayAccount, TerminalAccount};
use lasthop_scenario::graph::{Cable, Link, Medium};
use lasthop_scenario::{Hop, Scenario, Stream, StreamKind};
use lasthop_signals::{HostId, Node};
use lasthop_units::{Span, Time};
use std::collections::BTreeMap;

/// Runs `spec`: builds the hosts, brings the hops to life, lets traffic flow, takes everything down. `progress` is told
/// some twenty times a second how much of the duration has passed.
///
/// To be called from a thread that lives as long as the run, since programs die with the thread that started them.
///
/// # Errors
/// What cannot be built, a program that failed, or [`LabError::Stopped`] if `stop` was raised. Whatever happens, nothing
/// that was made is left behind, except by a kill: the next run removes what that left.
pub fn run(spec: &Spec, progress: impl FnMut(Span), stop: &Stop) -> Result<Outcome> {
    match attempt(spec, progress, stop) {
        // Whoever stops a run may make anything in it fail: a signal interrupts system calls.
        Err(_) if stop.is_raised() => Err(LabError::Stopped),
        ran => ran,
    }
}

/// A world that has been built and lives: hosts, programs on them, and the emulator between them.
pub(crate) struct World {
    // Given up in this order: first what acts, then where it acts, then the claim on all of it.
    pub(crate) emulator: Emulator,
    pub(crate) tunnel: Option<Tunnel>,
    pub(crate) agents: Vec<Agent>,
    pub(crate) terminals: Vec<Agent>,
    /// By the name of their node.
    pub(crate) relays: Vec<(String, Agent)>,
    pub(crate) pbe: Vec<Agent>,
    pub(crate) hosts: Hosts,
    pub(crate) clock: Clock,
    /// Packets that interfaces had dropped before it began to live.
    dropped_before: u64,
    pub(crate) run: RunDir,
}

impl World {
    /// Builds what `spec` says and brings it to life: its time begins [`HEAD_START`] later. What crosses the hops is kept only if
    /// it is `logged`.
    pub(crate) fn build(spec: &Spec, logged: bool, stop: &Stop) -> Result<World> {
        if stop.is_raised() {
            return Err(LabError::Stopped);
        }
        clean()?;
        let run = RunDir::claim()?;
        let mut hosts = Hosts::of_graph(&run, &spec.graph, stop)?;
        let taps = std::mem::take(&mut hosts.taps);
        let dropped_before = hosts.dropped()?;
        let bind = |node: Node| DriverSocket::bind(&driver_path(&run, node)).map(|driver| (node, driver));
        let mut drivers = reporters(spec).into_iter().map(bind).collect::<Result<Vec<_>>>()?;
        let agents = access_point_agents(spec, &hosts, &run, &mut drivers, stop)?;
        let relays = relays(spec, &hosts, &run, &mut drivers, stop)?;
        // A station's agent opens its monitor when it starts.
        let monitors = monitors(spec, &hosts)?;
        let controls = controls(spec, &run)?;
        let start_tunnel = |tunnel| Tunnel::start(tunnel, spec, &hosts, &run, stop);
        let tunnel = spec.tunnel.as_ref().map(start_tunnel).transpose()?;
        let terminals = terminal::start_all(spec, &hosts, &run, stop)?;
        let pbe = pbe::start_all(spec, &hosts, &run, stop)?;
        let clock = Clock::start_after(HEAD_START);
        let emulator = Emulator::start(clock, segments(spec, logged, taps, (drivers, monitors, controls))?)?;
        Ok(World { hosts, emulator, agents, terminals, relays, pbe, tunnel, clock, dropped_before, run })
    }

    /// True if something that should live as long as the world has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        let agent_ended = self.agents.iter_mut().any(Agent::has_ended);
        let tunnel_ended = self.tunnel.as_mut().is_some_and(Tunnel::has_ended);
        let terminal_ended = self.terminals.iter_mut().any(Agent::has_ended);
        let relay_ended = self.relays.iter_mut().any(|(_, relay)| relay.has_ended());
        let pbe_ended = self.pbe.iter_mut().any(Agent::has_ended);
        self.emulator.has_ended() || agent_ended || tunnel_ended || terminal_ended || relay_ended || pbe_ended
    }

    /// Packets that interfaces have dropped outside the models since it began.
    pub(crate) fn dropped(&self) -> Result<u64> {
        Ok(self.hosts.dropped()?.saturating_sub(self.dropped_before))
    }

    /// Kills its programs. Nobody will read their farewells.
    pub(crate) fn kill_programs(&mut self) {
        self.agents.iter_mut().for_each(Agent::kill);
        self.tunnel.iter_mut().for_each(Tunnel::kill);
        self.terminals.iter_mut().for_each(Agent::kill);
        self.relays.iter_mut().for_each(|(_, relay)| relay.kill());
        self.pbe.iter_mut().for_each(Agent::kill);
    }

    /// Why a program ended too early, if one has.
    pub(crate) fn complaint(&mut self) -> Option<LabError> {
        if let Some(place) = self.agents.iter_mut().position(Agent::has_ended) {
            return Some(self.agents.swap_remove(place).explain());
        }
        if let Some(place) = self.terminals.iter_mut().position(Agent::has_ended) {
            return Some(self.terminals.swap_remove(place).explain());
        }
        if let Some(place) = self.relays.iter_mut().position(|(_, relay)| relay.has_ended()) {
            return Some(self.relays.swap_remove(place).1.explain());
        }
        if let Some(place) = self.pbe.iter_mut().position(Agent::has_ended) {
            return Some(self.pbe.swap_remove(place).explain());
        }
        self.tunnel.take_if(Tunnel::has_ended).map(|mut tunnel| tunnel.explain())
    }
}

fn attempt(spec: &Spec, mut progress: impl FnMut(Span), stop: &Stop) -> Result<Outcome> {
    spec.check()?;
    let mut world = World::build(spec, true, stop)?;
    let clock = world.clock;
    let period = Period { clock, start: Time::ZERO, end: Time::ZERO + spec.duration, stop: Stop::default() };
    let mut traffic = Traffic::start(spec, &world.hosts, &period, world.emulator.pinned_cpu())?;
    // Nothing is wrong then, but flows began late.
    let late_start = clock.now().since(Time::ZERO);

    let mut ended_early = false;
    while !ended_early && clock.now() < period.end {
        progress(clock.now().since(Time::ZERO).min(spec.duration));
        traffic.start_due_programs(spec, &world.hosts)?;
        std::thread::sleep(clock.until(period.end).min(TICK.into()).into());
        ended_early = stop.is_raised() || world.has_ended();
    }
    if ended_early {
        period.stop.raise();
    }
    if stop.is_raised() {
        // Nobody will read what the programs would say in the end, and somebody waits. They die while the traffic ends.
        world.kill_programs();
    }
    let harvest = traffic.finish();
    if stop.is_raised() {
        return Err(LabError::Stopped);
    }
    let dropped = world.dropped()?;
    let untaken = world.hosts.untaken_datagrams()?;
    if let Some(complaint) = world.complaint() {
        return Err(complaint);
    }
    let World { emulator, tunnel, agents, terminals, relays, pbe, hosts: _hosts, run: _run, .. } = world;
    let tunnel_left = tunnel.map(|tunnel| tunnel.stop(stop)).transpose()?.unwrap_or_default();
    let (mut agent_said, mut accounts, had) = (String::new(), Vec::new(), agents.len());
    // All at once: their farewells need not add up.
    agents.iter().for_each(Agent::ask);
    terminals.iter().for_each(Agent::ask);
    relays.iter().for_each(|(_, relay)| relay.ask());
    pbe.iter().for_each(Agent::ask);
    for agent in agents {
        let ended = agent.stop(stop)?;
        agent_said.push_str(&ended.stderr);
        accounts.extend(AgentAccount::find(&ended.stdout));
    }
    let mut relayed = BTreeMap::new();
    let mut silent_relays = 0;
    for (node, relay) in relays {
        match RelayAccount::find(&relay.stop(stop)?.stdout) {
            Some(account) => drop(relayed.insert(node, account)),
            None => silent_relays += 1,
        }
    }
    let had_terminals = terminals.len();
    let left = terminals
        .into_iter()
        .map(|terminal| terminal.leave(stop, TerminalAccount::find))
        .collect::<Result<Vec<_>>>()?;
    let terminals_said = left.iter().map(|left| left.said.as_str()).collect();
    let terminals: Vec<TerminalAccount> = left.into_iter().filter_map(|left| left.account).collect();
    let pbe = pbe.into_iter().map(|agent| agent.leave(stop, PbeAccount::find)).collect::<Result<Vec<_>>>()?;
    // Its error comes first: if it failed, everything else failed because of it.
    let log = emulator.finish()?;
    if ended_early || stop.is_raised() {
        return Err(LabError::Stopped);
    }
    let streams = harvest?;
    progress(spec.duration);
    let unread_frames = tunnel_left.station_logs.iter().map(|log| regulated::missed(log)).sum();
    let unread = Unread { dropped, datagrams: untaken, frames: unread_frames };
    let mut doubts = doubts::of_run(&log, unread, late_start, had, &accounts);
    doubts.extend(doubts::of_terminals(had_terminals, &terminals));
    doubts.extend(doubts::of_relays(silent_relays, relayed.values()));
    doubts.extend(doubts::of_pbe(spec.told(), &pbe));
    let slots = regulated::parse(&tunnel_left.log, clock.on_monotonic(Time::ZERO));
    let EmulatorLog { hops, lateness, realtime, .. } = log;
    let mut hops = hops.into_iter();
    let departures = hops.next().unwrap_or_default().departures;
    let hop = hops.next().unwrap_or_default();
    Ok(Outcome {
        hop,
        departures,
        streams,
        lateness: lateness.summaries(),
        realtime,
        doubts,
        agent_said,
        agents: accounts,
        terminals,
        terminals_said,
        relays: relayed,
        pbe: pbe.iter().filter_map(|left| left.account).reduce(PbeAccount::and),
        pbe_said: pbe.iter().map(|left| left.said.as_str()).collect(),
        slots,
        tunnel_said: tunnel_left.said,
    })
}

/// Between the start of our threads and the world's beginning: by then all of them wait for it.
const HEAD_START: Span = Span::from_millis(300);

/// The stations' monitor interfaces: those that are wanted, which show all that is heard, and with a tunnel everybody's, for
/// its agents measure there; they have no use for the frames of others.
fn monitors(spec: &Spec, hosts: &Hosts) -> Result<Vec<Monitor>> {
    let Hop::Wifi(plan) = &spec.hop else { return Ok(Vec::new()) };
    let view = View::new(LAST, plan.params());
    let make = |place: usize| {
        let hears = if spec.monitors.contains(&place) { Hears::All } else { Hears::Own };
        Monitor::create(&hosts.stations[place], Scenario::station_node(place), hears, view.clone())
    };
    let wanted = |place: &usize| spec.tunnel.is_some() || spec.monitors.contains(place);
    (0..spec.stations().len()).filter(wanted).map(make).collect()
}

/// The control channels of a cell's stations that decode them.
fn controls(spec: &Spec, run: &RunDir) -> Result<Vec<ControlChannels>> {
    let Hop::Cell(plan) = &spec.hop else { return Ok(Vec::new()) };
    let cell = plan.params();
    let decode = cell.stations.iter().enumerate().filter(|(_, station)| station.decodes);
    decode.map(|(place, _)| ControlChannels::make(run, Scenario::station_node(place), cell.carriers.len())).collect()
}

/// The nodes of the last hop with a socket of their driver: the access points, and all nodes of a mesh.
fn reporters(spec: &Spec) -> Vec<Node> {
    let ends = &spec.graph.links[usize::from(LAST.0)].ends;
    let owned = (0..).map(Node).zip(ends);
    let has = |end: &Option<HostId>| match end {
        Some(Scenario::AP_HOST) => true,
        Some(_) => spec.is_mesh(),
        None => false,
    };
    owned.filter(|(_, end)| has(end)).map(|(node, _)| node).collect()
}

/// An agent on each radio of the access point. All start at once: no driver speaks before the last agent is ready, and
/// an agent that waits long takes its driver for silent.
fn access_point_agents(
    spec: &Spec,
    hosts: &Hosts,
    run: &RunDir,
    drivers: &mut [(Node, DriverSocket)],
    stop: &Stop,
) -> Result<Vec<Agent>> {
    let (Some(agent), Some(ap)) = (&spec.agent, &hosts.ap) else { return Ok(Vec::new()) };
    let mut started = Vec::new();
    for (node, interface) in &hosts.radios {
        let Some((_, driver)) = drivers.iter_mut().find(|(of, _)| of == node) else { continue };
        let name = format!("the agent {}", agent.program.display());
        let others = driver.admit();
        started.push((*node, others, Agent::on_driver(agent, name, (ap, interface, &driver_path(run, *node)))?));
    }
    let ready = |(node, others, agent): (Node, usize, Agent)| {
        let (_, driver) = drivers.iter_mut().find(|(of, _)| *of == node).expect("found above");
        agent.once_on(driver, others, stop)
    };
    started.into_iter().map(ready).collect()
}

/// A relay on each node of the last hop that says what its delay is, by the node's name.
fn relays(
    spec: &Spec,
    hosts: &Hosts,
    run: &RunDir,
    drivers: &mut [(Node, DriverSocket)],
    stop: &Stop,
) -> Result<Vec<(String, Agent)>> {
    let Some(program) = &spec.relay else { return Ok(Vec::new()) };
    let mut relays = Vec::new();
    for (node, driver) in drivers {
        let Some(owner) = spec.graph.links[usize::from(LAST.0)].ends[node.index()] else { continue };
        let Some(host) = hosts.of(owner) else { continue };
        let own = hosts.radios.iter().find(|(radio, _)| owner == Scenario::AP_HOST && radio == node);
        let interface = own.map_or_else(|| hosts.interface(owner), |(_, name)| name.as_str());
        let name = spec.host_name(owner).to_owned();
        let others = driver.admit();
        let at = (host, interface, &*driver_path(run, *node));
        let relay = Agent::on_driver(program, format!("the relay on {name}"), at)?;
        relays.push((name, relay.once_on(driver, others, stop)?));
    }
    Ok(relays)
}

/// The models, with the interfaces of their nodes.
fn segments(
    spec: &Spec,
    logged: bool,
    taps: Vec<Vec<Option<Tap>>>,
    shown: (Vec<(Node, DriverSocket)>, Vec<Monitor>, Vec<ControlChannels>),
) -> Result<Vec<Segment>> {
    let is_upload =
        |stream: &Stream| matches!(stream.kind, StreamKind::Bulk { .. }) && spec.station_of(stream.from).is_some();
    let uploaders = match logged && spec.streams.iter().any(is_upload) {
        true => 1..spec.stations().len() as u16 + 1,
        false => 0..0,
    };
    let mut last = Some(shown);
    let segment = |(place, (link, ports)): (usize, (&Link, Vec<Option<Tap>>))| match &link.medium {
        Medium::Cable(Cable { lines: [there, back], impairments }) => {
            let wire = Wire::new(Node(0), Node(1), *there, *back);
            let model = Model::Wire(wire.impaired(impairments, spec.seed, &format!("cable/{place}")));
            let watched = if logged && place == usize::from(WIRE.0) { 0..1 } else { 0..0 };
            Ok(Segment {
                model,
                ports,
                logged: false,
                watched,
                drivers: Vec::new(),
                delays: Vec::new(),
                monitors: Vec::new(),
                controls: Vec::new(),
            })
        }
        Medium::LastHop => {
            let (drivers, monitors, controls) =
                last.take().ok_or_else(|| LabError::Spec("a second last hop".into()))?;
            let delays = if spec.is_mesh() {
                spec.hop.lone_exchanges().into_iter().map(HopDelay::new).collect()
            } else {
                Vec::new()
            };
            let (model, watched) = (last_hop(spec)?, uploaders.clone());
            Ok(Segment { model, ports, logged, watched, drivers, delays, monitors, controls })
        }
    };
    spec.graph.links.iter().zip(taps).enumerate().map(segment).collect()
}

fn last_hop(spec: &Spec) -> Result<Model> {
    let stations = spec.stations().len() as u16;
    Ok(match &spec.hop {
        Hop::Wired(hop) => Model::Star(Star::new(stations, hop.down, hop.up).impaired(&hop.impairments, spec.seed)),
        Hop::Wifi(plan) => Model::Wifi(Box::new(Wifi::new(plan.as_ref().clone(), spec.seed))),
        Hop::Trace(hop) => Model::Trace(trace::Link::star(stations, &hop.down, &hop.up, spec.seed)),
        Hop::Cell(plan) => Model::Cell(Box::new(Cell::new(plan.as_ref().clone(), spec.seed))),
    })
}
