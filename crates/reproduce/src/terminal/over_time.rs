//! One terminal of ten over time, and throughput against round trip.

use super::{LAWS, PATHS, TEN};
use crate::study::{Results, Runner};
use lasthop_experiment::ExperimentError;
use lasthop_report::page::{Chart, Curve, Section, mean};
use lasthop_report::{Key, SeriesKind};

/// The terminal whose window and round trip are drawn.
const ONE: &str = "terminal-1";
/// What a point of a picture is a mean over, in seconds.
const WIDTH: f64 = 0.5;

/// A series of one terminal in the first run of each law, times `factor` and no less than `least`.
fn one(run: &Results, kind: SeriesKind, (factor, least): (f64, f64)) -> Vec<Curve> {
    let line = |law: &str| {
        let first = run.runs(law).next()?;
        let points = Results::series_of(first, kind, ONE, WIDTH);
        Some(Curve::measured(law, points.into_iter().map(|(at, value)| (at, (value * factor).max(least))).collect()))
    };
    ["cubic", "tables", "model"].into_iter().filter_map(line).collect()
}

pub(super) fn over_time(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let mut charts = Vec::new();
    for (rtt, delay) in PATHS {
        let run = runner.run(TEN, &[("wire.delay", delay.into())])?;
        let drawn = |file: &str, what: &str, y: &str, curves: Vec<Curve>| Chart {
            note: String::new(),
            ..Chart::over_time(format!("terminal-{file}-{rtt}"), format!("{what} of one terminal, {rtt} ms"), y, curves)
                .logarithmic()
        };
        let windows = one(&run, SeriesKind::Cwnd, (1.0 / 1448.0, 1.0));
        charts.push(drawn("cwnd", "Congestion window", "congestion window (packets)", windows));
        charts.push(drawn("rtt", "Round trip", "round trip (ms)", one(&run, SeriesKind::RoundTrip, (1.0, 1.0))));
        charts.push(Chart {
            note: String::new(),
            ..Chart::over_time(
                format!("terminal-state-{rtt}"),
                format!("State of congestion control of one terminal, {rtt} ms"),
                "state, as Linux numbers it",
                one(&run, SeriesKind::CaState, (1.0, 0.0)),
            )
        });
        let point = |law: &str| {
            let at = mean(&run.of(law, Key::Throughput));
            Curve::estimated(law, [(at, run.of(law, Key::RttMean))])
        };
        charts.push(Chart {
            file: format!("terminal-throughput-rtt-{rtt}"),
            title: format!("Round trip against total goodput, ten terminals, {rtt} ms"),
            x: "total goodput (Mbit/s)".into(),
            y: "round trip, mean (ms)".into(),
            curves: LAWS.into_iter().map(point).collect(),
            logarithmic: true,
            note: "Lower and further right is better.".into(),
            ..Chart::default()
        });
    }
    Ok(Section {
        title: "Windows and round trips over time".into(),
        text: "The ten terminals, 4 and 256 ms. One terminal of ten in one run. States of congestion control: 0 is Open, 1 Disorder, 3 Recovery, 4 Loss; at 256 ms the terminal stays in Open.".into(),
        charts,
        ..Section::default()
    })
}
