//! What learning from one's own deeds does over ten minutes: trees that are trained anew each second beside one tree for good.

use super::trees::watched;
use super::{LIBRARY, OURS, world};
use crate::study::{Edit, Results, Runner};
use lasthop_experiment::ExperimentError;
use lasthop_laws::oal::Params;
use lasthop_laws::oal::learned::Learned;
use lasthop_laws::oal::lesson::ITEMS;
use lasthop_laws::oal::predictor::{BacklogThreshold, LossClass, Predictor, StationState};
use lasthop_laws::oal::trainer::{Growth, Trainer};
use lasthop_laws::oal::tree::Tree;
use lasthop_report::page::{Check, Section, Table, mean, shown};
use lasthop_report::{Estimate, Figure, Run, RunRecord, SeriesKind};
use lasthop_scenario::{Scenario, SetUp};
use lasthop_signals::Signal;
use lasthop_sim::{SimError, drive};
use lasthop_units::{Seed, Span, Time};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use toml::Value;

/// Minutes of a run, and of a quick one.
const MINUTES: (usize, usize) = (10, 3);
/// More than the scenario's: runs differ by a quarter in the share of tight time.
const SEEDS: i64 = 15;
/// Far stations come twice in each.
const MINUTE: Span = Span::from_secs(60);
/// Seeds of the runs that the frozen tree is trained with: none of those that are judged.
const TAUGHT_BY: [Seed; 3] = [Seed(101), Seed(102), Seed(103)];
/// How far the retrained may be from the frozen.
const DRIFT: f64 = 0.2;
const RETRAINED: &str = "retrained";
const FROZEN: &str = "frozen";
/// Virtual time between two calls of progress.
const STEP: Span = Span::from_millis(500);

/// For each minute, control intervals in which windows were tight, and all of them.
type Tight = Vec<(u64, u64)>;
/// The same by law and seed.
type Told = Mutex<BTreeMap<(String, u64), Tight>>;

/// A predictor, and how often windows were tight under it.
#[derive(Clone)]
struct Counted {
    inner: Learned,
    now: Time,
    counts: Arc<Mutex<Tight>>,
}

impl Predictor for Counted {
    fn sense(&mut self, now: Time, signal: &Signal) {
        self.now = now;
        self.inner.sense(now, signal);
    }

    fn wants_segments(&self) -> bool {
        self.inner.wants_segments()
    }

    fn predict(&mut self, state: &StationState) -> LossClass {
        self.inner.predict(state)
    }

    fn abstains(&self, now: Time) -> bool {
        self.inner.abstains(now)
    }

    fn acted(&mut self, tight: bool) {
        self.inner.acted(tight);
        let minute = (self.now.as_nanos() / MINUTE.as_nanos()) as usize;
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let length = counts.len().max(minute + 1);
        counts.resize(length, (0, 0));
        counts[minute].0 += u64::from(tight);
        counts[minute].1 += 1;
    }
}

/// The library's traffic, minute after minute.
fn traffic(minutes: usize) -> Value {
    let table: toml::Table = toml::from_str(LIBRARY.text).expect("shipped scenarios are TOML");
    let streams = table["traffic"].as_array().expect("a list of tables");
    let seconds = |value: &Value| value.as_str()?.strip_suffix(" s")?.parse::<usize>().ok();
    let mut all = Vec::new();
    for stream in streams.iter().filter_map(Value::as_table) {
        let comes = stream.get("start").is_some();
        for minute in 0..if comes { minutes } else { 1 } {
            let mut later = stream.clone();
            for key in ["start", "stop"] {
                if let Some(at) = stream.get(key).and_then(seconds) {
                    later.insert(key.to_owned(), format!("{} s", at + 60 * minute).into());
                }
            }
            all.push(Value::Table(later));
        }
    }
    Value::Array(all)
}

/// A tree of what was seen while nobody acted.
fn frozen(scenario: &Scenario) -> Tree {
    let law = scenario.law("cubic").expect("the shipped scenario has it");
    // Labelled as the retrained trees' items are.
    let (_, rows) = watched(scenario, &law, &TAUGHT_BY, Params::default().learning().timing);
    let newest = &rows[rows.len().saturating_sub(ITEMS)..];
    let items = newest.iter().map(|row| (&row.features, row.class()));
    Trainer::new(Growth::default()).train(1, items).expect("something was seen")
}

fn simulate(
    (scenario, law, seed): (&Scenario, &SetUp, u64),
    tree: &Arc<Tree>,
    told: &Told,
    on: &mut dyn FnMut(Span) -> bool,
) -> Result<Option<RunRecord>, SimError> {
    let params = Params::default();
    let threshold = BacklogThreshold::new(params.trigger);
    let inner = match law.name.as_str() {
        FROZEN => Learned::taught(params.learning(), threshold).with_fixed(tree.clone()),
        _ => Learned::new(params.learning(), threshold),
    };
    let counted = Counted { inner, now: Time::ZERO, counts: Arc::default() };
    let world = world((scenario, law, seed), &params, &|| Box::new(counted.clone()))?;
    let record = drive(world, scenario, STEP, &mut |_, done| on(done));
    let counts = counted.counts.lock().unwrap_or_else(PoisonError::into_inner).clone();
    told.lock().unwrap_or_else(PoisonError::into_inner).insert((law.name.clone(), seed), counts);
    Ok(record)
}

