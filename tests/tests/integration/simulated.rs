//! A run in the simulator: the files it writes, and that they are the same every time.

use lasthop_tests::{json, lasthop, own_scenario, run, scenario};
use std::collections::BTreeSet;
use std::path::Path;

/// Keys of the figures of every law, as documented, with their units.
const FIGURES: [(&str, &str); 10] = [
    ("throughput_mbit_s", "Mbit/s"),
    ("hop_delay_mean_ms", "ms"),
    ("hop_delay_p95_ms", "ms"),
    ("hop_delay_p99_ms", "ms"),
    ("probe_delay_p95_ms", "ms"),
    ("fetch_p50_ms", "ms"),
    ("fetch_p95_ms", "ms"),
    ("jitter_ms", "ms"),
    ("retransmission_ratio", "1"),
    ("jain", "1"),
];

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).expect("the directory that was asked for");
    entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn first_light_writes_the_documented_files_the_same_each_time() {
    let folder = tempfile::tempdir().expect("a directory");
    let outs = ["first", "second"].map(|name| folder.path().join("made").join(name));
    for out in &outs {
        let path = scenario("first-light");
        let arguments = ["run", &path.to_string_lossy(), "--world", "sim", "--seed", "1", "--law", "cubic+ap", "--out"];
        let ended = run(lasthop(arguments).arg(out)).succeeded();
        assert!(ended.out.contains("simulated in virtual time"), "the table says in which world:\n{}", ended.out);
        assert!(ended.out.contains("result.json") && ended.out.contains("cubic+ap"), "{}", ended.out);
    }
    let documented = ["report.html", "result.json", "run.json", "series.parquet"].map(str::to_owned);
    assert_eq!(names(&outs[0]), BTreeSet::from(documented));

    let bytes = |place: usize, name: &str| std::fs::read(outs[place].join(name)).expect("written");
    assert!(bytes(0, "result.json") == bytes(1, "result.json"), "two equal runs differ in result.json");
    assert!(bytes(0, "series.parquet") == bytes(1, "series.parquet"), "two equal runs differ in series.parquet");
    assert_eq!(&bytes(0, "series.parquet")[..4], b"PAR1");

    let info = json(&outs[0].join("run.json"));
    assert_eq!(info["clock"], "virtual");
    assert_eq!(info["runs"][0]["seed"], 1);
    assert!(info["command"].as_array().is_some_and(|words| words.iter().any(|word| word == "--law")), "{info}");

    let result = json(&outs[0].join("result.json"));
    assert_eq!(result["world"], "sim");
    let laws = result["laws"].as_object().expect("a table of laws");
    assert_eq!(laws.keys().collect::<Vec<_>>(), ["cubic+ap"]);
    for (key, unit) in FIGURES {
        let figure = laws["cubic+ap"][key].as_object().unwrap_or_else(|| panic!("{key} is missing in {result}"));
        let parts = BTreeSet::from(["unit", "mean", "sd", "ci95", "n", "values"]);
        assert_eq!(figure.keys().map(String::as_str).collect::<BTreeSet<_>>(), parts, "{key}");
        assert_eq!(figure["unit"], unit, "{key}");
        assert!(figure["mean"].as_f64().is_some_and(|mean| mean >= 0.0), "{key}: {figure:?}");
        // One seed says nothing about the next.
        assert!(figure["sd"].is_null() && figure["ci95"].is_null(), "{key}: {figure:?}");
    }
}

#[test]
fn compare_prints_ratios_and_intervals_over_seeds() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = own_scenario("short");
    let arguments =
        ["compare", &path.to_string_lossy(), "--world", "sim", "--seeds", "3", "--laws", "cubic,reno,cubic+ap"];
    let ended = run(lasthop(arguments).arg("--out").arg(folder.path())).succeeded();
    let (_, ratios) = ended.out.split_once("As multiples of cubic:").unwrap_or_else(|| panic!("{}", ended.out));
    for part in ["reno", "cubic+ap", "Throughput", "Hop delay"] {
        assert!(ratios.contains(part), "no ratios of {part}:\n{}", ended.out);
    }
    assert!(ratios.contains(|digit: char| digit.is_ascii_digit()), "{ratios}");
    let result = json(&folder.path().join("result.json"));
    for law in ["cubic", "reno", "cubic+ap"] {
        let figure = &result["laws"][law]["throughput_mbit_s"];
        let bound = |place: usize| figure["ci95"][place].as_f64().expect("three seeds have an interval");
        let mean = figure["mean"].as_f64().expect("a mean");
        assert!(bound(0) <= mean && mean <= bound(1) && figure["sd"].is_number(), "{figure}");
    }
}

#[test]
fn the_report_needs_nothing_from_elsewhere() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = own_scenario("short");
    let arguments = ["run", &path.to_string_lossy(), "--world", "sim", "--out"];
    run(lasthop(arguments).arg(folder.path())).succeeded();
    let page = std::fs::read_to_string(folder.path().join("report.html")).expect("written");
    assert!(page.starts_with("<!DOCTYPE html>") || page.starts_with("<!doctype html>"));
    for fetched in
        ["src=\"http", "src='http", "src=\"//", "<link rel=\"stylesheet\"", "@import", "url(http", "fetch(\"http"]
    {
        assert!(!page.contains(fetched), "the page fetches something: {fetched}");
    }
    assert!(page.contains("prefers-color-scheme"), "dark and light");
    assert!(page.contains("cubic+ap") && page.contains("A short run with everything in it"));
}

#[test]
fn packets_are_kept_when_asked_for_and_not_left_over_when_not() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = own_scenario("short");
    let arguments = ["run", &path.to_string_lossy(), "--world", "sim", "--law", "cubic", "--out"];
    run(lasthop(arguments).arg(folder.path()).arg("--packets")).succeeded();
    assert!(names(folder.path()).contains("packets.parquet"));
    run(lasthop(arguments).arg(folder.path())).succeeded();
    assert!(!names(folder.path()).contains("packets.parquet"), "packets of an earlier run beside new figures");
}

#[test]
fn a_relative_path_is_that_of_the_caller() {
    let folder = tempfile::tempdir().expect("a directory");
    std::fs::copy(own_scenario("short"), folder.path().join("mine.toml")).expect("copied");
    let arguments = ["run", "mine.toml", "--world", "sim", "--law", "cubic"];
    run(lasthop(arguments).current_dir(folder.path())).succeeded();
    // Without --out: under out/, by the scenario's name.
    assert!(folder.path().join("out/mine/result.json").exists());
}
