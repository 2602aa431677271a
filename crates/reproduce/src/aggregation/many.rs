//! Figures with many equal stations.

use super::{hop, mean, near};
use crate::study::{Results, Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_laws::aggregation::allocation::exact;
use lasthop_report::page::{Chart, Curve, MEANS};
use lasthop_report::page::{Check, Section, Table, digits, shown};
use lasthop_report::{Estimate, Key, Run, SeriesKind};
use lasthop_units::stats::{Moments, Samples};
use toml::{Table as Keys, Value};

const MANY: Shipped = shipped!("aggregation", "many-stations");
const JOINING: Shipped = shipped!("aggregation", "joining");

pub(super) fn regulation(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let counts: &[usize] = if runner.quick { &[1, 10, 25] } else { &[1, 5, 10, 15, 20, 25] };
    let targets = [("5ms", 5.0), ("10ms", 10.0), ("15ms", 15.0), ("20ms", 20.0)];
    let mut table = Table::new(&[
        "MCS",
        "n",
        "T (ms)",
        "oracle: packets, ms",
        "packets a frame",
        "interval (ms)",
        "its slots' p75 (ms)",
        "mean delay (ms)",
        "p95 (ms)",
        "",
    ]);
    let (mut charts, mut failed, mut points, mut farthest) = (Vec::new(), Vec::new(), 0, 0.0f64);
    for (mcs, mbit) in [(9, 390.0), (4, 175.5)] {
        let mut lines: Vec<Vec<(f64, Estimate)>> = vec![Vec::new(); targets.len()];
        let mut models: Vec<Vec<(f64, f64)>> = vec![Vec::new(); targets.len()];
        for &n in counts {
            let edits = [("station.0.mcs", Value::from(mcs)), ("station.0.count", Value::from(n as i64))];
            let run = runner.run(MANY, &edits)?;
            let hop = hop(200e-6, &vec![mbit; n], 1548.0 * 8.0, true);
            for (place, (law, target)) in targets.into_iter().enumerate() {
                let oracle = exact(&hop, target * 1e-3);
                let interval = run.of(law, Key::FrameInterval);
                // Below the cap the target itself is what must be held; at it, the model says what the interval is.
                let want = if oracle.round < 0.999 * target * 1e-3 { oracle.round * 1e3 } else { target };
                let met = near(interval.mean, want, 0.1);
                let verdict = match (oracle.feasible, met) {
                    (false, _) => "out of reach",
                    (true, true) => "met",
                    (true, false) => "**not met**",
                };
                let p75 = slots_p75(&run, law);
                points += usize::from(oracle.feasible);
                if oracle.feasible {
                    farthest = farthest.max((mean(&p75) / want - 1.0).abs());
                }
                if oracle.feasible && !met {
                    failed.push(format!("MCS {mcs}, n = {n}, T = {target} ms: {} ms", shown(&interval)));
                }
                lines[place].push((n as f64, interval.clone()));
                models[place].push((n as f64, oracle.round * 1e3));
                table.rows.push(vec![
                    mcs.to_string(),
                    n.to_string(),
                    digits(target),
                    format!("{:.1}, {:.2}", oracle.levels[0], oracle.round * 1e3),
                    shown(&run.of(law, Key::Aggregation)),
                    shown(&interval),
                    shown(&p75),
                    shown(&run.of(law, Key::HopDelayMean)),
                    shown(&run.of(law, Key::HopDelayP95)),
                    verdict.into(),
                ]);
            }
        }
        let named = targets.iter().zip(lines);
        let ours = named.map(|((_, ms), line)| Curve::estimated(format!("T = {ms} ms"), line));
        let named = targets.iter().zip(models);
        let model = named.map(|((_, ms), line)| Curve::reference(format!("model, {ms} ms"), line));
        charts.push(Chart {
            file: if mcs == 9 { "figure-11".into() } else { format!("figure-11-mcs-{mcs}") },
            title: format!("Interval between a station's frames, MCS {mcs} ({mbit} Mbit/s)"),
            x: "stations".into(),
            y: "interval (ms)".into(),
            curves: ours.chain(model).collect(),
            note: MEANS.into(),
            ..Chart::default()
        });
    }
    let ours = held(points, &failed);
    let (by_tcp, over_tcp) = over_tcp(runner)?;
    Ok(Section {
        title: "Figure 11: the target held for 1 to 25 stations".into(),
        text: "Paced UDP to n equal stations at two data rates. The model is the optimal allocation with c = 200 us a station and at most 48 packets a frame. What is regulated is the \
               interval between a station's frames. Of what the paper's 75th percentile is one is not known; ours is of the mean intervals of control slots of half a second. The \
               last statement is of bulk TCP through the proxy."
            .into(),
        checks: vec![
            Check::new(
                "interval within 10 % of the target, or of the model where frames are full",
                "T = 5 to 20 ms, n = 1 to 25",
                ours,
                failed.is_empty(),
            ),
            Check::new(
                "75th percentile of the slots' intervals: farthest from that",
                "close",
                format!("{:.1} %", farthest * 100.0),
                None,
            ),
            by_tcp,
        ],
        tables: vec![table.data(), over_tcp.data().named("tcp")],
        charts,
        ..Section::default()
    })
}

/// 75th percentile of the mean interval between a station's frames in a control slot of the measuring window, ms.
fn slots_p75(run: &Results, law: &str) -> Estimate {
    run.over_runs(law, "ms", |run| {
        let mut intervals = Samples::default();
        slot_intervals(run).for_each(|interval| intervals.add(interval));
        intervals.quantile(0.75)
    })
}

/// Mean interval between the frames to a station in a control slot of the measuring window, ms: every slot of every station.
pub(super) fn slot_intervals(run: &Run) -> impl Iterator<Item = f64> {
    let from = run.record.window.warm_up.as_secs_f64();
    let slots = |name: &str| Results::series_of(run, SeriesKind::Frames, name, 0.5);
    let all = run.record.stations.iter().flat_map(move |station| slots(&station.name));
    all.filter(move |(at, _)| *at > from).map(|(_, frames)| 1e3 / frames)
}

/// How many of the points are held, and which are not.
fn held(points: usize, failed: &[String]) -> String {
    match failed.len() {
        0 => format!("all {points} feasible points"),
        n => format!("{} of {points}; not: {}", points - n, failed.join("; ")),
    }
}

/// The same of bulk TCP, over round-robin and a FIFO: once below the limit of frames and once at it.
fn over_tcp(runner: &Runner<'_>) -> Result<(Check, Table), ExperimentError> {
    let mut table = Table::new(&[
        "queue",
        "n",
        "T (ms)",
        "oracle: packets, ms",
        "packets a frame",
        "interval (ms)",
        "mean delay (ms)",
        "p95 (ms)",
        "",
    ]);
    let cases: &[(usize, [f64; 2])] =
        if runner.quick { &[(10, [5.0, 20.0])] } else { &[(10, [5.0, 20.0]), (25, [10.0, 20.0])] };
    let (mut failed, mut points) = (Vec::new(), 0);
    for kind in ["round-robin", "fifo"] {
        for &(n, targets) in cases {
            let law = |target: f64| {
                let regulator = Keys::from_iter([("target".into(), Value::from(format!("{target} ms")))]);
                Keys::from_iter([("sender".into(), "cubic".into()), ("regulator".into(), regulator.into())])
            };
            let laws = targets.map(|target| (format!("{target}ms"), Value::from(law(target))));
            let edits = [
                ("station.0.count", Value::from(n as i64)),
                ("traffic.0.kind", "bulk".into()),
                ("hop.wifi.queue.kind", kind.into()),
                ("duration", "30 s".into()),
                ("warm-up", "20 s".into()),
                ("seeds", 2.into()),
                ("laws", Keys::from_iter(laws).into()),
            ];
            let run = runner.run(MANY, &edits)?;
            let hop = hop(200e-6, &vec![390.0; n], 1548.0 * 8.0, true);
            for target in targets {
                let law = &format!("{target}ms");
                let oracle = exact(&hop, target * 1e-3);
                let interval = run.of(law, Key::FrameInterval);
                // As above: the target, or what frames of most packets make.
                let met = near(interval.mean, target.min(oracle.round * 1e3), 0.1);
                points += 1;
                if !met {
                    failed.push(format!("{kind}, n = {n}, T = {target} ms: {} ms", shown(&interval)));
                }
                table.rows.push(vec![
                    kind.into(),
                    n.to_string(),
                    digits(target),
                    format!("{:.1}, {:.2}", oracle.levels[0], oracle.round * 1e3),
                    shown(&run.of(law, Key::Aggregation)),
                    shown(&interval),
                    shown(&run.of(law, Key::HopDelayMean)),
                    shown(&run.of(law, Key::HopDelayP95)),
                    if met { "met".into() } else { "**not met**".into() },
                ]);
            }
        }
    }
    let check = Check::new(
        "the same of bulk TCP, over round-robin and FIFO, MCS 9",
        "not stated",
        held(points, &failed),
        failed.is_empty(),
    );
    Ok((check, table))
}

pub(super) fn joining(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let run = runner.run(JOINING, &[])?;
    let mut section = Section {
        title: "Figure 8: ten stations join one".into(),
        text: "Ten stations join at 15 s. The overhead of a round is then eleven times what it was, and a little more, because \
               eleven stations report and acknowledge. The deviation is the slots' level's after 50 s, of its mean."
            .into(),
        ..Section::default()
    };
    let mut curves = Vec::new();
    for (law, name) in [("access", "access overhead kept"), ("round", "as published")] {
        let over = |span| move |run: &Run| Results::between(run, SeriesKind::Overhead, span);
        let before = run.over_runs(law, "us", over((10.0, 15.0)));
        let after = run.over_runs(law, "us", over((50.0, 60.0)));
        let ratio = run.over_runs(law, "1", |run| Some(over((50.0, 60.0))(run)? / over((10.0, 15.0))(run)?));
        let tracks = ratio.mean.is_some_and(|ratio| (9.9..=12.1).contains(&ratio));
        section.checks.push(Check::new(
            &format!("ĉ, {name}"),
            "200 → 2200 us, × 11 (± 10 %)",
            format!("{} → {} us, × {}", shown(&before), shown(&after), shown(&ratio)),
            tracks,
        ));
        let late = run.over_runs(law, "1", |run| {
            let slots = Results::series(run, SeriesKind::Aggregation, 0.5);
            relative_sd(slots.into_iter().filter(|(at, _)| *at > 50.0).map(|(_, level)| level))
        });
        section.checks.push(Check::new(
            &format!("deviation, {name}"),
            "stable: < 0.1",
            shown(&late),
            late.mean.is_some_and(|sd| sd < 0.1),
        ));
        curves.push(Curve::estimated(name, run.traced(law, SeriesKind::Overhead, 0.5)));
        let delay = run.over_runs(law, "ms", |run| {
            let series = Results::series(run, SeriesKind::HopDelay, 0.5);
            series.into_iter().filter(|(at, _)| *at > 15.0).map(|(_, delay)| delay).reduce(f64::max)
        });
        section.checks.push(Check::new(
            &format!("longest half-second mean delay, {name}"),
            "not stated",
            format!("{} ms", shown(&delay)),
            None,
        ));
    }
    let title = "Estimated overhead of a round; ten stations join at 15 s";
    section.charts.push(Chart::over_time("figure-8", title, "ĉ (us)", curves));
    Ok(section)
}

/// Standard deviation over mean.
pub(super) fn relative_sd(values: impl Iterator<Item = f64>) -> Option<f64> {
    let moments: Moments = values.collect();
    Some(moments.sd()? / moments.mean()?)
}