/// The 95th percentile of the delay over the hop in a minute, of means of 100 ms, in ms.
fn delay_p95(run: &Run, minute: usize) -> Option<f64> {
    let seconds = |minute: usize| MINUTE.as_secs_f64() * minute as f64;
    let within = |(at, _): &(f64, f64)| (seconds(minute)..seconds(minute + 1)).contains(at);
    let mut values: Vec<f64> =
        Results::series(run, SeriesKind::HopDelay, 0.1).into_iter().filter(within).map(|(_, value)| value).collect();
    values.sort_by(f64::total_cmp);
    values.get((values.len().checked_sub(1)? as f64 * 0.95) as usize).copied()
}

pub(super) fn closed_loop(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let minutes = if runner.quick { MINUTES.1 } else { MINUTES.0 };
    let edits: [Edit<'_>; 3] =
        [("duration", format!("{} s", 60 * minutes).into()), ("traffic", traffic(minutes)), ("seeds", SEEDS.into())];
    let told = Told::default();
    let tree = Arc::new(frozen(&runner.scenario(LIBRARY, &[])));
    let set_ups = |scenario: &Scenario| {
        let base = scenario.law(OURS).expect("the shipped scenario has it");
        [RETRAINED, FROZEN].map(|name| SetUp { name: name.to_owned(), ..base.clone() }).to_vec()
    };
    let own = |scenario: &Scenario, law: &SetUp, seed, on: &mut dyn FnMut(Span) -> bool| {
        simulate((scenario, law, seed), &tree, &told, on)
    };
    let said = [edits[0].clone(), ("traffic", "its own, again in each minute".into()), edits[2].clone()];
    let run = runner.run_own(LIBRARY, (&edits, &said), set_ups, &own)?;
    let told = told.into_inner().unwrap_or_else(PoisonError::into_inner);
    let tight = |run: &Run, minute: usize| {
        let (tight, all) = *told.get(&(run.law.clone(), run.seed))?.get(minute)?;
        Some(100.0 * tight as f64 / all.max(1) as f64)
    };
    let over = |law: &str, minute: usize, of: &dyn Fn(&Run, usize) -> Option<f64>, unit: &str| {
        run.over_runs(law, unit, |run| of(run, minute))
    };
    let mut table = Table::new(&[
        "minute",
        "tight, retrained (% of time)",
        "frozen",
        "delay over the hop, p95 of 100 ms, retrained (ms)",
        "frozen",
    ]);
    for minute in 0..minutes {
        let share = |law| shown(&over(law, minute, &tight, "%"));
        let delay = |law| shown(&over(law, minute, &delay_p95, "ms"));
        let cells = [share(RETRAINED), share(FROZEN), delay(RETRAINED), delay(FROZEN)];
        table.rows.push([vec![(minute + 1).to_string()], cells.to_vec()].concat());
    }
    let checks = [
        ("share of tight time", &tight as &dyn Fn(&Run, usize) -> Option<f64>),
        ("p95 of the hop's delay", &delay_p95),
    ]
    .into_iter()
    .flat_map(|(what, of)| {
        let whole = over_frozen(&run, |run| average(run, 1..minutes, of));
        // A third of the minutes that are judged, at either end: what lets go or holds on more and more.
        let third = (minutes - 1).div_ceil(3);
        let change = |run: &Run| Some(average(run, minutes - third..minutes, of)? / average(run, 1..1 + third, of)?);
        let both = [
            ("from the second minute on".to_owned(), whole),
            (format!("last {third} of those minutes over the first {third}"), over_frozen(&run, change)),
        ];
        both.map(|(when, ratio)| {
            Check::new(&format!("{what}, {when}"), "within 20 %", shown(&ratio), (mean(&ratio) - 1.0).abs() <= DRIFT)
        })
    });
    Ok(Section {
        title: "Ten minutes in a closed loop".into(),
        text: format!(
            "To act removes the losses that a tree is to learn from. So the library's minute is played {} times, once with trees that are trained anew each second from what the acting access point sees, \
             and once with one tree for good, trained in worlds of other seeds in which nobody acted ({} nodes). Trees that unlearned would let go, minute by minute. The first minute, in which \
             the retrained access point abstains for up to 10 s, is not judged. Statements are of the retrained over the frozen.",
            minutes,
            tree.nodes().len(),
        ),
        checks: checks.collect(),
        tables: vec![table.data()],
        ..Section::default()
    })
}

/// The mean over some minutes of a run.
fn average(run: &Run, minutes: Range<usize>, of: &dyn Fn(&Run, usize) -> Option<f64>) -> Option<f64> {
    let number = minutes.len() as f64;
    Some(minutes.map(|minute| of(run, minute)).sum::<Option<f64>>()? / number)
}

/// Retrained over frozen in each run.
fn over_frozen(run: &Results, of: impl Fn(&Run) -> Option<f64>) -> Estimate {
    let ratio = |retrained: &Run| {
        let frozen = run.runs(FROZEN).find(|frozen| frozen.seed == retrained.seed)?;
        Some(of(retrained)? / of(frozen)?).filter(|ratio| ratio.is_finite())
    };
    let ratios: Vec<Figure> =
        run.runs(RETRAINED).map(|run| Figure::or_absent(ratio(run), "one of both was never tight")).collect();
    Estimate::of("1", &ratios)
}
