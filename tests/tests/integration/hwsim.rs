//! The access point's agent on Linux's wireless stack, as `scripts/test-hwsim` left it: what the agent read beside what `iw` showed, and what it left.
//!
//! Runs where `LASTHOP_HWSIM` names the folder that the guest filled (`make test-hwsim`); says loudly that it is skipped elsewhere.

#[path = "../../../crates/wire/tests/nl80211/iw.rs"]
mod iw;

use iw::{Shown, shown};
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

/// Octets of headers that mac80211, and a qdisc, count with each packet (docs/reference/driver-interface.md, "Without a driver's socket").
const FRAME: u64 = 34;
const ETHERNET: u64 = 14;

/// What the guest left.
struct Left(PathBuf);

impl Left {
    /// Where there is such a folder.
    fn folder() -> Option<Left> {
        let folder = std::env::var_os("LASTHOP_HWSIM").map(|folder| Left(folder.into()));
        if folder.is_none() {
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: the agent on mac80211: it takes a virtual machine (make test-hwsim)"
            );
        }
        folder
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Its last line, as JSON.
    fn json(&self, name: &str) -> Value {
        serde_json::from_str(self.read(name).lines().last().expect("a line")).expect("JSON")
    }

    /// Driver records of an agent's log: when they were read, in s since the guest began, and what they said.
    fn records(&self, log: &str) -> Vec<(f64, Value)> {
        let lines = self.read(log);
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let hops = lines.filter(|line| !line["hop"].is_null());
        hops.map(|mut line| (line["t_ns"].as_f64().expect("a time") / 1e9, line["hop"].take())).collect()
    }

    fn last_record(&self, log: &str) -> Value {
        self.records(log).pop().expect("intervals").1
    }

    /// The stations as iw showed them.
    fn stations(&self, name: &str) -> Vec<Shown> {
        let stations = shown(&self.read(name), "Station ");
        assert_eq!(stations.len(), 2, "{name}");
        stations
    }
}

/// A field that iw must show.
fn number(shown: &Shown, name: &str) -> u64 {
    shown.known(name).unwrap_or_else(|| panic!("iw shows no {name}: {shown:?}"))
}

/// Asserts that what the agent told lies between what was shown just before and just after.
fn between(told: &Value, field: &str, before: u64, after: u64) {
    let value = told[field].as_u64().unwrap_or_else(|| panic!("{field}: {told}"));
    assert!((before..=after).contains(&value), "{field}: {value}, shown {before} and {after}");
}

/// Network-layer octets that wait for a station.
fn waiting(shown: &Shown) -> u64 {
    shown.sum("qsz-byt") - FRAME * shown.sum("qsz-pkt")
}

#[test]
fn every_agent_field_matches_iw_or_is_declared_absent() {
    let Some(left) = Left::folder() else { return };
    let records = left.records("shadow.log");
    let last = &records.last().expect("intervals").1;
    let [before, after] = ["stations.before", "stations.after"].map(|name| left.stations(name));
    let told = last["stations"].as_array().expect("stations");
    assert_eq!(told.len(), 2, "{last}");
    for ((told, before), after) in told.iter().zip(&before).zip(&after) {
        assert_eq!(before.title, after.title, "no station has come or gone");
        // iw looked just before the agent did for the last time, and just after.
        let between = |field: &str, of: &dyn Fn(&Shown) -> u64| {
            println!("{field}: {}, iw {} and {}", told[field], of(before), of(after));
            between(told, field, of(before), of(after));
        };
        let network = |way: &str, shown: &Shown| {
            number(shown, &format!("{way} bytes")) - FRAME * number(shown, &format!("{way} packets"))
        };
        assert_eq!(number(after, "tx failed"), 0, "the simulated air loses nothing: {after:?}");
        between("tx_packets", &|shown| number(shown, "tx packets"));
        between("tx_bytes", &|shown| network("tx", shown));
        between("rx_packets", &|shown| number(shown, "rx packets"));
        // The count never falls, as what iw shows less the headers does when frames without data come: each, of 24 octets or more,
        // takes 10 too many at most. So it is exact as of the record that first told it.
        let octets = told["rx_bytes"].as_u64().expect("a count");
        let told_first = records.iter().find_map(|(_, hop)| {
            let then = hop["stations"].as_array()?.iter().find(|then| then["station"] == told["station"])?;
            (then["rx_bytes"] == told["rx_bytes"]).then(|| then["rx_packets"].as_u64())?
        });
        let since = number(after, "rx packets") - told_first.expect("a record");
        println!(
            "rx_bytes: {octets}, iw {} and {}; {since} packets since",
            network("rx", before),
            network("rx", after)
        );
        assert!((network("rx", before)..=network("rx", after) + 10 * since).contains(&octets), "{told} {after:?}");
        between("tx_retries", &|shown| number(shown, "tx retries"));
        between("tx_failed", &|shown| number(shown, "tx failed"));
        between("tx_attempts", &|shown| number(shown, "tx packets") + number(shown, "tx retries"));
        between("backlog_packets", &|shown| shown.sum("qsz-pkt"));
        between("backlog_bytes", &waiting);
        between("queue_drops", &|shown| shown.sum("drops") + shown.sum("overlmt"));
        let rate: f64 = after.known("tx bitrate").expect("a rate");
        assert_eq!(told["phy_rate_bps"].as_f64(), Some(rate * 1e6), "{told}");
        for (field, name) in [("tx_airtime_ns", "tx duration"), ("rx_airtime_ns", "rx duration")] {
            match number(after, name) {
                0 => assert!(told[field].is_null(), "{field}: nothing is counted: {told}"),
                us => assert_eq!(told[field].as_u64(), Some(us * 1_000), "{field}"),
            }
        }
        for absent in ["head_wait_ns", "tx_ppdus"] {
            assert!(told[absent].is_null(), "no driver tells {absent}: {told}");
        }
    }
    assert_eq!(last["queues"], serde_json::json!([]), "above mac80211's queues there is none");
    assert!(left.read("qdisc").contains("noqueue"));
}

