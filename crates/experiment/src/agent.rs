//! The command line of the agent that the lab starts on its access point: what an operator would type.

use lasthop_lab::AgentSpec;
use lasthop_laws::oal::{CapacityRule, Params, Weights, WindowRule};
use lasthop_scenario::quantity;
use std::path::PathBuf;

/// `program ap …` with the law's parameters; it learns for itself who the stations are. `{iface}` and `{driver}` are filled
/// in by the lab, whose interfaces no hardware reaches, whatever this machine offloads elsewhere.
pub fn command(program: PathBuf, params: &Params) -> AgentSpec {
    let line = ["ap", "--iface", "{iface}", "--driver", "{driver}", "--allow-offload"];
    let mut arguments: Vec<String> = line.map(str::to_owned).to_vec();
    arguments.extend(flags(params));
    AgentSpec { program, arguments }
}

/// The law's parameters as flags of `lasthop ap`.
pub fn flags(params: &Params) -> Vec<String> {
    let Params { weights, capacity, window, slack, slack_max, trigger, release_after, ceiling_gain } = params;
    let weights = match weights {
        Weights::Flow => "flow",
        Weights::Station => "station",
        Weights::Airtime => "airtime",
        Weights::PotentialDelay => "potential-delay",
    };
    let capacity = match capacity {
        CapacityRule::Airtime => "airtime",
        CapacityRule::Paper => "paper",
    };
    let window = match window {
        WindowRule::Unloaded => "unloaded",
        WindowRule::Paper => "paper",
    };

    let flags = [
        ("--weights", weights.to_owned()),
        ("--capacity", capacity.to_owned()),
        ("--window", window.to_owned()),
        ("--slack", quantity::show(*slack)),
        ("--slack-max", quantity::show(*slack_max)),
        ("--trigger", quantity::show(*trigger)),
        ("--release-after", release_after.to_string()),
        ("--ceiling-gain", ceiling_gain.to_string()),
    ];
    flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]).collect()
}
