//! The programs of a run, from their start to what they leave.

use crate::cgroup;
use crate::child::Child;
use crate::control_channel::ControlChannels;
use crate::driver::DriverSocket;
use crate::error::{Doing, LabError, Result};
use crate::run_dir::RunDir;
use crate::spec::{ProgramSpec, Ready, Spec, forwarded};
use crate::stop::Stop;
use crate::topology::{AP, Hosts, MONITOR};
use crate::traffic::all;
use lasthop_report::account::{self, Account};
use lasthop_scenario::{Program as By, Scenario, Stream, StreamKind};
use lasthop_signals::{HostId, Node};
use lasthop_units::Span;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long one may take to be ready: to load its programs and to connect.
const PATIENCE: Span = Span::from_secs(10);
/// How often it is looked whether it is.
const STEP: Span = Span::from_millis(5);
/// How long a look at whether one listens may take.
const CONNECT: Duration = Duration::from_millis(100);
/// How long one may take to end: to open windows and to detach what it attached.
const FAREWELL: Span = Span::from_secs(2);

/// The programs of a world, in the order of their start.
#[derive(Debug)]
pub(crate) struct Programs(Vec<Running>);

#[derive(Debug)]
struct Running {
    child: Child,
    spec: ProgramSpec,
    log: Option<PathBuf>,
}

/// What a program leaves.
#[derive(Debug)]
pub(crate) struct Left {
    pub spec: ProgramSpec,
    /// Its account of itself, if it was to give one and did.
    pub account: Option<Account>,
    /// What it logged; empty without a log.
    pub log: String,
    /// What it printed to standard error, each line with its name.
    pub said: String,
}

impl Programs {
    /// Starts the programs of `spec`, and waits until all are ready.
    ///
    /// # Errors
    /// What does not start or is not ready in time, or [`LabError::Stopped`].
    pub(crate) fn start(
        spec: &Spec,
        hosts: &Hosts,
        run: &RunDir,
        drivers: &mut [(Node, DriverSocket)],
        stop: &Stop,
    ) -> Result<Programs> {
        let fill = Fill::new(spec, hosts, run)?;
        let mut running = Vec::new();
        for program in &spec.programs {
            let host = hosts.of(program.host).ok_or_else(|| {
                LabError::Spec(format!("{} on host {}, which is not there", program.name, program.host.0))
            })?;
            let child = Child::start(host, program.program.as_os_str(), &fill.arguments(program))?;
            let log = program.log.as_deref().map(|name| run.file(name));
            let started = Running { child, spec: program.clone(), log };
            match program.ready {
                Ready::Ended => started.succeeds(stop)?,
                _ => running.push(started),
            }
        }
        let mut programs = Programs(running);
        for place in 0..programs.0.len() {
            programs.await_one(place, hosts, drivers, stop)?;
        }
        Ok(programs)
    }

    /// Waits until one is ready.
    fn await_one(
        &mut self,
        place: usize,
        hosts: &Hosts,
        drivers: &mut [(Node, DriverSocket)],
        stop: &Stop,
    ) -> Result<()> {
        let node = self.0[place].spec.node;
        let connects = |one: &&Running| one.spec.ready == Ready::Connected && one.spec.node == node;
        // They connect in any order: each is ready once as many have as are waited for up to it.
        let readers = self.0[..=place].iter().filter(connects).count();
        let mut driver = drivers.iter_mut().find(|(of, _)| Some(*of) == node).map(|(_, driver)| driver);
        let mut waited = Span::ZERO;
        loop {
            let connected = driver.as_deref_mut().is_some_and(|driver| driver.admit() >= readers);
            let program = &mut self.0[place];
            if program.is_ready(hosts, connected)? {
                return Ok(());
            }
            if stop.is_raised() {
                return Err(LabError::Stopped);
            }
            if let Some(complaint) = self.complaint() {
                return Err(complaint);
            }
            let program = &self.0[place].spec;
            if waited >= PATIENCE {
                return Err(LabError::Program { program: program.name.clone(), why: program.unready() });
            }
            std::thread::sleep(STEP.into());
            waited += STEP;
        }
    }

