//! Agents of PBE-CC on kernel TCP, while a run lasts: those that bring the congestion control to hosts that send, and those of stations that tell
//! what they decode of their cell.

use crate::cgroup;
use crate::child::Child;
use crate::control_channel::ControlChannels;
use crate::error::{LabError, Result};
use crate::netns::Namespace;
use crate::run_dir::RunDir;
use crate::spec::{PbeReceiverSpec, PbeSpec, Spec};
use crate::stop::Stop;
use crate::topology::Hosts;
use lasthop_report::PbeAccount;
use lasthop_scenario::{Hop, Scenario};
use lasthop_units::Span;
use std::path::Path;

/// A running agent of either end.
#[derive(Debug)]
pub(crate) struct Pbe {
    child: Child,
    name: String,
}

/// What an agent leaves.
#[derive(Debug)]
pub(crate) struct Left {
    /// Its account of itself, if it gave one.
    pub account: Option<PbeAccount>,
    /// What it printed to standard error, with its name.
    pub said: String,
}

/// How long one may take to load its programs.
const PATIENCE: Span = Span::from_secs(10);
/// How long one may take to end.
const FAREWELL: Span = Span::from_secs(2);

impl Pbe {
    /// Starts the agents of `spec`, whose control channels are there, and waits until all of them are ready.
    pub(crate) fn start_all(spec: &Spec, hosts: &Hosts, run: &RunDir, stop: &Stop) -> Result<Vec<Pbe>> {
        let Some(pbe) = &spec.pbe else { return Ok(Vec::new()) };
        let cgroup = cgroup::own()?;
        let mut agents = Vec::new();
        for sender in &pbe.senders {
            let Some(host) = hosts.of(sender.host) else { continue };
            let name = format!("the sender's agent on {}", spec.host_name(sender.host));
            agents.push(Pbe::start(pbe, name, host, &sender.arguments, &cgroup)?);
        }
        for receiver in &pbe.receivers {
            let name = format!("the receiver's agent on {}", spec.host_name(Scenario::station_host(receiver.station)));
            let arguments = of_station(spec, receiver, run);
            agents.push(Pbe::start(pbe, name, &hosts.stations[receiver.station], &arguments, &cgroup)?);
        }
        for place in 0..agents.len() {
            let ready = agents[place].await_readiness(stop);
            if ready.is_err() && agents[place].has_ended() && !stop.is_raised() {
                return Err(agents.swap_remove(place).explain());
            }
            ready?;
        }
        Ok(agents)
    }

    fn start(spec: &PbeSpec, name: String, host: &Namespace, arguments: &[String], cgroup: &Path) -> Result<Pbe> {
        let fill = |argument: &String| argument.replace("{cgroup}", &cgroup.to_string_lossy());
        let arguments: Vec<String> = arguments.iter().map(fill).collect();
        Ok(Pbe { child: Child::start(host, spec.program.as_os_str(), &arguments)?, name })
    }

    /// It says so once everything is open.
    fn await_readiness(&mut self, stop: &Stop) -> Result<()> {
        let (step, mut waited) = (Span::from_millis(10), Span::ZERO);
        while !self.child.has_spoken() {
            if stop.is_raised() {
                return Err(LabError::Stopped);
            }
            if waited >= PATIENCE || self.has_ended() {
                let why = format!("it was not ready after {PATIENCE}");
                return Err(LabError::Program { program: self.name.clone(), why });
            }
            std::thread::sleep(step.into());
            waited += step;
        }
        Ok(())
    }

    /// True if it has ended, which it should not do by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.has_ended()
    }

    /// Why it ended too early.
    pub(crate) fn explain(self) -> LabError {
        LabError::Program { why: self.child.ended_early(), program: self.name }
    }

    /// Ends it without a farewell: nothing of it stays.
    pub(crate) fn kill(&mut self) {
        self.child.kill();
    }

    /// Asks it to end.
    pub(crate) fn ask(&self) {
        self.child.ask();
    }

    /// Asks it to end, and takes what it leaves. Its farewell lasts no longer than until `stop` is raised.
    pub(crate) fn stop(self, stop: &Stop) -> Result<Left> {
        let ended = self.child.stop(FAREWELL, stop)?;
        let said = ended.stderr.lines().map(|line| format!("{}: {line}\n", self.name)).collect();
        Ok(Left { account: PbeAccount::find(&ended.stdout), said })
    }
}

/// The arguments of a station's agent, with its carriers from its primary one on.
fn of_station(spec: &Spec, receiver: &PbeReceiverSpec, run: &RunDir) -> Vec<String> {
    let mut arguments = receiver.arguments.clone();
    let Hop::Cell(plan) = &spec.hop else { return arguments };
    let (cell, node) = (plan.params(), Scenario::station_node(receiver.station));
    let station = &cell.stations[receiver.station];
    let count = cell.carriers.len();
    for turn in 0..count.min(usize::from(station.carriers)) {
        let carrier = (usize::from(station.primary) + turn) % count;
        let control = ControlChannels::path(run, node, carrier);
        let fill = |argument: &String| {
            argument
                .replace("{control}", &control.to_string_lossy())
                .replace("{prb}", &cell.carriers[carrier].to_string())
        };
        arguments.extend(receiver.carrier.iter().map(fill));
    }
    arguments
}
