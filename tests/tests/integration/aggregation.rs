//! `lasthop aggregation`: what it says of captures and of interfaces, and what it says when it cannot.

use lasthop_tests::{PATIENCE, ends_within, lasthop, run};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

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
    // The clock was set meanwhile, by half a century: nobody wants all the seconds between.
    let mut jump = capture(127, 2);
    let second = jump.len() - (jump.len() - 24) / 2;
    jump[second..second + 4].copy_from_slice(&1_700_000_000u32.to_le_bytes());
    std::fs::write(&path, jump).expect("written");
    let ended = run(lasthop(["aggregation", "--json", "--interval", "1 s"]).arg(&path)).succeeded();
    assert!(ended.out.lines().count() < 5 && ended.err.contains("are left out"), "{ended:?}");
    // Cut in the middle of the last packet: the rest is counted, and it says so.
    let bytes = capture(127, 10);
    std::fs::write(&path, &bytes[..bytes.len() - 5]).expect("written");
    let ended = run(lasthop(["aggregation"]).arg(&path)).succeeded();
    assert!(ended.out.contains("9 frames captured") && ended.err.contains("ends within a packet"), "{ended:?}");
}

/// The program with a pipe for its input.
fn piped(more: &[&str]) -> Child {
    let mut command = lasthop(["aggregation", "--json"]);
    command.args(more).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

#[test]
fn a_capture_comes_through_a_pipe_as_it_is_written() {
    let file = capture(127, 100);
    for way in [&["-"][..], &["-r", "-"]] {
        let mut child = piped(way);
        // In pieces that end anywhere; then the writer is gone.
        let mut input = child.stdin.take().expect("a pipe");
        file.chunks(1_111).for_each(|piece| input.write_all(piece).expect("somebody reads"));
        drop(input);
        let ended = ends_within(child, PATIENCE).succeeded();
        let found: Value = serde_json::from_str(&ended.out).expect("one JSON object");
        assert_eq!((&found["captured"], &found["conversations"][0]["frames"]), (&Value::from(100), &Value::from(100)));
    }
    // Intervals are told when they are over, not when the pipe is: each packet is a millisecond later than the one before.
    let mut child = piped(&["--interval", "25 ms", "-"]);
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(&file).expect("somebody reads");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let next: Value = serde_json::from_str(&lines.next().expect("a line").expect("text")).expect("an object a line");
    assert_eq!(next["captured"], 25);
    // Asked to stop it tells what there is, though the writer does not end.
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a process"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("it runs");
    let rest: Vec<String> = lines.map(|line| line.expect("text")).collect();
    assert_eq!((rest.len(), child.wait().expect("it ends").code()), (3, Some(0)), "{rest:?}");
    drop(input);
    let mut child = piped(&["-"]);
    let _ = child.stdin.take().expect("a pipe").write_all(b"#!/bin/sh\n and some more text");
    ends_within(child, PATIENCE).failed_saying(&["standard input", "neither a pcap nor a pcapng file"]);
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
    refused(&file("text", b"#!/bin/sh\n and some more text"), &["neither a pcap nor a pcapng file"]);
    refused(&file("ng", &[0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 0]), &["pcapng", "no interface"]);
    refused(&file("ethernet", &capture(1, 1)), &["link type 1", "127", "tcpdump -i mon0"]);
    let ended = run(&mut lasthop(["aggregation", "-i", "nosuch0"])).failed_saying(&["nosuch0", "ip link"]);
    assert!(ended.out.is_empty());
    if nix::unistd::Uid::effective().is_root() {
        run(&mut lasthop(["aggregation", "-i", "lo"])).failed_saying(&[
            "lo has no 802.11 monitor mode",
            "803",
            "iw dev",
        ]);
    }
    assert_eq!(run(&mut lasthop(["aggregation"])).status, 2, "neither file nor interface");
    let bare = run(&mut lasthop(["aggregation", "--interval", "5", "x.pcap"]));
    assert!(bare.status == 2 && bare.err.contains("unit"), "{}", bare.err);
}

/// A block of pcapng.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let len = (12 + body.len() as u32).to_le_bytes();
    [&kind.to_le_bytes()[..], &len, body, &len].concat()
}

