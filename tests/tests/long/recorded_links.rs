//! The kernel's TCP over recorded cellular links in the lab, against what it did over mahimahi (reference data,
//! `traces/`).
//!
//! The world is that of the simulator's `recorded` test: 20 ms of propagation each way, one download of 61 s from 0.4 s on, a send
//! buffer of 4 MB. All eighteen cells take twenty minutes: `scripts/worlds`.
//! Measured by the wall clock: a run that the lab itself marks unreliable is made again, and says nothing in the end.

use lasthop_tests::{json, lab, mean, root};
use std::path::{Path, PathBuf};

/// A row of the reference's table.
#[derive(Clone, Debug)]
struct Row {
    trace: String,
    queue: String,
    law: String,
    /// Mbit/s, and the share of it that was used in percent.
    capacity: f64,
    utilisation: f64,
    p95_ms: f64,
}

/// The table's rows about the kernel's TCP; `None`, said loudly, if it is not there.
fn table() -> Option<(PathBuf, Vec<Row>)> {
    let shared =
        std::env::var_os("LASTHOP_REFERENCE").map_or_else(|| root().join("../shared/reference"), PathBuf::from);
    let folder = shared.join("traces");
    let Ok(text) = std::fs::read_to_string(folder.join("README.md")) else {
        eprintln!("SKIPPED: reference data absent: {} (set LASTHOP_REFERENCE)", folder.display());
        return None;
    };
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, trace, queue, law, capacity, _, utilisation, _, _, p95, ..] = cells[..] else { return None };
        let number = |cell: &str| cell.parse::<f64>().ok();
        let kernel = ["cubic", "reno", "bbr"].contains(&law);
        let (capacity, utilisation, p95_ms) = (number(capacity)?, number(utilisation)?, number(p95)?);
        kernel.then(|| Row { trace: trace.into(), queue: queue.into(), law: law.into(), capacity, utilisation, p95_ms })
    };
    let rows: Vec<Row> = text.lines().filter_map(row).collect();
    assert_eq!(rows.len(), 18, "three traces, two queues, three laws");
    Some((folder.canonicalize().expect("it was read"), rows))
}

/// Propagation each way, in milliseconds.
const DELAY_MS: f64 = 20.0;
/// Octets of an opportunity that a full segment takes, and those of them that are payload.
const SEGMENT: f64 = 1_504.0;
const PAYLOAD: f64 = 1_448.0;

/// The share of the link's octets that were used, in percent, and the 95th percentile of the queueing delay in milliseconds.
fn measure(row: &Row, traces: &Path) -> Option<(f64, f64)> {
    let queue = match row.queue.strip_prefix("droptail") {
        Some(packets) => format!("{{ kind = \"fifo\", limit = \"{packets} packets\" }}"),
        None => "{ kind = \"infinite\" }".to_owned(),
    };
    let text = format!(
        "title = \"T\"\nduration = \"61.4 s\"\nwarm-up = \"400 ms\"\nseeds = 1\n[wire]\nrate = \"10 Gbit/s\"\ndelay = \"0 s\"\n\
         queue = \"100000 packets\"\n[hop.trace]\ndownlink = \"{folder}/{trace}.down\"\nuplink = \"{folder}/{trace}.up\"\ndelay = \"20 ms\"\n\
         queue = {queue}\nuplink-queue = {{ kind = \"infinite\" }}\n[[station]]\nname = \"phone\"\n[[traffic]]\nkind = \"bulk\"\nto = \"phone\"\n\
         start = \"400 ms\"\nsend-buffer = \"4194304 B\"\n[laws.{law}]\nsender = \"{law}\"\n",
        folder = traces.display(),
        trace = row.trace,
        law = row.law,
    );
    let folder = tempfile::tempdir().expect("a directory");
    let (file, out) = (folder.path().join("recorded.toml"), folder.path().join("out"));
    std::fs::write(&file, text).expect("written");
    lasthop_tests::figures("lab", &file, &[], 1, &out)?;
    let result = json(&out.join("result.json"));
    let used = mean(&result, &row.law, "throughput_mbit_s") * SEGMENT / PAYLOAD / row.capacity * 100.0;
    Some((used, mean(&result, &row.law, "hop_delay_p95_ms") - DELAY_MS))
}

/// Measures rows and holds them against the reference: 3 points of utilisation, a quarter of the delay.
fn compare(traces: &Path, rows: &[Row]) {
    let Some(_lab) = lab() else { return };
    let mut wrong = Vec::new();
    for row in rows {
        let Some((used, p95)) = measure(row, traces) else { continue };
        let off = p95 / row.p95_ms - 1.0;
        let line = format!(
            "{:18} {:12} {:6} {used:5.1} % used ({:5.1}), p95 {p95:7.0} ms ({:6.0}, {:+.0} %)",
            row.trace,
            row.queue,
            row.law,
            row.utilisation,
            row.p95_ms,
            off * 100.0
        );
        println!("{line}");
        if (used - row.utilisation).abs() > 3.0 || off.abs() > 0.25 {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "beyond 3 points or 25 %:\n{}", wrong.join("\n"));
}

#[test]
#[ignore = "one of the eighteen cells that scripts/worlds measures"]
fn kernel_cubic_over_a_recorded_link_matches_mahimahi() {
    let Some((traces, rows)) = table() else { return };
    let one = |row: &&Row| (&*row.trace, &*row.queue, &*row.law) == ("TMobile-LTE-short", "droptail250", "cubic");
    compare(&traces, &rows.iter().filter(one).cloned().collect::<Vec<_>>());
}

#[test]
#[ignore = "twenty minutes: scripts/worlds"]
fn so_are_all_three_over_all_links_and_queues() {
    let Some((traces, rows)) = table() else { return };
    compare(&traces, &rows);
}
