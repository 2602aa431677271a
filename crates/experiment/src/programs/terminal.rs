//! The command lines of the agents that the lab starts on stations: what an operator would type.

use super::Wanted;
use super::agent::{flags, words};
use lasthop_lab::{AccountSpec, Cause, ProgramSpec, Ready, Spec, address, topology};
use lasthop_laws::Place;
use lasthop_scenario::Scenario;
use lasthop_signals::MacAddress;

const ACCOUNT: AccountSpec = AccountSpec {
    line: "terminal",
    name: "terminals",
    by_host: false,
    expected: 0,
    doubts: &[
        (Cause::Silent, "the agents of {n} stations gave no account of themselves"),
        (Cause::Idle("adopted"), "the agents of {n} stations looked after no connection"),
    ],
};

/// `program host …` on each station with a law that bounds its windows, with that law and its parameters.
pub(super) fn add(Wanted { program, law, .. }: Wanted<'_>, spec: &mut Spec) {
    // None changes access points: they are one network.
    let bssid = spec.access_points().first().map(|ap| MacAddress(address::mac(topology::LAST, *ap)));
    let stations: Vec<String> = spec.stations().into_iter().map(str::to_owned).collect();
    for (station, name) in stations.iter().enumerate() {
        let (Some(part), Some(bssid)) = (law.part(Place::Terminal, name), bssid) else { continue };
        let mut arguments = words("host --iface {iface} --cgroup {cgroup} --key {network-key} --log {log} --bss");
        arguments.push(bssid.to_string());
        arguments.extend(flags(&part.law));
        let host = Scenario::station_host(station);
        spec.programs.push(ProgramSpec {
            log: Some(format!("terminal-{}.log", Scenario::station_node(station).0)),
            // It logs its first look once everything is open.
            ready: Ready::Logged,
            account: Some(ACCOUNT),
            ..ProgramSpec::new(format!("the terminal's agent on {name}"), host, program.to_owned(), arguments)
        });
    }
}
