//! Two access points on one channel, each with its own regulator.

use super::mean;
use crate::study::{Edit, Results, Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_report::combined;
use lasthop_report::page::{Chart, Curve};
use lasthop_report::page::{Check, Section, Table, shown};
use lasthop_report::{Estimate, Key, SeriesKind};
use lasthop_units::stats::Moments;
use std::cmp::Ordering;
use toml::Value;

const HEARD: Shipped = shipped!("aggregation", "two-access-points");
const HIDDEN: Shipped = shipped!("aggregation", "hidden-access-points");

/// One world: what it is called, its scenario, what is changed in it, and the stations of either access point.
struct Case<'c> {
    label: &'c str,
    scenario: Shipped,
    edits: Vec<Edit<'c>>,
    stations: [[&'c str; 2]; 2],
    target: f64,
    /// Its levels are shown from the start: the picture's file and title.
    picture: Option<[&'c str; 2]>,
    /// CUBIC gives up the stations near the wall: the station with the least is compared.
    starves: bool,
}

const BOTH: [[&str; 2]; 2] = [["ours-1", "ours-2"], ["theirs-1", "theirs-2"]];
const WALL: [[&str; 2]; 2] = [["our-wall", "our-far"], ["their-wall", "their-far"]];
/// Longer than any PSDU: nothing is announced.
const NEVER: &str = "6.5 MB";

fn cases<'c>() -> Vec<Case<'c>> {
    let heard = |label, target: f64, rts: Option<&'c str>| {
        let mut edits: Vec<Edit<'_>> = Vec::new();
        edits.extend(rts.map(|threshold| ("hop.wifi.rts-threshold", Value::from(threshold))));
        for path in ["laws.regulator.regulator.target", "laws.regulator+modern-ap.regulator.target"] {
            edits.push((path, Value::from(format!("{target} ms"))));
        }
        Case { label, scenario: HEARD, edits, stations: BOTH, target, picture: None, starves: false }
    };
    let hidden = |label, edits| Case {
        label,
        scenario: HIDDEN,
        edits,
        stations: WALL,
        target: 10.0,
        picture: None,
        starves: true,
    };
    let picture = ["two-access-points", "Two access points, T = 5 ms: packets a frame; the second begins at 10 s"];
    vec![
        heard("in reach, T = 10 ms", 10.0, None),
        heard("in reach, RTS", 10.0, Some("500 B")),
        Case { picture: Some(picture), ..heard("in reach, RTS, T = 5 ms", 5.0, Some("500 B")) },
        hidden("hidden, RTS", Vec::new()),
        hidden("hidden, no RTS", vec![("hop.wifi.rts-threshold", Value::from(NEVER))]),
    ]
}

pub(crate) fn access_points(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let mut section = Section {
        title: "Two access points".into(),
        text: "Not a figure of the paper. Two access points with two stations each at MCS 9, each with its own queue and regulator; the second begins 10 s later. They are in reach of each other, or hidden. To each regulator what the other \
               sends is overhead of its own rounds. By the published law the first keeps what it has. Here those that have less of the channel wait for up to 1.3 T until neither \
               has less, which takes most of a minute (the picture). Without RTS two access points that draw the same slot lose two whole frames, 1.6 ms."
            .into(),
        reason: "at 5 ms frames are half as full. Hidden from each other, CUBIC gives up the stations near the wall and its far stations have the channel twice; the regulators serve all, and \
                 their rounds hold frames that were lost."
            .into(),
        ..Section::default()
    };
    let mut table = Table::new(&[
        "world",
        "law",
        "Mbit/s: stations of the first; of the second",
        "packets a frame",
        "interval (ms)",
        "ĉ (ms)",
        "hop delay mean (ms)",
        "p95 (ms)",
        "probe p95 (ms)",
    ]);
    for case in cases() {
        let run = runner.run(case.scenario, &case.edits)?;
        for law in run.scenario.laws() {
            let of = |key| shown(&run.of(&law.name, key));
            let both = |key| pair(&case, &run, &law.name, key).map(|value| shown(&value)).join(", ");
            let rate = |name: &str| shown(&run.of_station(&law.name, name, Key::Throughput));
            let rates = case.stations.map(|stations| stations.map(rate).join(", "));
            let overheads = case.stations.map(|stations| overhead(&run, &law.name, stations[0]));
            let overheads = overheads.map(|ms| shown(&ms));
            table.rows.push(vec![
                case.label.into(),
                law.name.clone(),
                rates.join("; "),
                both(Key::Aggregation),
                both(Key::FrameInterval),
                overheads.join(", "),
                of(Key::HopDelayMean),
                of(Key::HopDelayP95),
                of(Key::ProbeDelayP95),
            ]);
        }
        checks(&mut section, &case, &run);
        if let Some(picture) = case.picture {
            section.charts.push(levels(&case, &run, picture));
        }
    }
    section.tables.push(table.data());
    Ok(section)
}

/// Packets a frame of either access point from the start.
fn levels(case: &Case<'_>, run: &Results, [file, title]: [&str; 2]) -> Chart {
    let curve = |name: &str, station: &str| {
        Curve::estimated(name, run.traced_of("regulator", SeriesKind::Aggregation, station, 1.0))
    };
    let [ours, theirs] = case.stations.map(|stations| stations[0]);
    let curves = vec![curve("first", ours), curve("second", theirs)];
    Chart::over_time(file, title, "packets a frame", curves)
}

fn checks(section: &mut Section, case: &Case<'_>, run: &Results) {
    let law = "regulator";
    let intervals = pair(case, run, law, Key::FrameInterval);
    section.checks.push(Check::new(
        &format!("{}: interval of both", case.label),
        &format!("≤ {:.2} ms", 1.15 * case.target),
        intervals.each_ref().map(shown).join(" and ") + " ms",
        intervals.iter().all(|ms| mean(ms) <= 1.15 * case.target),
    ));
    let mut shares = case.stations.map(|stations| sum(run, law, &stations));
    shares.sort_by(by_mean);
    let less = combined(shares.each_ref(), |[lesser, greater]| lesser / greater);
    section.checks.push(Check::new(
        &format!("{}: throughput of the lesser, of the greater's", case.label),
        "≥ 0.7",
        shown(&less),
        mean(&less) >= 0.7,
    ));
    if case.starves {
        let least = |law| {
            let stations = case.stations.iter().flatten().map(|name| run.of_station(law, name, Key::Throughput));
            stations.min_by(by_mean).expect("every world has stations")
        };
        let ours = least(law);
        let theirs = ["cubic", "cubic+modern-ap"].map(least).into_iter().max_by(by_mean).expect("two of them");
        section.checks.push(Check::new(
            &format!("{}: least station's throughput, ours and CUBIC's", case.label),
            "larger",
            format!("{} and {} Mbit/s", shown(&ours), shown(&theirs)),
            mean(&ours) > mean(&theirs),
        ));
    }
    let times = |key| ["cubic", "cubic+modern-ap"].map(|other| run.multiple(law, other, key));
    let (delay, rate) = (times(Key::HopDelayP95), times(Key::Throughput));
    section.checks.push(Check::new(
        &format!("{}: p95 delay, throughput over CUBIC's, FIFO; modern queue", case.label),
        "< 1, ≥ 1",
        format!("{}, {}; {}, {}", shown(&delay[0]), shown(&rate[0]), shown(&delay[1]), shown(&rate[1])),
        delay.iter().all(|delay| mean(delay) < 1.0) && rate.iter().all(|rate| mean(rate) >= 1.0),
    ));
}

fn by_mean(a: &Estimate, b: &Estimate) -> Ordering {
    mean(a).total_cmp(&mean(b))
}

/// A figure of the stations of each access point, their mean.
fn pair(case: &Case<'_>, run: &Results, law: &str, key: Key) -> [Estimate; 2] {
    case.stations.map(|stations| {
        run.over_runs(law, key.unit(), |run| {
            stations.iter().filter_map(|name| Results::figure_of(run, name, key)).collect::<Moments>().mean()
        })
    })
}

/// Throughput of these stations together.
fn sum(run: &Results, law: &str, stations: &[&str]) -> Estimate {
    let unit = Key::Throughput.unit();
    run.over_runs(law, unit, |run| stations.iter().map(|name| Results::figure_of(run, name, Key::Throughput)).sum())
}

/// What a station's regulator takes the overhead of a round to be, ms, in the measuring window.
fn overhead(run: &Results, law: &str, station: &str) -> Estimate {
    run.over_runs(law, "ms", |run| {
        let from = run.record.window.warm_up.as_secs_f64();
        let values =
            Results::series_of(run, SeriesKind::Overhead, station, 1.0).into_iter().filter(|(at, _)| *at >= from);
        values.map(|(_, us)| us * 1e-3).collect::<Moments>().mean()
    })
}
