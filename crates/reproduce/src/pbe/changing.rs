//! Channels and loads that change: a walk, a load that comes and goes, a drive with handovers.

use super::place::steps;
use super::{COLUMNS, LAWS};
use crate::study::{Edit, Results, Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_report::page::{Chart, Check, Curve, Section, Table, mean, shown};
use lasthop_report::{Key, SeriesKind};
use toml::Value;

const MOBILITY: Shipped = shipped!("pbe", "mobility");
const ON_OFF: Shipped = shipped!("pbe", "onoff");
const HANDOVER: Shipped = shipped!("pbe", "handover");
const DRIVE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/pbe/traces/drive-4.csv"));

/// The walk.
pub(super) fn mobility(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let run = runner.run(MOBILITY, &[])?;
    let text = "Power falls by 20 dB in 10 s and rises again: the span of the paper's walk. Its times and figures are not public.";
    let curve = |law: &str, kind| Curve::estimated(law, run.traced(law, kind, 0.5));
    let rates = ["bbr", "pbe"].map(|law| curve(law, SeriesKind::Rate)).to_vec();
    let delays = ["bbr", "pbe"].map(|law| curve(law, SeriesKind::HopDelay)).to_vec();
    let charts = vec![
        Chart::over_time("mobility-rate", "Goodput on the walk", "Mbit/s", rates),
        Chart::over_time("mobility-delay", "Delay in the cell on the walk", "ms", delays),
    ];
    Ok(Section { charts, ..section(&run, "A walk", text, Table::new(&[])) })
}

/// A load that comes and goes.
pub(super) fn on_off(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let run = runner.run(ON_OFF, &[])?;
    let phases = |on: bool| move |second: f64| (second % 8.0 >= 4.0) == on && second >= 4.0;
    let of = |law: &str, on: bool| {
        run.over_runs(law, "Mbit/s", |run| {
            let rates = Results::series_of(run, SeriesKind::Rate, "phone", 0.1);
            let own: Vec<f64> = rates.into_iter().filter(|(at, _)| phases(on)(*at)).map(|(_, rate)| rate).collect();
            (!own.is_empty()).then(|| own.iter().sum::<f64>() / own.len() as f64)
        })
    };
    let mut table = Table::new(&["law", "beside the load (Mbit/s)", "without it (Mbit/s)"]);
    for law in LAWS {
        table.rows.push(vec![law.into(), shown(&of(law, true)), shown(&of(law, false))]);
    }
    let text = "Another station is sent 60 Mbit/s, 4 s of every 8 s. The paper shows such a competitor over time and gives no totals.";
    Ok(section(&run, "A load that comes and goes", text, table))
}

/// A drive.
pub(super) fn handover(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let edits: [Edit<'_>; 1] = [("station.0.cqi-trace", Value::from(steps(DRIVE)))];
    // As the file itself says it.
    let run = runner.run_as(HANDOVER, &edits, &[])?;
    let text = "Not a figure of the paper. A measured minute of a drive, in which the cell changes three times; each change interrupts the station for 50 ms.";
    Ok(section(&run, "A drive with handovers", text, Table::new(&[])))
}

/// What all of them show beside BBR.
fn section(run: &Results, title: &str, text: &str, table: Table) -> Section {
    let rate = run.multiple("pbe", "bbr", Key::Throughput);
    let (slow, late) = (run.multiple("bbr", "pbe", Key::EndDelayMean), run.multiple("bbr", "pbe", Key::EndDelayP95));
    let place = title.to_lowercase();
    let checks = vec![
        Check::new(&format!("{place}: throughput over BBR's"), "not stated", shown(&rate), None),
        Check::new(
            &format!("{place}: BBR's delay over PBE-CC's, mean and p95"),
            "> 1",
            format!("{} and {}", shown(&slow), shown(&late)),
            mean(&slow) > 1.0 && mean(&late) > 1.0,
        ),
    ];
    let laws = run.by_law(&LAWS, &COLUMNS).data();
    let tables = std::iter::once(laws).chain((!table.rows.is_empty()).then(|| table.data().named("phases")));
    Section { title: title.into(), text: text.into(), checks, tables: tables.collect(), ..Section::default() }
}
