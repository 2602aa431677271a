//! The linear predecessor as a baseline: at the point that it was made for, and elsewhere with its gain and with one for the place.

use super::unlike::trace;
use super::{ACCESS, near};
use crate::study::{Results, Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_laws::aggregation::model::airtime;
use lasthop_report::page::{Chart, Curve};
use lasthop_report::page::{Check, Section, Table, digits, shown};
use lasthop_report::{Estimate, Key, Run, SeriesKind};
use lasthop_units::stats::Moments;

const POINT: Shipped = shipped!("aggregation", "design-point");
const ELSEWHERE: Shipped = shipped!("aggregation", "predecessor");

/// A law of one of the two scenarios: packets aimed at on the slowest station and gain of the predecessor; what a frame of the slowest is to hold.
struct Rival {
    law: &'static str,
    gain: Option<f64>,
    aim: f64,
}

/// One hop: its stations, the data rate of the slowest (Mbit/s), and the laws.
struct Place {
    label: &'static str,
    slowest: (&'static str, f64),
    stations: f64,
    rivals: Vec<Rival>,
}

/// Seconds of a control interval of the predecessor: what is averaged for the settling.
const SLOT: f64 = 1.0;

impl Place {
    /// Seconds of a round with `level` packets a frame at the slowest station and equal airtime, by the model.
    fn round(&self, level: f64) -> f64 {
        self.stations * (ACCESS + level * airtime(1548.0 * 8.0, self.slowest.1 * 1e6))
    }

    /// What the predecessor's error becomes in one slot: gain times (c + w'μ)² / c.
    fn loop_gain(&self, rival: &Rival) -> Option<f64> {
        Some(rival.gain? * self.round(rival.aim).powi(2) / (self.stations * ACCESS))
    }
}

pub(super) fn predecessor(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let rival = |law, gain, aim| Rival { law, gain, aim };
    let point = Place {
        label: "1 station",
        slowest: ("sta", 390.0),
        stations: 1.0,
        rivals: vec![rival("regulator", None, 32.0), rival("linear-pi", Some(68.0), 32.0)],
    };
    let elsewhere = Place {
        label: "3 stations",
        slowest: ("c", 87.75),
        stations: 3.0,
        rivals: vec![
            rival("regulator", None, 22.0),
            rival("linear-pi", Some(68.0), 32.0),
            rival("linear-pi-scaled", Some(1.53), 32.0),
            rival("linear-pi-scaled-22", Some(3.05), 22.0),
        ],
    };
    let (at_point, away) = (runner.run(POINT, &[])?, runner.run(ELSEWHERE, &[])?);
    let mut section = Section { title: "The linear predecessor".into(), text: TEXT.into(), ..Section::default() };
    let mut table = Table::new(&[
        "hop",
        "law",
        "loop gain",
        "aim (packets)",
        "packets a frame of the slowest",
        "sd of the slots' level, of its mean",
        "settled after (s)",
        "interval (ms)",
        "Mbit/s",
        "hop delay mean (ms)",
        "p95 (ms)",
    ]);
    for (place, run) in [(&point, &at_point), (&elsewhere, &away)] {
        for rival in &place.rivals {
            let of = |key| shown(&run.of_station(rival.law, place.slowest.0, key));
            let all = |key| shown(&run.of(rival.law, key));
            table.rows.push(vec![
                place.label.into(),
                rival.law.into(),
                place.loop_gain(rival).map_or("–".into(), digits),
                digits(rival.aim),
                of(Key::Aggregation),
                shown(&swing(run, place, rival)),
                shown(&arrival(run, place, rival)),
                of(Key::FrameInterval),
                all(Key::Throughput),
                all(Key::HopDelayMean),
                all(Key::HopDelayP95),
            ]);
        }
    }
    section.tables.push(table.columns(&[0, 1, 2, 5, 6]));
    checks(&mut section, &point, &at_point, &elsewhere, &away);
    section.charts.push(levels(&point, &at_point, "design-point", "One station at 390 Mbit/s, 32 packets a frame"));
    section.charts.push(levels(&elsewhere, &away, "predecessor", "Three stations: packets a frame of the slowest"));
    let laws: Vec<&str> = elsewhere.rivals.iter().map(|rival| rival.law).collect();
    section.charts.push(trace(&away, "predecessor-delay", "Three stations: delay over the hop", &laws));
    Ok(section)
}

const TEXT: &str = "\
Not a figure of the paper. The predecessor is an integral controller, x ← x + K (N - μ), once a second at 32 packets a frame; neither its gain nor a rule to scale it is published. \
By default its loop gain, K (c + w'μ)² / c, is 0.5 for one station at 390 Mbit/s. With three slower stations it is over forty times as large, and above 2 the loop is unstable. `scaled` \
has a loop gain of 0.5 there, `scaled-22` also aims at the 22 packets that take 10 ms: it then does as well as the regulator, but c, the rates and the number of stations must be \
known, and it takes longer to arrive. Unstable is called what swings twice as much as the regulator.";

/// Packets a frame of the slowest station, by the second.
fn slots(run: &Run, station: &str) -> Vec<(f64, f64)> {
    Results::series_of(run, SeriesKind::Aggregation, station, SLOT)
}

/// How much a slot's level varies once the measuring window has begun.
fn swing(run: &Results, place: &Place, rival: &Rival) -> Estimate {
    run.over_runs(rival.law, "1", |run| {
        let from = run.record.window.warm_up.as_secs_f64();
        let late = slots(run, place.slowest.0).into_iter().filter(|(at, _)| *at > from).map(|(_, level)| level);
        let moments: Moments = late.collect();
        Some(moments.sd()? / moments.mean()?)
    })
}

/// Seconds until three slots in a row are within a tenth of the aim.
fn arrival(run: &Results, place: &Place, rival: &Rival) -> Estimate {
    run.over_runs(rival.law, "s", |run| {
        let levels = slots(run, place.slowest.0);
        let held = |three: &&[(f64, f64)]| three.iter().all(|(_, level)| near(Some(*level), rival.aim, 0.1));
        levels.windows(3).find(held).map(|three| three[0].0 - SLOT / 2.0)
    })
}

fn checks(section: &mut Section, point: &Place, at_point: &Results, elsewhere: &Place, away: &Results) {
    let level = |run: &Results, place: &Place, law| run.of_station(law, place.slowest.0, Key::Aggregation);
    let both = ["regulator", "linear-pi"].map(|law| level(at_point, point, law));
    section.checks.push(Check::new(
        "at its own point both hold 32 packets",
        "within 10 %",
        both.iter().map(shown).collect::<Vec<_>>().join(" and "),
        both.iter().all(|level| near(level.mean, 32.0, 0.1)),
    ));
    let of = |law: &str| {
        let rival = elsewhere.rivals.iter().find(|rival| rival.law == law);
        rival.map(|rival| (elsewhere.loop_gain(rival), swing(away, elsewhere, rival)))
    };
    let own = of("regulator").and_then(|(_, sd)| sd.mean);
    for (law, stable) in [("linear-pi", false), ("linear-pi-scaled", true), ("linear-pi-scaled-22", true)] {
        let Some((gain, sd)) = of(law) else { continue };
        section.checks.push(Check::new(
            &format!("3 stations, {law}, loop gain {}: sd", gain.map_or("–".into(), digits)),
            if stable { "stable: < 2 times the regulator's" } else { "unstable: ≥ 2 times the regulator's" },
            shown(&sd),
            sd.mean.zip(own).map(|(sd, own)| (sd < 2.0 * own) == stable),
        ));
    }
    let fair = ["regulator", "linear-pi-scaled-22"]
        .map(|law| [Key::Throughput, Key::HopDelayP95].map(|key| away.of(law, key)));
    section.checks.push(Check::new(
        "3 stations, rounds of 10 ms: throughput and p95 delay, ours; scaled-22",
        "not stated",
        fair.iter()
            .map(|[rate, delay]| format!("{} Mbit/s, {} ms", shown(rate), shown(delay)))
            .collect::<Vec<_>>()
            .join("; "),
        None,
    ));
}

fn levels(place: &Place, run: &Results, file: &str, title: &str) -> Chart {
    let curve = |rival: &Rival| {
        Curve::estimated(rival.law, run.traced_of(rival.law, SeriesKind::Aggregation, place.slowest.0, SLOT))
    };
    Chart::over_time(file, title, "packets a frame", place.rivals.iter().map(curve).collect())
}
