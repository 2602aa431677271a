//! A hop that changes under the regulator: its data rate, and what others leave of the channel.

use super::super::chart::{Chart, Curve};
use super::super::page::{Check, Section, Table, digits, shown};
use super::super::runner::{Results, Runner};
use super::unlike::trace;
use crate::ExperimentError;
use lasthop_laws::aggregation::model::airtime;
use lasthop_report::{Estimate, Run, SeriesKind};

const MCS: &str = include_str!("../../../../../scenarios/aggregation/mcs-change.toml");
const NEIGHBOUR: &str = include_str!("../../../../../scenarios/aggregation/neighbour.toml");

/// Seconds from and to.
type Phase = (f64, f64);

/// One scenario: data rates of the three stations outside and inside the changed phase, Mbit/s.
struct Case {
    name: &'static str,
    text: &'static str,
    label: &'static str,
    phy: (f64, f64),
}

const CASES: [Case; 2] = [
    Case { name: "mcs-change", text: MCS, label: "MCS 9, 4, 9", phy: (390.0, 175.5) },
    Case { name: "neighbour", text: NEIGHBOUR, label: "a neighbour from 20 to 40 s", phy: (390.0, 390.0) },
];
const STATIONS: f64 = 3.0;
/// The target and the control interval of both scenarios.
const TARGET_MS: f64 = 10.0;
const SLOT: f64 = 0.5;
/// The ends of the three phases, and all of the second and third.
const BEFORE: Phase = (15.0, 20.0);
const DURING: Phase = (35.0, 40.0);
const AFTER: Phase = (55.0, 60.0);
const CHANGED: Phase = (20.0, 40.0);
const BACK: Phase = (40.0, 60.0);

pub(in super::super) fn tracking(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let mut section = Section {
        title: "The channel changes: MCS, and a legacy neighbour".into(),
        text: "Not a figure of the paper. Three stations; in the first scenario all fall from MCS 9 to MCS 4 between 20 s and 40 s, in \
               the second a saturated 802.11a neighbour takes every other turn of the channel in that time. With the neighbour the \
               overhead of a round includes its frames.\n\n\
               The requirements: ĉ within 10 % of what frames show at the end of each phase (interval x (1 - share of the time \
               that packets are on the air), from the run's record), and back within 10 % of what it was; half-second mean delays \
               back within 20 % of the target within 3 s of each change, for two in a row; and none longer than what one slot of \
               0.5 s, in which nobody knows of the change, leaves in the queue: 0.5 s x (rate before / rate after - 1). That queue \
               is the price of hearing from stations twice a second."
            .into(),
        ..Section::default()
    };
    for case in &CASES {
        let run = runner.run(case.name, case.text, &[])?;
        section.tables.push(phases(&run));
        overhead_checks(&mut section, case, &run);
        delay_checks(&mut section, case, &run);
        section.charts.push(trace(&run, case.name, case.label, &["regulator", "cubic"]));
        if let Some(first) = run.runs("regulator").next() {
            section.charts.push(Chart {
                file: format!("{}-overhead", case.name),
                title: format!("{}: estimated overhead of a round", case.label),
                x: "time (s)".into(),
                y: "ĉ (us)".into(),
                curves: vec![Curve::measured("ĉ", Results::series(first, SeriesKind::Overhead, 0.5))],
            });
        }
    }
    Ok(section)
}

fn phases(run: &Results) -> Table {
    let mut phases = Table::new(&[
        "law",
        "phase",
        "mean delay (ms)",
        "longest half-second mean (ms)",
        "Mbit/s",
        "ĉ (us)",
        "packets a frame",
    ]);
    let rows = [("before", BEFORE), ("changed", CHANGED), ("its end", DURING), ("back", BACK), ("its end", AFTER)];
    for law in ["regulator", "cubic"] {
        for (phase, span) in rows {
            let mean = |kind| over(run, law, kind, span);
            let rate = run.over_runs(law, "Mbit/s", |run| {
                let flows = run.record.tracks.iter().filter(|track| track.kind == SeriesKind::Rate).count() as f64;
                Some(Results::between(run, SeriesKind::Rate, span)? * flows)
            });
            phases.rows.push(vec![
                law.into(),
                phase.into(),
                shown(&mean(SeriesKind::HopDelay)),
                shown(&longest(run, law, span)),
                shown(&rate),
                shown(&mean(SeriesKind::Overhead)),
                shown(&mean(SeriesKind::Aggregation)),
            ]);
        }
    }
    phases
}

fn over(run: &Results, law: &str, kind: SeriesKind, span: Phase) -> Estimate {
    run.over_runs(law, "", move |run| Results::between(run, kind, span))
}

fn half_seconds(run: &Run, (from, to): Phase) -> impl Iterator<Item = (f64, f64)> {
    Results::series(run, SeriesKind::HopDelay, SLOT).into_iter().filter(move |(at, _)| (from..to).contains(at))
}

