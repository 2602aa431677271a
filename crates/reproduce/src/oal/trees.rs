//! What trees foresee that learn from what an access point saw: Tables 2 and 4, Figure 3.

use super::LIBRARY;
use crate::study::Runner;
use lasthop_dataset::study::spread::PAPER;
use lasthop_dataset::study::trees::{Mean, Split, Who};
use lasthop_dataset::study::{Metric, Study, TABLE_4, study};
use lasthop_dataset::{KEY_LEN, Meta, PseudonymKey, Recorder, Recording, Row};
use lasthop_experiment::campus::{Day, PART};
use lasthop_experiment::{ExperimentError, Names, Observed, observe, recording};
use lasthop_laws::oal::label::Timing;
use lasthop_laws::oal::predictor::LossClass;
use lasthop_report::page::{Check, Section, Table, digits};
use lasthop_scenario::{Scenario, SetUp};
use lasthop_units::{Seed, Span};
use std::convert::Infallible;
use std::ops::Range;
use std::path::Path;

/// How far a tree must be above everything that does not learn, in macro-F.
const MARGIN: f64 = 0.05;

/// The campus in `cargo bench` is of this seed, too.
const DAY: u64 = 1;
/// Its busiest hour in quarters from midnight, and what a quick run takes of it.
const HOUR: (Range<u32>, Range<u32>) = (60..64, 60..61);

/// Nobody's name is in what is made with it.
fn key() -> PseudonymKey {
    PseudonymKey::new(&[0; KEY_LEN])
}

/// Adds what access points see in a world to `rows`, as one of the recording with this place.
fn watch(of: &Observed<'_>, place: (u32, Span), rows: &mut Vec<Row>) {
    let mut each = |row| -> Result<(), Infallible> {
        rows.push(row);
        Ok(())
    };
    observe(of, &key(), place, &mut |_| true, &mut each).expect("a shipped scenario");
}

/// What access points saw while nobody acted, once for each seed.
pub(super) fn watched(scenario: &Scenario, law: &SetUp, seeds: &[Seed], timing: Timing) -> (Meta, Vec<Row>) {
    let (names, mut recordings, mut rows) = (Names::of(scenario), Vec::new(), Vec::new());
    for (place, seed) in seeds.iter().enumerate() {
        let of = Observed { scenario, law, seed: seed.0, names: &names, timing };
        recordings.push(recording(&of, &key()));
        watch(&of, (place as u32, Span::ZERO), &mut rows);
    }
    (Meta::new(recordings), rows)
}

/// What twelve access points of the campus saw in these quarters of an hour, under CUBIC.
fn campus(quarters: Range<u32>) -> (Meta, Vec<Row>) {
    let (day, mut rows, mut meta) = (Day::new(DAY), Vec::new(), None);
    for part in Day::parts().filter(|part| quarters.contains(&part.quarter)) {
        let Some(world) = day.world(part) else { continue };
        let scenario =
            Scenario::parse("campus", &world.text, Path::new("/")).expect("the campus writes valid scenarios");
        let law = scenario.law("cubic").expect("the campus has it");
        let of = Observed { scenario: &scenario, law: &law, seed: DAY, names: &world.names, timing: Recorder::TIMING };
        let duration_us = (PART * u64::from(quarters.end - quarters.start)).as_micros();
        meta.get_or_insert_with(|| Meta::new(vec![Recording { duration_us, ..recording(&of, &key()) }]));
        watch(&of, (0, PART * u64::from(part.quarter - quarters.start)), &mut rows);
    }
    (meta.expect("somebody is there"), rows)
}

fn checks(world: &str, study: &Study) -> Vec<Check> {
    let held_out = study.splits.iter().filter(|split| split.by != "random");
    let required = format!("≥ {MARGIN}");
    let of = |split: &Split| {
        [("tree", split.margin), ("blind tree", split.margin_without_drops)].map(|(who, margin)| {
            let what = format!("{world}: {who}, {} held out", split.by);
            Check::new(&what, &required, margin.to_string(), margin.mean >= MARGIN)
        })
    };
    held_out.flat_map(of).collect()
}

/// The paper's Table 2, beside the columns that are nearest to its rows.
fn metrics(study: &Study) -> Table {
    let mut table =
        Table::new(&["as in Table 2", "column", "Kendall's tau", "paper's", "information gain (bit)", "paper's"]);
    let row = |metric: &Metric| {
        let (name, tau, gain) = metric.paper?;
        let ours = metric.tau.map_or("–".to_owned(), |tau| format!("{tau:.4}"));
        let ours = [metric.column.clone(), ours, tau.to_string(), format!("{:.4}", metric.gain), gain.to_string()];
        Some([vec![name.to_owned()], ours.to_vec()].concat())
    };
    table.rows = study.metrics.iter().filter_map(row).collect();
    table
}

