//! Losses on the air, and a path that is gone for a while: the regulator neither fills the queue nor forgets what was there.

mod support;

use lasthop_report::Key;
use lasthop_scenario::Scenario;
use support::{Wifi, parse, shipped, value, values};

const SEEDS: std::ops::RangeInclusive<u64> = 1..=2;

/// The shipped scenario, cut short, with this share of MPDUs damaged.
fn damaged(share: &str) -> Scenario {
    let mut text = std::fs::read_to_string(shipped("aggregation/lossy.toml")).expect("a shipped scenario");
    let rate = format!("mpdu-error-rate = {share}");
    let changes = [
        ("duration = \"40 s\"", "duration = \"25 s\""),
        ("warm-up = \"20 s\"", "warm-up = \"15 s\""),
        ("mpdu-error-rate = 0.05", rate.as_str()),
    ];
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    parse(&text)
}

#[test]
fn packets_that_are_sent_again_do_not_fill_the_queue() {
    for share in ["0.05", "0.2"] {
        let scenario = damaged(share);
        for seed in SEEDS {
            let [ours, cubic] = ["regulator", "cubic"].map(|law| support::simulate(&scenario, law, seed));
            let times = |key| value(&ours, key) / value(&cubic, key);
            let (used, delay) = (times(Key::Throughput), times(Key::HopDelayP95));
            let lost = value(&ours, Key::Losses);
            eprintln!(
                "{share}, seed {seed}: {used:.2} of CUBIC's throughput, {delay:.2} of its p95, {lost:.0} in a million lost"
            );
            assert!(used >= 1.0 && delay < 0.6 && lost < 1000.0, "{share}, seed {seed}: {used}, {delay}, {lost}");
        }
    }
}

#[test]
fn a_path_that_was_gone_for_three_seconds_is_used_again_within_half_a_minute() {
    let rest = r#"
[backhaul]
rate = "1 Gbit/s"
changes = [{ at = "12 s", rate = "200 kbit/s" }, { at = "15 s", rate = "1 Gbit/s" }]
[[station]]
name = "sta"
count = 3
mcs = 7
[[traffic]]
kind = "bulk"
to = "each"
[laws.cubic]
sender = "cubic"
[laws.regulator]
sender = "cubic"
regulator = { target = "10 ms" }
"#;
    let scenario =
        Wifi { title: "An outage", times: ("55 s", "45 s"), delay: "2 ms", rest, ..Wifi::default() }.scenario();
    let of = |law| values(&scenario, law, Key::Throughput, SEEDS);
    for (ours, cubic) in of("regulator").iter().zip(of("cubic")) {
        assert!(*ours >= 0.8 * cubic, "{ours} of {cubic} Mbit/s");
    }
}
