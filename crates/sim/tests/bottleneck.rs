//! One flow over 50 Mbit/s, 20 ms, 1000 packets: what theory and a Linux kernel say.
//!
//! The kernel's figures are of Linux 6.18 over an emulated link of the same parameters (mean over 10 s). The lab's own
//! comparison with the kernel of the machine at hand is an end-to-end test.

use lasthop_report::{Key, RunRecord};
use lasthop_scenario::Scenario;
use std::path::Path;

fn run(law: &str) -> RunRecord {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/wired/bottleneck-50mbit.toml");
    let scenario = Scenario::load(&path).unwrap_or_else(|error| panic!("{error:?}"));
    let law = scenario.law(law).expect("a sender law");
    lasthop_sim::run(&scenario, &law, 1, false, &mut |_| true).expect("valid").expect("not stopped")
}

fn value(record: &RunRecord, key: Key) -> f64 {
    record.figure(key).value().unwrap_or_else(|| panic!("no {}", key.name()))
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

#[test]
fn cubic_fills_the_queue_and_bbr_keeps_it_under_a_bandwidth_delay_product() {
    let (cubic, bbr) = (value(&run("cubic"), Key::HopDelayMean), value(&run("bbr"), Key::HopDelayMean));
    // Kernel: 182 ms over a whole run of 10 s, its slow start included, of 240 ms.
    assert!((145.0..=235.0).contains(&cubic), "CUBIC: {cubic} ms");
    // Kernel: 4 ms. One bandwidth-delay product is 20 ms.
    assert!(bbr < 8.0, "BBR: {bbr} ms");
}
