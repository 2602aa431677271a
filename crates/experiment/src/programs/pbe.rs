//! The command lines of PBE-CC's agents, which the lab starts on senders and on stations in a cell: what operators would type.

use super::Wanted;
use super::agent::words;
use lasthop_lab::{AccountSpec, Cause, ProgramSpec, Ready, Spec};
use lasthop_laws::pbe::OF_SENDERS;
use lasthop_laws::{Choice, Transport};
use lasthop_radio::LastHop;
use lasthop_scenario::{Scenario, Stream, StreamKind};
use lasthop_signals::HostId;
use std::path::Path;

/// Of either end; the line of each has its own key.
const ACCOUNT: AccountSpec = AccountSpec {
    line: "pbe_sender",
    name: "pbe",
    by_host: false,
    expected: 0,
    doubts: &[
        (Cause::Silent, "{n} agents of PBE-CC gave no account of themselves"),
        (Cause::Counted("lost"), "stations' agents were too slow for {n} packets: the machine was busy"),
        (Cause::Short("agreed"), "{n} connections of PBE-CC did not agree on its option"),
    ],
};

/// What senders' agents call the congestion control: of several in one kernel each has a name of its own, with its number behind.
const NAME: &str = "lasthop_pbe";

/// Agents for the senders that are told a capacity, and for the stations that tell one; with the congestion control of each such sender in
/// `spec`. Nothing without such senders.
pub(super) fn add(Wanted { program, scenario, law }: Wanted<'_>, spec: &mut Spec) {
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
    for host in &senders {
        let name = names.next().unwrap_or_else(|| NAME.to_owned());
        let mut arguments = words("pbe sender --cgroup {cgroup} --name");
        arguments.push(name.clone());
        arguments.extend(flags(law.sender(&hosts[host.index()].name), true));
        let called = format!("the sender's agent on {}", spec.host_name(*host));
        spec.programs.push(ProgramSpec {
            brings: Some(name),
            ready: Ready::Spoken,
            account: Some(ACCOUNT),
            ..ProgramSpec::new(called, *host, program.to_owned(), arguments)
        });
    }
    let brought: Vec<(HostId, String)> =
        spec.programs.iter().filter_map(|program| Some((program.host, program.brings.clone()?))).collect();
    for host in &all {
        let own = brought.iter().find(|(of, _)| of == host).unwrap_or(&brought[0]);
        spec.congestion[host.index()].clone_from(&own.1);
    }
    add_receivers(program, scenario, law.sender(&hosts[first.index()].name), &senders, spec);
}

/// An agent on each station that decodes its cell. Its pipes have their rows in order.
fn add_receivers(program: &Path, scenario: &Scenario, law: &Choice, senders: &[HostId], spec: &mut Spec) {
    let LastHop::Cell(plan) = scenario.hop() else { return };
    let cell = plan.params();
    for (place, station) in cell.stations.iter().enumerate().filter(|(_, station)| station.decodes) {
        let mut arguments = words("pbe receiver --cgroup {cgroup} --rnti");
        arguments.push(plan.rnti(place).0.to_string());
        arguments.extend(["--window".to_owned(), "1 ms".to_owned()]);
        arguments.extend(flags(law, false));
        // Its primary cell comes first.
        let count = cell.carriers.len();
        for turn in 0..count.min(usize::from(station.carriers)) {
            let carrier = (usize::from(station.primary) + turn) % count;
            arguments.extend(words(&format!("--dci {{control:{carrier}}} --prb {}", cell.carriers[carrier])));
        }
        // Connections at least, since fetches have more than one.
        let told = |stream: &&Stream| {
            let over_tcp = matches!(stream.kind, StreamKind::Bulk { .. } | StreamKind::Fetch { .. });
            over_tcp && senders.contains(&stream.from) && spec.station_of(stream.to) == Some(place)
        };
        let expected = spec.streams.iter().filter(told).count() as u64;
        let host = Scenario::station_host(place);
        let called = format!("the receiver's agent on {}", spec.host_name(host));
        spec.programs.push(ProgramSpec {
            ready: Ready::Spoken,
            account: Some(AccountSpec { line: "pbe_receiver", expected, ..ACCOUNT }),
            ..ProgramSpec::new(called, host, program.to_owned(), arguments)
        });
    }
}

/// The parameters that one end looks at, as flags of its agent.
fn flags(law: &Choice, of_sender: bool) -> impl Iterator<Item = String> {
    let own = law.values().into_iter().filter(move |(param, _)| OF_SENDERS.contains(&param.key) == of_sender);
    own.flat_map(|(param, value)| [format!("--{}", param.key), value.to_string()])
}
