//! The command line of the agent that the lab starts on its access point: what an operator would type.

use super::Wanted;
use lasthop_lab::{AccountSpec, Cause, ProgramSpec, Ready, Spec};
use lasthop_laws::{Choice, Place};
use lasthop_scenario::Scenario;

const ACCOUNT: AccountSpec = AccountSpec {
    line: "agent",
    name: "agent",
    by_host: false,
    expected: 0,
    doubts: &[
        (Cause::Counted("driver_losses"), "the driver fell silent {n} times, and the agent released all windows"),
        (Cause::Silent, "the agent gave no account of itself"),
    ],
};

/// `program ap …` on each radio of the access point with the law and its parameters; it finds the stations by itself. No
/// hardware reaches the lab's interfaces, whatever this machine offloads elsewhere.
pub(super) fn add(Wanted { program, law, .. }: Wanted<'_>, spec: &mut Spec) {
    let Some(choice) = law.agent() else { return };
    let line = ["ap", "--iface", "{iface}", "--driver", "{driver}", "--allow-offload"];
    let arguments: Vec<String> = line.map(str::to_owned).into_iter().chain(flags(choice)).collect();
    for node in spec.access_points() {
        let name = format!("the agent {}", program.display());
        spec.programs.push(ProgramSpec {
            node: Some(node),
            ready: Ready::Connected,
            account: Some(ACCOUNT),
            ..ProgramSpec::new(name, Scenario::AP_HOST, program.to_owned(), arguments.clone())
        });
    }
}

/// The words of a command line.
pub fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// The law and all of its parameters as flags of an agent.
pub fn flags(choice: &Choice) -> Vec<String> {
    let law = ["--law".to_owned(), choice.name().to_owned()];
    let values = choice.values();
    let place = choice.entry().map_or(Place::Sender, |entry| entry.place);
    let flags = values.iter().flat_map(|(param, value)| [format!("--{}", flag(place, param.key)), value.to_string()]);
    law.into_iter().chain(flags).collect()
}

/// The flag of a parameter of a law at `place`. Where others report to the law, its control interval is their slot.
pub fn flag(place: Place, key: &str) -> &str {
    match (place, key) {
        (Place::Terminal, "rule") => "mode",
        (Place::Terminal, _) => key,
        (_, "interval") => "slot",
        _ => key,
    }
}
