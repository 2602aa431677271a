//! Losses on the air, which make frames shorter than they may be.

use super::by_law::{by_law, row};
use super::mean;
use crate::study::{Results, Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_report::Key;
use lasthop_report::page::{Check, Section, shown};
use toml::{Table, Value};

const SCENARIO: Shipped = shipped!("aggregation", "lossy");

/// One hop.
struct Case {
    label: &'static str,
    /// Its stations, in TOML.
    stations: &'static str,
}

const CASES: [Case; 4] = [
    Case { label: "4 stations, 1 MPDU in 20 damaged", stations: "count = 4\nmcs = 7\nmpdu-error-rate = 0.05" },
    Case { label: "4 stations, 1 in 5", stations: "count = 4\nmcs = 7\nmpdu-error-rate = 0.2" },
    Case { label: "1 station, three streams, 1 in 20", stations: "nss = 3\nmcs = 9\nmpdu-error-rate = 0.05" },
    Case {
        label: "Rician fading",
        stations: "count = 4\nnss = 2\nrate-control = \"minstrel\"\nsnr = \"28 dB\"\nfading = { kind = \"rician\" }",
    },
];
/// Columns beside those of every such table.
const MORE: [(&str, Key); 2] =
    [("server to application, mean (ms)", Key::EndDelayMean), ("lost per million", Key::Losses)];

pub(crate) fn losses(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let mut section = Section {
        title: "Losses on the air".into(),
        text: "Not a figure of the paper: its hop loses nothing. A damaged MPDU is sent again, and the window of the Block Ack stands on it: frames hold fewer packets than they may, and a law that \
               waits for fuller ones fills the queue. This one takes frames for full where packets are later than three frames are apart (decision 10). Fading is that of four stations at 28 dB with two streams and rates by a sampler."
            .into(),
        reason: "where the channel fades, rates change several-fold within the half second of a slot, and the law is later than the queue.".into(),
        ..Section::default()
    };
    let mut table = by_law(&MORE);
    for case in &CASES {
        let mut stations: Table = toml::from_str(case.stations).expect("the cases are TOML");
        stations.insert("name".to_owned(), "sta".into());
        let run = runner.run(SCENARIO, &[("station", Value::Array(vec![Value::Table(stations)]))])?;
        table.rows.extend(run.scenario.laws().iter().map(|law| row(case.label, &run, &law.name, &MORE)));
        checks(&mut section, case, &run);
    }
    section.tables.push(table.data());
    Ok(section)
}

fn checks(section: &mut Section, case: &Case, run: &Results) {
    for (other, name) in [("cubic", "FIFO"), ("cubic+modern-ap", "modern queue")] {
        let times = |key| run.multiple("regulator", other, key);
        let (used, delay) = (times(Key::Throughput), times(Key::HopDelayP95));
        section.checks.push(Check::new(
            &format!("{}: throughput, p95 delay over CUBIC's, {name}", case.label),
            "≥ 0.99, < 1",
            format!("{}, {}", shown(&used), shown(&delay)),
            mean(&used) >= 0.99 && mean(&delay) < 1.0,
        ));
    }
}
