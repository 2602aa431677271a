//! `lasthop aggregation`: what it says of captures and of interfaces, and what it says when it cannot.

use lasthop_tests::{lasthop, run};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A capture of the reference data; says so if it is not there.
fn reference(name: &str) -> Option<PathBuf> {
    let beside = || lasthop_tests::root().join("../shared/reference");
    let root = std::env::var_os("LASTHOP_REFERENCE").map_or_else(beside, PathBuf::from);
    let path = root.join("captures").join(name);
    if !path.exists() {
        eprintln!("SKIPPED: reference data absent: {}", path.display());
        return None;
    }
    Some(path)
}

fn object(path: &Path, more: &[&str]) -> Value {
    let ended = run(lasthop(["aggregation", "--json"]).args(more).arg(path)).succeeded();
    serde_json::from_str(&ended.out).expect("one JSON object")
}

/// A little-endian capture of QoS data frames without A-MPDU status, `data` sequence numbers long.
fn capture(link: u32, data: u16) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, link] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for n in 0..data {
        // Flags and rate (24 Mbit/s), then a frame from the distribution system.
        let mut packet = vec![0, 0, 10, 0, 6, 0, 0, 0, 0, 48, 0x88, 0x02, 0, 0];
        packet.extend_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1]);
        packet.extend_from_slice(&(n << 4).to_le_bytes());
        packet.extend_from_slice(&[0; 32]);
        for word in [10, u32::from(n) * 1_000, packet.len() as u32, packet.len() as u32] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(&packet);
    }
    file
}

#[test]
fn a_capture_is_counted_as_other_tools_count_it() {
    let Some(path) = reference("wifi_minstrel_blues_set/carambola2/carambola2-1-1-d10-10M-1.pcap") else { return };
    let found = object(&path, &["--by-reference"]);
    let first = &found["conversations"][0];
    assert_eq!(first["transmitter"], "90:f6:52:f6:04:c5");
    assert_eq!(first["receiver"], "c4:93:00:00:b2:49");
    let sizes = &first["received_mpdus"];
    assert_eq!((&first["ampdus"], &sizes["max"]), (&Value::from(1_540), &Value::from(7)));
    assert_eq!(sizes["histogram"], serde_json::json!({ "4": 1518, "5": 7, "6": 5, "7": 10 }));
    let text = run(lasthop(["aggregation", "--by-reference"]).arg(&path)).succeeded();
    assert!(text.out.contains("4:1518 5:7 6:5 7:10") && text.out.contains("mean 4.0305"), "{}", text.out);
}

#[test]
fn intervals_add_up() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("small.pcap");
    std::fs::write(&path, capture(127, 100)).expect("written");
    let whole = object(&path, &[]);
    assert_eq!(whole["captured"], 100);
    assert_eq!(whole["conversations"][0]["frames"], 100);
    let rate = whole["conversations"][0]["phy_rate_mbit_s"].as_f64().expect("known");
    assert!((rate - 24.0).abs() < 1e-3, "{rate}");
    let ended = run(lasthop(["aggregation", "--json", "--interval", "25 ms"]).arg(&path)).succeeded();
    let counts: Vec<u64> = ended
        .out
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).expect("an object a line")["captured"].as_u64().expect("a count")
        })
        .collect();
    assert_eq!((counts.iter().sum::<u64>(), counts.len()), (100, 4), "{counts:?}");
    // Cut in the middle of the last packet: the rest is counted, and it says so.
    let bytes = capture(127, 10);
    std::fs::write(&path, &bytes[..bytes.len() - 5]).expect("written");
    let ended = run(lasthop(["aggregation"]).arg(&path)).succeeded();
    assert!(ended.out.contains("9 frames captured") && ended.err.contains("ends within a packet"), "{ended:?}");
}

#[test]
fn what_cannot_be_measured_is_refused_with_a_remedy() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        path
    };
    let refused = |path: &Path, parts: &[&str]| {
        let _ = run(lasthop(["aggregation"]).arg(path)).failed_saying(parts);
    };
    refused(Path::new("/nowhere/x.pcap"), &["/nowhere/x.pcap"]);
    refused(&file("text", b"#!/bin/sh\n and some more text"), &["not a pcap file"]);
    refused(&file("ng", &[0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 0]), &["pcapng", "editcap"]);
    refused(&file("ethernet", &capture(1, 1)), &["link type 1", "127", "tcpdump -i mon0"]);
    let ended = run(&mut lasthop(["aggregation", "-i", "nosuch0"])).failed_saying(&["nosuch0", "ip link"]);
    assert!(ended.out.is_empty());
    if nix::unistd::Uid::effective().is_root() {
        run(&mut lasthop(["aggregation", "-i", "lo"])).failed_saying(&["lo is no monitor interface", "803", "iw dev"]);
    }
    assert_eq!(run(&mut lasthop(["aggregation"])).status, 2, "neither file nor interface");
    let bare = run(&mut lasthop(["aggregation", "--interval", "5", "x.pcap"]));
    assert!(bare.status == 2 && bare.err.contains("unit"), "{}", bare.err);
}
