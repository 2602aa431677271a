//! The command lines of PBE-CC's agents, which the lab starts on senders and on stations in a cell: what operators would type.

use lasthop_lab::{PbeReceiverSpec, PbeSenderSpec, PbeSpec, Spec};
use lasthop_laws::pbe::OF_SENDERS;
use lasthop_laws::{Choice, Transport};
use lasthop_scenario::{Hop, Scenario, SetUp, StreamKind};
use lasthop_signals::HostId;
use std::path::PathBuf;

/// What senders' agents call the congestion control: of several in one kernel each has a name of its own, with its number behind.
const NAME: &str = "lasthop_pbe";

/// Agents for the senders of `law` that are told a capacity, and for the stations that tell one; with the congestion control of each such sender in
/// `spec`. Nothing without such senders.
pub fn add(program: PathBuf, scenario: &Scenario, law: &SetUp, spec: &mut Spec) {
    let hosts = scenario.hosts();
    let told = |host: &HostId| law.sender(&hosts[host.index()].name).transport() == Transport::ReceiverFeedback;
    let all: Vec<HostId> = (0..hosts.len()).map(|place| HostId(place as u16)).filter(told).collect();
    let Some(first) = all.first() else { return };
    let taken = lasthop_lab::congestion_controls();
    let numbered = (1..).map(|number| if number == 1 { NAME.to_owned() } else { format!("{NAME}{number}") });
    let mut names = numbered.filter(|name| !taken.contains(name));
    // Hosts that send to a station, or would if a program asked them to. Others' connections have a congestion control
    // that is there already: nobody tells them anything.
    let sends = |host: &HostId| {
        let to_station =
            spec.streams.iter().filter(|stream| stream.from == *host && spec.station_of(stream.to).is_some());
        let over_tcp = |kind| matches!(kind, StreamKind::Bulk { .. } | StreamKind::Fetch { .. });
        *host == Scenario::SERVER || to_station.map(|stream| stream.kind).any(over_tcp)
    };
    let mut senders: Vec<HostId> = all.iter().copied().filter(sends).collect();
    if senders.is_empty() {
        senders.push(*first);
    }
    let sender = |host: HostId| {
        let name = names.next().unwrap_or_else(|| NAME.to_owned());
        let mut arguments = words("pbe sender --cgroup {cgroup} --name");
        arguments.push(name.clone());
        arguments.extend(flags(law.sender(&hosts[host.index()].name), true));
        PbeSenderSpec { host, name, arguments }
    };
    let senders: Vec<PbeSenderSpec> = senders.into_iter().map(sender).collect();
    for host in &all {
        let own = senders.iter().find(|sender| sender.host == *host).unwrap_or(&senders[0]);
        spec.congestion[host.index()].clone_from(&own.name);
    }
    let law = law.sender(&hosts[first.index()].name);
    let receivers = receivers(scenario, law);
    spec.pbe = Some(PbeSpec { program, senders, receivers });
}

/// An agent on each station that decodes its cell. Its pipes have their rows in order.
fn receivers(scenario: &Scenario, law: &Choice) -> Vec<PbeReceiverSpec> {
    let Hop::Cell(plan) = scenario.hop() else { return Vec::new() };
    let decoding = plan.params().stations.iter().enumerate().filter(|(_, station)| station.decodes);
    let receiver = |station: usize| {
        let mut arguments = words("pbe receiver --cgroup {cgroup} --rnti");
        arguments.push(plan.rnti(station).0.to_string());
        arguments.extend(["--window".to_owned(), "1 ms".to_owned()]);
        arguments.extend(flags(law, false));
        PbeReceiverSpec { station, arguments, carrier: words("--dci {control} --prb {prb}") }
    };
    decoding.map(|(station, _)| receiver(station)).collect()
}

/// The parameters that one end looks at, as flags of its agent.
fn flags(law: &Choice, of_sender: bool) -> impl Iterator<Item = String> {
    let own = law.values().into_iter().filter(move |(param, _)| OF_SENDERS.contains(&param.key) == of_sender);
    own.flat_map(|(param, value)| [format!("--{}", param.key), value.to_string()])
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}
