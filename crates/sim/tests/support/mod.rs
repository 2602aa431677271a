//! Scenarios in virtual time, and what they tell.
#![allow(dead_code, reason = "each user of this module uses part of it")]

use lasthop_report::{Key, RunRecord};
use lasthop_scenario::Scenario;
use std::io::Write as _;
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

/// A file of the reference data; `None`, and loudly, without it.
pub fn reference_file(file: &str) -> Option<PathBuf> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference");
    let path = std::env::var_os("LASTHOP_REFERENCE").map_or_else(beside, PathBuf::from).join(file);
    if !path.is_file() {
        // Past the capture of test output.
        let line = format!("SKIPPED: reference data absent: {} (set LASTHOP_REFERENCE)\n", path.display());
        let _ = std::io::stderr().write_all(line.as_bytes());
        return None;
    }
    Some(path)
}

/// The rows of a CSV file of the reference data, each as its cells by column name; `None`, and loudly, without it.
pub fn reference<T>(file: &str, row: impl Fn(&dyn Fn(&str) -> Option<String>) -> Option<T>) -> Option<Vec<T>> {
    let text = std::fs::read_to_string(reference_file(file)?).expect("a text file");
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next()?.split(',').collect();
    let read = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        row(&|name| cells.get(names.iter().position(|known| *known == name)?).map(|cell| (*cell).to_owned()))
    };
    lines.map(read).collect()
}

/// A shipped scenario in which some words, which stand there once, are others.
pub fn edited(name: &str, changes: &[(&str, &str)]) -> Scenario {
    let mut text = std::fs::read_to_string(shipped(name)).expect("a shipped scenario");
    for (from, to) in changes {
        assert_eq!(text.matches(from).count(), 1, "{name}: {from}");
        text = text.replace(from, to);
    }
    parse(&text)
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

/// A figure of a law, by seed.
pub fn values(scenario: &Scenario, law: &str, key: Key, seeds: std::ops::RangeInclusive<u64>) -> Vec<f64> {
    seeds.map(|seed| value(&simulate(scenario, law, seed), key)).collect()
}

/// Throughput and 95th percentile of the delay over the hop, as multiples of another run's.
pub fn against(ours: &RunRecord, other: &RunRecord) -> (f64, f64) {
    let times = |key| value(ours, key) / value(other, key);
    (times(Key::Throughput), times(Key::HopDelayP95))
}

/// The table of `count` stations at one MCS: what is written behind it is said of them as well.
pub fn stations(name: &str, count: u32, mcs: u32) -> String {
    format!("[[station]]\nname = \"{name}\"\ncount = {count}\nmcs = {mcs}\n")
}

/// A download to a station, to all of a name or to `each`, that never ends.
pub fn download(to: &str) -> String {
    format!("[[traffic]]\nkind = \"bulk\"\nto = \"{to}\"\n")
}

/// The law `cubic`: that alone.
pub const CUBIC: &str = "[laws.cubic]\nsender = \"cubic\"\n";

/// The law `regulator`: CUBIC through a proxy, with this target.
pub fn regulator(target: &str) -> String {
    regulated("regulator", &format!("target = \"{target}\""))
}

/// A law of CUBIC through a proxy with a regulator that is told this.
pub fn regulated(law: &str, told: &str) -> String {
    format!("[laws.{law}]\nsender = \"cubic\"\nregulator = {{ {told} }}\n")
}

/// A scenario over a wire of 1 Gbit/s and a hop of 802.11ac: what differs from one test to the next.
pub struct Wifi<'t> {
    pub title: &'t str,
    /// How long a run lasts, and how much of it does not count.
    pub times: (&'t str, &'t str),
    /// Of the wire, each way.
    pub delay: &'t str,
    pub width: &'t str,
    pub queue: &'t str,
    /// What else is said of the hop.
    pub hop: &'t str,
    /// The stations, their traffic, the laws, and what else stands in tables of its own.
    pub rest: &'t str,
}

impl Default for Wifi<'_> {
    fn default() -> Self {
        Wifi {
            title: "Test",
            times: ("40 s", "20 s"),
            delay: "5 ms",
            width: "80 MHz",
            queue: "{ kind = \"fifo\", limit = \"1000 packets\" }",
            hop: "",
            rest: "",
        }
    }
}

impl Wifi<'_> {
    /// Its text.
    pub fn text(&self) -> String {
        let Wifi { title, times: (duration, warm_up), delay, width, queue, hop, rest } = self;
        format!(
            r#"
title = "{title}"
duration = "{duration}"
warm-up = "{warm_up}"
seeds = 1
[wire]
rate = "1 Gbit/s"
delay = "{delay}"
[hop.wifi]
standard = "802.11ac"
width = "{width}"
queue = {queue}
{hop}
{rest}
"#
        )
    }

    /// The scenario.
    pub fn scenario(&self) -> Scenario {
        parse(&self.text())
    }
}