/// Figure 3.
fn spread(studies: [(&str, &Study); 2]) -> Table {
    let mut table = Table::new(&["lost to queues, percent of a station's second", "mean", "p50", "p90", "p99"]);
    let row = |name: &str, figures: [f64; 4]| [vec![name.to_owned()], figures.map(digits).to_vec()].concat();
    let ours =
        |(world, study): (&str, &Study)| study.spread.map(|ours| row(world, [ours.mean, ours.p50, ours.p90, ours.p99]));
    table.rows.extend(studies.into_iter().filter_map(ours));
    table.rows.push(row("paper, Figure 3", PAPER));
    table
}

/// Table 4: of the tree on held-out seeds.
fn classes(split: &Split) -> Table {
    let mut table = Table::new(&["class", "precision", "recall", "F", "paper's tree", "paper's forest"]);
    let row = |loss: LossClass| {
        let class = loss as usize;
        let theirs = TABLE_4.map(|(_, classes)| classes[class].map(|measure| format!("{measure:.3}")).join(", "));
        let ours = split.tree[class].map(|measure| format!("{measure:.3}"));
        [vec![loss.name().to_owned()], ours.to_vec(), theirs.to_vec()].concat()
    };
    table.rows = LossClass::ALL.into_iter().map(row).collect();
    table
}

/// Macro-F of everyone, by what is held out.
fn scores(world: &str, study: &Study) -> Table {
    let who = [
        (Who::Tree, "tree"),
        (Who::TreeWithoutDrops, "blind tree"),
        (Who::Persistence, "last known class"),
        (Who::Threshold, "threshold"),
        (Who::Majority, "most frequent class"),
    ];
    let names = who.map(|(_, name)| name);
    let mut table = Table::new(&[&[&*format!("{world}, macro-F; held out")], names.as_slice()].concat());
    let row = |split: &Split| {
        let cells = who.map(|(who, _)| split.macro_f.get(&who).map_or("–".to_owned(), Mean::to_string));
        [vec![split.by.to_owned()], cells.to_vec()].concat()
    };
    table.rows = study.splits.iter().map(row).collect();
    table
}

pub(super) fn trees(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let scenario = runner.scenario(LIBRARY, &[]);
    let law = scenario.law("cubic").expect("the shipped scenario has it");
    let (meta, rows) = watched(&scenario, &law, &runner.seeds(&scenario), Recorder::TIMING);
    let library = study(&meta, &rows);
    let hour = if runner.quick { HOUR.1 } else { HOUR.0 };
    let quarters = hour.len();
    let (meta, rows) = campus(hour);
    let campus = study(&meta, &rows);
    let worlds = [("library", &library), ("campus", &campus)];
    let classes_of = |(world, study): (&str, &Study)| {
        let [good, acceptable, poor, bad] = study.classes;
        format!("{world}: {good} Good, {acceptable} Acceptable, {poor} Poor, {bad} Bad")
    };
    let named = |by: &str| library.splits.iter().find(|split| split.by == by);
    let whole = named("seed").or_else(|| named("time"));
    Ok(Section {
        title: "What trees foresee".into(),
        text: format!(
            "Tables 2 and 4, Figure 3. Access points under CUBIC, watched by an agent that does nothing: the library's, and twelve of a campus in {} min of one day (seed {DAY}). An item is one station's \
             100 ms and the class of what it loses in the {} ms that follow. {}. Judged is the tree's macro-F above the best of those that do not learn; the blind tree sees no drops.

The paper's Table 4 is of the items that its trees were trained with; ours is of the library, {} held out.",
            15 * quarters,
            Recorder::TIMING.horizon.as_nanos() / 1_000_000,
            worlds.map(classes_of).join("; "),
            whole.map_or("what is", |split| split.by),
        ),
        reason: "the library's blocks of time are few, and unlike each other since its visitors come and go.".into(),
        checks: worlds.into_iter().flat_map(|(world, study)| checks(world, study)).collect(),
        tables: worlds
            .map(|(world, study)| Some(scores(world, study).data().named(world)))
            .into_iter()
            .chain([whole.map(classes), Some(spread(worlds)), Some(metrics(&library).data().named("table-2"))])
            .flatten()
            .collect(),
        ..Section::default()
    })
}
