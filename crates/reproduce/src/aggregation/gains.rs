//! Figures 7 and 10: the gains of both loops, up to and past the edge of stability, and one station at three data rates.

use super::many::relative_sd;
use super::near;
use crate::study::{Results, Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_report::page::{Chart, Check, Curve, Section, Table, shown};
use lasthop_report::{Estimate, Key, Run, SeriesKind};
use toml::{Table as Keys, Value};

const GAINS: Shipped = shipped!("aggregation", "gains");
const CONVERGENCE: Shipped = shipped!("aggregation", "convergence");
/// A control slot, seconds.
const SLOT: f64 = 0.5;
/// Until when responses are drawn, seconds.
const RESPONSE: f64 = 20.0;
/// Packets a frame of the ten stations at the target, by the model.
const LEVEL: f64 = 25.2;
const BOTH_ENDS: &str = "Lines: the first seed. Bands: from the least to the most of all seeds.";

/// The scenario's laws that vary one gain.
fn varied(runner: &Runner<'_>, gain: &str) -> Result<Results, ExperimentError> {
    let file: Keys = toml::from_str(GAINS.text).expect("shipped scenarios are TOML: a test reads them all");
    let laws = file["laws"].as_table().into_iter().flatten().filter(|(name, _)| name.starts_with(gain));
    let laws: Keys = laws.map(|(name, law)| (name.clone(), law.clone())).collect();
    runner.run_as(GAINS, &[("laws", laws.into())], &[("laws", Value::from(format!("{gain}-*")))])
}

fn levels(run: &Run) -> Vec<(f64, f64)> {
    Results::series(run, SeriesKind::Aggregation, SLOT)
}

/// How much the mean level of a slot varies once the loop should have settled.
fn swing(run: &Results, law: &str) -> Estimate {
    run.over_runs(law, "1", |run| {
        relative_sd(levels(run).into_iter().filter(|(at, _)| *at > 30.0).map(|(_, level)| level))
    })
}

fn is_stable(run: &Results, law: &str) -> bool {
    swing(run, law).mean.is_some_and(|sd| sd < 0.1)
}

/// Seconds from the start until three slots in a row are within a tenth of the model's level.
fn settled(run: &Results, law: &str) -> Estimate {
    run.over_runs(law, "s", |run| {
        let held = |three: &&[(f64, f64)]| three.iter().all(|(_, level)| near(Some(*level), LEVEL, 0.1));
        levels(run).windows(3).find(held).map(|three| three[0].0 - SLOT / 2.0)
    })
}

fn label(law: &str) -> String {
    law.replace("k1-", "K1 = ").replace("k2-", "K2 = ")
}

/// What each gain makes of the hop.
fn table(run: &Results) -> Table {
    let mut table = Table::new(&[
        "gain",
        "sd of the slots' mean level, of their mean",
        "",
        "settled after (s)",
        "interval (ms)",
        "mean delay (ms)",
    ]);
    for law in run.scenario.laws() {
        let name = &law.name;
        let verdict = if is_stable(run, name) { "stable" } else { "unstable" };
        let of = |key| shown(&run.of(name, key));
        table.rows.push(vec![
            label(name),
            shown(&swing(run, name)),
            verdict.into(),
            shown(&settled(run, name)),
            of(Key::FrameInterval),
            of(Key::HopDelayMean),
        ]);
    }
    table.columns(&[0, 1, 2, 3])
}

/// Whether the loop is stable at the one gain and not at the other.
fn edge(run: &Results, what: &str, paper: &str, [below, above]: [&str; 2]) -> Check {
    let said = |law| format!("{} {}", label(law), if is_stable(run, law) { "stable" } else { "unstable" });
    let ours = format!("{}, {}", said(below), said(above));
    Check::new(what, paper, ours, is_stable(run, below) && !is_stable(run, above))
}

/// A series of the first seed, since the mean of swings that are out of step shows none, and how far those of all seeds reach.
fn one_and_all(run: &Results, law: &str) -> Curve {
    let first = run.runs(law).next().map_or(Vec::new(), levels);
    let reach = |(at, all): (f64, Estimate)| {
        let values = || all.values.iter().flatten().copied();
        Some((at, values().reduce(f64::min)?, values().reduce(f64::max)?))
    };
    let spread = run.traced(law, SeriesKind::Aggregation, SLOT).into_iter().filter_map(reach).collect();
    Curve { spread, ..Curve::measured(label(law), first) }
}

fn whole_run(run: &Results, file: &str, laws: &[&str]) -> Chart {
    let curves = laws.iter().map(|law| one_and_all(run, law)).collect();
    let title = "Packets a frame of ten stations on both sides of the edge";
    Chart { note: BOTH_ENDS.into(), ..Chart::over_time(file, title, "packets a frame", curves) }
}

pub(super) fn inner(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let run = varied(runner, "k1")?;
    let response = |law: &str| {
        let levels = run.traced(law, SeriesKind::Aggregation, SLOT);
        Curve::estimated(label(law), levels.into_iter().filter(|(at, _)| *at < RESPONSE))
    };
    let drawn = ["k1-0.1", "k1-0.5", "k1-1.0", "k1-1.5", "k1-1.9"].map(response).to_vec();
    let title = "Response to the step at the start: packets a frame by K1";
    Ok(Section {
        title: "Figure 7: step responses over the gain K1".into(),
        text: "Ten stations, T = 10 ms, K2 = 0.2. The step is the start of the traffic: frames of one packet, and 25.2 at the target. What the paper's step was is not \
               known. A loop is called unstable if the mean level of a slot varies by more than a tenth of its mean after 30 s."
            .into(),
        checks: vec![edge(&run, "edge of stability in K1", "K1 = 2, also computed", ["k1-1.9", "k1-2.1"])],
        tables: vec![table(&run)],
        charts: vec![
            Chart::over_time("figure-7", title, "packets a frame", drawn),
            whole_run(&run, "figure-7-edge", &["k1-1.9", "k1-2.1"]),
        ],
        ..Section::default()
    })
}

pub(super) fn outer(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let run = varied(runner, "k2")?;
    let at_one = if is_stable(&run, "k2-1.0") { "stable" } else { "unstable" };
    let (three, chart) = three_rates(runner)?;
    let checks = vec![
        edge(&run, "edge of stability in K2 at K1 = 0.5", "K2 = 1; 1.88 computed here", ["k2-1.75", "k2-1.95"]),
        Check::new("K2 = 1", "the edge; computed: sufficient, not the edge", at_one, is_stable(&run, "k2-1.0")),
    ];
    Ok(Section {
        title: "Figure 10: the gain K2, and T = 2.5 ms at three MCS".into(),
        text: "First ten stations, T = 10 ms, K1 = 0.5, judged as in Figure 7. The computed edge is that of a loop without noise; the laws' tests find it to three digits in the \
               model. Then one station with paced UDP and T = 2.5 ms: at MCS 2 and 4 the target is reached below the most packets, at MCS 9 the 48 packets bind first. The \
               paper's \"23\" packets at MCS 4 is a slip."
            .into(),
        checks: [checks, three].concat(),
        tables: vec![table(&run).data()],
        charts: vec![whole_run(&run, "figure-10-k2", &["k2-0.5", "k2-1.0", "k2-1.75", "k2-1.95"]), chart],
        ..Section::default()
    })
}

/// One station at three data rates.
fn three_rates(runner: &Runner<'_>) -> Result<(Vec<Check>, Chart), ExperimentError> {
    let (mut checks, mut curves) = (Vec::new(), Vec::new());
    for (mcs, mbit, level, interval, paper) in [
        (2, 87.75, 16.3, 2.50, "16 packets, 2.5 ms"),
        (4, 175.5, 32.6, 2.50, "\"23\" packets, 2.5 ms; model 32.6"),
        (9, 390.0, 48.0, 1.72, "48 packets, 1.7 ms"),
    ] {
        let run = runner.run(CONVERGENCE, &[("station.0.mcs", Value::from(mcs))])?;
        let (got, took) = (run.of("regulator", Key::Aggregation), run.of("regulator", Key::FrameInterval));
        let met = near(got.mean, level, 0.1) && near(took.mean, interval, 0.1);
        let ours = format!("{} packets, {} ms", shown(&got), shown(&took));
        checks.push(Check::new(&format!("MCS {mcs} ({mbit} Mbit/s)"), paper, ours, met));
        let levels = run.traced("regulator", SeriesKind::Aggregation, SLOT);
        curves.push(Curve::estimated(format!("MCS {mcs}"), levels));
    }
    let title = "One station, T = 2.5 ms: packets a frame from the start";
    Ok((checks, Chart::over_time("figure-10", title, "packets a frame", curves)))
}
