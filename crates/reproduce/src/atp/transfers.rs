//! Thirty-two transfers between random pairs of a whole mesh. OLSR finds the routes.

use super::{LAWS, by_law, fourth, order, rows};
use crate::study::{Results, Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_report::page::{Chart, Check, Curve, MEANS, Map, Place, Section, digits, mean, shown};
use lasthop_report::{Estimate, Key, Run, SeriesKind};
use toml::{Table, Value};

const TRANSFERS: Shipped = shipped!("atp", "transfers");
/// How long the flows are watched, in seconds; they begin at 30 s.
const WATCHED: [u32; 3] = [60, 150, 300];
const START: u32 = 30;
/// Parts of an equal share below which a flow starves, in percent.
const THRESHOLDS: [u32; 6] = [1, 2, 5, 10, 15, 20];

/// Part of a run's flows that get less than `percent` of an equal share of what all get, each while it lasts.
fn starved(run: &Run, percent: u32) -> Option<f64> {
    let flow = |stream: &lasthop_report::StreamRecord| {
        stream.figures.get(&Key::FlowRate).and_then(|rate| rate.value()).unwrap_or(0.0)
    };
    let rates: Vec<f64> = run.record.streams.iter().map(flow).collect();
    let share = rates.iter().sum::<f64>() / rates.len() as f64 * f64::from(percent) / 100.0;
    (!rates.is_empty()).then(|| rates.iter().filter(|rate| **rate < share).count() as f64 / rates.len() as f64)
}

pub(super) fn transfers(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let watched: &[u32] = if runner.quick { &WATCHED[..1] } else { &WATCHED };
    let runs: Result<Vec<Results>, _> = watched
        .iter()
        .map(|seconds| runner.run(TRANSFERS, &[("duration", format!("{} s", seconds + START).into())]))
        .collect();
    let runs = runs?;
    let mut table = by_law();
    let mut shares = lasthop_report::page::Table::new(
        &[
            &["watched", "law"],
            THRESHOLDS.map(|percent| format!("below {percent} %")).each_ref().map(String::as_str).as_slice(),
        ]
        .concat(),
    );
    for (seconds, run) in watched.iter().zip(&runs) {
        table.rows.extend(rows(&format!("{seconds} s"), run, &LAWS));
        for law in LAWS {
            let part = |percent| shown(&run.over_runs(law, "1", |run| starved(run, percent)));
            let head = [format!("{seconds} s"), law.to_owned()];
            shares.rows.push(head.into_iter().chain(THRESHOLDS.map(part)).collect());
        }
    }
    let Some(last) = runs.last() else { return Ok(Section::default()) };
    let curves = |law: &str| -> Vec<(f64, Estimate)> {
        let at = |percent: u32| (f64::from(percent), last.over_runs(law, "1", |run| starved(run, percent)));
        THRESHOLDS.map(at).into()
    };
    Ok(Section {
        title: "Thirty-two transfers".into(),
        text: "1 MB each between random pairs of sixteen nodes, all beginning at 30 s. A flow's goodput counts to its end, or to the end of the run. Whether it starves depends on where the line is \
               drawn and on how long one looks, so both are varied: the paper states neither. ATP sends at 1/D whatever is lost, so it gets through weak links that hold Tahoe back. After 300 s \
               most has come, which is 0.853 Mbit/s at most: what the air carries shows at 60 s."
            .into(),
        reason: "Default has fewest. Under Aggressive the receiver falls silent after three epochs of 40 ms without a packet, and the sender goes back to probing; that this is why flows starve \
                 there was not shown, nor why `on-change` has less."
            .into(),
        checks: checks(watched, &runs),
        tables: vec![table.data(), shares.data().named("starved")],
        charts: vec![Chart {
            file: "atp-transfers-starved".into(),
            title: "Starved flows, by where the line is drawn".into(),
            x: "starved below this part of an equal share (%)".into(),
            y: "share of flows".into(),
            curves: LAWS.into_iter().map(|law| Curve::estimated(law, curves(law))).collect(),
            note: MEANS.into(),
            ..Chart::default()
        }],
        pictures: vec![map(last).picture()],
        ..Section::default()
    })
}

fn checks(watched: &[u32], runs: &[Results]) -> Vec<Check> {
    let (Some(first), Some(run)) = (runs.first(), runs.last()) else { return Vec::new() };
    let paper = ["tahoe", "default", "aggressive", "adaptive"];
    let share = |law: &str| mean(&run.of(law, Key::StarvedShare));
    let shares = paper.map(share);
    let percents = |run: &Results| {
        let of = |law| format!("{} %", digits(mean(&run.of(law, Key::StarvedShare)) * 100.0));
        ["tahoe", "default"].map(of).join(", ")
    };
    let starved = watched.iter().zip(runs).map(|(seconds, run)| format!("{seconds} s: {}", percents(run)));
    let fewest = paper[1..3].iter().all(|law| share(law) >= share("adaptive")) && share("tahoe") > share("adaptive");
    let totals = paper.map(|law| format!("{law} {}", digits(mean(&first.of(law, Key::Throughput))))).join(", ");
    vec![
        Check::new("starved flows: Tahoe, Default", "50 %, 30 %", starved.collect::<Vec<_>>().join("; "), None)
            .headline(),
        Check::new(
            "starved: Tahoe, Default, Aggressive, Adaptive",
            "Adaptive least",
            shares.map(|share| format!("{} %", digits(share * 100.0))).join(", "),
            fewest,
        )
        .headline(),
        Check::new(
            &format!("aggregate in the first {} s (Mbit/s)", watched[0]),
            "Tahoe highest",
            totals,
            order(first, &paper, Key::Throughput)[0] == "tahoe",
        )
        .headline(),
        fourth("32 transfers", run),
    ]
}

/// Nodes, the transfers between them, and each node's D under Adaptive in the first run.
fn map(results: &Results) -> Map {
    let file: Table = toml::from_str(TRANSFERS.text).expect("shipped scenarios are TOML: a test reads them all");
    let metres = |value: &Value| {
        value.as_str().and_then(|text| text.strip_suffix(" m")).and_then(|text| text.parse::<f64>().ok())
    };
    let at = |position: Option<&Value>| {
        let coordinates: Vec<f64> = position.and_then(Value::as_array)?.iter().filter_map(metres).collect();
        Some((*coordinates.first()?, *coordinates.get(1)?))
    };
    let run = results.runs("adaptive").next();
    let delay = |name: &str| Results::between_of(run?, SeriesKind::NodeDelay, name, (f64::from(START), f64::MAX));
    let gateway = at(file["hop"]["wifi"]["mesh"].get("position"));
    let stations = file["station"].as_array().into_iter().flatten();
    let named = stations.filter_map(|table| Some((table.get("name")?.as_str()?.to_owned(), at(table.get("position")))));
    let places: Vec<Place> = std::iter::once(("ap".to_owned(), gateway))
        .chain(named)
        .filter_map(|(name, at)| Some(Place { value: delay(&name), at: at?, name }))
        .collect();
    let place = |table: &Value, key: &str| {
        let name = table.get(key)?.as_str()?;
        places.iter().position(|place| place.name == name)
    };
    let traffic = file["traffic"].as_array().into_iter().flatten();
    let flows = traffic.filter_map(|table| Some((place(table, "from")?, place(table, "to")?, 0.2))).collect();
    Map {
        file: "atp-transfers-map".into(),
        title: "Sixteen nodes and their D under Adaptive".into(),
        flows,
        unit: "ms".into(),
        note: "Arrows: transfers. Circles: D of a node's own hop, seed 1; the gateway's is not recorded.".into(),
        places,
    }
}
