//! What an access point infers of senders' windows, and how well each rule for windows tells the rate that one yields: against the simulator's truth.

use super::{LIBRARY, SET_UP};
use crate::study::{Edit, Runner};
use lasthop_experiment::ExperimentError;
use lasthop_laws::oal::Params;
use lasthop_laws::oal::map::{Map, inferred_window};
use lasthop_laws::oal::window::{loaded_round_trip, unloaded_round_trip};
use lasthop_laws::{Decision, HopLaw};
use lasthop_report::page::{Section, Table, shown};
use lasthop_report::{Entity, Estimate, Figure, RunRecord, SeriesKind};
use lasthop_scenario::{Scenario, SetUp};
use lasthop_signals::{FlowId, FlowReport, Signal};
use lasthop_sim::{SimError, build_with, drive};
use lasthop_units::{Rate, Seed, Span, Time};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Over which rates are taken: as the law does.
const HORIZON: Span = Span::from_millis(40);

/// What was known of a flow at one moment.
#[derive(Clone, Copy)]
struct Moment {
    at: Time,
    /// Place of its station among the scenario's.
    station: usize,
    flow: FlowId,
    report: FlowReport,
    rate: Rate,
    map: Map,
}

/// Watches, and does nothing.
#[derive(Clone, Default)]
struct Watch {
    flows: BTreeMap<FlowId, Moment>,
    told: Arc<Mutex<Vec<Moment>>>,
}

impl HopLaw for Watch {
    fn sense(&mut self, now: Time, signal: &Signal) {
        let Signal::Flow(report) = signal else { return };
        let Some(station) = report.station.index().checked_sub(1) else { return };
        let (flow, rate, map) = (report.flow, Rate::ZERO, Map::default());
        let first = Moment { at: now, station, flow, report: *report, rate, map };
        let known = self.flows.entry(flow).or_insert(first);
        let span = now.since(known.at);
        if span < HORIZON {
            return;
        }
        let carried = report.acked.saturating_sub(known.report.acked);
        (known.rate, known.at) = (Rate::of(carried, span).unwrap_or(Rate::ZERO), now);
        known.report = *report;
        self.told.lock().unwrap_or_else(PoisonError::into_inner).push(*known);
        if let Some(window) = inferred_window(report, known.rate) {
            known.map.learn(now, window, known.rate);
        }
    }

    fn decide(&self, _: Time, _: &mut dyn FnMut(FlowId, Decision)) {}

    fn name(&self) -> &'static str {
        "watch"
    }
}

/// What is compared, with whether it is a window or a rate.
const WHAT: [(&str, &str); 5] = [
    ("what is in flight behind the access point", "window"),
    ("that, and the rate times the wired round trip", "window"),
    ("unloaded round trip and slack", "rate"),
    ("round trip as it is (`paper`)", "rate"),
    ("learned map (`learned`)", "rate"),
];

/// Shares by which each of [`WHAT`] errs in one run, moment by moment.
fn errors(record: &RunRecord, scenario: &Scenario, moments: &[Moment]) -> [Vec<f64>; WHAT.len()] {
    let mut errors: [Vec<f64>; WHAT.len()] = Default::default();
    // Of a station with several connections nobody knows here which is which.
    let truth: Vec<Option<&Vec<Option<f64>>>> =
        scenario.stations().iter().map(|name| of_one_flow(record, name)).collect();
    let bin = record.bin.as_secs_f64();
    let mut next: BTreeMap<FlowId, Rate> = BTreeMap::new();
    let begin = Time::ZERO + scenario.warm_up();
    for moment in moments.iter().rev() {
        let Moment { at, report, rate, map, .. } = moment;
        // What the flow takes in the horizon that follows.
        let Some(taken) = next.insert(moment.flow, *rate) else { continue };
        let place = (at.as_secs_f64() / bin) as usize;
        let cwnd = truth[moment.station].and_then(|values| values.get(place).copied().flatten());
        let Some(cwnd) = cwnd.filter(|cwnd| *cwnd > 0.0 && *at >= begin && !taken.is_zero()) else { continue };
        let slack = Params::default().slack;
        let bytes = lasthop_units::Bytes::new(cwnd as u64);
        let over = |round_trip: Option<Span>| Some(Rate::of(bytes, round_trip?)?.as_bps() as f64);
        let [window, taken] = [cwnd, taken.as_bps() as f64];
        let said = [
            (Some(report.in_flight.get() as f64), window),
            (inferred_window(report, *rate).map(|window| window.get() as f64), window),
            (over(unloaded_round_trip(report).map(|unloaded| unloaded + slack)), taken),
            (over(loaded_round_trip(report, *rate)), taken),
            (map.rate(bytes).map(|rate| rate.as_bps() as f64), taken),
        ];
        for (errors, (said, is)) in errors.iter_mut().zip(said) {
            errors.extend(said.map(|said| 100.0 * (said / is - 1.0).abs()));
        }
    }
    errors
}

