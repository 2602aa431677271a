//! The regulated hop in the lab: kernel TCP, iperf3 and fetches through the edge proxy and the stations' agents, which read the
//! radio's frames off their monitor interfaces.

use lasthop_tests::{ends_within, json, lab, lab_run, leavings};
use std::time::Duration;

#[test]
fn every_kind_of_traffic_passes_the_proxy_and_the_regulator_sees_the_frames() {
    let Some(_lab) = lab() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let child = lab_run("regulated", "regulated", folder.path()).spawn().expect("it starts");
    let id = child.id();
    ends_within(child, Duration::from_secs(20)).succeeded();
    assert_eq!(leavings(id), [""; 0]);
    let result = json(&folder.path().join("result.json"));
    let run = &json(&folder.path().join("run.json"))["runs"][0];
    let figures = &result["laws"]["regulated"];
    let mean = |figures: &serde_json::Value, key: &str| figures[key]["mean"].as_f64();
    // Fetches and, of station two, iperf3 reach their servers only through the tunnel.
    assert!(mean(figures, "fetch_p50_ms").is_some(), "no fetch came through: {figures}");
    let stations = run["regulated"].as_array().expect("one account a station");
    assert_eq!(stations.len(), 2, "{run}");
    for account in stations {
        let number = |key: &str| account[key].as_f64().unwrap_or_else(|| panic!("{key} is unknown: {account}"));
        let name = account["station"].as_str().expect("a name");
        let throughput = mean(&result["stations"]["regulated"][name], "throughput_mbit_s").expect("a bulk download");
        // Half a second a slot.
        assert!(number("slots") >= 8.0, "{account}");
        assert!(throughput > 2.0, "{name}: {throughput} Mbit/s");
        // The rate allowed includes headers, and is used.
        assert!(
            number("rate_mbit_s") > throughput && number("rate_mbit_s") < 3.0 * throughput,
            "{account}: {throughput}"
        );
        // What the station counted on its monitor interface against what the emulator sent. The rates still change, and the account
        // is a mean over slots: where slots hold n frames each, the mean of 1/n is never below 1 over the mean of n.
        let (counted, sent) = (number("interval_ms"), number("frame_interval_ms"));
        assert!(counted > 0.8 * sent && counted < 100.0, "{account}");
        assert!(number("aggregation_packets") > 1.0 && number("target_packets") > 1.0, "{account}");
        assert!(number("looks_over_bound") < 0.05, "{account}");
    }
}
