//! What foresight is worth: the same windows, tightened by those who know more and by those who know less.

use super::oracle::{HORIZON, Oracle};
use super::{COLUMNS, LIBRARY, SET_UP, world};
use crate::study::{Edit, Runner};
use lasthop_experiment::ExperimentError;
use lasthop_laws::oal::learned::Learned;
use lasthop_laws::oal::predictor::{BacklogThreshold, LossClass, Predictor, StationState};
use lasthop_laws::oal::{Params, WindowRule};
use lasthop_report::page::{Section, Table};
use lasthop_report::{Key, RunRecord};
use lasthop_scenario::{Scenario, SetUp};
use lasthop_sim::{SimError, drive};
use lasthop_units::{Span, Time};

/// The set-up that all of them take the windows of.
const BASE: &str = "cubic+learned";

/// What says when windows are tight; in the order of the tables, behind CUBIC without an agent.
const WHO: [(&str, &str); 8] = [
    ("never", "never"),
    ("always", "always"),
    ("threshold", "threshold"),
    ("tree", "tree"),
    ("blind-tree", "blind tree"),
    ("oracle", "oracle"),
    ("paper-window", "threshold, `paper` windows"),
    ("learned-window", "threshold, `learned` windows"),
];

/// Says the same whatever it is shown.
#[derive(Clone, Copy)]
struct Stubborn(LossClass);

impl Predictor for Stubborn {
    fn predict(&mut self, _: &StationState) -> LossClass {
        self.0
    }
}

fn predictor(who: &str, params: &Params, oracle: &Oracle) -> Box<dyn Predictor> {
    let threshold = BacklogThreshold::new(params.trigger);
    let mut learning = params.learning();
    learning.growth.drops = who != "blind-tree";
    match who {
        "never" => Box::new(Stubborn(LossClass::Good)),
        "always" => Box::new(Stubborn(LossClass::Bad)),
        "threshold" | "paper-window" | "learned-window" => Box::new(threshold),
        "oracle" => Box::new(oracle.clone()),
        _ => Box::new(Learned::new(learning, threshold)),
    }
}

fn simulate(
    scenario: &Scenario,
    law: &SetUp,
    seed: u64,
    on: &mut dyn FnMut(Span) -> bool,
) -> Result<Option<RunRecord>, SimError> {
    let oracle = (law.name == "oracle").then(Oracle::default);
    let window = match law.name.as_str() {
        "paper-window" => WindowRule::Paper,
        "learned-window" => WindowRule::Learned,
        _ => WindowRule::Unloaded,
    };
    let (params, known) = (Params { window, ..Params::default() }, oracle.clone().unwrap_or_default());
    let known = || predictor(&law.name, &params, &known);
    let mut world = world((scenario, law, seed), &params, &known)?;
    if let Some(oracle) = &oracle {
        world.add_hook(Scenario::AP_HOST, Box::new(oracle.clone()));
    }
    Ok(drive(world, scenario, HORIZON, &mut |world, done| {
        if let Some(oracle) = &oracle {
            oracle.look(world, Time::ZERO + done);
        }
        on(done)
    }))
}

/// CUBIC, and its set-up with an agent once for each that says when.
fn set_ups(scenario: &Scenario) -> Vec<SetUp> {
    let named = |law: &str| scenario.law(law).expect("shipped scenarios have it");
    let base = named(BASE);
    let each = WHO.map(|(name, _)| SetUp { name: name.to_owned(), ..base.clone() });
    std::iter::once(named("cubic")).chain(each).collect()
}

pub(super) fn ablation(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let short: [Edit<'_>; 2] = [("duration", "60 s".into()), ("seeds", 5.into())];
    let mut tables = Vec::new();
    for (world, shipped, edits) in [("library", LIBRARY, [].as_slice()), ("nine laptops", SET_UP, short.as_slice())] {
        let run = runner.run_own(shipped, (edits, edits), set_ups, &simulate)?;
        let (headings, keys): (Vec<&str>, Vec<Key>) = COLUMNS.into_iter().unzip();
        let mut table = Table::new(&[&[&*format!("{world}: tight")], headings.as_slice()].concat());
        let rows = [("cubic", "no agent")].into_iter().chain(WHO);
        table.rows = rows.map(|(law, name)| run.row(&[name], law, &keys)).collect();
        tables.push(if world == "library" { table.columns(&[0, 1, 2, 5]) } else { table.data().named("nine") });
    }
    Ok(Section {
        title: "What foresight is worth".into(),
        text: format!(
            "CUBIC behind one access-point law. Its windows are tight when the row says so. The oracle copies the world every {} ms, lets the copy run on with nothing tight, and so knows what share of \
             the coming first copies a queue will lose; the tree has to foresee it (the blind tree sees no drops). All rows but the first and the last two have standing ceilings. The last two take \
             windows from the round trip as it is, and from the learned map. The table is the library's; the data also has the nine laptops.",
            HORIZON.as_nanos() / 1_000_000,
        ),
        tables,
        ..Section::default()
    })
}
