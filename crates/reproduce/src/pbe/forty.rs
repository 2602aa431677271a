//! Forty places, 25 of them busy: each law at each of them, once.

use super::place::places;
use crate::study::{Results, Runner};
use lasthop_experiment::ExperimentError;
use lasthop_report::page::{Chart, Check, Curve, Section, Table, mean, shown};
use lasthop_report::{Estimate, Figure, Key, SeriesKind};

const LAWS: [&str; 7] = ["cubic", "bbr", "copa", "vivace", "pbe", "roomy", "published"];
/// The paper's Table 1: by how much PBE-CC carries more than a rival, and the rival's 95th percentile and mean of the delay are longer, in
/// busy and in idle cells.
const PAPER: [(&str, [f64; 6]); 3] = [
    ("bbr", [1.04, 1.10, 1.54, 2.07, 1.39, 1.84]),
    ("verus", [1.25, 2.01, 3.97, 3.44, 2.53, 2.67]),
    ("copa", [10.35, 12.94, 0.80, 0.79, 0.80, 0.82]),
];
/// Windows of the paper's statistics, in seconds.
const WINDOW: f64 = 0.1;
/// Order statistics of what a window carries, in percent.
const ORDERS: [usize; 5] = [10, 25, 50, 75, 90];
/// A quick look has every so manyth place.
const QUICK: usize = 8;

/// What a law did at a place.
struct Place {
    throughput: f64,
    mean: f64,
    p95: f64,
    /// Order statistics of windows, in Mbit/s.
    windows: [f64; ORDERS.len()],
}

fn at_place(run: &Results, law: &str) -> Place {
    let of = |key| mean(&run.of(law, key));
    let mut windows: Vec<f64> =
        run.runs(law).flat_map(|run| Results::series(run, SeriesKind::Rate, WINDOW)).map(|(_, rate)| rate).collect();
    windows.sort_by(f64::total_cmp);
    let order = |percent: usize| windows.get(windows.len() * percent / 100).copied().unwrap_or(0.0);
    Place {
        throughput: of(Key::Throughput),
        mean: of(Key::EndDelayMean),
        p95: of(Key::EndDelayP95),
        windows: ORDERS.map(order),
    }
}

fn over<'s>(unit: &str, values: impl IntoIterator<Item = f64> + 's) -> Estimate {
    Estimate::of(unit, &values.into_iter().map(Figure::exact).collect::<Vec<_>>())
}

