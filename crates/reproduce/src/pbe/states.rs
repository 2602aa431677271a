//! What the sender takes for the narrowest place, against what it is; how its start goes.

use crate::study::{Edit, Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_laws::Why;
use lasthop_report::page::{Check, Section, Table, mean, shown};
use lasthop_report::{Estimate, Figure};
use lasthop_scenario::{Scenario, SetUp};
use lasthop_signals::Node;
use lasthop_sim::{World, build};
use lasthop_units::brief::at;
use lasthop_units::{Rate, Seed};
use toml::Value;

const MOBILITY: Shipped = shipped!("pbe", "mobility");
const CARRIER: Shipped = shipped!("pbe", "carrier");
const CUT: Shipped = shipped!("pbe", "wire");
/// Rate of the wire while it is narrow, about half of what the cell carries, and when that is: a line of the scenario.
const HALF: &str = "20 Mbit/s";
const NARROW: (u64, u64) = (6_000, 12_000);
const PHONE: Node = Node(1);

/// Shows each millisecond of a run from `from` on.
fn each_ms(scenario: &Scenario, law: &SetUp, seed: Seed, from: u64, mut look: impl FnMut(u64, &mut World)) {
    let mut world = build(scenario, law, seed, false).expect("a shipped world");
    let until = scenario.duration().as_nanos() / 1_000_000;
    for ms in from..until {
        world.run_until(at(ms));
        look(ms, &mut world);
    }
}

fn is_elsewhere(why: Option<Why>) -> bool {
    matches!(why, Some(Why::PbeDrain | Why::PbeInternet | Why::BbrProbeRtt))
}

/// True if it goes by the cell. Neither, where nothing is known of the cell.
fn is_here(why: Option<Why>) -> bool {
    matches!(why, Some(Why::PbeStart | Why::PbeWireless))
}

/// The part of the time, in percent, for which the state is wrong: `narrow` says when the wire is the narrowest place.
fn wrong(scenario: &Scenario, law: &SetUp, seed: Seed, narrow: impl Fn(u64) -> bool) -> f64 {
    let (mut all, mut wrong) = (0_u64, 0_u64);
    each_ms(scenario, law, seed, 2_000, |ms, world| {
        all += 1;
        let right = if narrow(ms) { is_elsewhere(world.does(PHONE)) } else { is_here(world.does(PHONE)) };
        wrong += u64::from(!right);
    });
    100.0 * wrong as f64 / all.max(1) as f64
}

/// How long after the cut the sender goes elsewhere, in milliseconds.
fn noticed(scenario: &Scenario, law: &SetUp, seed: Seed) -> Option<f64> {
    let mut first = None;
    each_ms(scenario, law, seed, NARROW.0, |ms, world| {
        if first.is_none() && is_elsewhere(world.does(PHONE)) {
            first = Some((ms - NARROW.0) as f64);
        }
    });
    first
}

/// A sender that goes at this part of its fair share has reached it.
const REACHED: f64 = 0.95;

/// How a start went.
struct Start {
    /// From the first capacity until the sender goes at [`REACHED`] of the fair share that it is told, in its own least round trips.
    round_trips: f64,
    /// What waits at the base station meanwhile, on average, as a time at what the cell carries.
    queue_ms: f64,
}

fn start(scenario: &Scenario, law: &SetUp, seed: Seed) -> Start {
    let (mut began, mut ended, mut waited, mut rtt) = (None, None, Vec::new(), 0.0);
    each_ms(scenario, law, seed, 1, |ms, world| {
        if ended.is_some() {
            return;
        }
        let fair = world.told(PHONE).map_or(0.0, |told| told.fair.as_mbit_f64());
        let pace = world.pace(PHONE).map_or(0.0, Rate::as_mbit_f64);
        match world.does(PHONE) {
            Some(Why::PbeStart | Why::PbeWireless) if began.is_some() && pace >= REACHED * fair => ended = Some(ms),
            Some(Why::PbeStart) => {
                began.get_or_insert(ms);
                let bits = world.waits(PHONE).get() as f64 * 8.0;
                waited.push(bits / (fair * 1e3).max(1.0));
                rtt = world.least_round_trip(PHONE).map_or(rtt, |rtt| rtt.as_millis_f64());
            }
            _ => {}
        }
    });
    let took = ended.zip(began).map_or(f64::INFINITY, |(ended, began)| (ended - began) as f64);
    Start { round_trips: took / rtt, queue_ms: waited.iter().sum::<f64>() / waited.len().max(1) as f64 }
}

/// What waits for the phone when its second carrier comes, as a time at what the first one carries.
fn queue_at_activation(scenario: &Scenario, law: &SetUp, seed: Seed) -> Option<f64> {
    let mut before = None;
    let mut seen = Vec::new();
    each_ms(scenario, law, seed, 1, |_, world| {
        if before.is_some() {
            return;
        }
        let fair = world.told(PHONE).map_or(0.0, |told| told.fair.as_mbit_f64());
        if world.active_carriers(PHONE) > 1 {
            // The last tenth of a second: the window in which the base station has looked at what the phone uses.
            let window = &seen[seen.len().saturating_sub(100)..];
            before = Some(window.iter().sum::<f64>() / window.len().max(1) as f64);
        } else if fair > 0.0 {
            seen.push(world.waits(PHONE).get() as f64 * 8.0 / (fair * 1e3));
        }
    });
    before
}

fn over_seeds(runner: &Runner<'_>, scenario: &Scenario, unit: &str, of: impl Fn(Seed) -> Option<f64>) -> Estimate {
    let figures = runner.seeds(scenario).into_iter().map(|seed| Figure::or_absent(of(seed), "it was not seen"));
    Estimate::of(unit, &figures.collect::<Vec<_>>())
}

/// The figure.
pub(super) fn states(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let wire = Value::try_from(
        [[("at", "6 s"), ("rate", HALF)], [("at", "12 s"), ("rate", "1 Gbit/s")]].map(std::collections::BTreeMap::from),
    );
    let half: Vec<Edit<'_>> = vec![("backhaul.changes", wire.expect("a list of tables"))];
    let handed_over: Vec<Edit<'_>> = vec![("station.0.handovers", Value::from(vec!["4 s", "7 s", "10 s"]))];
    let nobody = |_: u64| false;
    let cut = |ms: u64| (NARROW.0..NARROW.1).contains(&ms);
    type Truth<'t> = &'t dyn Fn(u64) -> bool;
    let worlds: [(&str, Shipped, &[Edit<'_>], Truth<'_>); 4] = [
        ("a fade by 20 dB", MOBILITY, &[], &nobody),
        ("three handovers", CARRIER, &handed_over, &nobody),
        ("a wire of a quarter of the rate", CUT, &[], &cut),
        ("a wire of half of the rate", CUT, &half, &cut),
    ];
    let mut table = Table::new(&["world", "law", "wrong (% of the time)"]);
    let mut checks = Vec::new();
    for (name, shipped, edits, truth) in worlds {
        let scenario = runner.scenario(shipped, edits);
        for law in scenario.laws().iter().filter(|law| ["pbe", "published"].contains(&law.name.as_str())) {
            let share = over_seeds(runner, &scenario, "%", |seed| Some(wrong(&scenario, law, seed, truth)));
            table.rows.push(vec![name.into(), law.name.clone(), shown(&share)]);
            if law.name == "pbe" {
                let what = format!("time in the wrong state, {name} (%)");
                checks.push(Check::new(&what, "≤ 5", shown(&share), mean(&share) <= 5.0));
            }
        }
    }
    let scenario = runner.scenario(CUT, &half);
    let law = scenario.law("pbe").expect("a law of the scenario");
    let late = over_seeds(runner, &scenario, "ms", |seed| noticed(&scenario, &law, seed));
    // Six subframes, a round trip of 38 ms, and a round of repeats.
    checks.push(Check::new(
        "a wire of half of the rate is noticed after (ms)",
        "≤ 52",
        shown(&late),
        mean(&late) <= 52.0,
    ));
    let begins: Vec<(f64, f64)> = runner
        .seeds(&scenario)
        .into_iter()
        .map(|seed| start(&scenario, &law, seed))
        .map(|start| (start.round_trips, start.queue_ms))
        .collect();
    let of = |unit: &str, of: fn(&(f64, f64)) -> f64| {
        Estimate::of(unit, &begins.iter().map(|begin| Figure::exact(of(begin))).collect::<Vec<_>>())
    };
    let (rtts, queue) = (of("", |begin| begin.0), of("ms", |begin| begin.1));
    checks.push(Check::new(
        "the sender goes at 0.95 C_f after (round trips)",
        "3 ± 0.5",
        shown(&rtts),
        (mean(&rtts) - 3.0).abs() <= 0.5,
    ));
    checks.push(Check::new("queue in the cell during the start (ms)", "≤ 2", shown(&queue), mean(&queue) <= 2.0));
    let scenario = runner.scenario(CARRIER, &[]);
    let law = scenario.law("pbe").expect("a law of the scenario");
    let queue = over_seeds(runner, &scenario, "ms", |seed| queue_at_activation(&scenario, &law, seed));
    checks.push(Check::new(
        "queue in the 100 ms before the second carrier (ms)",
        "< 2",
        shown(&queue),
        mean(&queue) < 2.0,
    ));
    Ok(Section {
        title: "States and starts".into(),
        text: "The sender's state, each millisecond from 2 s on, against which place is the narrowest: the wire, while the scenario makes it narrower than the cell, and the cell at all other times. \
               Wires are narrow for 6 s. A queue is what waits at the base station, as a time at the fair share."
            .into(),
        reason: "the queue of a wire of half the rate grows by a millisecond in each, and the paper's threshold is 27 ms: with those the sum is 79 ms, not 52. Looks after a cut count as wrong until \
                 the sender has found the cell again."
            .into(),
        checks,
        tables: vec![table.data()],
        ..Section::default()
    })
}
