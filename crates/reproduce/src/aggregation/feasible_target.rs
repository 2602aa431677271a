//! Targets that no rate can hold.

use super::by_law::{by_law, row};
use super::saturated::{Line, saturated};
use super::{mean, near};
use crate::study::{Edit, Results, Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_report::page::{Check, Section, digits, shown};
use lasthop_report::{Estimate, Key, SeriesKind};
use toml::Value;

const SCENARIO: Shipped = shipped!("aggregation", "out-of-reach");

/// One hop, and the target that it cannot hold.
struct Case {
    label: &'static str,
    stations: i64,
    neighbour: bool,
    target_ms: f64,
}

const CASES: [Case; 3] = [
    Case { label: "25 and a neighbour, T = 10 ms", stations: 25, neighbour: true, target_ms: 10.0 },
    Case { label: "8 and a neighbour, T = 5 ms", stations: 8, neighbour: true, target_ms: 5.0 },
    Case { label: "25 alone, T = 5 ms", stations: 25, neighbour: false, target_ms: 5.0 },
];
/// The column beside those of every such table, and before which of those the interval that is aimed at stands.
const MORE: [(&str, Key); 1] = [("Jain", Key::Jain)];
const AIMED: usize = 4;
/// Packets a frame that are aimed at at the most.
const AIM: f64 = 48.0;

pub(crate) fn out_of_reach(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let mut section = Section {
        title: "Targets that no rate can hold".into(),
        text: "Not a figure of the paper. Where a round in which every station gets one packet is already longer than T, the published law sends single packets: it misses T as well, and packets \
               have hardly any of the air. This law aims at twice ĉ (decision 9), or at what frames of 48 packets make of it. The reference for ĉ is a saturated hop without a regulator. \
               Neighbours send at 6 Mbit/s."
            .into(),
        ..Section::default()
    };
    let mut table = by_law(&MORE);
    table.head.insert(AIMED, "interval aimed at (ms)".into());
    for case in &CASES {
        let stations = ("station.0.count", Value::from(case.stations));
        // A wire and a queue that keep packets of all 25 waiting: a sender at a constant rate finds a full one full every time.
        let fed = [stations.clone(), ("wire.rate", "10 Gbit/s".into()), ("hop.wifi.queue.kind", "round-robin".into())];
        let line = saturated(runner, SCENARIO, &fed, 9, case.neighbour)?;
        let mut edits: Vec<Edit<'_>> = vec![
            stations,
            ("laws.regulator.regulator.target", Value::from(format!("{} ms", case.target_ms))),
            ("laws.published.regulator.target", Value::from(format!("{} ms", case.target_ms))),
        ];
        if !case.neighbour {
            edits.push(("neighbour", Value::Array(Vec::new())));
        }
        let run = runner.run(SCENARIO, &edits)?;
        for law in run.scenario.laws() {
            let mut row = row(case.label, &run, &law.name, &MORE);
            row.insert(AIMED, shown(&aimed(&run, &law.name)));
            table.rows.push(row);
        }
        checks(&mut section, case, &run, &line);
    }
    section.tables.push(table.only(|row| ["cubic", "regulator"].contains(&row[1].as_str()), &[0, 1, 2, 5, 7]));
    Ok(section)
}

/// The interval that is aimed at in the measuring window, ms.
fn aimed(run: &Results, law: &str) -> Estimate {
    run.over_runs(law, "ms", |run| {
        let window = (run.record.window.warm_up.as_secs_f64(), run.record.window.end.as_secs_f64());
        Results::between(run, SeriesKind::IntervalAim, window)
    })
}

fn checks(section: &mut Section, case: &Case, run: &Results, line: &Line) {
    let law = "regulator";
    let (half, full) = (2e3 * line.overhead, line.at(AIM) * 1e3);
    let (held, want) = (run.of(law, Key::FrameInterval), half.min(full));
    section.checks.push(Check::new(
        &format!("{}: interval", case.label),
        &format!("{} ms ± 20 %; the shortest round is {} ms", digits(want), digits(line.at(1.0) * 1e3)),
        format!("{} ms, aimed at {}", shown(&held), shown(&aimed(run, law))),
        near(held.mean, want, 0.2),
    ));
    let times = |key, other| run.multiple(law, other, key);
    let [cubic, modern] =
        ["cubic", "cubic+modern-ap"].map(|other| [Key::HopDelayP95, Key::Throughput].map(|key| times(key, other)));
    section.checks.push(Check::new(
        &format!("{}: p95 delay and throughput over CUBIC's, FIFO; modern queue", case.label),
        "over FIFO < 1 and ≥ 0.5",
        format!("{} and {}; {} and {}", shown(&cubic[0]), shown(&cubic[1]), shown(&modern[0]), shown(&modern[1])),
        mean(&cubic[0]) < 1.0 && mean(&cubic[1]) >= 0.5,
    ));
    let single = times(Key::Throughput, "published");
    section.checks.push(Check::new(
        &format!("{}: throughput over the published law's", case.label),
        "> 1",
        shown(&single),
        mean(&single) > 1.0,
    ));
}