fn longest(run: &Results, law: &str, span: Phase) -> Estimate {
    run.over_runs(law, "ms", |run| half_seconds(run, span).map(|(_, delay)| delay).reduce(f64::max))
}

/// ĉ at the end of each phase.
fn overhead_checks(section: &mut Section, case: &Case, run: &Results) {
    let believed = |span| over(run, "regulator", SeriesKind::Overhead, span).mean.unwrap_or(f64::NAN);
    let before = believed(BEFORE);
    for (phase, span, phy) in
        [("before", BEFORE, case.phy.0), ("the changed phase", DURING, case.phy.1), ("the end", AFTER, case.phy.0)]
    {
        let (ours, hop) = (believed(span), shown_by_frames(run, span, phy).unwrap_or(f64::NAN) * 1e6);
        let (off, back) = (ours / hop - 1.0, ours / before - 1.0);
        let home = span == AFTER;
        section.checks.push(Check::new(
            &format!("{}: ĉ in the last 5 s of {phase}", case.label),
            if home { "within 10 % of what frames show, and of before" } else { "within 10 % of what frames show" },
            format!(
                "{ours:.0} us; frames show {hop:.0} ({:+.0} %); {:+.0} % against before",
                off * 100.0,
                back * 100.0
            ),
            off.abs() <= 0.1 && (!home || back.abs() <= 0.1),
        ));
    }
}

/// The time of a round that no packet pays for, seconds, from the frames and the deliveries that were recorded.
fn shown_by_frames(run: &Results, span: Phase, phy: f64) -> Option<f64> {
    let level = over(run, "regulator", SeriesKind::Aggregation, span).mean?;
    let rate = over(run, "regulator", SeriesKind::Rate, span).mean? * 1e6 / (1428.0 * 8.0);
    Some(level / rate * (1.0 - STATIONS * rate * airtime(1548.0 * 8.0, phy * 1e6)))
}

/// How long packets wait while the hop changes, and afterwards.
fn delay_checks(section: &mut Section, case: &Case, run: &Results) {
    let label = case.label;
    let delay = |span| over(run, "regulator", SeriesKind::HopDelay, span);
    let rate = |span| over(run, "regulator", SeriesKind::Rate, span).mean;
    for (phase, span, was, is) in [("falls", CHANGED, BEFORE, DURING), ("comes back", BACK, DURING, AFTER)] {
        let took = run.over_runs("regulator", "s", |run| settled(run, span));
        section.checks.push(Check::new(
            &format!("{label}, the hop {phase}: until half-second means are within 20 % of the target again"),
            "≤ 3 s in every run",
            format!("{} s", shown(&took)),
            run.runs("regulator").all(|run| settled(run, span).is_some_and(|took| took <= 3.0)),
        ));
        let worst = longest(run, "regulator", span);
        let blind = rate(was).zip(rate(is)).map(|(was, is)| (SLOT * 1e3 * (was / is - 1.0)).max(1.2 * TARGET_MS));
        section.checks.push(Check::new(
            &format!("{label}, the hop {phase}: longest half-second mean"),
            &format!("≤ {} ms: what one slot leaves, or the target and 20 %", blind.map_or("–".into(), digits)),
            format!("{} ms", shown(&worst)),
            worst.mean.zip(blind).map(|(worst, blind)| worst <= blind),
        ));
    }
    let (was, is) = (delay(BEFORE).mean, delay(AFTER).mean);
    let returned = was.zip(is).map(|(was, is)| is <= 1.2 * was);
    let restored = rate(BEFORE).zip(rate(AFTER)).map(|(was, is)| is >= 0.9 * was);
    section.checks.push(Check::new(
        &format!("{label}: delay and rate in the last 5 s against before"),
        "delay ≤ 1.2 times, rate ≥ 0.9 times",
        format!("{} → {} ms", was.map_or("–".into(), digits), is.map_or("–".into(), digits)),
        returned.zip(restored).map(|(delay, rate)| delay && rate),
    ));
    let (during, cubic) = (delay(DURING), over(run, "cubic", SeriesKind::HopDelay, DURING));
    section.checks.push(Check::new(
        &format!("{label}: delay at the end of the changed phase, ours and CUBIC's"),
        "less than a fifth",
        format!("{} ms, {} ms", shown(&during), shown(&cubic)),
        during.mean.zip(cubic.mean).map(|(ours, theirs)| ours < theirs / 5.0),
    ));
}

/// Seconds from the beginning of a phase until two half seconds in a row have mean delays within 20 % of the target.
fn settled(run: &Run, span: Phase) -> Option<f64> {
    let means: Vec<(f64, f64)> = half_seconds(run, span).collect();
    let near = |pair: &&[(f64, f64)]| pair.iter().all(|(_, delay)| *delay <= 1.2 * TARGET_MS);
    means.windows(2).find(near).map(|pair| pair[0].0 - SLOT / 2.0 - span.0)
}
