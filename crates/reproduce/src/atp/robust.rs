//! What Adaptive's rule does when its constants are halved and doubled: they are ours, not the paper's.

use super::{CHAIN, STACK};
use crate::study::{Results, Runner};
use lasthop_experiment::ExperimentError;
use lasthop_report::Key;
use lasthop_report::page::{Check, Section, Table, digits, mean, shown};
use toml::Value;

/// A constant of the rule, and the values that it is given: half, its own, twice.
type Constant = (&'static str, [f64; 3]);

const CONSTANTS: [Constant; 3] =
    [("increase", [0.25, 0.5, 1.0]), ("packets", [10.0, 20.0, 40.0]), ("change", [0.125, 0.25, 0.5])];
/// By which part the utility's worth (the geometric mean of the flows' goodputs) and the goodput may differ.
const ROBUST: f64 = 0.1;
/// Flows of the stack.
const FLOWS: f64 = 3.0;

/// Adaptive alone, with a constant that has this value.
fn adaptive(name: &str, value: f64) -> Value {
    let value = if name == "packets" { Value::from(value as i64) } else { Value::from(value) };
    let sender = [("law", Value::from("atp")), ("variant", Value::from("adaptive")), (name, value)];
    let table = |entries: Vec<(&str, Value)>| {
        Value::Table(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<toml::Table>())
    };
    table(vec![("adaptive", table(vec![("sender", table(sender.into()))]))])
}

pub(super) fn robust(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let mut table = Table::new(&[
        "constant",
        "value",
        "stack: log utility (ln)",
        "stack: total (Mbit/s)",
        "4 hops: goodput (Mbit/s)",
    ]);
    let mut checks = Vec::new();
    for (name, values) in CONSTANTS {
        let mut worths = Vec::new();
        let mut goodputs = Vec::new();
        for of in values {
            let run = |shipped| runner.run(shipped, &[("laws", adaptive(name, of))]);
            let (stack, chain): (Results, Results) = (run(STACK)?, run(CHAIN)?);
            let figures = [
                stack.of("adaptive", Key::LogUtility),
                stack.of("adaptive", Key::Throughput),
                chain.of("adaptive", Key::Throughput),
            ];
            worths.push((mean(&figures[0]) / FLOWS).exp());
            goodputs.push(mean(&figures[2]));
            table.rows.push([name.to_owned(), digits(of)].into_iter().chain(figures.iter().map(shown)).collect());
        }
        let far = |values: &[f64]| values.iter().map(|value| (value / values[1] - 1.0).abs()).fold(0.0, f64::max);
        let (worth, goodput) = (far(&worths), far(&goodputs));
        checks.push(Check::new(
            &format!("`{name}` halved and doubled: stack, four hops"),
            "each at most 10 %",
            format!("{} %, {} %", digits(worth * 100.0), digits(goodput * 100.0)),
            worth <= ROBUST && goodput <= ROBUST,
        ));
    }
    Ok(Section {
        title: "Adaptive's constants".into(),
        text: "The paper says only that Adaptive's epoch is dynamic. Ours ends after `packets` packets, or when the average has changed by `change`; `increase` is the part of the way that a step up \
               takes. Each is halved and doubled by itself. Judged is by how much the geometric mean of the stack's goodputs, and the goodput over four hops, change at most."
            .into(),
        reason: "how the stack's flows share depends on the size of the step up.".into(),
        checks,
        tables: vec![table.data()],
        ..Section::default()
    })
}
