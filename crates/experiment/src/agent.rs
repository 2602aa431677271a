//! The command line of the agent that the lab starts on its access point: what an operator would type.

use lasthop_lab::AgentSpec;
use lasthop_laws::Choice;
use std::path::PathBuf;

/// `program ap …` with the law and its parameters; it learns for itself who the stations are. `{iface}` and `{driver}` are filled
/// in by the lab, whose interfaces no hardware reaches, whatever this machine offloads elsewhere.
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
    let flags = values.iter().flat_map(|(param, value)| [format!("--{}", flag(param.key)), value.to_string()]);
    law.into_iter().chain(flags).collect()
}

/// The flag of a parameter. The law's control interval is the slot of those who report to it.
pub fn flag(key: &str) -> &str {
    if key == "interval" { "slot" } else { key }
}
