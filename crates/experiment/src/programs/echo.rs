//! The command lines of the agents that answer and send probes.

use super::Wanted;
use super::agent::{flags, words};
use lasthop_lab::{AccountSpec, Cause, ProgramSpec, Ready, Spec};
use lasthop_laws::{Place, echo};
use lasthop_scenario::{Scenario, SetUp};

const ACCOUNT: AccountSpec = AccountSpec {
    line: "echo",
    name: "echo",
    by_host: false,
    expected: 0,
    doubts: &[(Cause::Silent, "{n} agents that answer probes gave no account of themselves")],
};

/// `program echo …` on the access point, if the law asks for it, and on each station, of which each asks the access point.
pub(super) fn add(Wanted { program, law, .. }: Wanted<'_>, spec: &mut Spec) {
    let part = law.part(Place::Relay, SetUp::AP).filter(|part| part.law.name() == echo::NAME);
    let Some(part) = part else { return };
    let stations = (0..spec.stations().len()).map(|station| (None, Scenario::station_host(station)));
    let hosts = spec.access_points().into_iter().map(|node| (Some(node), Scenario::AP_HOST)).chain(stations);
    for (node, host) in hosts.collect::<Vec<_>>() {
        let mut arguments = words("echo --iface {iface}");
        arguments.extend(flags(&part.law));
        if node.is_none() {
            arguments.extend(["--ask".to_owned(), spec.address(Scenario::AP_HOST, host).to_string()]);
        }
        let name = format!("the agent that answers probes on {}", spec.host_name(host));
        spec.programs.push(ProgramSpec {
            node,
            ready: Ready::Spoken,
            account: Some(ACCOUNT),
            ..ProgramSpec::new(name, host, program.to_owned(), arguments)
        });
    }
}
