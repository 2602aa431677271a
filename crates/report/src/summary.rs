//! Every figure of every law over its seeds: what `result.json` holds.

use crate::{Better, Direction, Estimate, Figure, Key, Run, World};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An experiment's figures. Depends on the runs alone, not on the order in which they were made: equal runs give a
/// byte-identical [`Summary::to_json`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// Where the runs took place.
    pub world: World,
    /// What the scenario calls itself.
    pub scenario: String,
    /// Each law's figures.
    pub laws: BTreeMap<String, BTreeMap<Key, Estimate>>,
    /// Each law's figures by station.
    pub stations: BTreeMap<String, BTreeMap<String, BTreeMap<Key, Estimate>>>,
    /// Each law's figures by stream, under the stream's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub streams: BTreeMap<String, BTreeMap<String, StreamSummary>>,
    /// The seeds that each law ran under, ascending: `Estimate::values` is in this order.
    pub seeds: BTreeMap<String, Vec<u64>>,
    /// How much of what was planned there is, if somebody ended the experiment early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<Incomplete>,
    /// What a reader should know about how the runs were measured; each note names its run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The laws in the order in which a table shows them.
    #[serde(skip)]
    order: Vec<String>,
}

/// An experiment that was ended early: laws may have different seeds, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Incomplete {
    /// Runs that were done.
    pub runs: usize,
    /// Runs that were planned.
    pub planned: usize,
}

impl std::fmt::Display for Incomplete {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "it was ended early, with {} of {} runs done", self.runs, self.planned)
    }
}

impl Summary {
    /// The figures of `runs`. Tables show the laws in the order of `laws`, and then any others by name.
    pub fn of(world: World, scenario: &str, laws: &[String], runs: &[Run]) -> Summary {
        let mut by_law: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
        runs.iter().for_each(|run| by_law.entry(&run.law).or_default().push(run));
        by_law.values_mut().for_each(|runs| runs.sort_by_key(|run| run.seed));
        let mut summary = Summary {
            world,
            scenario: scenario.to_string(),
            laws: BTreeMap::new(),
            stations: BTreeMap::new(),
            streams: BTreeMap::new(),
            seeds: BTreeMap::new(),
            incomplete: None,
            notes: Vec::new(),
            order: laws.to_vec(),
        };
        for (law, runs) in by_law {
            let all = Key::ALL.map(|key| (key, runs.iter().map(|run| run.record.figure(key)).collect()));
            summary.laws.insert(law.to_string(), estimates(all));
            summary.stations.insert(law.to_string(), stations(&runs));
            let streams = streams(&runs);
            if !streams.is_empty() {
                summary.streams.insert(law.to_string(), streams);
            }
            summary.seeds.insert(law.to_string(), runs.iter().map(|run| run.seed).collect());
            for run in &runs {
                let notes = run.record.notes.iter();
                summary.notes.extend(notes.map(|note| format!("{law}, seed {}: {note}", run.seed)));
            }
        }
        summary
    }

    /// The contents of `result.json`.
    pub fn to_json(&self) -> String {
        crate::json::pretty(self)
    }

    /// The laws that have figures, in the order of a table.
    pub fn laws_in_order(&self) -> Vec<&str> {
        let named = self.order.iter().filter_map(|law| self.laws.get_key_value(law)).map(|(law, _)| law.as_str());
        let mut laws: Vec<&str> = Vec::new();
        for law in named.chain(self.laws.keys().map(String::as_str)) {
            if !laws.contains(&law) {
                laws.push(law);
            }
        }
        laws
    }

    /// The estimate of one figure of one law.
    pub fn estimate(&self, law: &str, key: Key) -> Option<&Estimate> {
        self.laws.get(law)?.get(&key)
    }

    /// The laws that share the first place: the best by its mean, and those with a mean within the best one's
    /// confidence interval. Empty if that is all of them, or if there is only one law.
    pub fn leaders(&self, key: Key) -> Vec<&str> {
        let laws: Vec<(&str, &Estimate)> = self
            .laws_in_order()
            .into_iter()
            .filter_map(|law| Some((law, self.estimate(law, key).filter(|e| e.mean.is_some())?)))
            .collect();
        let by_mean = |a: &&(&str, &Estimate), b: &&(&str, &Estimate)| {
            let order = a.1.mean.unwrap_or(f64::NAN).total_cmp(&b.1.mean.unwrap_or(f64::NAN));
            if key.better() == Better::Lower { order.reverse() } else { order }
        };
        let Some((_, best)) = laws.iter().max_by(by_mean) else { return Vec::new() };
        let leaders: Vec<&str> = laws.iter().filter(|(_, e)| best.covers(e)).map(|(law, _)| *law).collect();
        if leaders.len() == self.laws.len() { Vec::new() } else { leaders }
    }
}

/// The estimates of the keys that any seed knows of.
fn estimates(figures: impl IntoIterator<Item = (Key, Vec<Figure>)>) -> BTreeMap<Key, Estimate> {
    figures.into_iter().map(|(key, figures)| (key, Estimate::of(key.unit(), &figures))).collect()
}

/// One stream's figures over seeds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StreamSummary {
    /// What it is, as a scenario's `kind` says it.
    pub kind: String,
    /// The host that has the data.
    pub from: String,
    /// The host that gets them.
    pub to: String,
    /// Which way it goes over the last hop.
    pub direction: Direction,
    /// Its figures.
    pub figures: BTreeMap<Key, Estimate>,
}

/// The figures of each stream of one law: the same streams under every seed.
fn streams(runs: &[&Run]) -> BTreeMap<String, StreamSummary> {
    let Some(first) = runs.first() else { return BTreeMap::new() };
    let summary = |(place, stream): (usize, &crate::StreamRecord)| {
        let crate::StreamInfo { name, kind, from, to, direction, .. } = stream.info.clone();
        let of = |key: &Key| {
            let figure = |run: &&Run| {
                let found = run.record.streams.get(place).and_then(|stream| stream.figures.get(key));
                found.cloned().unwrap_or_else(|| Figure::absent("this seed has no such stream"))
            };
            (*key, runs.iter().map(figure).collect())
        };
        let figures = estimates(stream.figures.keys().map(of));
        (name, StreamSummary { kind, from, to, direction, figures })
    };
    first.record.streams.iter().enumerate().map(summary).collect()
}

/// The figures of each station of one law. A station that some seed does not have is absent there.
fn stations(runs: &[&Run]) -> BTreeMap<String, BTreeMap<Key, Estimate>> {
    let mut all: BTreeMap<String, BTreeMap<Key, Vec<Figure>>> = BTreeMap::new();
    for (i, run) in runs.iter().enumerate() {
        for station in &run.record.stations {
            for (key, figure) in &station.figures {
                let seeds = all.entry(station.name.clone()).or_default().entry(*key).or_default();
                seeds.resize(i, Figure::absent("this seed has no such station"));
                seeds.push(figure.clone());
            }
        }
    }
    let pad = |mut figures: Vec<Figure>| {
        figures.resize(runs.len(), Figure::absent("this seed has no such station"));
        figures
    };
    all.into_iter().map(|(name, keys)| (name, estimates(keys.into_iter().map(|(k, f)| (k, pad(f)))))).collect()
}

#[cfg(test)]
mod tests;
