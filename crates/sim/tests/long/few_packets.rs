//! Stations that are sent a few packets a second beside downloads: they are not in every round, and do not count as if they were.

use crate::support;

use lasthop_report::Key;
use lasthop_scenario::Scenario;
use support::{CUBIC, Wifi, download, regulator, simulate, stations, value};

/// Downloads to `bulk` stations at MCS 9, and to 20 more 500 B four times a second, to the end or for a second.
fn beside(few: bool, bulk: u32, target_ms: u32) -> Scenario {
    let until = if few { "25 s" } else { "1 s" };
    let fetches = format!(
        r#"
[[traffic]]
kind = "fetch"
to = "few"
every = "250 ms"
size = "500 B"
start = "0.1 s"
stop = "{until}"
"#
    );
    let hop = stations("bulk", bulk, 9) + &stations("few", 20, 9);
    let rest = hop + &download("bulk") + &fetches + &regulator(&format!("{target_ms} ms")) + CUBIC;
    let title = "Few packets beside downloads";
    Wifi { title, times: ("25 s", "10 s"), delay: "2 ms", rest: &rest, ..Wifi::default() }.scenario()
}

#[test]
fn downloads_keep_what_stations_of_few_packets_leave() {
    for (bulk, target_ms) in [(2, 5), (2, 10), (6, 10)] {
        let [with, without] = [true, false].map(|few| beside(few, bulk, target_ms));
        for seed in 1..=2 {
            let rate = |scenario, law| value(&simulate(scenario, law, seed), Key::Throughput);
            // CUBIC's loss is what they take of the air, both ways.
            let left = rate(&with, "cubic") / rate(&without, "cubic");
            let ours = rate(&with, "regulator") / rate(&without, "regulator");
            eprintln!("{bulk} downloads, T = {target_ms} ms, seed {seed}: {ours:.3}, of CUBIC's {left:.3}");
            assert!(ours > 0.97 * left, "{bulk} downloads, T = {target_ms} ms, seed {seed}: {ours}, of CUBIC's {left}");
        }
    }
}

#[test]
fn a_target_that_downloads_can_hold_is_held_beside_them() {
    for target_ms in [5, 10] {
        let scenario = beside(true, 6, target_ms);
        for seed in 1..=2 {
            let run = simulate(&scenario, "regulator", seed);
            let downloads: Vec<f64> = run
                .stations
                .iter()
                .filter(|station| station.name.starts_with("bulk"))
                .filter_map(|station| station.figures[&Key::FrameInterval].value())
                .collect();
            let near = |ms: &f64| (ms / f64::from(target_ms) - 1.0).abs() < 0.1;
            assert!(
                downloads.len() == 6 && downloads.iter().all(near),
                "T = {target_ms} ms, seed {seed}: {downloads:?}"
            );
        }
    }
}
