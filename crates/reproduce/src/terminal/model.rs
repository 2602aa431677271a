//! The model in worlds where nothing collapses.

use super::{PATHS, by_law, rows};
use crate::study::{Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_report::Key;
use lasthop_report::page::{Check, Section, Table, digits, mean};

const MINSTREL: Shipped = shipped!("terminal", "minstrel");
const AC: Shipped = shipped!("terminal", "ac");

/// One world of the twelve: what must be reached is the better of CUBIC and the tables.
pub(super) fn model(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let counts: &[i64] = if runner.quick { &[3] } else { &[1, 3, 10] };
    let (mut table, mut verdicts) = (by_law(), Table::new(&["world", "goodput", "Jain", "RTT, p95", "better row", ""]));
    let (mut met, mut all) = (0, 0);
    for (name, world) in [("802.11g", MINSTREL), ("802.11ac", AC)] {
        for (rtt, delay) in PATHS {
            for &count in counts {
                let run = runner.run(world, &[("station.0.count", count.into()), ("wire.delay", delay.into())])?;
                let cell = format!("{name}, {rtt} ms, n = {count}");
                table.rows.extend(rows(&cell, &run));
                let of = |law: &str, key: Key| mean(&run.of(law, key));
                let total = |law: &str| of(law, Key::Throughput);
                let better = if total("tables") > total("cubic") { "tables" } else { "cubic" };
                let (share, jain) = (total("model") / total(better), of("model", Key::Jain));
                let trips = [of("model", Key::RttP95), of(better, Key::RttP95)];
                // One terminal alone has nobody to be fair to.
                let good = share >= 0.97 && (count == 1 || jain >= 0.98) && trips[0] <= trips[1];
                (met, all) = (met + u32::from(good), all + 1);
                verdicts.rows.push(vec![
                    cell,
                    format!("{share:.3} of it"),
                    if count == 1 { "–".into() } else { format!("{jain:.3}") },
                    format!("{} of {} ms", digits(trips[0]), digits(trips[1])),
                    better.into(),
                    if good { "met" } else { "missed" }.into(),
                ]);
            }
        }
    }
    let cells = Check::new("worlds in which all three hold", "all", format!("{met} of {all}"), met == all);
    Ok(Section {
        title: "The model where nothing collapses".into(),
        text: "802.11g under minstrel and 802.11ac, two paths, one, three and ten stations. Required is 0.97 of the goodput of the better of CUBIC and tables, Jain's index of 0.98, and no longer \
               round trip at p95. The table has the worlds that miss it."
            .into(),
        reason: "with ten stations CUBIC carries more because its losses silence some of them (Jain's index 0.85 to 0.91); with three of 802.11ac at 4 ms the tables bind so low that fewer \
                 contend at once."
            .into(),
        checks: vec![cells.headline()],
        tables: vec![verdicts.only(|row| row[5] == "missed", &[0, 1, 2, 3, 4]), table.data().named("laws")],
        ..Section::default()
    })
}
