//! Runs scenarios with some of their keys changed.

use lasthop_experiment::{ExperimentError, Outcome, Place, Plan, Silent, run, simulated};
use lasthop_lab::Stop;
use lasthop_report::combined;
use lasthop_report::page::{self, Ran, shown};
use lasthop_report::{Entity, Estimate, Figure, Key, Run, RunRecord, SeriesKind, Track};
use lasthop_scenario::{Scenario, SetUp};
use lasthop_sim::SimError;
use lasthop_units::stats::Moments;
use lasthop_units::{Seed, Span};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use toml::{Table, Value};

/// What all studies share.
pub struct Runner<'a> {
    /// Fewer points and one seed: to see whether it works.
    pub quick: bool,
    stop: &'a Stop,
    tell: &'a (dyn Fn(&str) + Sync),
    ran: Mutex<Ran>,
}

/// A scenario file that ships with Lasthop.
#[derive(Clone, Copy)]
pub(crate) struct Shipped {
    /// Its folder under `scenarios`.
    pub folder: &'static str,
    /// Its name there, without the ending.
    pub name: &'static str,
    /// What is in it.
    pub text: &'static str,
}

/// The scenario file of that name in that folder of `scenarios`.
macro_rules! shipped {
    ($folder:literal, $name:literal) => {
        $crate::study::Shipped {
            folder: $folder,
            name: $name,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/", $folder, "/", $name, ".toml")),
        }
    };
}
pub(crate) use shipped;

/// A scenario's runs, to be asked for figures.
pub struct Results {
    /// The scenario as it was run.
    pub scenario: Scenario,
    /// What came of it.
    pub outcome: Outcome,
}

/// A key of a scenario file, `station.0.mcs`, and what it shall be.
pub type Edit<'e> = (&'e str, Value);

/// Simulates a set-up of a scenario under a seed.
pub(crate) type Own<'o> =
    dyn Fn(&Scenario, &SetUp, u64, &mut dyn FnMut(Span) -> bool) -> Result<Option<RunRecord>, SimError> + Sync + 'o;