#[test]
fn no_channel_time_is_told_of_a_survey_that_stands_still() {
    let Some(left) = Left::folder() else { return };
    // The radio's survey knows channels that were scanned; of none it says that it is in use.
    let channels = shown(&left.read("survey"), "Survey data from");
    assert!(!channels.is_empty() && channels.iter().all(|channel| !channel.fields["frequency"].contains("in use")));
    let records = left.records("shadow.log");
    let (first, last) = (&records[0], records.last().expect("intervals"));
    for (_, hop) in &records {
        for absent in ["busy_ns", "rx_ns", "tx_ns", "scan_ns", "noise_dbm"] {
            assert!(hop[absent].is_null(), "{absent}: {hop}");
        }
    }
    // The clock stands in for the time on the channel. An interval's time is that of its end, at most 50 ms after the record.
    let active = |(_, hop): &(f64, Value)| hop["active_ns"].as_f64().expect("a time") / 1e9;
    let (grown, passed) = (active(last) - active(first), last.0 - first.0);
    assert!((grown - passed).abs() < 1.0 && passed > 5.0, "{grown} s on the channel in {passed} s");
    assert!(left.read("shadow.err").contains("no channel times (its survey stands still)"));
}

#[test]
fn packets_that_wait_in_mac80211_are_told() {
    let Some(left) = Left::folder() else { return };
    let [before, after] = ["waiting.before", "waiting.after"].map(|name| left.stations(name));
    let busy = |shown: &Shown| shown.queues.iter().filter(|queue| queue["qsz-pkt"] > 0).count();
    assert_eq!(before.iter().map(busy).collect::<Vec<_>>(), [2, 0], "packets of two TIDs wait for the first");
    let [from, to] = ["waiting.from", "waiting.to"].map(|name| {
        let uptime = left.read(name);
        uptime.split(' ').next().expect("a word").parse::<f64>().expect("seconds")
    });
    let records: Vec<_> =
        left.records("shadow.log").into_iter().filter(|(at, _)| (from + 0.1..=to).contains(at)).collect();
    assert!(!records.is_empty(), "the agent looked between {from} and {to} s");
    for (_, hop) in &records {
        for ((told, before), after) in hop["stations"].as_array().expect("stations").iter().zip(&before).zip(&after) {
            between(told, "backlog_packets", before.sum("qsz-pkt"), after.sum("qsz-pkt"));
            between(told, "backlog_bytes", waiting(before), waiting(after));
        }
    }
}

#[test]
fn a_queue_above_mac80211_is_what_tc_shows() {
    let Some(left) = Left::folder() else { return };
    let last = left.last_record("queues.log");
    let [before, after] = ["queues.before", "queues.after"].map(|name| left.read(name));
    let [queue] = &last["queues"].as_array().expect("queues")[..] else { panic!("one queue: {last}") };
    // Sent 5 bytes 6 pkt (dropped 7, overlimits 8 requeues 9) / backlog 1b 2p
    let numbers = |text: &str| -> Vec<u64> {
        let (_, numbers) = text.split_once("Sent").expect("statistics");
        let numbers = numbers.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty());
        numbers.map(|number| number.parse().expect("digits")).collect()
    };
    let (before, after) = (numbers(&before), numbers(&after));
    assert_eq!(queue["queue"], 1);
    let between = |field: &str, of: &dyn Fn(&[u64]) -> u64| between(queue, field, of(&before), of(&after));
    between("tx_bytes", &|n| n[0] - ETHERNET * n[1]);
    between("tx_packets", &|n| n[1]);
    between("drops", &|n| n[2]);
    between("requeues", &|n| n[4]);
    between("backlog_bytes", &|n| n[5] - ETHERNET * n[6]);
    between("backlog_packets", &|n| n[6]);
    assert!(before[1] > 100, "what was sent passed the queue: {before:?}");
}

#[test]
fn both_modes_start_and_a_killed_agent_leaves_nothing() {
    let Some(left) = Left::folder() else { return };
    let (read, json) = (|name| left.read(name), |name| left.json(name));
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
    // Killed, it left no filter, no queue and nothing pinned.
    assert!(read("clean").contains("0 filters removed"), "{}", read("clean"));
    assert_eq!(read("left"), read("qdisc"), "tc shows what was there before, and no filter");
    assert_eq!(read("pinned.after"), read("pinned.before"));
    for transfer in ["down", "up", "acted", "after"] {
        assert!(read(transfer).contains("receiver"), "{transfer}: {}", read(transfer));
    }
}
