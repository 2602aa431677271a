//! What the page's script draws: series by chart, law, seed and station, and the delay distributions.

use crate::series::{self, Whole};
use crate::{Delays, Entity, Report, RunRecord, SeriesKind};
use lasthop_units::Span;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// How many colours the style sheet has for laws.
pub(super) const COLOURS: usize = 8;
/// More numbers than this are not embedded: at five to six characters each they would pass 2.5 MB.
const MOST_NUMBERS: usize = 450_000;
/// Points of a delay distribution.
const CDF_POINTS: usize = 240;

/// The embedded data.
#[derive(Serialize)]
pub(super) struct Page<'a> {
    laws: Vec<&'a str>,
    /// The first entity is the hop as a whole, the others are stations.
    entities: Vec<String>,
    /// Width of a bin in seconds, after merging.
    pub(super) bin_s: f64,
    warm_up_s: f64,
    end_s: f64,
    /// How many of the recorder's bins make one bin here.
    pub(super) merged: usize,
    charts: Vec<Chart>,
    runs: Vec<RunData>,
    cdf: Option<Cdf>,
}

/// What one chart shows.
#[derive(Clone, Copy, Serialize)]
struct Chart {
    id: SeriesKind,
    title: &'static str,
    unit: &'static str,
    /// A logarithmic axis may be asked for.
    wide: bool,
}

#[derive(Serialize)]
struct RunData {
    /// Place in `laws`.
    law: usize,
    /// As text: a JavaScript number would not hold every seed.
    seed: String,
    /// By chart, then by entity; null where an entity has no such series.
    series: BTreeMap<SeriesKind, Vec<Option<Vec<Number>>>>,
}

/// Share of packets above each of a common row of delays, over all seeds.
#[derive(Serialize)]
struct Cdf {
    x_ms: Vec<Number>,
    /// By law, then by entity.
    above: Vec<Vec<Option<Vec<Number>>>>,
}

/// A value rounded to four significant digits, more than a screen can show.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Number(Option<f64>);

/// The charts in the order of the page.
fn charts() -> impl Iterator<Item = (SeriesKind, series::Chart)> {
    SeriesKind::ALL.into_iter().filter_map(|kind| Some((kind, kind.series().chart?)))
}

impl<'a> Page<'a> {
    pub(super) fn of(report: &Report<'a>) -> Page<'a> {
        let laws = report.summary.laws_in_order();
        let mut stations: Vec<String> = Vec::new();
        for station in report.runs.iter().flat_map(|run| &run.record.stations) {
            if !stations.contains(&station.name) {
                stations.push(station.name.clone());
            }
        }
        let mut runs: Vec<RunSeries> = report
            .runs
            .iter()
            .filter_map(|run| {
                let law = laws.iter().position(|law| *law == run.law)?;
                Some(RunSeries { law, seed: run.seed, series: series_of(&run.record, &stations) })
            })
            .collect();
        runs.sort_by_key(|run| (run.law, run.seed));
        let numbers: usize = runs.iter().flat_map(|run| run.series.values()).flatten().flatten().map(Vec::len).sum();
        let merged = numbers.div_ceil(MOST_NUMBERS).max(1);
        let drawn = charts().filter(|(id, _)| runs.iter().any(|run| run.series.contains_key(id)));
        let charts =
            drawn.map(|(id, chart)| Chart { id, title: chart.title, unit: chart.unit, wide: chart.wide }).collect();
        let first = report.runs.first().map(|run| &run.record);
        Page {
            cdf: Cdf::of(report, &laws, &stations),
            laws,
            entities: std::iter::once("All stations".to_string()).chain(stations).collect(),
            bin_s: first.map_or(0.0, |record| record.bin.as_secs_f64()) * merged as f64,
            warm_up_s: first.map_or(0.0, |record| record.window.warm_up.as_secs_f64()),
            end_s: first.map_or(0.0, |record| record.window.end.as_secs_f64()),
            merged,
            charts,
            runs: runs.into_iter().map(|run| run.data(merged)).collect(),
        }
    }
}

type Values = Vec<Option<f64>>;

struct RunSeries {
    law: usize,
    seed: u64,
    series: BTreeMap<SeriesKind, Vec<Option<Values>>>,
}

impl RunSeries {
    fn data(self, merged: usize) -> RunData {
        let merge = |values: Values| values.chunks(merged).map(|bins| Number::of(mean(bins))).collect();
        let series = self.series.into_iter();
        let series = series.map(|(kind, entities)| (kind, entities.into_iter().map(|v| v.map(merge)).collect()));
        RunData { law: self.law, seed: self.seed.to_string(), series: series.collect() }
    }
}

/// The series of one run by chart and entity; charts that no entity has are left out.
fn series_of(record: &RunRecord, stations: &[String]) -> BTreeMap<SeriesKind, Vec<Option<Values>>> {
    let mut all = BTreeMap::new();
    for (id, chart) in charts() {
        let of_station = chart.stations.unwrap_or(id);
        let kind = |kind| record.tracks.iter().filter(move |track| track.kind == kind);
        let own = kind(id).find(|track| track.entity == Entity::Hop).map(|track| track.values.clone());
        let total = || sum(kind(of_station).filter(|track| track.entity != Entity::Hop).map(|track| &track.values));
        let hop = match chart.whole {
            Whole::Own => own,
            Whole::Sum => total(),
            Whole::OwnOrSum => own.or_else(total),
        };
        let station = |name: &String| {
            let tracks = kind(of_station).filter(|track| match &track.entity {
                Entity::Hop => false,
                Entity::Station(of) => of == name,
                Entity::Flow { station, .. } => station.as_ref() == Some(name),
            });
            sum(tracks.map(|track| &track.values))
        };
        let mut entities: Vec<Option<Values>> = std::iter::once(hop).chain(stations.iter().map(station)).collect();
        if entities.iter().any(Option::is_some) {
            entities.iter_mut().flatten().flatten().flatten().for_each(|value| *value *= chart.factor);
            all.insert(id, entities);
        }
    }
    all
}

/// The sum of series, bin by bin, over those that have a value there; `None` if there is no series.
fn sum<'t>(tracks: impl Iterator<Item = &'t Values>) -> Option<Values> {
    tracks.fold(None, |sum: Option<Values>, track| {
        let Some(mut sum) = sum else { return Some(track.clone()) };
        for (total, value) in sum.iter_mut().zip(track) {
            *total = total.iter().chain(value).copied().reduce(|a, b| a + b);
        }
        Some(sum)
    })
}

