//! The access point's agent on Linux's wireless stack, as `scripts/test-hwsim` left it: what the agent read beside what `iw` showed, and what it left.
//!
//! Runs where `LASTHOP_HWSIM` names the folder that the guest filled (`make test-hwsim`); says loudly that it is skipped elsewhere.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

/// The folder, if there is one.
fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("LASTHOP_HWSIM").map(PathBuf::from);
    if folder.is_none() {
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: the agent on mac80211: it takes a virtual machine (make test-hwsim)");
    }
    folder
}

/// What `iw dev station dump -v` shows of a station: fields by name, and the sums of its queues' columns by heading.
#[derive(Debug, Default)]
struct Shown {
    fields: BTreeMap<String, String>,
    queues: BTreeMap<String, u64>,
}

impl Shown {
    fn number(&self, name: &str) -> u64 {
        let text = self.fields.get(name).unwrap_or_else(|| panic!("iw shows no {name}: {self:?}"));
        let digits = text.split_whitespace().next().unwrap_or_default();
        digits.parse().unwrap_or_else(|_| panic!("{name}: {text}"))
    }
}

fn shown(text: &str) -> Vec<Shown> {
    let mut stations: Vec<Shown> = Vec::new();
    let mut headings: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with("Station ") {
            stations.push(Shown::default());
            continue;
        }
        let Some(station) = stations.last_mut() else { continue };
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first() == Some(&"TID") {
            headings = words.iter().map(|word| (*word).to_owned()).collect();
        } else if !headings.is_empty()
            && words.len() == headings.len()
            && words.iter().all(|word| word.parse::<u64>().is_ok())
        {
            for (heading, word) in headings.iter().zip(&words) {
                *station.queues.entry(heading.clone()).or_default() += word.parse::<u64>().expect("looked at above");
            }
        } else if let Some((name, value)) = line.trim().split_once(':') {
            headings.clear();
            station.fields.insert(name.to_owned(), value.trim().to_owned());
        }
    }
    stations
}

#[test]
fn every_field_of_the_agents_is_what_iw_shows_or_is_declared_absent() {
    let Some(folder) = folder() else { return };
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let log = read("shadow.log");
    let last = log.lines().rev().find(|line| line.contains("\"hop\":")).expect("intervals");
    let last: Value = serde_json::from_str(last).expect("JSON");
    let [before, after] = ["stations.before", "stations.after"].map(|name| shown(&read(name)));
    let told = last["hop"]["stations"].as_array().expect("stations");
    assert_eq!((told.len(), before.len(), after.len()), (2, 2, 2), "{last}");
    for ((told, before), after) in told.iter().zip(&before).zip(&after) {
        // iw looked just before the agent did for the last time, and just after.
        let between = |field: &str, of: &dyn Fn(&Shown) -> u64| {
            let value = told[field].as_u64().unwrap_or_else(|| panic!("{field}: {told}"));
            println!("{field}: {value}, iw {} and {}", of(before), of(after));
            assert!((of(before)..=of(after)).contains(&value), "{field}: {value}, iw {} and {}", of(before), of(after));
        };
        // docs/reference/driver-interface.md, "Without a driver's socket".
        let network = |way: &str, shown: &Shown| {
            shown.number(&format!("{way} bytes")) - 34 * shown.number(&format!("{way} packets"))
        };
        assert_eq!(after.number("tx failed"), 0, "the simulated air loses nothing: {after:?}");
        between("tx_packets", &|shown| shown.number("tx packets"));
        between("tx_bytes", &|shown| network("tx", shown));
        between("rx_packets", &|shown| shown.number("rx packets"));
        between("rx_bytes", &|shown| network("rx", shown));
        between("tx_retries", &|shown| shown.number("tx retries"));
        between("tx_failed", &|shown| shown.number("tx failed"));
        between("tx_attempts", &|shown| shown.number("tx packets") + shown.number("tx retries"));
        let queues = |heading: &'static str| move |shown: &Shown| shown.queues[heading];
        between("backlog_packets", &queues("qsz-pkt"));
        between("backlog_bytes", &queues("qsz-byt"));
        between("queue_drops", &|shown| shown.queues["drops"] + shown.queues["overlmt"]);
        let rate = after.fields["tx bitrate"].split(' ').next().expect("a word").parse::<f64>().expect("Mbit/s");
        assert_eq!(told["phy_rate_bps"].as_f64(), Some(rate * 1e6), "{told}");
        for (field, name) in [("tx_airtime_ns", "tx duration"), ("rx_airtime_ns", "rx duration")] {
            match after.number(name) {
                0 => assert!(told[field].is_null(), "{field}: nothing is counted: {told}"),
                us => assert_eq!(told[field].as_u64(), Some(us * 1_000), "{field}"),
            }
        }
        for absent in ["head_wait_ns", "tx_ppdus"] {
            assert!(told[absent].is_null(), "no driver tells {absent}: {told}");
        }
    }
    // A survey of the channel in use, or none.
    let survey = read("survey").contains("[in use]");
    println!("survey of the channel in use: {survey}");
    let live = !last["hop"]["busy_ns"].is_null();
    assert!(survey || !live, "{last}");
    assert!(read("qdisc").contains("noqueue") && last["hop"]["queues"] == serde_json::json!([]), "{last}");
}

#[test]
fn both_modes_start_and_a_killed_agent_leaves_nothing() {
    let Some(folder) = folder() else { return };
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let json =
        |name: &str| -> Value { serde_json::from_str(read(name).lines().last().expect("a line")).expect("JSON") };
    println!("kernel {}", read("kernel").trim());
    let (shadow, act) = (json("shadow.status"), json("act.status"));
    assert_eq!((&shadow["shadow"], &act["shadow"]), (&true.into(), &false.into()));
    for status in [&shadow, &act] {
        println!("{status}");
        let done = &status["done"];
        assert!(done["intervals"].as_u64() > Some(10) && done["flows"].as_u64() >= Some(2), "{status}");
        assert_eq!(done["refused_reports"], 0, "what the kernel counts is believed: {status}");
        assert_eq!(status["stations"].as_array().map(Vec::len), Some(2), "{status}");
    }
    let account = &json("shadow.out")["agent"];
    assert_eq!((&account["rewritten"], &account["shadow"]), (&0.into(), &true.into()), "{account}");
    assert!(read("clean").contains("0 filters removed"), "{}", read("clean"));
    for transfer in ["down", "up", "acted", "after"] {
        assert!(read(transfer).contains("receiver"), "{transfer}: {}", read(transfer));
    }
}
