//! Traffic that comes and goes in less time than the regulator's slots.

use super::mean;
use crate::study::{Edit, Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_report::Key;
use lasthop_report::page::{Check, Section, Table, shown};
use toml::Value;

const SCENARIO: Shipped = shipped!("aggregation", "come-and-go");
/// What is fetched, and how often.
const CASES: [(&str, [&str; 2]); 3] = [
    ("2 MB every 2 s", ["2 MB", "2 s"]),
    ("200 kB every 0.2 s", ["200 kB", "200 ms"]),
    ("4 kB every 20 ms", ["4 kB", "20 ms"]),
];
/// Entries of the scenario's traffic that fetch.
const FETCHES: std::ops::RangeInclusive<usize> = 1..=6;
const COLUMNS: [Key; 6] =
    [Key::Throughput, Key::FetchP50, Key::FetchP95, Key::HopDelayMean, Key::HopDelayP95, Key::Losses];

pub(crate) fn come_and_go(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let mut section = Section {
        title: "Traffic that comes and goes".into(),
        text: "Not a figure of the paper: its streams never end. Six stations at MCS 5 fetch objects beside a download to a seventh at MCS 7. The published law has a station begin with frames of one \
               packet and keeps a share for it until a slot of half a second ends; here it has its share at once, and others have it as soon as nothing waits for it (decision 11)."
            .into(),
        reason: "the download has 0.98 of what CUBIC gives it over the FIFO, while fetches take an eighth of the time.".into(),
        ..Section::default()
    };
    let mut table = Table::new(&[
        "each fetches",
        "law",
        "download (Mbit/s)",
        "fetch, median (ms)",
        "fetch, p95 (ms)",
        "hop delay mean (ms)",
        "p95 (ms)",
        "lost per million",
    ]);
    for (label, object) in CASES {
        let keys = FETCHES.flat_map(|place| ["size", "every"].map(|key| format!("traffic.{place}.{key}")));
        let values = object.map(Value::from).into_iter().cycle();
        let edits: Vec<(String, Value)> = keys.zip(values).collect();
        let edits: Vec<Edit<'_>> = edits.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
        let run = runner.run(SCENARIO, &edits)?;
        for law in run.scenario.laws() {
            let mut row = vec![label.into(), law.name.clone()];
            row.extend(COLUMNS.iter().map(|key| shown(&run.of(&law.name, *key))));
            table.rows.push(row);
        }
        for (other, name) in [("cubic", "FIFO"), ("cubic+modern-ap", "modern queue")] {
            let [used, fetch, delay] =
                [Key::Throughput, Key::FetchP50, Key::HopDelayP95].map(|key| run.multiple("regulator", other, key));
            section.checks.push(Check::new(
                &format!("{label}: download, median fetch, p95 delay over CUBIC's, {name}"),
                "≥ 0.99, < 1, < 1",
                format!("{}, {}, {}", shown(&used), shown(&fetch), shown(&delay)),
                mean(&used) >= 0.99 && mean(&fetch) < 1.0 && mean(&delay) < 1.0,
            ));
        }
    }
    section.tables.push(table.data());
    Ok(section)
}