#[test]
fn a_pcapng_is_counted_interface_by_interface() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("two.pcapng");
    let section = block(0x0a0d_0d0a, &[&0x1a2b_3c4du32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat());
    let described =
        |link: u8, name: &[u8; 4]| block(1, &[&[link, 0, 0, 0, 0, 0, 0, 0, 2, 0, 4, 0], &name[..], &[0; 4]].concat());
    let mut file = [section, described(127, b"mon0"), described(1, b"eth0"), described(127, b"mon1")].concat();
    // What `capture` makes, 30 packets on the first interface, 20 on the second, 10 on the third.
    let classic = capture(127, 60);
    for (n, record) in classic[24..].chunks(16 + 66).enumerate() {
        let interface = [0, 1, 0, 1, 0, 2][n % 6u32 as usize];
        let head = [interface, 0u32, n as u32 * 1_000, 66, 66].map(u32::to_le_bytes).concat();
        file.extend(block(6, &[&head[..], &record[16..], &[0; 2]].concat()));
    }
    std::fs::write(&path, &file).expect("written");
    let ended = run(lasthop(["aggregation", "--json"]).arg(&path)).succeeded();
    let lines: Vec<Value> =
        ended.out.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect();
    let counts: Vec<_> = lines.iter().map(|one| (one["interface"].as_str(), one["captured"].as_u64())).collect();
    assert_eq!(counts, [(Some("interface 0 (mon0)"), Some(30)), (Some("interface 2 (mon1)"), Some(10))]);
    assert!(ended.err.contains("interface 1 (eth0) has link type 1, without 802.11"), "{}", ended.err);
    let text = run(lasthop(["aggregation"]).arg(&path)).succeeded();
    assert!(text.out.contains("interface 0 (mon0), 0.000 to"), "{}", text.out);
    // Ethernet alone.
    let section = &file[..28];
    std::fs::write(&path, [section, &described(1, b"eth0")].concat()).expect("written");
    run(lasthop(["aggregation"]).arg(&path)).failed_saying(&["link type 1, not 127", "tcpdump -i mon0"]);
}

/// What `mon0` of the second station of tests/scenarios/radio.toml showed in a tenth of a second, its packets cut to 160
/// octets by tcpdump: HE with A-MSDUs, a legacy neighbour, others' frames, damaged ones. The counts are those of another
/// reader, which had the whole packets.
#[test]
fn a_capture_of_the_lab_is_counted_to_the_frame() {
    let path = lasthop_tests::root().join("tests/captures/radio.pcap");
    for more in [&[][..], &["--by-reference"]] {
        let found = object(&path, more);
        assert_eq!((&found["captured"], &found["unreadable"]), (&Value::from(300), &Value::from(0)));
        let row = |one: &Value| {
            let end = |key: &str| one[key].as_str().map_or("?", |address| &address[16..]).to_owned();
            let count = |key: &str| one[key].as_u64().expect("a count");
            let received = &one["received_mpdus"];
            let mpdus = received["sum"].as_u64().expect("a count");
            let ends = end("transmitter") + &end("receiver");
            (ends, mpdus, count("frames"), count("ampdus"), count("retries"), received["histogram"].to_string())
        };
        let rows: Vec<_> = found["conversations"].as_array().expect("a list").iter().map(row).collect();
        let expected = [
            ("02", 111, 17, 17, 22, r#"{"1":11,"12":1,"2":1,"21":3,"23":1}"#),
            ("03", 36, 7, 7, 6, r#"{"2":1,"3":1,"6":4,"7":1}"#),
            ("45", 19, 19, 0, 4, r#"{"1":19}"#),
            ("01", 18, 1, 1, 0, r#"{"18":1}"#),
            ("30", 6, 4, 4, 4, r#"{"1":3,"3":1}"#),
            ("10", 4, 4, 4, 2, r#"{"1":4}"#),
        ];
        for (row, expected) in rows.iter().zip(expected) {
            let (ends, mpdus, frames, ampdus, retries, histogram) = expected;
            assert_eq!(*row, (ends.to_owned(), mpdus, frames, ampdus, retries, histogram.to_owned()));
        }
        assert_eq!(rows.len(), 6);
        // Packets in A-MSDUs, and those of the one MPDU to the second station that was damaged.
        let packets: Vec<_> = found["conversations"].as_array().expect("a list").iter().collect();
        let sums: Vec<u64> = packets.iter().filter_map(|one| one["packets"]["sum"].as_u64()).collect();
        assert_eq!(sums[1..], [167, 19, 87, 13, 17]);
        assert!((498..=502).contains(&sums[0]), "{sums:?}");
    }
    let said = run(lasthop(["aggregation"]).arg(&path)).succeeded();
    assert!(said.err.contains("5 damaged PPDUs"), "{}", said.err);
}
