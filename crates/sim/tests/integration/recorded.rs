//! TCP over recorded cellular links, against what the kernel's did over mahimahi (reference data, `traces/`).
//!
//! 20 ms of propagation each way, one download of 60 s, a send buffer of 4 MB, two queues: infinite, and 250
//! packets. Compared are the share of the opportunities' octets that packets took, each with 4 octets more than its length, and the
//! 95th percentile of the time in the link's queue. The reference is one run a cell. It does not say how long after the link its flow began;
//! the capacities that it counted are those of the traces from 0.4 s on and for 61 s.

use crate::support;

use lasthop_radio::LastHop;
use lasthop_scenario::Scenario;
use lasthop_units::stats::Samples;
use lasthop_units::{Span, Time};
use lasthop_wire::delivery::OPPORTUNITY;
use std::path::Path;
use support::reference_file;

/// A row of the table: capacity and throughput in Mbit/s, p95 of the queueing delay in milliseconds.
struct Row {
    trace: &'static str,
    queue: &'static str,
    law: &'static str,
    capacity: f64,
    utilisation: f64,
    p95_ms: f64,
}

const fn row(
    trace: &'static str,
    queue: &'static str,
    law: &'static str,
    (capacity, utilisation, p95_ms): (f64, f64, f64),
) -> Row {
    Row { trace, queue, law, capacity, utilisation, p95_ms }
}

const ROWS: [Row; 18] = [
    row("Verizon-LTE-short", "infinite", "cubic", (4.691, 99.6, 6606.0)),
    row("Verizon-LTE-short", "infinite", "reno", (4.692, 99.6, 8628.0)),
    row("Verizon-LTE-short", "infinite", "bbr", (4.692, 96.7, 334.0)),
    row("Verizon-LTE-short", "250 packets", "cubic", (4.691, 99.6, 1262.0)),
    row("Verizon-LTE-short", "250 packets", "reno", (4.692, 99.6, 1278.0)),
    row("Verizon-LTE-short", "250 packets", "bbr", (4.692, 96.6, 360.0)),
    row("ATT-LTE-driving", "infinite", "cubic", (5.199, 99.8, 12990.0)),
    row("ATT-LTE-driving", "infinite", "reno", (5.199, 99.8, 13085.0)),
    row("ATT-LTE-driving", "infinite", "bbr", (5.199, 94.5, 338.0)),
    row("ATT-LTE-driving", "250 packets", "cubic", (5.199, 96.9, 768.0)),
    row("ATT-LTE-driving", "250 packets", "reno", (5.199, 96.2, 579.0)),
    row("ATT-LTE-driving", "250 packets", "bbr", (5.199, 94.6, 312.0)),
    row("TMobile-LTE-short", "infinite", "cubic", (14.005, 99.5, 3136.0)),
    row("TMobile-LTE-short", "infinite", "reno", (14.005, 99.6, 3459.0)),
    row("TMobile-LTE-short", "infinite", "bbr", (14.005, 94.2, 372.0)),
    row("TMobile-LTE-short", "250 packets", "cubic", (14.005, 97.9, 383.0)),
    row("TMobile-LTE-short", "250 packets", "reno", (14.005, 97.5, 345.0)),
    row("TMobile-LTE-short", "250 packets", "bbr", (14.005, 95.0, 365.0)),
];

const STARTS: Span = Span::from_millis(400);
const LASTS: Span = Span::from_secs(61);
const DELAY: Span = Span::from_millis(20);

fn scenario(row: &Row, folder: &Path) -> Scenario {
    let queue = match row.queue {
        "infinite" => "{ kind = \"infinite\" }".to_owned(),
        limit => format!("{{ kind = \"fifo\", limit = \"{limit}\" }}"),
    };
    let text = format!(
        "title = \"T\"\nduration = \"61.4 s\"\nwarm-up = \"400 ms\"\n[wire]\nrate = \"10 Gbit/s\"\ndelay = \"0 s\"\nqueue = \"100000 packets\"\n\
         [hop.trace]\ndownlink = \"{trace}.down\"\nuplink = \"{trace}.up\"\ndelay = \"20 ms\"\nqueue = {queue}\n\
         uplink-queue = {{ kind = \"infinite\" }}\n[[station]]\nname = \"phone\"\n\
         [[traffic]]\nkind = \"bulk\"\nto = \"phone\"\nstart = \"400 ms\"\nsend-buffer = \"4194304 B\"\n[laws.{law}]\nsender = \"{law}\"\n",
        trace = row.trace,
        law = row.law,
    );
    Scenario::parse("recorded", &text, folder).unwrap_or_else(|error| panic!("{}", error.plain()))
}

/// The share of the link's octets that were used, in percent, and the 95th percentile of the queueing delay in milliseconds.
fn measure(row: &Row, folder: &Path, seed: u64) -> (f64, f64) {
    let scenario = scenario(row, folder);
    let LastHop::Trace(hop) = scenario.hop() else { panic!("a trace is the hop") };
    let begins = Time::ZERO + STARTS;
    let offered = hop.down.trace.until(begins + LASTS) - hop.down.trace.until(begins);
    let capacity = (OPPORTUNITY * offered).get() as f64 * 8.0 / LASTS.as_secs_f64() / 1e6;
    assert!((capacity / row.capacity - 1.0).abs() < 0.005, "{}: {capacity} Mbit/s offered", row.trace);
    let law = scenario.law(row.law).expect("the scenario's");
    let run = lasthop_sim::run(&scenario, &law, seed, true, &mut |_| true);
    let record = run.expect("valid parameters").expect("not stopped");
    let packets = record.packets.as_ref().expect("packets are kept");
    let mut delays = Samples::default();
    packets.iter().for_each(|packet| delays.add(packet.delay.saturating_sub(DELAY).as_millis_f64()));
    let used = packets.len() as f64 / offered as f64 * 100.0;
    (used, delays.quantile(0.95).expect("there are packets"))
}

#[test]
fn tcp_fills_recorded_links_like_the_kernel_over_mahimahi() {
    let Some(trace) = reference_file("traces/README.md") else { return };
    let folder = trace.parent().expect("a folder of traces");
    let mut wrong = Vec::new();
    for row in &ROWS {
        let runs: Vec<_> = (1..=3).map(|seed| measure(row, folder, seed)).collect();
        let mean = |of: fn(&(f64, f64)) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        let (used, p95) = (mean(|run| run.0), mean(|run| run.1));
        let line = format!(
            "{:18} {:12} {:6} {used:5.1} % used ({:5.1}), p95 {p95:7.0} ms ({:6.0}, {:+.0} %)",
            row.trace,
            row.queue,
            row.law,
            row.utilisation,
            row.p95_ms,
            (p95 / row.p95_ms - 1.0) * 100.0
        );
        println!("{line}");
        if (used - row.utilisation).abs() > 3.0 || (p95 / row.p95_ms - 1.0).abs() > 0.25 {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "beyond 3 points or 25 %:\n{}", wrong.join("\n"));
}
