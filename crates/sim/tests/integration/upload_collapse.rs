//! Uploads over 802.11g with rate control against ns-3 3.37 (reference data S6). With ARF the total of
//! three stations and more collapses over a perfect channel: collisions look like losses, rates fall,
//! and frames last longer. With minstrel and at a fixed rate it does not.
//!
//! The world is the reference's: all rates of an ERP, queues of 1000 packets, a wire of 2 or 128 ms
//! one way, bulk uploads that begin within a second. Nothing is fitted.

use crate::support;

use lasthop_report::Key;
use std::io::Write as _;
use support::{parse, simulate, value};

/// A row of the reference: what it is of, and what ns-3 measured.
struct Row {
    control: String,
    rtt_ms: f64,
    stations: u32,
    /// Mbit/s.
    goodput: f64,
    /// Milliseconds.
    rtt: f64,
}

/// Rate controls of the reference that Lasthop has, and a fixed rate.
const CONTROLS: [&str; 3] = ["Arf", "Minstrel", "Fixed54"];

fn reference() -> Option<Vec<Row>> {
    support::reference("ns3/s6_agg.csv", |cell| {
        let of = |name: &str| -> Option<f64> { cell(name)?.parse().ok() };
        Some(Row {
            control: cell("rate_control")?,
            rtt_ms: of("base_rtt_ms")?,
            stations: of("n_sta")? as u32,
            goodput: of("goodput_mbps_avg")?,
            rtt: of("mean_rtt_ms_avg")?,
        })
    })
}

/// Goodput in Mbit/s and mean RTT in ms of ours, of one seed.
fn ours(row: &Row, seed: u64) -> [f64; 2] {
    let (duration, warm_up) = if row.rtt_ms < 100.0 { (30, 10) } else { (45, 15) };
    let mut text = format!(
        r#"
title = "Uploads"
duration = "{duration} s"
warm-up = "{warm_up} s"
[wire]
rate = "1 Gbit/s"
delay = "{} ms"
[hop.wifi]
standard = "802.11g"
rate-set = "erp"
beacon-interval = "1024 ms"
queue = {{ kind = "fifo", limit = "1000 packets" }}
uplink-queue = "1000 packets"
[laws.cubic]
sender = "cubic"
"#,
        row.rtt_ms / 2.0,
    );
    let rate = match row.control.as_str() {
        "Fixed54" => "rate = \"54 Mbit/s\"".to_owned(),
        control => format!("rate-control = \"{}\"", control.to_lowercase()),
    };
    for n in 0..row.stations {
        let start = 500 + 1000 * n / row.stations;
        text += &format!("[[station]]\nname = \"s{n}\"\n{rate}\n");
        text += &format!("[[traffic]]\nkind = \"bulk\"\nfrom = \"s{n}\"\nto = \"server\"\nstart = \"{start} ms\"\n");
    }
    let record = simulate(&parse(&text), "cubic", seed);
    [value(&record, Key::Throughput), value(&record, Key::RttMean)]
}

/// Seeds of ours. With ARF goodput depends on which station happens to climb: over 24 seeds of three
/// stations and 4 ms its standard deviation is a quarter of the mean.
fn seeds(row: &Row) -> u64 {
    if row.control == "Arf" { 6 } else { 1 }
}

#[test]
fn uploads_collapse_with_arf_and_with_nothing_else() {
    let Some(mut rows) = reference() else { return };
    rows.retain(|row| {
        let ours = CONTROLS.contains(&row.control.as_str());
        if !ours {
            // Past the capture of test output.
            let _ =
                writeln!(std::io::stderr(), "SKIPPED: reference row: there is no rate control {} here", row.control);
        }
        ours
    });
    assert!(rows.len() >= 18, "the reference has been cut: {} rows", rows.len());
    let mean = |row: &Row| {
        let figures: Vec<[f64; 2]> = (1..=seeds(row)).map(|seed| ours(row, seed)).collect();
        [0, 1].map(|of| figures.iter().map(|figures| figures[of]).sum::<f64>() / figures.len() as f64)
    };
    let measured: Vec<[f64; 2]> = rows.iter().map(mean).collect();
    for (row, [goodput, rtt]) in rows.iter().zip(&measured) {
        let name = format!("{}, RTT {} ms, n = {}", row.control, row.rtt_ms, row.stations);
        println!("{name}: {goodput:.2} Mbit/s, {rtt:.0} ms; ns-3 {:.2}, {:.0}", row.goodput, row.rtt);
        let alone = rows
            .iter()
            .position(|other| (&other.control, other.rtt_ms, other.stations) == (&row.control, row.rtt_ms, 1))
            .expect("one station of each");
        if row.stations == 1 {
            // ns-3's Minstrel is the older one, which gives a tenth of its frames to samples.
            let alike = (goodput / row.goodput - 1.0).abs() <= 0.15 || row.control == "Minstrel";
            assert!(alike, "{name}: {goodput} Mbit/s, ns-3 {}", row.goodput);
            continue;
        }
        // Of ours and of ns-3: what is left of what one station has.
        let left = [goodput / measured[alone][0], row.goodput / rows[alone].goodput];
        if row.control == "Arf" {
            assert!(left.iter().all(|left| *left < 1.0 / 3.0), "{name}: {left:?} of one station");
            assert!(*rtt > 1_000.0 && row.rtt > 1_000.0, "{name}: {rtt} ms, ns-3 {}", row.rtt);
        } else {
            assert!(left.iter().all(|left| *left > 0.8), "{name}: {left:?} of one station");
        }
    }
}
