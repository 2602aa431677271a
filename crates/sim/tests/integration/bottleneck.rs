//! One flow over 50 Mbit/s, 20 ms, 1000 packets: what theory and a Linux kernel say.
//!
//! The kernel's figures are of Linux 6.18 over an emulated link of the same parameters, over the same seconds of a run.
//! The lab's own comparison with the kernel of the machine at hand is an end-to-end test.

use crate::support;

use lasthop_report::{Key, RunRecord, SeriesKind};
use support::{parse, simulate, value};

/// The link of `scenarios/wired/bottleneck-50mbit.toml`, long enough for a loss-based law to leave its slow start.
const SCENARIO: &str = r#"
title = "One download over a 50 Mbit/s bottleneck"
duration = "18 s"
warm-up = "3 s"

[wire]
rate = "1 Gbit/s"
delay = "10 ms"

[hop.wired]
rate = "50 Mbit/s"
queue = { kind = "fifo", limit = "1000 packets" }

[[station]]
name = "station"

[[traffic]]
kind = "bulk"
to = "station"

[laws.cubic]
sender = "cubic"

[laws.bbr]
sender = "bbr"

[laws.reno]
sender = "reno"
"#;

fn run(law: &str) -> RunRecord {
    simulate(&parse(SCENARIO), law, 1)
}

/// 1448 bytes of payload in packets of 1500.
const CEILING: f64 = 50.0 * 1448.0 / 1500.0;

#[test]
fn no_law_exceeds_the_payload_share_and_each_fills_the_link() {
    for law in ["cubic", "bbr", "reno"] {
        let throughput = value(&run(law), Key::Throughput);
        assert!(throughput <= CEILING * 1.001, "{law}: {throughput} of {CEILING}");
        assert!(throughput >= CEILING * 0.95, "{law}: {throughput} of {CEILING}");
    }
}

#[test]
fn no_packet_waits_longer_than_a_full_queue() {
    // 1001 packets of 1500 bytes at 50 Mbit/s are 240.24 ms.
    for law in ["cubic", "bbr", "reno"] {
        let p99 = value(&run(law), Key::HopDelayP99);
        assert!(p99 <= 240.5, "{law}: {p99} ms");
    }
}

/// Mean hop delay in milliseconds (a packet's own 0.24 ms on the wire included) and throughput in Mbit/s that the
/// kernel showed between 3 and 18 s.
const KERNEL: [(&str, f64, f64); 3] = [("cubic", 198.1, 48.27), ("bbr", 4.9, 47.55), ("reno", 124.7, 48.27)];

#[test]
fn delay_and_throughput_are_those_of_the_kernel() {
    for (law, delay, throughput) in KERNEL {
        let record = run(law);
        let (own_delay, own_throughput) = (value(&record, Key::HopDelayMean), value(&record, Key::Throughput));
        println!("{law}: {own_delay:.2} ms, {own_throughput:.2} Mbit/s; kernel: {delay} ms, {throughput} Mbit/s");
        let allowed = (0.2 * delay).max(2.0);
        assert!((own_delay - delay).abs() <= allowed, "{law}: {own_delay} ms, kernel {delay} ms");
        assert!(
            (own_throughput / throughput - 1.0).abs() <= 0.1,
            "{law}: {own_throughput}, kernel {throughput} Mbit/s"
        );
    }
}

#[test]
fn a_cable_has_no_estimate_of_its_capacity() {
    assert!(run("cubic").tracks.iter().all(|track| track.kind != SeriesKind::Capacity));
}