fn mean(bins: &[Option<f64>]) -> Option<f64> {
    let known = bins.iter().flatten().count();
    (known > 0).then(|| bins.iter().flatten().sum::<f64>() / known as f64)
}

impl Cdf {
    fn of(report: &Report<'_>, laws: &[&str], stations: &[String]) -> Option<Cdf> {
        let pooled = |law: &str, station: Option<&String>| {
            let mut pooled = Delays::default();
            for run in report.runs.iter().filter(|run| run.law == law) {
                match station {
                    None => pooled.merge(&run.record.hop_delays),
                    Some(name) => {
                        let found = run.record.stations.iter().filter(|station| station.name == *name);
                        found.for_each(|station| pooled.merge(&station.hop_delays));
                    }
                }
            }
            pooled
        };
        let entities = || std::iter::once(None).chain(stations.iter().map(Some));
        let all: Vec<Vec<Delays>> = laws.iter().map(|law| entities().map(|e| pooled(law, e)).collect()).collect();
        let ranges = || all.iter().flatten().filter_map(Delays::range);
        let (least, largest) = (ranges().map(|r| r.0).min()?, ranges().map(|r| r.1).max()?);
        let limits = log_spaced(least, largest);
        let above = all.iter().map(|entities| {
            let shares = |delays: &Delays| {
                (delays.count() > 0)
                    .then(|| delays.shares_above(&limits).into_iter().map(|s| Number::of(Some(s))).collect())
            };
            entities.iter().map(shares).collect()
        });
        let above = above.collect();
        Some(Cdf { x_ms: limits.iter().map(|x| Number::of(Some(x.as_millis_f64()))).collect(), above })
    }
}

/// Delays from `least` to `largest` at equal ratios, not below a microsecond; ascending, without repeats.
fn log_spaced(least: Span, largest: Span) -> Vec<Span> {
    let low = least.max(Span::from_micros(1)).as_millis_f64();
    let high = largest.max(Span::from_micros(2)).as_millis_f64();
    let step = |i: usize| low * (high / low).powf(i as f64 / (CDF_POINTS - 1) as f64);
    // Rounded as they will be shown, so that shares belong to the delays that stand beside them.
    let mut limits: Vec<Span> =
        (0..CDF_POINTS).filter_map(|i| Number::of(Some(step(i))).0).map(|ms| Span::from_secs_f64(ms / 1e3)).collect();
    limits.push(largest);
    limits.sort_unstable();
    limits.dedup();
    limits
}

impl Number {
    fn of(value: Option<f64>) -> Number {
        // Through decimal, so that the nearest short number comes out.
        Number(value.filter(|v| v.is_finite()).and_then(|v| format!("{v:.3e}").parse().ok()))
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            None => to.serialize_none(),
            // "12" is shorter than "12.0".
            Some(v) if v.fract() == 0.0 && v.abs() < 1e15 => to.serialize_i64(v as i64),
            Some(v) => to.serialize_f64(v),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let json = |v: f64| serde_json::to_string(&Number::of(Some(v))).expect("serialises");
        assert_eq!([12.0, 12.345_678, 0.1 + 0.2, 1234.5, f64::NAN].map(json), ["12", "12.35", "0.3", "1234", "null"]);
    }

    #[test]
    fn a_sum_has_a_value_where_any_part_has() {
        let (a, b) = (vec![Some(1.0), None, None], vec![Some(2.0), Some(3.0), None]);
        assert_eq!(sum([&a, &b].into_iter()), Some(vec![Some(3.0), Some(3.0), None]));
        assert_eq!(sum([].into_iter()), None);
    }
}
