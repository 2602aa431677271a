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
    /// Stations near the wall are given up by CUBIC: who has least is compared.
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
        heard("all hear each other, T = 10 ms", 10.0, None),
        heard("the same with RTS", 10.0, Some("500 B")),
        Case { picture: Some(picture), ..heard("the same, T = 5 ms", 5.0, Some("500 B")) },
        hidden("access points hidden from each other, RTS", Vec::new()),
        hidden("the same without RTS", vec![("hop.wifi.rts-threshold", Value::from(NEVER))]),
    ]
}

pub(crate) fn access_points(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let mut section = Section {
        title: "Two access points on one channel".into(),
        text: "Not a figure of the paper. Two access points with two stations each at MCS 9, every one with its own queue and, under a \
               law with a regulator, its own regulator, which hears nothing of the other; the second's downloads begin 10 s after \
               the first's, and the window 50 s after that. What the other sends is to each regulator overhead of its own rounds: ĉ is then \
               not the 0.4 ms of two accesses but half of a round.\n\n\
               By the published law the interval is held by both, and nothing says who has how much of it. Every pair of levels with \
               c + w'μ_A + w'μ_B = T̄ is an equilibrium: both see the same rounds, and G - ν = ν (T̄ / round - 1) changes \
               either level in proportion to itself, so that who came first keeps what it has, and who came later stays \
               at a few packets a frame (two-access-points.toml with six stations each, RTS, `allocation = \"paper\"` and \
               `overhead-rule = \"round\"`, measured on 24 November 2026 with two seeds: 32 and 7 Mbit/s a station). This law therefore lets whose stations have less of the channel than others have wait for up to 1.3 T̄, by 0.3 (f - l) / (f + l) with l their share \
               of the time and f what is left for others: the one grows, the other, whose rounds become longer than T̄, shrinks, until \
               neither has less. At T̄ = 5 ms throughput stays a few per cent below CUBIC's (its row), for frames are half as full. It takes most of a minute (the picture). Alone on the channel it changes nothing but the first slots.\n\n\
               Without RTS it is the hop that costs delay, not the regulators: two access points that draw the same slot lose two whole \
               frames, 1.6 ms in which nothing arrives. That is twenty times the deviation of the backoff, and at 48 of 64 packets it \
               fills frames now and then; over the modern queue, which keeps two of them in hardware, p95 is then longer than CUBIC's. With RTS \
               a collision costs 0.1 ms.\n\n\
               Hidden from each other, the access points send at once whatever is announced, and the stations near the wall between them \
               receive nothing meanwhile. CUBIC gives them up, over either queue: its far stations have the channel twice, once in each flat, \
               hence the throughput. The regulators serve their stations in rounds. With RTS the ones near the wall have as much of these as the others, \
               and three quarters of their throughput; every round then holds frames that were lost, of which no regulator knows but by ĉ. Without RTS whole \
               frames collide, again and again, since an access point never draws from more than 64 slots: the ones near the wall have next to nothing by any law, \
               and the regulators, which go on serving them, carry two thirds of what CUBIC does, in short frames."
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
    section.tables.push(table);
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
        &format!("{}: interval of both, at most the target and 15 %", case.label),
        "not stated; required of one alone within 10 %",
        intervals.each_ref().map(shown).join(" and ") + " ms",
        intervals.iter().all(|ms| mean(ms) <= 1.15 * case.target),
    ));
    let mut shares = case.stations.map(|stations| sum(run, law, &stations));
    shares.sort_by(by_mean);
    let less = combined(shares.each_ref(), |[lesser, greater]| lesser / greater);
    section.checks.push(Check::new(
        &format!("{}: throughput of the lesser access point, of the greater's", case.label),
        "not stated; the channel's own shares are equal: ≥ 0.7",
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
            &format!(
                "{}: throughput of the station that has least, ours and CUBIC's over the better queue",
                case.label
            ),
            "larger, by the law's own measure",
            format!("{} and {} Mbit/s", shown(&ours), shown(&theirs)),
            mean(&ours) > mean(&theirs),
        ));
    }
    let times = |key| ["cubic", "cubic+modern-ap"].map(|other| run.multiple(law, other, key));
    let (delay, rate) = (times(Key::HopDelayP95), times(Key::Throughput));
    section.checks.push(Check::new(
        &format!("{}: p95 delay and throughput of ours over FIFO, as multiples of CUBIC's over FIFO; and over the modern queue", case.label),
        "< 1 and ≥ 1",
        format!("{} and {}; {} and {}", shown(&delay[0]), shown(&rate[0]), shown(&delay[1]), shown(&rate[1])),
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
