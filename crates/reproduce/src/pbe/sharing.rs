//! Sharing a cell: downloads of one law, at unlike distances, and beside others.

use super::{COLUMNS, LAWS};
use crate::study::{Results, Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_report::page::{Check, Section, Table, mean, shown};
use lasthop_report::{Estimate, Key, Run, SeriesKind};

const USERS: Shipped = shipped!("pbe", "users");
const DISTANCES: Shipped = shipped!("pbe", "rtt-fairness");
const FRIENDS: Shipped = shipped!("pbe", "friendliness");

/// Jain's index of what these stations have between two moments, in seconds.
fn fairness(run: &Run, stations: &[&str], between: (f64, f64)) -> Option<f64> {
    let rates: Option<Vec<f64>> =
        stations.iter().map(|station| Results::between_of(run, SeriesKind::Rate, station, between)).collect();
    let rates = rates?;
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(sum, squares), rate| (sum + rate, squares + rate * rate));
    (squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
}

/// Two and three downloads of one law.
pub(super) fn users(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let run = runner.run(USERS, &[])?;
    let all = ["phone-1", "phone-2", "phone-3"];
    let index = |law: &str, count: usize, between| run.over_runs(law, "", |run| fairness(run, &all[..count], between));
    let (two, three) = ((12.0, 20.0), (22.0, 30.0));
    let mut table = Table::new(&["law", "two, 12 to 20 s", "three, 22 to 30 s"]);
    for law in LAWS {
        table.rows.push(vec![law.into(), shown(&index(law, 2, two)), shown(&index(law, 3, three))]);
    }
    let ours: [Estimate; 2] = [index("pbe", 2, two), index("pbe", 3, three)];
    let checks = vec![Check::new(
        "Jain's index of two and of three PBE-CC downloads",
        "0.98 to 0.99 (from memory of the paper)",
        format!("{} and {}", shown(&ours[0]), shown(&ours[1])),
        ours.iter().all(|index| mean(index) >= 0.98),
    )];
    Ok(Section {
        title: "Two and three users".into(),
        text: "Three stations alike begin 10 s apart and end likewise. Jain's index of what they have while two and three are there.".into(),
        checks,
        tables: vec![table.data().named("fairness"), run.by_law(&LAWS, &COLUMNS).data()],
        ..Section::default()
    })
}

/// Downloads from servers 20, 40 and 80 ms away.
pub(super) fn distances(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let run = runner.run(DISTANCES, &[])?;
    let stations = ["from-20", "from-40", "from-80"];
    let mut table = Table::new(&["law", "20 ms (Mbit/s)", "40 ms", "80 ms", "Jain's index"]);
    let index = |law: &str| run.over_runs(law, "", |run| fairness(run, &stations, (5.0, 32.0)));
    for law in LAWS {
        let rates = stations.map(|station| shown(&run.of_station(law, station, Key::Throughput)));
        table.rows.push([law.to_owned()].into_iter().chain(rates).chain([shown(&index(law))]).collect());
    }
    let (ours, bbr) = (index("pbe"), index("bbr"));
    let checks = vec![Check::new(
        "Jain's index of downloads over 20, 40 and 80 ms, beside BBR's",
        "not stated",
        format!("{} and {}", shown(&ours), shown(&bbr)),
        None,
    )];
    Ok(Section {
        title: "Unequal distances".into(),
        text: "Three stations alike with servers 20, 40 and 80 ms away, there and back. Each has a queue of its own at the base station.".into(),
        checks,
        tables: vec![table.data().named("fairness"), run.by_law(&LAWS, &COLUMNS).data()],
        ..Section::default()
    })
}

/// Beside CUBIC and BBR.
pub(super) fn friends(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let run = runner.run(FRIENDS, &[])?;
    let rate = |law: &str, station: &str| run.of_station(&format!("with-{law}"), station, Key::Throughput);
    let mut table = Table::new(&["own law", "own (Mbit/s)", "CUBIC's", "BBR's", "own p95 of the delay (ms)"]);
    for law in LAWS {
        let rates = ["own", "cubic", "bbr"].map(|station| shown(&rate(law, station)));
        let late = shown(&run.of_station(&format!("with-{law}"), "own", Key::EndDelayP95));
        table.rows.push([law.to_owned()].into_iter().chain(rates).chain([late]).collect());
    }
    // What they would have beside one of their kind.
    let beside = |station: &str| mean(&rate("pbe", station)) / mean(&rate(station, "own"));
    let own = mean(&rate("pbe", "own")) / mean(&rate("bbr", "own"));
    let checks = vec![Check::new(
        "own rate over BBR's in its place; CUBIC's and BBR's over theirs in its place",
        "the base stations share alike",
        format!("{own:.2}; {:.2} and {:.2}", beside("cubic"), beside("bbr")),
        None,
    )];
    Ok(Section {
        title: "Beside CUBIC and BBR".into(),
        text: "Three stations alike: one downloads by CUBIC, one by BBR, one by the row's law. Queues are each station's own, so that what others do counts by the base \
               station's scheduler alone."
            .into(),
        checks,
        tables: vec![table],
        ..Section::default()
    })
}
