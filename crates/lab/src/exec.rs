//! Runs a program of the user's own on a host of a world, for as long as the program likes.

use crate::congestion;
use crate::doubts::{self, Unread};
use crate::error::{LabError, Result};
use crate::netns::Namespace;
use crate::processes;
use crate::program::{Program, STEP};
use crate::spec::{Spec, forwarded};
use crate::stop::Stop;
use crate::traffic::all::Traffic;
use crate::traffic::iperf3::{self, Server};
use crate::traffic::{Period, TICK};
use crate::world::World;
use lasthop_scenario::Scenario;
use lasthop_signals::HostId;
use lasthop_units::{Span, Time};
use nix::unistd::Uid;
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::process::ExitStatus;

/// A program, and where it runs.
#[derive(Clone, Copy, Debug)]
pub struct Exec<'a> {
    /// The world.
    pub spec: &'a Spec,
    /// The program runs in this host's network namespace.
    pub host: HostId,
    /// The program and its arguments.
    pub command: &'a [OsString],
    /// Whether the streams of `spec` run beside the program, until the duration of `spec` has
    /// passed or the program has ended.
    pub with_traffic: bool,
}

/// What the program finds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// The address of its host.
    pub address: IpAddr,
    /// True if an `iperf3` server listens at the host `server`, at its usual port.
    pub iperf3: bool,
    /// Where it reaches the edge proxy (SOCKS5 and HTTP CONNECT), if there is one and the host is
    /// a station.
    pub proxy: Option<SocketAddr>,
}

/// How it went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exited {
    /// The exit status of the program.
    pub status: ExitStatus,
    /// Why the hop was not what it should have been, one line each; mostly empty.
    pub doubts: Vec<String>,
}

/// How long the program may take to end by itself after this process was told to stop: Ctrl-C
/// tells both.
const GRACE: Span = Span::from_secs(1);

/// Builds the world of `exec`, runs its program there with the standard streams, the process
/// group and the terminal of this process, waits for its end, and takes everything down. `begun`
/// is called just before the program starts.
///
/// The names of all hosts resolve. TCP uses in each namespace the congestion control that the spec
/// has for that host, unless a program chooses another. Where `iperf3` is installed, a server
/// listens at the host `server`, unless the program runs there.
///
/// When `stop` is raised, the program has a second to end by itself; then it gets SIGTERM, and two
/// seconds later SIGKILL. Processes that the program leaves behind in any of the namespaces are
/// ended with it.
///
/// # Errors
/// What [`Spec::check_for_programs`] finds, what cannot be built, [`LabError::Command`]
/// if the program does not start, the complaint of an agent that ended too early, or
/// [`LabError::Stopped`] if `stop` was raised before the program started.
pub fn exec(exec: &Exec<'_>, begun: impl FnOnce(&Setting), stop: &Stop) -> Result<Exited> {
    if !Uid::effective().is_root() {
        return Err(LabError::NotRoot);
    }
    let mut spec = exec.spec.clone();
    if !exec.with_traffic {
        spec.streams.clear();
    }
    spec.check_for_programs()?;
    let has_iperf3 = exec.host != Scenario::SERVER && iperf3::is_installed();
    let server = spec.address(Scenario::SERVER, Scenario::station_host(0));
    if has_iperf3 {
        // It cannot ask for a connection.
        let (local, server) = (forwarded(iperf3::PORT), SocketAddr::new(server, iperf3::PORT));
        for program in &mut spec.programs {
            let more: Vec<String> = program.forwarding(local, server).collect();
            program.arguments.extend(more);
        }
    }
    let mut world = match World::build(&spec, false, stop) {
        // A signal interrupts system calls, and so may make anything fail.
        Err(_) if stop.is_raised() => return Err(LabError::Stopped),
        built => built?,
    };
    let stayed = stay(exec, &spec, &mut world, has_iperf3, begun, stop);
    let dropped = world.dropped();
    world.programs.kill();
    let World { emulator, programs, hosts, run, .. } = world;
    // Its error comes first: if it failed, everything else failed because of it.
    let log = emulator.finish();
    drop(programs);
    processes::end_all(hosts.all().map(Namespace::file));
    drop(hosts);
    drop(run);
    let (log, stayed) = (log?, stayed?);
    let unread = Unread { dropped: dropped?, ..Unread::default() };
    let found = doubts::of_run(&log, unread, Span::ZERO);
    let doubts = found.iter().map(ToString::to_string).chain(stayed.complaint).collect();
    Ok(Exited { status: stayed.status, doubts })
}

