//! Losses on the air, and a path that is gone for a while: the regulator neither fills the queue nor forgets what was there.

use crate::support;

use lasthop_report::Key;
use lasthop_scenario::Scenario;
use support::{CUBIC, Wifi, against, download, edited, regulator, simulate, stations, value, values};

const SEEDS: std::ops::RangeInclusive<u64> = 1..=2;

/// The shipped scenario, cut short, with this share of MPDUs damaged.
fn damaged(share: &str) -> Scenario {
    let changes = [
        ("duration = \"40 s\"", "duration = \"25 s\""),
        ("warm-up = \"20 s\"", "warm-up = \"15 s\""),
        ("mpdu-error-rate = 0.05", &format!("mpdu-error-rate = {share}")),
    ];
    edited("aggregation/lossy.toml", &changes)
}

#[test]
fn packets_that_are_sent_again_do_not_fill_the_queue() {
    for share in ["0.05", "0.2"] {
        let scenario = damaged(share);
        for seed in SEEDS {
            let [ours, cubic] = ["regulator", "cubic"].map(|law| simulate(&scenario, law, seed));
            let (used, delay) = against(&ours, &cubic);
            let lost = value(&ours, Key::Losses);
            eprintln!(
                "{share}, seed {seed}: {used:.2} of CUBIC's throughput, {delay:.2} of its p95, {lost:.0} in a million lost"
            );
            assert!(used >= 1.0 && delay < 0.6 && lost < 1000.0, "{share}, seed {seed}: {used}, {delay}, {lost}");
        }
    }
}

#[test]
fn a_path_gone_for_three_seconds_is_used_again_within_ten() {
    let backhaul = r#"
[backhaul]
rate = "1 Gbit/s"
changes = [{ at = "12 s", rate = "200 kbit/s" }, { at = "15 s", rate = "1 Gbit/s" }]
"#;
    let rest = backhaul.to_owned() + &stations("sta", 3, 7) + &download("each") + CUBIC + &regulator("10 ms");
    let scenario =
        Wifi { title: "An outage", times: ("45 s", "25 s"), delay: "2 ms", rest: &rest, ..Wifi::default() }.scenario();
    let of = |law| values(&scenario, law, Key::Throughput, SEEDS);
    for (ours, cubic) in of("regulator").iter().zip(of("cubic")) {
        assert!(*ours >= 0.8 * cubic, "{ours} of {cubic} Mbit/s");
    }
}