/// The congestion window of the one bulk flow of a station, in bytes, bin by bin; `None` if it has several.
fn of_one_flow<'r>(record: &'r RunRecord, station: &str) -> Option<&'r Vec<Option<f64>>> {
    let own = |entity: &Entity| matches!(entity, Entity::Flow { station: Some(name), .. } if name == station);
    let mut tracks = record.tracks.iter().filter(|track| track.kind == SeriesKind::Cwnd && own(&track.entity));
    let first = tracks.next()?;
    tracks.next().is_none().then_some(&first.values)
}

fn quantile(values: &mut [f64], share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get((values.len().checked_sub(1)? as f64 * share) as usize).copied()
}

pub(super) fn windows(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let short: [Edit<'_>; 2] = [("duration", "60 s".into()), ("seeds", 5.into())];
    let one: [Edit<'_>; 1] = [("traffic.0.flows", 1.into())];
    let mut table = Table::new(&["world", "of", "told by", "error, median (%)", "90th percentile (%)"]);
    for (world, shipped, edits) in [("nine laptops", SET_UP, short.as_slice()), ("library", LIBRARY, one.as_slice())] {
        let told: Mutex<BTreeMap<u64, Vec<Moment>>> = Mutex::default();
        let set_ups = |scenario: &Scenario| vec![scenario.law("cubic").expect("shipped scenarios have it")];
        let watch = |scenario: &Scenario, law: &SetUp, seed, on: &mut dyn FnMut(Span) -> bool| {
            watched(scenario, law, seed, on, &told)
        };
        let run = runner.run_own(shipped, (edits, edits), set_ups, &watch)?;
        let told = told.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut all: [[Vec<Figure>; 2]; WHAT.len()] = Default::default();
        for of in run.runs("cubic") {
            let Some(moments) = told.get(&of.seed) else { continue };
            for (all, mut errors) in all.iter_mut().zip(errors(&of.record, &run.scenario, moments)) {
                for (all, share) in all.iter_mut().zip([0.5, 0.9]) {
                    all.push(Figure::or_absent(quantile(&mut errors, share), "nothing was known"));
                }
            }
        }
        for ((name, of), figures) in WHAT.into_iter().zip(&all) {
            let cells = figures.each_ref().map(|figures| shown(&Estimate::of("%", figures)));
            table.rows.push([vec![world.to_owned(), of.to_owned(), name.to_owned()], cells.to_vec()].concat());
        }
    }
    Ok(Section {
        title: "Windows that an access point infers".into(),
        text: "The paper infers the sender's window, and has a map from past windows to rates; it prints neither. The first rows hold what an access point infers against the sender's congestion window. \
               The others take that true window and are held against the rate of the 40 ms that follow. CUBIC without an agent; one connection of each near station of the library."
            .into(),
        tables: vec![table.only(|row| row[0] == "library", &[1, 2, 3, 4])],
        ..Section::default()
    })
}

fn watched(
    scenario: &Scenario,
    law: &SetUp,
    seed: u64,
    on: &mut dyn FnMut(Span) -> bool,
    told: &Mutex<BTreeMap<u64, Vec<Moment>>>,
) -> Result<Option<RunRecord>, SimError> {
    let mut watches = Vec::new();
    let world = build_with(scenario, law, Seed(seed), false, &mut |_, _| {
        let watch = Watch::default();
        watches.push(watch.told.clone());
        Some(Box::new(watch))
    })?;
    let record = drive(world, scenario, HORIZON * 10, &mut |_, done| on(done));
    let each =
        |told: &Arc<Mutex<Vec<Moment>>>| std::mem::take(&mut *told.lock().unwrap_or_else(PoisonError::into_inner));
    // Numbers of flows are an access point's own: one access point's moments do not mix with another's.
    let mut moments = Vec::new();
    for (place, own) in watches.iter().map(each).enumerate() {
        moments.extend(
            own.into_iter().map(|moment| Moment { flow: FlowId(moment.flow.0 + (place as u32) * 1_000_000), ..moment }),
        );
    }
    told.lock().unwrap_or_else(PoisonError::into_inner).insert(seed, moments);
    Ok(record)
}
