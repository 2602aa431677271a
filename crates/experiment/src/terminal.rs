//! The command lines of the agents that the lab starts on stations: what an operator would type.

use crate::agent;
use lasthop_lab::TerminalSpec;
use lasthop_laws::Choice;
use std::path::PathBuf;

/// `program host …` on a station, by its place among the scenario's, with the law and its parameters. What is in braces is filled in
/// by the lab.
pub fn command(program: PathBuf, station: usize, choice: &Choice) -> TerminalSpec {
    let line = "host --iface {iface} --cgroup {cgroup} --key {key} --bss {bss} --log {log}";
    let mut arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
    arguments.extend(agent::flags(choice));
    TerminalSpec { program, station, arguments }
}