    /// True if one has ended, which none should do by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.iter_mut().any(|program| program.child.has_ended())
    }

    /// Why one ended too early, if one has.
    pub(crate) fn complaint(&mut self) -> Option<LabError> {
        let place = self.0.iter_mut().position(|program| program.child.has_ended())?;
        Some(self.0.remove(place).explain())
    }

    /// Ends all without a farewell: what they attached goes with their namespaces.
    pub(crate) fn kill(&mut self) {
        self.0.iter_mut().for_each(|program| program.child.kill());
    }

    /// Asks all to end, those that outlive others in the end, and takes what they leave, in the order of their start. Farewells
    /// last no longer than until `stop` is raised.
    pub(crate) fn leave(self, stop: &Stop) -> Result<Vec<Left>> {
        let mut left = BTreeMap::new();
        let (last, first): (Vec<_>, Vec<_>) = self.0.into_iter().enumerate().partition(|(_, one)| one.spec.outlives);
        for programs in [first, last] {
            // All at once: their farewells need not add up.
            programs.iter().for_each(|(_, program)| program.child.ask());
            for (place, program) in programs {
                left.insert(place, program.leave(stop)?);
            }
        }
        Ok(left.into_values().collect())
    }
}

impl Running {
    /// Waits for one that is to end by itself.
    fn succeeds(self, stop: &Stop) -> Result<()> {
        let ended = self.child.wait(PATIENCE, stop)?;
        match ended.status.success() {
            true => Ok(()),
            false if stop.is_raised() => Err(LabError::Stopped),
            false => Err(LabError::Program { program: self.spec.name, why: ended.complaint() }),
        }
    }

    /// True if it is ready; `connected`: if its node's driver has the readers that it should have by then.
    fn is_ready(&self, hosts: &Hosts, connected: bool) -> Result<bool> {
        Ok(match self.spec.ready {
            Ready::Ended | Ready::Started => true,
            Ready::Connected => connected,
            Ready::Spoken => self.child.has_spoken(),
            Ready::Logged => self.log.as_ref().is_some_and(|log| fs::metadata(log).is_ok_and(|found| found.len() > 0)),
            Ready::Listening(at) => {
                let Some(host) = hosts.of(self.spec.host) else { return Ok(false) };
                host.within(|| Ok(TcpStream::connect_timeout(&at, CONNECT).is_ok()))?
            }
        })
    }

    fn leave(self, stop: &Stop) -> Result<Left> {
        let Running { child, spec, log } = self;
        let ended = child.stop(FAREWELL, stop)?;
        let said = ended.stderr.lines().map(|line| format!("{}: {line}\n", spec.name)).collect();
        let account = spec.account.as_ref().and_then(|account| account::find(account.line, &ended.stdout));
        let log = log.map(|log| fs::read_to_string(log).unwrap_or_default()).unwrap_or_default();
        Ok(Left { spec, account, log, said })
    }

    /// Why it ended too early.
    fn explain(self) -> LabError {
        LabError::Program { why: self.child.ended_early(), program: self.spec.name }
    }
}

impl ProgramSpec {
    /// What to say if it is never ready.
    fn unready(&self) -> String {
        match &self.ready {
            Ready::Connected => format!("it did not connect to its driver's socket within {PATIENCE}"),
            Ready::Logged => format!("it logged nothing within {PATIENCE}"),
            Ready::Listening(at) => format!("it does not listen at {at} after {PATIENCE}"),
            Ready::Ended | Ready::Started | Ready::Spoken => format!("it was not ready after {PATIENCE}"),
        }
    }
}

/// Fills in arguments.
struct Fill<'a> {
    spec: &'a Spec,
    hosts: &'a Hosts,
    run: &'a RunDir,
    cgroup: String,
    key: String,
}

