//! A laptop that moves: what CUBIC takes of its link, over time. Figure 1.

use crate::study::{Results, Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_report::Estimate;
use lasthop_report::page::{Chart, Curve, Section};
use lasthop_report::{Figure, SeriesKind};

const MOVING: Shipped = shipped!("oal", "moving-laptop");
const LAWS: [&str; 3] = ["cubic", "cubic+threshold", super::OURS];
/// Seconds of one point.
const WIDTH: f64 = 1.0;
/// Linux's numbers for a congestion control that repairs losses: Recovery and Loss.
const REPAIRS: f64 = 2.5;

/// Share of each second in which CUBIC repairs losses, over the seeds.
fn repairing(run: &Results) -> Vec<(f64, Estimate)> {
    let bins = |run| Results::series(run, SeriesKind::CaState, 0.1);
    let mut seconds: std::collections::BTreeMap<u64, Vec<Figure>> = std::collections::BTreeMap::new();
    for (at, state) in run.runs("cubic").flat_map(bins) {
        let repairs = if state > REPAIRS { 100.0 } else { 0.0 };
        seconds.entry((at / WIDTH) as u64).or_default().push(Figure::exact(repairs));
    }
    seconds.into_iter().map(|(second, shares)| ((second as f64 + 0.5) * WIDTH, Estimate::of("%", &shares))).collect()
}

pub(super) fn moving(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let run = runner.run(MOVING, &[])?;
    let rate = |law, name| Curve::estimated(name, run.traced(law, SeriesKind::Rate, WIDTH));
    let capacity =
        Curve::estimated("preferred: what the hop could carry", run.traced("cubic", SeriesKind::Capacity, WIDTH));
    let delay = |law| Curve::estimated(law, run.traced(law, SeriesKind::HopDelay, WIDTH));
    let charts = vec![
        Chart::over_time(
            "oal-figure-1",
            "As Figure 1: rate of a moving laptop",
            "rate (Mbit/s)",
            vec![rate("cubic", "CUBIC"), capacity],
        ),
        Chart::over_time(
            "oal-figure-1-repairs",
            "CUBIC's time in repairs of losses",
            "share of time (%)",
            vec![Curve::estimated("CUBIC", repairing(&run))],
        ),
        Chart::over_time(
            "oal-moving-delay",
            "Delay over the hop of a moving laptop",
            "delay (ms)",
            LAWS.map(delay).to_vec(),
        )
        .logarithmic(),
    ];
    Ok(Section {
        title: "A laptop that moves".into(),
        text: "As Figure 1, which shows that CUBIC's rate is seldom the preferred one. A laptop is carried from 3 m to 28 m and back while it downloads; preferred is here what the hop could carry for it, \
               from the driver's counters."
            .into(),
        charts,
        tables: vec![run.by_law(&LAWS, &super::COLUMNS).data()],
        ..Section::default()
    })
}
