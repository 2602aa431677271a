//! Managed terminals beside stations that nothing manages, and beside other systems.

use super::{PATHS, of_group};
use crate::study::{Results, Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_report::page::{Check, Section, Table, digits, mean, shown};
use lasthop_report::{Estimate, Key, combined};

const COEXISTENCE: Shipped = shipped!("terminal", "coexistence");
const MIXED: Shipped = shipped!("terminal", "mixed");
/// The worlds: their names and rate controls.
const WORLDS: [(&str, &str); 2] = [("ARF", "arf"), ("minstrel", "minstrel")];
/// The most that an unmanaged station may get, as a multiple of what a managed one does.
const RATIO: f64 = 1.5;

/// The rules by which stations are managed.
const RULES: [&str; 3] = ["tables", "model", "compete"];

/// What is counted of a rule: cells whose total does not fall, points with a fair ratio, and the largest one.
#[derive(Default)]
struct Verdict {
    rising: u32,
    fair: usize,
    worst: f64,
}

/// What one rule makes of a world, by how many terminals are managed.
struct Step {
    managed: i64,
    total: Estimate,
    ratio: Option<Estimate>,
    jain: Estimate,
}

/// True if nothing falls from one step to the next by more than the intervals of both leave open.
fn rises(steps: &[Step]) -> bool {
    let ends = |of: &Estimate| of.ci95.unwrap_or([mean(of); 2]);
    steps.windows(2).all(|pair| ends(&pair[1].total)[1] >= ends(&pair[0].total)[0])
}

fn ratio(run: &Results, law: &str) -> Estimate {
    let [unmanaged, managed] = ["unmanaged", "managed"].map(|group| of_group(run, law, group, Key::Throughput));
    combined([&unmanaged, &managed], |[unmanaged, managed]| unmanaged / managed)
}

/// What `rule` makes of `count` terminals of which `managed` are.
fn steps(runs: &[(i64, Results)], count: i64, rule: &str) -> Vec<Step> {
    let step = |run: &Results, managed: i64, law: &str, between: bool| Step {
        managed,
        total: run.of(law, Key::Throughput),
        ratio: between.then(|| ratio(run, law)),
        jain: run.of(law, Key::Jain),
    };
    let all = format!("{rule}-all");
    let first = &runs[0].1;
    let mut steps = vec![step(first, 0, "cubic", false)];
    steps.extend(runs.iter().map(|(managed, run)| step(run, *managed, rule, true)));
    steps.push(step(first, count, &all, false));
    steps
}

pub(super) fn coexistence(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    // Terminals, and how many of them are managed.
    let points: &[(i64, &[i64])] = if runner.quick { &[(4, &[2])] } else { &[(4, &[2]), (6, &[3]), (8, &[1, 4, 7])] };
    let head = ["world", "terminals", "managed", "rule", "total (Mbit/s)", "unmanaged / managed", "Jain"];
    let mut table = Table::new(&head);
    let (mut cells, mut shares, mut verdicts) = (0, 0, RULES.map(|_| Verdict::default()));
    for (world, control) in WORLDS {
        for (rtt, delay) in PATHS {
            for &(count, splits) in points {
                let mut runs = Vec::new();
                for &managed in splits {
                    let edits = [
                        ("station.0.count", managed.into()),
                        ("station.1.count", (count - managed).into()),
                        ("station.0.rate-control", control.into()),
                        ("station.1.rate-control", control.into()),
                        ("wire.delay", delay.into()),
                    ];
                    runs.push((managed, runner.run(COEXISTENCE, &edits)?));
                }
                for rule in RULES {
                    let steps = steps(&runs, count, rule);
                    let ratios = || steps.iter().filter_map(|step| step.ratio.as_ref()).map(mean);
                    let of = &mut verdicts[RULES.iter().position(|known| *known == rule).unwrap_or(0)];
                    of.rising += u32::from(rises(&steps));
                    of.fair += ratios().filter(|ratio| *ratio <= RATIO).count();
                    of.worst = ratios().fold(of.worst, f64::max);
                    if rule == RULES[0] {
                        (cells, shares) = (cells + 1, shares + ratios().count());
                    }
                    // Without anybody managed the rules are the same.
                    let rows = steps.iter().filter(|step| step.managed > 0 || rule == "tables");
                    table.rows.extend(rows.map(|step| {
                        vec![
                            format!("{world}, {rtt} ms"),
                            count.to_string(),
                            step.managed.to_string(),
                            if step.managed == 0 { "cubic" } else { rule }.into(),
                            shown(&step.total),
                            step.ratio.as_ref().map_or("–".into(), shown),
                            shown(&step.jain),
                        ]
                    }));
                }
            }
        }
    }
    let checks = RULES.into_iter().zip(&verdicts).flat_map(|(rule, of)| {
        // What is required is required of the model, which has two ways beside others.
        let required = (rule != "tables").then_some(());
        let total = Check::new(
            &format!("{rule}: cells in which the total does not fall"),
            required.map_or("not stated", |()| "all"),
            format!("{} of {cells}", of.rising),
            required.map(|()| of.rising == cells),
        );
        let parts = Check::new(
            &format!("{rule}: fair points, and the largest multiple"),
            required.map_or("not stated; \"a little higher\"", |()| "all"),
            format!("{} of {shares}, {}", of.fair, digits(of.worst)),
            required.map(|()| of.fair == shares),
        );
        [total, parts].map(|check| if required.is_some() { check.headline() } else { check })
    });
    let checks = checks.collect();
    Ok(Section {
        title: "Beside unmanaged stations".into(),
        text: "Four, six and eight terminals, of which some are managed; the others send by CUBIC and tell nobody. A cell is a world, a path and a number of terminals: in it the total may not \
               fall, beyond the intervals, as terminals become managed. A point is fair if an unmanaged station gets at most 1.5 times what a managed one does. Under `model` managed \
               stations yield; under `compete` they let go of their bounds (`beside = \"compete\"`)."
            .into(),
        reason: "those that yield have windows of a few packets in queues of seconds. Those that compete come up by doubling once a round trip, which beside seven others takes more than \
                 the warm-up; under ARF round trips soon exceed 8 s, where the bounds come back."
            .into(),
        checks,
        tables: vec![table.data()],
        ..Section::default()
    })
}

pub(super) fn mixed(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let groups = ["managed", "with-reno", "with-bbr"];
    let head = ["world", "rule", "total (Mbit/s)", "CUBIC each (6)", "Reno each (2)", "BBR each (2)", "Jain"];
    let mut table = Table::new(&head);
    for (world, control) in WORLDS {
        for (rtt, delay) in PATHS {
            let controls = (0..groups.len()).map(|group| format!("station.{group}.rate-control")).collect::<Vec<_>>();
            let mut edits = vec![("wire.delay", delay.into())];
            edits.extend(controls.iter().map(|path| (path.as_str(), control.into())));
            let run = runner.run(MIXED, &edits)?;
            for law in ["cubic", "tables", "model", "compete"] {
                let mut row = vec![format!("{world}, {rtt} ms"), law.into(), shown(&run.of(law, Key::Throughput))];
                row.extend(groups.map(|group| shown(&of_group(&run, law, group, Key::Throughput))));
                row.push(shown(&run.of(law, Key::Jain)));
                table.rows.push(row);
            }
        }
    }
    Ok(Section {
        title: "Beside other systems".into(),
        text: "Ten stations: six send by CUBIC and are managed by the rule of the row (under `cubic` by none), two send by Reno and two by BBR, unmanaged. The paper mixed in Windows and Mac OS."
            .into(),
        tables: vec![table.only(|row| row[0].contains("256") && row[1] != "compete", &[0, 1, 2, 3, 4, 5])],
        ..Section::default()
    })
}
