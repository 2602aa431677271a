//! Scenarios in virtual time, and what they tell.
#![allow(dead_code, reason = "each user of this module uses part of it")]

use lasthop_report::{Key, RunRecord};
use lasthop_scenario::Scenario;
use std::path::{Path, PathBuf};

/// A scenario that a test has written.
pub fn parse(text: &str) -> Scenario {
    Scenario::parse("test", text, Path::new(".")).unwrap_or_else(|error| panic!("{}", error.plain()))
}

/// Where a shipped scenario is, by its path below `scenarios`.
pub fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name)
}

/// A shipped scenario.
pub fn load(name: &str) -> Scenario {
    Scenario::load(shipped(name)).unwrap_or_else(|error| panic!("{}", error.plain()))
}

/// One run of a scenario under a law of it.
pub fn simulate(scenario: &Scenario, law: &str, seed: u64) -> RunRecord {
    let law = scenario.law(law).expect("a law of the scenario");
    lasthop_sim::run(scenario, &law, seed, false, &mut |_| true).expect("valid parameters").expect("not stopped")
}

/// A figure that the run must have.
pub fn value(record: &RunRecord, key: Key) -> f64 {
    record.figure(key).value().unwrap_or_else(|| panic!("no {}", key.name()))
}

/// The text of a scenario with a wire of 5 ms and a hop of 802.11ac at 80 MHz, whose FIFO holds 1000 packets: `head` gives its title and
/// times, `hop` what else is said of the hop, `rest` the stations, their traffic and the laws.
pub fn wifi(head: &str, hop: &str, rest: &str) -> String {
    format!(
        r#"
{head}
seeds = 1
[wire]
rate = "1 Gbit/s"
delay = "5 ms"
[hop.wifi]
standard = "802.11ac"
width = "80 MHz"
queue = {{ kind = "fifo", limit = "1000 packets" }}
{hop}
{rest}
"#
    )
}
