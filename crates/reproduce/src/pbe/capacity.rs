//! What a receiver tells of its cell, against what the cell would have carried: the world is copied at each look, and in the copy the station's
//! queue is full.

use crate::study::{Edit, Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_report::page::{Check, Section, Table, digits, mean, shown};
use lasthop_report::{Estimate, Figure};
use lasthop_scenario::{Scenario, SetUp};
use lasthop_signals::Node;
use lasthop_sim::build;
use lasthop_units::{Seed, Span, Time};
use toml::Value;

const CAPACITY: Shipped = shipped!("pbe", "capacity");

/// The first look, the time between two, and how many there are.
const FIRST: Span = Span::from_secs(3);
const BETWEEN: Span = Span::from_millis(181);
const LOOKS: u64 = 100;
/// RTprop of these paths: 30 ms of wire, 5 ms of uplink, and some 5 ms in the cell.
const ROUND_TRIP: Span = Span::from_millis(40);
/// What is decided now is decoded so much later.
const AIR: Span = Span::from_millis(4);
/// Payload of a packet: what is told is payload, what a cell carries are packets.
const PAYLOAD: f64 = 1448.0 / 1500.0;

/// What the looks of one run show, as shares of the mean of what the station could have had.
struct Errors {
    mean: f64,
    p95: f64,
    bias: f64,
    /// Mean error of an estimate that knows the mean of what is to come, and nothing else.
    floor: f64,
    /// Mean error against what comes out in order, in place of what is decoded.
    in_order: f64,
}

fn errors(scenario: &Scenario, law: &SetUp, seed: Seed) -> Errors {
    let mut world = build(scenario, law, seed, false).expect("a shipped world");
    let look = |n| {
        world.run_until(Time::ZERO + FIRST + BETWEEN * n);
        let told = world.told(Node(1)).map_or(0.0, |told| told.available.as_mbit_f64());
        let could = world.saturated(Node(1), AIR, ROUND_TRIP);
        [told, could.carried.as_mbit_f64() * PAYLOAD, could.handed_up.as_mbit_f64() * PAYLOAD]
    };
    let looks: Vec<[f64; 3]> = (0..LOOKS).map(look).collect();
    let mean = |of: &dyn Fn(&[f64; 3]) -> f64| looks.iter().map(of).sum::<f64>() / looks.len() as f64;
    let could = mean(&|look| look[1]);
    let mut sorted: Vec<f64> = looks.iter().map(|look| (look[0] - look[1]).abs()).collect();
    sorted.sort_by(f64::total_cmp);
    Errors {
        mean: mean(&|look| (look[0] - look[1]).abs()) / could,
        p95: sorted[looks.len() * 95 / 100] / could,
        bias: mean(&|look| look[0] - look[1]) / could,
        floor: mean(&|look| (look[1] - could).abs()) / could,
        in_order: mean(&|look| (look[0] - look[2]).abs()) / could,
    }
}

/// A case: its name, whether it must be met, and what is changed for it.
type Case = (&'static str, bool, Vec<Edit<'static>>);

fn cases() -> [Case; 4] {
    let table =
        |text: &str| Value::Array(text.parse::<toml::Table>().expect("TOML")["x"].as_array().expect("a list").clone());
    let alone = "[[x]]\nkind = \"bulk\"\nto = \"a\"\n";
    let full = format!("{alone}[[x]]\nkind = \"udp\"\nto = \"b\"\nrate = \"60 Mbit/s\"\n");
    let bursts = "[[x]]\nkind = \"data\"\nper-second = 1.0\nsize = \"500 kB\"\nsizes = \"fixed\"\n[[x]]\nkind = \"control\"\nper-second = 362.0\n";
    [
        ("alone", true, vec![("traffic", table(alone))]),
        ("a full buffer beside it", true, vec![("traffic", table(&full))]),
        ("one that comes and goes", true, vec![]),
        (
            "bursts of files and signalling",
            false,
            vec![("traffic", table(alone)), ("hop.cell.background", table(bursts))],
        ),
    ]
}

/// The figure.
pub(super) fn capacity(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let erring = [("station.0.missed-dci", Value::from(0.05)), ("station.0.false-dci", Value::from(0.01))];
    let mut table = Table::new(&[
        "beside it",
        "decoder",
        "law",
        "mean error (%)",
        "p95 (%)",
        "bias (%)",
        "floor (%)",
        "in order (%)",
    ]);
    let mut checks = Vec::new();
    for (name, judged, edits) in cases() {
        for (decoder, errs) in [("whole", false), ("errs", true)] {
            let edits = [edits.clone(), if errs { erring.to_vec() } else { Vec::new() }].concat();
            let scenario = runner.scenario(CAPACITY, &edits);
            for law in scenario.laws() {
                let over_seeds = runner.seeds(&scenario).into_iter().map(|seed| errors(&scenario, law, seed));
                let seeds: Vec<Errors> = over_seeds.collect();
                let of = |value: fn(&Errors) -> f64| {
                    let figures: Vec<Figure> =
                        seeds.iter().map(|errors| Figure::exact(100.0 * value(errors))).collect();
                    Estimate::of("%", &figures)
                };
                let (error, p95) = (of(|errors| errors.mean), of(|errors| errors.p95));
                let figures = [
                    &error,
                    &p95,
                    &of(|errors| errors.bias),
                    &of(|errors| errors.floor),
                    &of(|errors| errors.in_order),
                ];
                let row = [name, decoder, law.name.as_str()].map(str::to_owned).into_iter();
                table.rows.push(row.chain(figures.map(shown)).collect());
                if law.name == "pbe" && errs {
                    let wanted = if judged { "≤ 5 and 15" } else { "not stated" };
                    let met = judged.then(|| mean(&error) <= 5.0 && mean(&p95) <= 15.0);
                    let what = format!("error, {name}: mean and p95 (%)");
                    checks.push(Check::new(
                        &what,
                        wanted,
                        format!("{} and {}", digits(mean(&error)), shown(&p95)),
                        met,
                    ));
                }
            }
        }
    }
    Ok(Section {
        title: "What it tells, and what it could have".into(),
        text: format!(
            "At {LOOKS} moments of each run the world is copied, and in the copy the first station's queue is full: what it decodes in {ROUND_TRIP}, from {AIR} on, is what it could have had. Errors are \
             shares of the mean of that. The decoder misses a DCI in twenty and shows a false one in a subframe of a hundred. *Floor*: the error of an estimate that knows the mean and no more. \
             *In order*: against what comes out of the cell in order.",
        ),
        reason: "beside a full buffer nothing that does not know which blocks will fail is much better (*floor*); a load that comes and goes may change within the 40 ms."
            .into(),
        checks,
        tables: vec![table.only(|row| row[1] == "errs" && row[2] == "pbe", &[0, 3, 4, 5, 6, 7])],
        ..Section::default()
    })
}
