//! Servers at different distances, and other means than bounds.

use super::{PATHS, TEN, by_law, of_group, row};
use crate::study::{Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_report::Key;
use lasthop_report::page::{Check, Section, Table, mean, shown};

const SERVERS: Shipped = shipped!("terminal", "servers");
const PEERS: Shipped = shipped!("terminal", "peers");
/// The groups of stations by how far their servers are, in milliseconds there and back.
const DISTANCES: [u32; 5] = [4, 32, 64, 128, 256];

pub(super) fn servers(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let run = runner.run(SERVERS, &[])?;
    let headings: Vec<String> = DISTANCES.iter().map(|rtt| format!("{rtt} ms")).collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let each = |what: &str| Table::new(&[&[what], headings.as_slice()].concat());
    let mut rates = each("law: each station's goodput (Mbit/s), by the distance of its server");
    let mut trips = each("law: its round trip, mean (ms)");
    let mut table = by_law();
    for law in ["cubic", "tables", "model"] {
        table.rows.push(row("4 to 256 ms", &run, law));
        for (table, key) in [(&mut rates, Key::Throughput), (&mut trips, Key::RttMean)] {
            let cells = DISTANCES.map(|rtt| shown(&of_group(&run, law, &format!("to-{rtt}"), key)));
            table.rows.push([vec![law.to_owned()], cells.to_vec()].concat());
        }
    }
    let times = run.multiple("model", "cubic", Key::Throughput);
    Ok(Section {
        title: "Servers at different distances".into(),
        text: "Ten stations, two to each of five servers, 4 to 256 ms away. In the paper the paths hardly changed round trips.".into(),
        checks: vec![Check::new("model's total over CUBIC's", "not stated", shown(&times), None)],
        tables: vec![table.columns(&[1, 2, 3, 4]), rates.data().named("rates"), trips.data().named("round-trips")],
        ..Section::default()
    })
}

pub(super) fn peers(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let (mut table, mut checks) = (by_law(), Vec::new());
    let others = ["cubic-fq-codel", "bbr", "vegas", "westwood"];
    for (rtt, delay) in PATHS {
        let world = format!("{rtt} ms");
        let ours = runner.run(TEN, &[("wire.delay", delay.into())])?;
        let peers = runner.run(PEERS, &[("wire.delay", delay.into())])?;
        table.rows.extend(["cubic", "tables", "model"].map(|law| row(&world, &ours, law)));
        table.rows.extend(others.map(|law| row(&world, &peers, law)));
        let total = |law: &&str| mean(&peers.of(law, Key::Throughput));
        let Some(best) = others.into_iter().max_by(|a, b| total(a).total_cmp(&total(b))) else { continue };
        checks.push(Check::new(
            &format!("{rtt} ms: total of the model and of the best other, {best} (Mbit/s)"),
            "not stated",
            format!("{} and {}", shown(&ours.of("model", Key::Throughput)), shown(&peers.of(best, Key::Throughput))),
            None,
        ));
    }
    Ok(Section {
        title: "Other means than bounds".into(),
        text: "The ten terminals under BBR, Vegas and Westwood+, and under CUBIC with FQ-CoDel at the access point, which keeps acknowledgements of different stations apart."
            .into(),
        checks,
        tables: vec![table.data()],
        ..Section::default()
    })
}
