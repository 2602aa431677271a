//! Agents of PBE-CC on kernel TCP, while a run lasts: those that bring the congestion control to hosts that send, and those of stations that tell
//! what they decode of their cell.

use crate::agent::Agent;
use crate::cgroup;
use crate::control_channel::ControlChannels;
use crate::error::Result;
use crate::netns::Namespace;
use crate::run_dir::RunDir;
use crate::spec::{PbeReceiverSpec, PbeSpec, Spec};
use crate::stop::Stop;
use crate::topology::Hosts;
use lasthop_scenario::{Hop, Scenario};
use std::path::Path;

/// Starts the agents of `spec` once their control channels are there, and waits until all of them are ready.
pub(crate) fn start_all(spec: &Spec, hosts: &Hosts, run: &RunDir, stop: &Stop) -> Result<Vec<Agent>> {
    let Some(pbe) = &spec.pbe else { return Ok(Vec::new()) };
    let cgroup = cgroup::own()?;
    let mut agents = Vec::new();
    for sender in &pbe.senders {
        let Some(host) = hosts.of(sender.host) else { continue };
        let name = format!("the sender's agent on {}", spec.host_name(sender.host));
        agents.push(start(pbe, name, host, &sender.arguments, &cgroup)?);
    }
    for receiver in &pbe.receivers {
        let name = format!("the receiver's agent on {}", spec.host_name(Scenario::station_host(receiver.station)));
        let arguments = of_station(spec, receiver, run);
        agents.push(start(pbe, name, &hosts.stations[receiver.station], &arguments, &cgroup)?);
    }
    agents.into_iter().map(|agent| agent.once_it_has_spoken(stop)).collect()
}

fn start(spec: &PbeSpec, name: String, host: &Namespace, arguments: &[String], cgroup: &Path) -> Result<Agent> {
    let fill = |argument: &String| argument.replace("{cgroup}", &cgroup.to_string_lossy());
    let arguments: Vec<String> = arguments.iter().map(fill).collect();
    Agent::start(host, spec.program.as_os_str(), &arguments, name)
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
