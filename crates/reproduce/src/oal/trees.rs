//! What trees foresee that learn from what an access point saw: Tables 2 and 4, Figure 3.

use super::LIBRARY;
use crate::study::Runner;
use lasthop_dataset::study::spread::PAPER;
use lasthop_dataset::study::trees::{Mean, Split, Who};
use lasthop_dataset::study::{Metric, Study, TABLE_4, study};
use lasthop_dataset::{KEY_LEN, Meta, PseudonymKey, Row};
use lasthop_experiment::{ExperimentError, Names, Observed, observe, recording};
use lasthop_laws::oal::predictor::LossClass;
use lasthop_report::page::{Check, Section, Table, digits};
use lasthop_scenario::{Scenario, SetUp};
use lasthop_units::{Seed, Span};
use std::convert::Infallible;

/// How far a tree must be above everyone who does not learn, in macro-F.
const MARGIN: f64 = 0.05;

/// What access points saw under CUBIC while nobody acted, once for each seed.
pub(super) fn watched(scenario: &Scenario, law: &SetUp, seeds: &[Seed]) -> Result<(Meta, Vec<Row>), ExperimentError> {
    // Nobody's name is in it.
    let (key, names) = (PseudonymKey::new(&[0; KEY_LEN]), Names::of(scenario));
    let (mut recordings, mut rows) = (Vec::new(), Vec::new());
    for (place, seed) in seeds.iter().enumerate() {
        let of = Observed { scenario, law, seed: seed.0, names: &names };
        recordings.push(recording(&of, &key));
        let mut each = |row| -> Result<(), Infallible> {
            rows.push(row);
            Ok(())
        };
        observe(&of, &key, (place as u32, Span::ZERO), &mut |_| true, &mut each).expect("a shipped scenario");
    }
    Ok((Meta::new(recordings), rows))
}

fn checks(study: &Study) -> Vec<Check> {
    let held_out = study.splits.iter().filter(|split| split.by != "random");
    let required = format!("at least {MARGIN} (Lasthop's own aim)");
    let of = |split: &Split| {
        [("tree", split.margin), ("tree that sees no drops", split.margin_without_drops)].map(|(who, margin)| {
            let what = format!("{who}, {} held out: macro-F above the best of those that do not learn", split.by);
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
fn spread(study: &Study) -> Table {
    let mut table = Table::new(&["lost to queues, percent of a station's second", "mean", "p50", "p90", "p99"]);
    let row = |name: &str, figures: [f64; 4]| [vec![name.to_owned()], figures.map(digits).to_vec()].concat();
    table.rows.extend(study.spread.map(|ours| row("here", [ours.mean, ours.p50, ours.p90, ours.p99])));
    table.rows.push(row("paper, Figure 3", PAPER));
    table
}

/// Table 4: of the tree on held-out seeds.
fn classes(split: &Split) -> Table {
    let mut table =
        Table::new(&["class", "precision", "recall", "F", "paper's tree: precision, recall, F", "paper's forest"]);
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
fn scores(study: &Study) -> Table {
    let who = [
        (Who::Tree, "tree"),
        (Who::TreeWithoutDrops, "tree that sees no drops"),
        (Who::Persistence, "last known class"),
        (Who::Threshold, "threshold"),
        (Who::Majority, "most frequent class"),
    ];
    let names = who.map(|(_, name)| name);
    let mut table = Table::new(&[&["macro-F; held out"], names.as_slice()].concat());
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
    let (meta, rows) = watched(&scenario, &law, &runner.seeds(&scenario))?;
    let study = study(&meta, &rows);
    let [good, acceptable, poor, bad] = study.classes;
    let named = |by: &str| study.splits.iter().find(|split| split.by == by);
    let whole = named("seed").or_else(|| named("time"));
    Ok(Section {
        title: "What trees foresee".into(),
        text: format!(
            "The library's access point under CUBIC, watched by an agent that does nothing. An item is one station's 100 ms: its features, and the class of what \
             it loses in the 50 ms that follow. {good} items are Good, {acceptable} Acceptable, {poor} Poor, {bad} Bad.

The paper's Table 4 is of the items that its trees were trained with, so it compares nothing; ours is of {} held out. What is held out at random lies between \
             neighbours that were learned from: its row shows what that pretends. The base and the bins of the paper's information gain are unknown.",
            whole.map_or("what is", |split| split.by),
        ),
        checks: checks(&study),
        tables: [Some(scores(&study)), whole.map(classes), Some(spread(&study)), Some(metrics(&study))]
            .into_iter()
            .flatten()
            .collect(),
        ..Section::default()
    })
}