/// How the program ended, and what went wrong with the scenario's traffic.
struct Stayed {
    status: ExitStatus,
    complaint: Option<String>,
}

/// Runs the program, and what is beside it, in a world that is up.
fn stay(
    exec: &Exec<'_>,
    spec: &Spec,
    world: &mut World,
    has_iperf3: bool,
    begun: impl FnOnce(&Setting),
    stop: &Stop,
) -> Result<Stayed> {
    for (host, congestion) in world.hosts.all().zip(&spec.congestion) {
        congestion::set_default(host, congestion)?;
    }
    let server = if has_iperf3 { Server::start(&world.hosts.server, stop)? } else { None };
    let setting =
        Setting { address: spec.address(exec.host, exec.host), iperf3: server.is_some(), proxy: spec.door(exec.host) };
    let (clock, end) = (world.clock, Time::ZERO + spec.duration);
    let period = Period { clock, start: Time::ZERO, end, stop: Stop::default() };
    let start = || Traffic::start(spec, &world.hosts, &period, world.emulator.pinned_cpu());
    let mut traffic = exec.with_traffic.then(start).transpose()?;
    let ended = accompany(exec, spec, world, traffic.as_mut(), || begun(&setting), stop);
    // Its threads end before their world does.
    period.stop.raise();
    let complaint = match traffic.map(Traffic::finish) {
        None | Some(Ok(_) | Err(LabError::Stopped)) => None,
        Some(Err(error)) => Some(format!("the scenario's traffic failed: {error}")),
    };
    Ok(Stayed { status: ended?, complaint })
}

/// Starts the program when the world's time begins, and waits for its end.
fn accompany(
    exec: &Exec<'_>,
    spec: &Spec,
    world: &mut World,
    mut traffic: Option<&mut Traffic>,
    begun: impl FnOnce(),
    stop: &Stop,
) -> Result<ExitStatus> {
    let begins = |world: &World| world.clock.until(Time::ZERO);
    while !stop.is_raised() && !begins(world).is_zero() {
        std::thread::sleep(begins(world).min(TICK.into()).into());
    }
    if stop.is_raised() {
        return Err(LabError::Stopped);
    }
    let host = world.hosts.of(exec.host).ok_or_else(|| LabError::Spec("a host that is not there".into()))?;
    begun();
    let mut program = Program::start(host, &names(spec, exec.host), &world.run, exec.command)?;
    loop {
        if let Some(status) = program.status()? {
            return Ok(status);
        }
        if stop.is_raised() {
            return program.end(GRACE);
        }
        if world.has_ended() {
            program.end(Span::ZERO)?;
            return Err(world.programs.complaint().unwrap_or(LabError::Stopped));
        }
        if let Some(traffic) = traffic.as_deref_mut() {
            traffic.start_due_programs(spec, &world.hosts)?;
        }
        std::thread::sleep(STEP.into());
    }
}

/// The content of `/etc/hosts` at `host`.
fn names(spec: &Spec, host: HostId) -> String {
    let all = (0..spec.hosts()).map(|number| HostId(number as u16));
    let lines = all.map(|to| format!("{}\t{}\n", spec.address(to, host), spec.host_name(to)));
    std::iter::once("127.0.0.1\tlocalhost\n::1\tlocalhost\n".to_owned()).chain(lines).collect()
}
