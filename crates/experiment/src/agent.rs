//! The command line of the agent that the lab starts on its access point: what an operator would type.

use lasthop_lab::AgentSpec;
use lasthop_laws::{Choice, Place};
use std::path::PathBuf;

/// `program ap …` with the law and its parameters; it finds the stations by itself. `{iface}` and `{driver}` are filled
/// in by the lab. No hardware reaches the lab's interfaces, whatever this machine offloads elsewhere.
pub fn command(program: PathBuf, choice: &Choice) -> AgentSpec {
    let line = ["ap", "--iface", "{iface}", "--driver", "{driver}", "--allow-offload"];
    let mut arguments: Vec<String> = line.map(str::to_owned).to_vec();
    arguments.extend(flags(choice));
    AgentSpec { program, arguments }
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