impl<'a> Fill<'a> {
    fn new(spec: &'a Spec, hosts: &'a Hosts, run: &'a RunDir) -> Result<Fill<'a>> {
        let wanted = |placeholder: &str| spec.programs.iter().any(|program| program.asks_for(placeholder));
        let key = run.file("network.key");
        if wanted("{network-key}") {
            write_key(&key)?;
        }
        let cgroup = if wanted("{cgroup}") { cgroup::own()? } else { PathBuf::new() };
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        Ok(Fill { spec, hosts, run, cgroup: text(cgroup), key: text(key) })
    }

    fn arguments(&self, program: &ProgramSpec) -> Vec<String> {
        let station = self.spec.station_of(program.host);
        let forwarded =
            station.into_iter().flat_map(|station| iperf3_ports(self.spec, station)).flat_map(|(port, from)| {
                program.forwarding(forwarded(port), SocketAddr::new(self.spec.address(from, program.host), port))
            });
        program.arguments.iter().map(|argument| self.filled(argument, program)).chain(forwarded).collect()
    }

    fn filled(&self, argument: &str, program: &ProgramSpec) -> String {
        let radio =
            self.hosts.radios.iter().find(|(node, _)| program.host == Scenario::AP_HOST && program.node == Some(*node));
        let interface = radio.map_or_else(|| self.hosts.interface(program.host), |(_, name)| name.as_str());
        let path = |name: &str| self.run.file(name).to_string_lossy().into_owned();
        let driver = program.node.map(|node| driver_path(self.run, node).to_string_lossy().into_owned());
        let control = |carrier: &str| {
            let station = Scenario::station_node(self.spec.station_of(program.host)?);
            let path = ControlChannels::path(self.run, station, carrier.parse().ok()?);
            Some(path.to_string_lossy().into_owned())
        };
        let filled = argument
            .replace("{cgroup}", &self.cgroup)
            .replace("{network-key}", &self.key)
            .replace("{iface}", interface)
            .replace("{driver}", driver.as_deref().unwrap_or("{driver}"))
            .replace("{monitor}", MONITOR)
            .replace("{log}", &program.log.as_deref().map_or_else(|| "{log}".to_owned(), path));
        let filled = with_value(&filled, "{file:", |name| Some(path(name)));
        with_value(&filled, "{control:", control)
    }
}

/// `text` with each placeholder that begins so, up to its brace, replaced by what its value stands for.
fn with_value(text: &str, begin: &str, of: impl Fn(&str) -> Option<String>) -> String {
    let Some((before, rest)) = text.split_once(begin) else { return text.to_owned() };
    match rest.split_once('}').and_then(|(value, after)| Some((of(value)?, after))) {
        Some((value, after)) => format!("{before}{value}{}", with_value(after, begin, of)),
        None => text.to_owned(),
    }
}

/// Where the emulated driver of a node of the last hop listens.
pub(crate) fn driver_path(run: &RunDir, node: Node) -> PathBuf {
    match node {
        AP => run.file("driver.sock"),
        Node(number) => run.file(&format!("driver-{number}.sock")),
    }
}

/// Ports and senders of the downloads to `station` by `iperf3`.
fn iperf3_ports(spec: &Spec, station: usize) -> impl Iterator<Item = (u16, HostId)> + '_ {
    let by_iperf3 = move |stream: &Stream| {
        spec.is_proxied(stream)
            && spec.station_of(stream.to) == Some(station)
            && matches!(stream.kind, StreamKind::Bulk { program: By::Iperf3, .. })
    };
    (0..).zip(&spec.streams).filter(move |(_, stream)| by_iperf3(stream)).map(|(n, stream)| (all::port(n), stream.from))
}

/// A fresh key of the network, readable by root alone.
fn write_key(path: &Path) -> Result<()> {
    let mut octets = [0; 32];
    let mut text = "station 0 ".to_owned();
    File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut octets))
        .and_then(|()| OpenOptions::new().write(true).create_new(true).mode(0o600).open(path))
        .and_then(|mut file| {
            text.extend(octets.iter().map(|octet| format!("{octet:02x}")));
            writeln!(file, "{text}")
        })
        .doing(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_with_a_value_are_replaced_wherever_they_stand() {
        let of = |text: &str| with_value(text, "{file:", |name| (!name.is_empty()).then(|| format!("/run/{name}")));
        assert_eq!(of("--out={file:a},{file:b}"), "--out=/run/a,/run/b");
        assert_eq!(of("{file:} {file:a"), "{file:} {file:a", "no name, no end");
    }
}