impl<'a> Runner<'a> {
    /// With fewer points and one seed if it must be `quick`; `stop` ends it early, and `tell` is told what is being run.
    pub fn new(quick: bool, stop: &'a Stop, tell: &'a (dyn Fn(&str) + Sync)) -> Runner<'a> {
        Runner { quick, stop, tell, ran: Mutex::default() }
    }

    /// Runs all laws of a scenario under its seeds (one, if it must be quick), with `edits` made to it first.
    pub(crate) fn run(&self, shipped: Shipped, edits: &[Edit<'_>]) -> Result<Results, ExperimentError> {
        self.run_as(shipped, edits, edits)
    }

    /// The same, of which the page says that `told` was changed.
    pub(crate) fn run_as(
        &self,
        shipped: Shipped,
        edits: &[Edit<'_>],
        told: &[Edit<'_>],
    ) -> Result<Results, ExperimentError> {
        let scenario = self.parsed(shipped, edits, told);
        let laws = scenario.laws().to_vec();
        self.planned(scenario, laws, &|plan| run(plan, &Silent, self.stop))
    }

    /// Runs set-ups in worlds of one's own, of which the page says that the second edits were made: `simulate` is given the scenario, and what [`Simulate`](lasthop_experiment::Simulate) is.
    pub(crate) fn run_own(
        &self,
        shipped: Shipped,
        (edits, told): (&[Edit<'_>], &[Edit<'_>]),
        laws: impl FnOnce(&Scenario) -> Vec<SetUp>,
        simulate: &Own<'_>,
    ) -> Result<Results, ExperimentError> {
        let scenario = self.parsed(shipped, edits, told);
        let laws = laws(&scenario);
        self.planned(scenario, laws, &|plan| {
            simulated(plan, &|law, seed, on| simulate(plan.scenario, law, seed, on), &Silent, self.stop)
        })
    }

    fn planned(
        &self,
        scenario: Scenario,
        laws: Vec<SetUp>,
        run: &dyn Fn(&Plan<'_>) -> Result<Outcome, ExperimentError>,
    ) -> Result<Results, ExperimentError> {
        let seeds = self.seed_numbers(&scenario);
        (self.tell)(&format!("{}: {} laws x {} seeds", scenario.name(), laws.len(), seeds.len()));
        let outcome =
            run(&Plan { scenario: &scenario, place: Place::Sim, laws, seeds, keep_packets: false, tries: 1 })?;
        if outcome.summary.incomplete.is_some() {
            return Err(ExperimentError::Stopped);
        }
        Ok(Results { scenario, outcome })
    }

    /// A scenario with `edits` made to it, for a study that looks at its world by itself.
    pub(crate) fn scenario(&self, shipped: Shipped, edits: &[Edit<'_>]) -> Scenario {
        (self.tell)(&format!("{}: looked at from within", shipped.name));
        self.parsed(shipped, edits, edits)
    }

    /// The seeds under which it is looked at: one, if it must be quick.
    pub(crate) fn seeds(&self, scenario: &Scenario) -> Vec<Seed> {
        self.seed_numbers(scenario).into_iter().map(Seed).collect()
    }

    fn seed_numbers(&self, scenario: &Scenario) -> Vec<u64> {
        let all = scenario.seeds();
        all[..if self.quick { 1 } else { all.len() }].to_vec()
    }

    fn parsed(&self, shipped: Shipped, edits: &[Edit<'_>], said: &[Edit<'_>]) -> Scenario {
        let said: Vec<_> = said.iter().map(|(key, value)| (*key, told(value))).collect();
        let scenario = Scenario::parse(shipped.name, &edited(shipped, edits), Path::new("."))
            .unwrap_or_else(|error| panic!("an edited scenario is wrong: {}", error.plain()));
        let seeds = self.seed_numbers(&scenario).len();
        self.ran.lock().unwrap_or_else(PoisonError::into_inner).add((shipped.folder, shipped.name), seeds, &said);
        scenario
    }

    /// What has been run since this was asked last.
    pub(crate) fn take_ran(&self) -> Ran {
        std::mem::take(&mut *self.ran.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The text of a scenario with some of its keys changed.
pub(crate) fn edited(shipped: Shipped, edits: &[Edit<'_>]) -> String {
    let mut table: Table = toml::from_str(shipped.text).expect("shipped scenarios are TOML: a test reads them all");
    edits.iter().for_each(|(path, value)| set(&mut table, path, value.clone()));
    toml::to_string(&table).expect("a table is TOML")
}

/// A value as a page tells it: a list of like tables by one of them and their number.
fn told(value: &Value) -> String {
    match value.as_array().map(Vec::as_slice) {
        Some([first @ Value::Table(_), rest @ ..]) if !rest.is_empty() && rest.iter().all(|other| other == first) => {
            format!("{} × {first}", rest.len() + 1)
        }
        _ => value.to_string(),
    }
}

impl Results {
    /// A figure of one law over the seeds.
    pub fn of(&self, law: &str, key: Key) -> Estimate {
        self.outcome.summary.estimate(law, key).cloned().unwrap_or_else(|| Estimate::of(key.unit(), []))
    }

    /// Figures of one law as a row of a table, behind what the row begins with.
    pub fn row(&self, head: &[&str], law: &str, keys: &[Key]) -> Vec<String> {
        let figures = keys.iter().map(|key| shown(&self.of(law, *key)));
        head.iter().map(|cell| (*cell).to_owned()).chain(figures).collect()
    }

    /// A table of figures, each under its heading: a row a law.
    pub fn by_law(&self, laws: &[&str], columns: &[(&str, Key)]) -> page::Table {
        let (headings, keys): (Vec<&str>, Vec<Key>) = columns.iter().copied().unzip();
        let mut table = page::Table::new(&[&["law"], headings.as_slice()].concat());
        table.rows = laws.iter().map(|law| self.row(&[law], law, &keys)).collect();
        table
    }

    /// A figure of one station under one law.
    pub fn of_station(&self, law: &str, station: &str, key: Key) -> Estimate {
        let stations = self.outcome.summary.stations.get(law).and_then(|stations| stations.get(station));
        stations.and_then(|figures| figures.get(&key)).cloned().unwrap_or_else(|| Estimate::of(key.unit(), []))
    }

    /// A figure of one station in one run.
    pub fn figure_of(run: &Run, station: &str, key: Key) -> Option<f64> {
        run.record.stations.iter().find(|record| record.name == station)?.figures.get(&key)?.value()
    }

    /// What `key` is under one law as a multiple of what it is under another: the ratio of their means.
    pub fn multiple(&self, law: &str, other: &str, key: Key) -> Estimate {
        combined([&self.of(law, key), &self.of(other, key)], |[ours, theirs]| ours / theirs)
    }

    /// Runs of one law.
    pub fn runs<'r>(&'r self, law: &'r str) -> impl Iterator<Item = &'r Run> {
        self.outcome.runs.iter().filter(move |run| run.law == law)
    }

    /// An estimate of something that is computed from each run of a law.
    pub fn over_runs(&self, law: &str, unit: &str, value: impl Fn(&Run) -> Option<f64>) -> Estimate {
        let figures: Vec<Figure> =
            self.runs(law).map(|run| Figure::or_absent(value(run), "nothing was observed")).collect();
        Estimate::of(unit, &figures)
    }

    /// A series of one run, as (seconds, value), averaged over `width` seconds; of all entities of that kind together.
    pub fn series(run: &Run, kind: SeriesKind, width: f64) -> Vec<(f64, f64)> {
        binned(run, kind, None, width)
    }

    /// The same of one station.
    pub fn series_of(run: &Run, kind: SeriesKind, station: &str, width: f64) -> Vec<(f64, f64)> {
        binned(run, kind, Some(station), width)
    }

    /// A series of a law in all its runs, averaged over `width` seconds: the mean over the seeds and its interval.
    pub fn traced(&self, law: &str, kind: SeriesKind, width: f64) -> Vec<(f64, Estimate)> {
        self.over_time(law, kind, width, |run| Results::series(run, kind, width))
    }

    /// The same of one station.
    pub fn traced_of(&self, law: &str, kind: SeriesKind, station: &str, width: f64) -> Vec<(f64, Estimate)> {
        self.over_time(law, kind, width, |run| Results::series_of(run, kind, station, width))
    }

    fn over_time(
        &self,
        law: &str,
        kind: SeriesKind,
        width: f64,
        series: impl Fn(&Run) -> Vec<(f64, f64)>,
    ) -> Vec<(f64, Estimate)> {
        let mut bins: BTreeMap<u64, Vec<Figure>> = BTreeMap::new();
        for (at, value) in self.runs(law).flat_map(series) {
            bins.entry((at / width) as u64).or_default().push(Figure::exact(value));
        }
        bins.into_iter().map(|(bin, values)| ((bin as f64 + 0.5) * width, Estimate::of(kind.unit(), &values))).collect()
    }

    /// Mean of a station's series between two moments, in seconds.
    pub fn between_of(run: &Run, kind: SeriesKind, station: &str, (from, to): (f64, f64)) -> Option<f64> {
        let values = Results::series_of(run, kind, station, 0.1).into_iter().filter(|(at, _)| (from..to).contains(at));
        values.map(|(_, value)| value).collect::<Moments>().mean()
    }

    /// Mean of a series between two moments.
    pub fn between(run: &Run, kind: SeriesKind, (from, to): (f64, f64)) -> Option<f64> {
        let values = Results::series(run, kind, 0.02).into_iter().filter(|(at, _)| (from..to).contains(at));
        values.map(|(_, value)| value).collect::<Moments>().mean()
    }
}

fn binned(run: &Run, kind: SeriesKind, station: Option<&str>, width: f64) -> Vec<(f64, f64)> {
    let bin = run.record.bin.as_secs_f64();
    let merged = (width / bin).round().max(1.0) as usize;
    let own = |entity: &Entity| match entity {
        Entity::Station(name) | Entity::Flow { station: Some(name), .. } => station.is_none_or(|own| own == name),
        _ => station.is_none(),
    };
    let of_kind = |track: &&Track| track.kind == kind && own(&track.entity);
    let tracks: Vec<_> = run.record.tracks.iter().filter(of_kind).collect();
    let bins = tracks.iter().map(|track| track.values.len()).max().unwrap_or(0);
    let mean = |from: usize| {
        let values = tracks.iter().flat_map(|track| track.values.iter().skip(from).take(merged).flatten());
        values.copied().collect::<Moments>().mean()
    };
    (0..bins)
        .step_by(merged)
        .filter_map(|from| Some(((from as f64 + merged as f64 / 2.0) * bin, mean(from)?)))
        .collect()
}

fn set(table: &mut Table, path: &str, value: Value) {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    if rest.is_empty() {
        table.insert(first.to_owned(), value);
        return;
    }
    let (next, inner) = rest.split_once('.').unwrap_or((rest, ""));
    match (table.get_mut(first).expect("the path exists in the shipped scenario"), next.parse::<usize>()) {
        (Value::Array(entries), Ok(place)) => {
            let Some(Value::Table(entry)) = entries.get_mut(place) else { panic!("no table at {path}") };
            set(entry, inner, value);
        }
        (Value::Table(table), _) => set(table, rest, value),
        _ => panic!("no table at {path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_reaches_tables_and_lists_of_tables() {
        let mut table: Table = toml::from_str("[[station]]\nmcs = 9\n[laws.x.regulator]\nk1 = 0.5\n").expect("TOML");
        set(&mut table, "station.0.mcs", Value::from(4));
        set(&mut table, "laws.x.regulator.target", Value::from("5 ms"));
        set(&mut table, "seeds", Value::from(1));
        let want = "seeds = 1\n[[station]]\nmcs = 4\n[laws.x.regulator]\nk1 = 0.5\ntarget = \"5 ms\"\n";
        assert_eq!(table, toml::from_str::<Table>(want).expect("TOML"));
    }
}
