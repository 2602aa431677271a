//! Queues that have no room for a round, and traffic that takes its part of every one.

use super::by_law::{by_law, row};
use super::mean;
use crate::study::{Results, Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_report::Key;
use lasthop_report::page::{Check, Section, shown};
use toml::Value;

const SHORT: Shipped = shipped!("aggregation", "short-queue");
const BESIDE: Shipped = shipped!("aggregation", "beside");
/// Columns beside those of every such table.
const MORE: [(&str, Key); 2] =
    [("server to application, mean (ms)", Key::EndDelayMean), ("lost per million", Key::Losses)];

pub(crate) fn short_queue(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let mut section = Section {
        title: "Losses in the queue".into(),
        text: "Not a figure of the paper: its queue holds whatever comes and has one user. What is sent within a round waits at the access point for the next: where its queue has no room for \
               that, the interval aimed at is shorter (decision 13). What others send to a station takes its part of every round."
            .into(),
        reason: "queues with room for little more than a round of single packets are no place for aggregates, and behind 64 packets losses look like those of the path before the access point."
            .into(),
        ..Section::default()
    };
    let mut table = by_law(&MORE);
    for (count, packets) in [(20, 50), (4, 64), (4, 100), (4, 150), (4, 250), (4, 500)] {
        let limit = Value::from(format!("{packets} packets"));
        let label = format!("{count} stations, FIFO of {packets}");
        let run = runner.run(SHORT, &[("station.0.count", Value::from(count)), ("hop.wifi.queue.limit", limit)])?;
        table.rows.extend(run.scenario.laws().iter().map(|law| row(&label, &run, &law.name, &MORE)));
        check(&mut section, &label, &run);
    }
    for mbit in [60, 100, 150] {
        let label = format!("3 stations, {mbit} Mbit/s of UDP beside");
        let run = runner.run(BESIDE, &[("traffic.1.rate", Value::from(format!("{mbit} Mbit/s")))])?;
        table.rows.extend(run.scenario.laws().iter().map(|law| row(&label, &run, &law.name, &MORE)));
        check(&mut section, &label, &run);
    }
    section.tables.push(table.data());
    Ok(section)
}

fn check(section: &mut Section, label: &str, run: &Results) {
    let times = |key| run.multiple("regulator", "cubic", key);
    let (used, delay, lost) = (times(Key::Throughput), times(Key::HopDelayP95), times(Key::Losses));
    section.checks.push(Check::new(
        &format!("{label}: throughput, p95 delay, losses over CUBIC's"),
        "≥ 0.99, < 1, < 1",
        format!("{}, {}, {}", shown(&used), shown(&delay), shown(&lost)),
        mean(&used) >= 0.99 && mean(&delay) < 1.0 && mean(&lost) < 1.0,
    ));
}
