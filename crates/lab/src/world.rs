//! One run from beginning to end.

use crate::clean::clean;
use crate::clock::Clock;
use crate::control_channel::ControlChannels;
use crate::doubts::{self, Unread};
use crate::driver::DriverSocket;
use crate::emulator::{Emulator, Segment};
use crate::error::{LabError, Result};
use crate::log::EmulatorLog;
use crate::monitor::{Hears, Monitor, View};
use crate::outcome::Outcome;
use crate::programs::{Left, Programs, driver_path};
use crate::run_dir::RunDir;
use crate::spec::{ProgramSpec, Spec};
use crate::stop::Stop;
use crate::tap::Tap;
use crate::topology::{Hosts, LAST, WIRE};
use crate::traffic::all::Traffic;
use crate::traffic::{Period, TICK};
use lasthop_laws::atp::HopDelay;
use lasthop_radio::LastHop;
use lasthop_radio::last_hop::Model;
use lasthop_radio::wired::Wire;
use lasthop_report::account::{self, Account};
use lasthop_scenario::graph::{Cable, Link, Medium};
use lasthop_scenario::{Scenario, Stream, StreamKind};
use lasthop_signals::Node;
use lasthop_units::{Span, Time};
use serde_json::Value;
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
    pub(crate) programs: Programs,
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
        let bind = |(node, _)| DriverSocket::bind(&driver_path(&run, node)).map(|driver| (node, driver));
        let mut drivers = spec.reporters().into_iter().map(bind).collect::<Result<Vec<_>>>()?;
        // A station's agent opens its monitor when it starts.
        let monitors = monitors(spec, &hosts)?;
        let controls = controls(spec, &run)?;
        // No driver speaks before the last of them is ready: an agent that waits long takes its driver for silent.
        let programs = Programs::start(spec, &hosts, &run, &mut drivers, stop)?;
        let clock = Clock::start_after(HEAD_START);
        let emulator = Emulator::start(clock, segments(spec, logged, taps, (drivers, monitors, controls))?)?;
        Ok(World { hosts, emulator, programs, clock, dropped_before, run })
    }

    /// True if something that should live as long as the world has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.emulator.has_ended() || self.programs.has_ended()
    }

    /// Packets that interfaces have dropped outside the models since it began.
    pub(crate) fn dropped(&self) -> Result<u64> {
        Ok(self.hosts.dropped()?.saturating_sub(self.dropped_before))
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
        world.programs.kill();
    }
    let harvest = traffic.finish();
    if stop.is_raised() {
        return Err(LabError::Stopped);
    }
    let dropped = world.dropped()?;
    let untaken = world.hosts.untaken_datagrams()?;
    if let Some(complaint) = world.programs.complaint() {
        return Err(complaint);
    }
    let World { emulator, programs, hosts: _hosts, run: _run, .. } = world;
    let left = programs.leave(stop)?;
    // Its error comes first: if it failed, everything else failed because of it.
    let log = emulator.finish()?;
    if ended_early || stop.is_raised() {
        return Err(LabError::Stopped);
    }
    let streams = harvest?;
    progress(spec.duration);
    let unread = Unread { dropped, datagrams: untaken };
    let mut doubts = doubts::of_run(&log, unread, late_start);
    doubts.extend(doubts::of_programs(&left));
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
        said: left.iter().map(|left| left.said.as_str()).collect(),
        accounts: accounts(spec, &left),
        logs: left.into_iter().map(|left| (left.spec.log.unwrap_or_default(), left.log)).collect(),
        origin: clock.on_monotonic(Time::ZERO),
    })
}

/// Between the start of our threads and the world's beginning: by then all of them wait for it.
const HEAD_START: Span = Span::from_millis(300);

/// The stations' monitor interfaces: those that are wanted, which show all that is heard, and those of programs that measure
/// there, which have no use for the frames of others.
fn monitors(spec: &Spec, hosts: &Hosts) -> Result<Vec<Monitor>> {
    let LastHop::Wifi(plan) = &spec.hop else { return Ok(Vec::new()) };
    let view = View::new(LAST, plan.params());
    let make = |place: usize| {
        let hears = if spec.monitors.contains(&place) { Hears::All } else { Hears::Own };
        Monitor::create(&hosts.stations[place], Scenario::station_node(place), hears, view.clone())
    };
    let measures = |place: usize| {
        let of = |program: &&ProgramSpec| program.host == Scenario::station_host(place);
        spec.programs.iter().filter(of).any(|program| program.asks_for("{monitor}"))
    };
    let wanted = |place: &usize| spec.monitors.contains(place) || measures(*place);
    (0..spec.stations().len()).filter(wanted).map(make).collect()
}

/// What programs say that they have done, by the names of their accounts.
fn accounts(spec: &Spec, left: &[Left]) -> BTreeMap<String, Value> {
    let mut accounts: BTreeMap<String, Account> = BTreeMap::new();
    for one in left {
        let (Some(of), Some(account)) = (&one.spec.account, one.account.clone()) else { continue };
        let together = accounts.entry(of.name.to_owned()).or_default();
        if of.by_host {
            together.insert(spec.host_name(one.spec.host).to_owned(), account.into());
        } else {
            account::add(together, account);
        }
    }
    accounts.into_iter().map(|(name, account)| (name, account.into())).collect()
}

/// The control channels of a cell's stations that decode them.
fn controls(spec: &Spec, run: &RunDir) -> Result<Vec<ControlChannels>> {
    let LastHop::Cell(plan) = &spec.hop else { return Ok(Vec::new()) };
    let cell = plan.params();
    let decode = cell.stations.iter().enumerate().filter(|(_, station)| station.decodes);
    decode.map(|(place, _)| ControlChannels::make(run, Scenario::station_node(place), cell.carriers.len())).collect()
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
            let model = Model::Cable(wire.impaired(impairments, spec.seed, &format!("cable/{place}")));
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
                spec.hop.plan().lone_exchanges().into_iter().map(HopDelay::new).collect()
            } else {
                Vec::new()
            };
            let model = spec.hop.clone().build(spec.stations().len(), spec.seed);
            let watched = uploaders.clone();
            Ok(Segment { model, ports, logged, watched, drivers, delays, monitors, controls })
        }
    };
    spec.graph.links.iter().zip(taps).enumerate().map(segment).collect()
}