/// The figure.
pub(super) fn forty(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let step = if runner.quick { QUICK } else { 1 };
    let mut seen: Vec<(bool, [Place; LAWS.len()])> = Vec::new();
    for place in places().into_iter().step_by(step) {
        let run = place.run(runner)?;
        seen.push((place.busy, LAWS.map(|law| at_place(&run, law))));
    }
    let among = |busy: Option<bool>| {
        seen.iter().filter(move |(is, _)| busy.is_none_or(|busy| busy == *is)).map(|(_, sights)| sights)
    };
    let place_of = |law: &str| LAWS.iter().position(|name| *name == law).expect("a law of the page");
    let (bbr, pbe) = (place_of("bbr"), place_of("pbe"));
    let gain = |busy, law: usize| over("", among(busy).map(|at| at[law].throughput / at[bbr].throughput));
    let late = |busy, law: usize| over("", among(busy).map(|at| at[bbr].p95 / at[law].p95));
    let slow = |busy, law: usize| over("", among(busy).map(|at| at[bbr].mean / at[law].mean));
    let check = |what: &str, paper: &str, of: &dyn Fn(Option<bool>, usize) -> Estimate, least: f64| {
        let [all, busy, idle] = [None, Some(true), Some(false)].map(|busy| of(busy, pbe));
        let ours = format!("{} (busy {}, idle {})", shown(&all), shown(&busy), shown(&idle));
        Check::new(what, paper, ours, mean(&all) >= least)
    };
    let checks = vec![
        check("throughput over BBR's at forty places", "1.063; busy 1.04, idle 1.10", &gain, 1.063).headline(),
        check("BBR's p95 delay over PBE-CC's at forty places", "1.8; busy 1.54, idle 2.07", &late, 1.8).headline(),
        check("BBR's mean delay over PBE-CC's at forty places", "1.6; busy 1.39, idle 1.84", &slow, 1.6).headline(),
    ];
    let mut table = Table::new(&[
        "law",
        "places",
        "Mbit/s",
        "delay, mean (ms)",
        "p95 (ms)",
        "throughput / BBR's",
        "BBR's p95 / its",
    ]);
    let mut windows = Table::new(&["law", "places", "p10 (Mbit/s)", "p25", "p50", "p75", "p90"]);
    for (name, busy) in [("busy", true), ("idle", false)] {
        for (place, law) in LAWS.iter().enumerate() {
            let of = |value: fn(&Place) -> f64| shown(&over("", among(Some(busy)).map(|at| value(&at[place]))));
            let ratios = [gain(Some(busy), place), late(Some(busy), place)].map(|ratio| shown(&ratio));
            let figures =
                [of(|at_place| at_place.throughput), of(|at_place| at_place.mean), of(|at_place| at_place.p95)];
            let head = || [(*law).to_owned(), name.to_owned()].into_iter();
            table.rows.push(head().chain(figures).chain(ratios).collect());
            let orders = (0..ORDERS.len()).map(|n| shown(&over("", among(Some(busy)).map(|at| at[place].windows[n]))));
            windows.rows.push(head().chain(orders).collect());
        }
    }
    let mut rivals = Table::new(&[
        "PBE-CC against",
        "",
        "throughput: busy",
        "idle",
        "p95 delay: busy",
        "idle",
        "mean delay: busy",
        "idle",
    ]);
    for (rival, paper) in PAPER {
        let told = paper.iter().map(|figure| format!("{figure:.2}"));
        rivals.rows.push([rival, "paper"].map(str::to_owned).into_iter().chain(told).collect());
        let Some(other) = LAWS.iter().position(|law| *law == rival) else { continue };
        let more = |busy| over("", among(busy).map(|at| at[pbe].throughput / at[other].throughput));
        let late = |busy| over("", among(busy).map(|at| at[other].p95 / at[pbe].p95));
        let slow = |busy| over("", among(busy).map(|at| at[other].mean / at[pbe].mean));
        let both = [Some(true), Some(false)];
        let ours = both.map(more).into_iter().chain(both.map(late)).chain(both.map(slow));
        rivals
            .rows
            .push([rival, "ours"].map(str::to_owned).into_iter().chain(ours.map(|ratio| shown(&ratio))).collect());
    }
    let curve = |(place, law): (usize, &&str)| {
        let mut p95: Vec<f64> = among(None).map(|at| at[place].p95).collect();
        p95.sort_by(f64::total_cmp);
        let count = p95.len() as f64;
        Curve::measured(*law, p95.into_iter().enumerate().map(|(n, p95)| (p95, (n as f64 + 1.0) / count)).collect())
    };
    let curves: Vec<Curve> = LAWS.iter().enumerate().map(curve).collect();
    let chart = Chart {
        file: "forty".into(),
        title: "Share of the places whose 95th percentile of the delay is at most so long".into(),
        x: "95th percentile of the delay (ms)".into(),
        y: "share of the places".into(),
        curves,
        ..Chart::default()
    };
    Ok(Section {
        title: "Forty places".into(),
        text: format!(
            "The paper's telephones stood at 40 places, 25 of them in busy cells, for which it gives neither bandwidths nor loads. Ours are rows of `scenarios/pbe/places.csv`, fixed before PBE-CC ran \
             in them. Each law downloads for 20 s at each of {} of them; intervals are over places. The table is the paper's Table 1 beside ours: throughput over the rival's, and the rival's delay over \
             PBE-CC's. Of Verus there is no law here.",
            seen.len()
        ),
        reason: "8 ms of room in flight are too few in busy cells: with 40 (`roomy`) PBE-CC carries as much as BBR there, at half of BBR's p95.".into(),
        checks,
        tables: vec![rivals.named("table-1"), table.data(), windows.data().named("windows")],
        charts: vec![chart],
        ..Section::default()
    })
}
