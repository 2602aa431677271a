//! TCP over an LTE cell, against ns-3.37's TCP over its own (reference data S7, s7_lte_tcp.csv).
//!
//! ns-3 sends segments of 1400 octets in packets of 1452, ours of 1448 in packets of 1500: throughputs are compared as packets,
//! each with the payload of the other one's share. 10 MHz without errors, 750 000 octets for each terminal, a path of 10 ms one
//! way, 20 s of which 5 to 20 count, the second download 50 ms after the first.

mod support;

use lasthop_report::{Key, RunRecord, SeriesKind};
use support::{parse, simulate, value};

/// A row of S7: Mbit/s of payload in all, mean and largest delay in the cell in milliseconds.
struct Row {
    scheduler: &'static str,
    cqi: u8,
    terminals: usize,
    goodput: f64,
    delay: f64,
    most: f64,
}

const fn row(scheduler: &'static str, cqi: u8, terminals: usize, goodput: f64, (delay, most): (f64, f64)) -> Row {
    Row { scheduler, cqi, terminals, goodput, delay, most }
}

const PF: &str = "proportional-fair";
const RR: &str = "round-robin";

const CUBIC: [Row; 6] = [
    row(PF, 15, 1, 33.7994, (145.823, 173.057)),
    row(PF, 15, 2, 33.5216, (239.816, 344.858)),
    row(RR, 15, 2, 33.8292, (243.882, 345.614)),
    row(PF, 7, 1, 9.1467, (515.705, 634.045)),
    row(PF, 7, 2, 8.6494, (893.252, 1266.050)),
    row(RR, 7, 2, 8.7935, (902.569, 1266.000)),
];
const BBR: [Row; 6] = [
    row(PF, 15, 1, 33.2722, (18.692, 31.163)),
    row(PF, 15, 2, 33.2916, (32.978, 52.057)),
    row(RR, 15, 2, 33.2767, (30.579, 40.438)),
    row(PF, 7, 1, 9.0100, (43.583, 53.457)),
    row(PF, 7, 2, 9.0339, (46.217, 62.137)),
    row(RR, 7, 2, 9.0474, (40.572, 56.307)),
];

fn run(row: &Row, law: &str) -> RunRecord {
    let mut text = format!(
        r#"
title = "S7"
duration = "20 s"
warm-up = "5 s"
seeds = 1
[wire]
rate = "1 Gbit/s"
delay = "10 ms"
[hop.cell]
carriers = ["10 MHz"]
scheduler = "{}"
use-remainder = false
queue = "750 kB"
[laws.cubic]
sender = "cubic"
[laws.bbr]
sender = "bbr"
"#,
        row.scheduler
    );
    for n in 0..row.terminals {
        text += &format!("[[station]]\nname = \"t{n}\"\ncqi = {}\n", row.cqi);
        text += &format!("[[traffic]]\nkind = \"bulk\"\nto = \"t{n}\"\nstart = \"{} ms\"\n", 50 * n);
    }
    simulate(&parse(&text), law, 1)
}

/// Our goodput, mean delay and 99th percentile of the delay as multiples of ns-3's goodput, mean and largest delay.
fn compare(row: &Row, law: &str) -> (f64, f64, f64) {
    let record = run(row, law);
    let (goodput, delay) = (value(&record, Key::Throughput), value(&record, Key::HopDelayMean));
    let share = (1448.0 / 1500.0) / (1400.0 / 1452.0);
    let rate = goodput / share;
    println!(
        "{law:5} {:17} CQI {:2}, {} terminals: {rate:7.3} Mbit/s of ns-3's segments (ns-3 {:7.3}), {delay:7.2} ms (ns-3 {:7.2})",
        row.scheduler, row.cqi, row.terminals, row.goodput, row.delay
    );
    (rate / row.goodput, delay / row.delay, value(&record, Key::HopDelayP99) / row.most)
}

#[test]
fn cubic_fills_the_cell_as_in_ns3() {
    let rows: Vec<_> = CUBIC.iter().map(|row| (row, compare(row, "cubic"))).collect();
    for (row, (goodput, delay, most)) in rows {
        let what = format!("{}, CQI {}, {} terminals", row.scheduler, row.cqi, row.terminals);
        assert!((goodput - 1.0).abs() <= 0.05, "{what}: {goodput} of ns-3's goodput");
        // How long a full buffer lasts is the cell's affair.
        assert!((most - 1.0).abs() <= 0.01, "{what}: {most} of ns-3's largest delay");
        // How full it is on average is the sender's. With two of them at CQI 15 ns-3's windows stay lower than ours, and its cell
        // is not always full; its windows are not among the data, so the 20 % that hold elsewhere are 25 % there.
        let allowed = if row.cqi == 15 && row.terminals == 2 { 0.25 } else { 0.2 };
        assert!((delay - 1.0).abs() <= allowed, "{what}: {delay} of ns-3's delay");
    }
}

#[test]
fn bbr_keeps_the_queue_short() {
    // ns-3's BBR is another one, and its delays are printed only. It must fill the cell, with a queue far from full.
    let rows: Vec<_> = BBR.iter().map(|row| (row, compare(row, "bbr"))).collect();
    for (row, (goodput, delay, _)) in rows {
        assert!((goodput - 1.0).abs() <= 0.05, "{}, CQI {}: {goodput} of ns-3's goodput", row.scheduler, row.cqi);
        assert!(delay < 2.0, "{}, CQI {}: {delay} of ns-3's delay", row.scheduler, row.cqi);
    }
}

#[test]
fn the_report_tells_how_much_of_the_cell_is_used() {
    let record = run(&CUBIC[0], "cubic");
    let busy = record.tracks.iter().find(|track| track.kind == SeriesKind::ChannelBusy).expect("it is observed");
    let values: Vec<f64> = busy.values.iter().copied().flatten().collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    // 48 of 50 PRBs, from the end of slow start on.
    assert!((0.93..=0.96).contains(&mean), "{mean}");
}
