//! `lasthop cell`: what it says of logs, whole or while they grow, and what it says when it cannot.

use lasthop_tests::{PATIENCE, ends_within, lasthop, root, run};
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A log that was written for tests.
fn written(name: &str) -> PathBuf {
    root().join("crates/wire/tests/dci").join(name)
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect()
}

fn object(path: &Path, more: &[&str]) -> Value {
    let ended = run(lasthop(["cell", "--json"]).args(more).arg(path)).succeeded();
    objects(&ended.out).pop().expect("an object")
}

fn terminal(of: &Value, rnti: u64) -> &Value {
    let mut all = of["terminals"].as_array().expect("a list").iter();
    all.find(|terminal| terminal["rnti"] == rnti).unwrap_or_else(|| panic!("{rnti} is in {of}"))
}

const BEGIN_US: u64 = 1_700_000_000_000_000;

/// A line of NG-Scope for subframe `n`: `dcis` are RNTI, PRB and bits.
fn line(n: u64, dcis: &[(u16, u16, u32)]) -> String {
    let (tti, at) = (n % 10_240, BEGIN_US + n * 1000);
    if dcis.is_empty() {
        return format!("{tti}\t{}{at}\t0\t0\t\n", "0\t".repeat(10));
    }
    let all: u16 = dcis.iter().map(|(_, prb, _)| prb).sum();
    let row = |(rnti, prb, bits): &(u16, u16, u32)| {
        format!("{tti}\t{rnti}\t{all}\t{prb}\t10\t0\t{bits}\t0\t0\t0\t{}\t{at}\t1\t0\t\n", n % 8)
    };
    dcis.iter().map(row).collect()
}

/// A busy cell: one terminal has 40 PRB of 500 bits all the time, another 10 of 300 in every second subframe.
fn busy(subframes: std::ops::Range<u64>) -> String {
    let dcis = |n: u64| [(20_001, 40, 20_000), (20_002, 10, 3_000)].into_iter().take(2 - (n % 2) as usize);
    subframes.map(|n| line(n, &dcis(n).collect::<Vec<_>>())).collect()
}

#[test]
fn a_log_is_summed_up_whatever_its_format() {
    let text = object(&written("ngscope_dl.dciLog"), &["--top", "99"]);
    assert_eq!((&text["format"], &text["direction"]), (&Value::from("NG-Scope"), &Value::from("downlink")));
    assert_eq!((&text["prb"], &text["prb_guessed_from"], &text["slots"]), (&50.into(), &48.into(), &60.into()));
    assert_eq!((&text["rows"]["duplicates"], &text["rows"]["late"]), (&12.into(), &0.into()));
    assert_eq!((&text["dcis"]["all"], &text["dcis"]["impossible"]), (&25.into(), &1.into()));
    let of_class = |rnti| terminal(&text, rnti)["class"].as_str().expect("a name");
    assert_eq!([20001, 20002, 47110, 65535].map(of_class), ["user", "user", "ghost", "shared"]);
    let own = terminal(&text, 20001);
    assert_eq!((&own["dcis"], &own["prb"], &own["repeats"]), (&15.into(), &300.into(), &1.into()));
    let json = object(&written("ngscope_dl.json"), &["--top", "99"]);
    for key in ["prb", "slots", "dcis", "prb_shares", "idle_share", "over_time", "terminals", "begins", "length_s"] {
        assert_eq!(json[key], text[key], "{key}");
    }
    let shares: f64 = text["prb_shares"].as_object().expect("shares").values().filter_map(Value::as_f64).sum();
    assert!((shares + text["idle_share"].as_f64().expect("a share") - 1.0).abs() < 1e-9, "{text}");
}

#[test]
fn a_log_of_nr_is_told_with_what_is_wrong_in_it() {
    let ended = run(lasthop(["cell"]).arg(written("nrscope.csv"))).succeeded();
    for part in
        ["52 PRB pairs, a guess", "1 not readable, 2 repeated headers", "2 of other carriers", "2 without a PRB"]
    {
        assert!(ended.out.contains(part), "{part} in {}", ended.out);
    }
    assert!(ended.err.contains("1 row could not be read: line 33: 2 columns"), "{}", ended.err);
    let up = object(&written("nrscope.csv"), &["--up"]);
    assert_eq!((&up["direction"], &up["rows"]["taken"], &up["slots"]), (&"uplink".into(), &2.into(), &11.into()));
}

#[test]
fn shares_are_those_of_the_paper() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("busy.dciLog");
    fs::write(&path, busy(0..3000)).expect("written");
    let near = |object: &Value, key: &str, want: f64| {
        let got = object[key].as_f64().expect("a number");
        assert!((got / want - 1.0).abs() < 0.02, "{key}: {got} for {want}");
    };
    // A user that joins is the third: 100 PRB of 43 000 / 90 bits, and a third of what is idle.
    let joins = object(&path, &["--prb", "100"]);
    let rate = 43_000.0 / 90.0;
    near(&joins["over_time"], "users_mean", 2.0);
    near(&joins["over_time"], "fair_share_mbit_s", 0.1 * rate / 3.0);
    near(&joins["over_time"], "available_mbit_s", 0.055 * rate / 3.0);
    near(&joins["over_time"], "given_share", 0.45);
    near(&joins["over_time"], "fair_share_tcp_mbit_s", 0.1 * rate / 3.0 / 1.068);
    // The first has what it has, and half of what is idle.
    let own = object(&path, &["--prb", "100", "--rnti", "20001"]);
    near(&own["over_time"], "fair_share_mbit_s", 0.1 * 500.0 / 2.0);
    near(&own["over_time"], "available_mbit_s", (0.04 + 0.0275) * 500.0);
    near(&own, "bits_per_prb", rate);
}

#[test]
fn intervals_add_up_and_a_pipe_is_as_good_as_a_file() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("busy.dciLog");
    fs::write(&path, busy(0..3500)).expect("written");
    let arguments = ["cell", "--json", "--interval", "500 ms", "--prb", "100"];
    let file = run(lasthop(arguments).arg(&path)).succeeded();
    let all = objects(&file.out);
    assert_eq!(all.len(), 8, "seven and the whole");
    let slots: Vec<u64> = all[..7].iter().map(|interval| interval["slots"].as_u64().expect("a count")).collect();
    assert_eq!(slots, [500; 7]);
    assert!((all[3]["from_s"].as_f64().expect("a time") - 1.5).abs() < 1e-9);
    let log = fs::File::open(&path).expect("there");
    let pipe = run(lasthop(arguments).arg("-").stdin(log)).succeeded();
    assert_eq!(pipe.out.replace("standard input", &path.display().to_string()), file.out);
    let text = run(lasthop(["cell", "--interval", "1 s", "--prb", "100"]).arg(&path)).succeeded();
    assert!(text.out.starts_with("    from s     slots  given %"), "{}", text.out);
}

#[test]
fn a_log_is_followed_while_it_grows_and_to_the_next_one() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("growing.dciLog");
    let mut child = lasthop(["cell", "-f", "--json", "--prb", "100"])
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut intervals = |until: f64| {
        for line in lines.by_ref() {
            let interval: Value = serde_json::from_str(&line.expect("a line")).expect("an object");
            assert_eq!(interval["slots"], 1000, "{interval}");
            if (interval["to_s"].as_f64().expect("a time") - until).abs() < 1e-6 {
                return;
            }
        }
        panic!("it ended before {until} s");
    };
    // It is not there yet; then it is, and ends in the middle of a row.
    let all = busy(0..9000);
    let middle = all.len() / 3;
    fs::write(&path, &all[..middle]).expect("written");
    intervals(1.0);
    let end = all[middle..].find("\n6000\t").map(|at| middle + at + 1).expect("subframe 6000");
    let mut growing = OpenOptions::new().append(true).open(&path).expect("there");
    growing.write_all(&all.as_bytes()[middle..end]).expect("written");
    intervals(4.0);
    // Another one takes its place.
    fs::rename(&path, folder.path().join("growing.dciLog.1")).expect("moved");
    fs::write(&path, &all[end..]).expect("written");
    intervals(7.0);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), nix::sys::signal::Signal::SIGINT)
        .expect("our child");
    let rest: Vec<Value> = lines.map(|line| serde_json::from_str(&line.expect("a line")).expect("an object")).collect();
    let whole = rest.last().expect("the whole");
    assert_eq!((&whole["slots"], &whole["rows"]["unread"]), (&9000.into(), &0.into()), "{whole}");
    let ended = ends_within(child, PATIENCE).succeeded();
    assert!(ended.err.contains("another file has taken its place"), "{}", ended.err);
}

/// A little-endian capture of raw IP packets of 1400 octets to an address, at these microseconds.
fn capture(to: [u8; 4], times: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    let mut packet = vec![0x45, 0, 0x05, 0x78, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1];
    packet.extend_from_slice(&to);
    packet.resize(28, 0);
    for at in times {
        for word in [(at / 1_000_000) as u32, (at % 1_000_000) as u32, packet.len() as u32, 1400] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(&packet);
    }
    file
}

#[test]
fn the_own_terminal_is_found_by_what_it_received() {
    let folder = tempfile::tempdir().expect("a directory");
    let (log, traffic) = (folder.path().join("log.dciLog"), folder.path().join("received.pcap"));
    // Bursts with lengths and distances that do not repeat; another terminal has others; the number changes after 5 s.
    let on = |n: u64, of: u64| {
        let mixed = ((n / 37) ^ (of << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32) & 7 < 3
    };
    let number = |n: u64| if n < 5000 { 20_001 } else { 20_007 };
    let dcis = |n: u64| {
        let mine = on(n, 3).then_some((number(n), 30, 12_000));
        mine.into_iter().chain(on(n, 5).then_some((20_002, 20, 9_000))).collect::<Vec<_>>()
    };
    fs::write(&log, (0..10_000).map(|n| line(n, &dcis(n))).collect::<String>()).expect("written");
    // The log's clock is 250 ms ahead, and what is given comes 5 ms later.
    let came = (0..10_000).filter(|n| on(*n, 3)).map(|n| BEGIN_US + n * 1000 + 5_000 - 250_000);
    fs::write(&traffic, capture([10, 20, 30, 40], came)).expect("written");
    let found = |more: &[&str]| {
        let mut command = lasthop(["cell", "--json", "--prb", "50", "--traffic"]);
        run(command.arg(&traffic).args(more).arg(&log))
    };
    let whole = objects(&found(&["--to", "10.20.30.40"]).succeeded().out).pop().expect("an object");
    let own = whole["own"].as_array().expect("a list");
    assert_eq!(own.iter().map(|own| own["rnti"].as_u64()).collect::<Vec<_>>(), [Some(20_001), Some(20_007)]);
    for own in own {
        let ahead = own["clock_ahead_ms"].as_f64().expect("a number");
        assert!((ahead - 245.0).abs() <= 2.0 && own["likeness"].as_f64() > Some(0.7), "{own}");
    }
    let change = own[1]["from_s"].as_f64().expect("a time");
    assert!((change - 5.0).abs() < 0.3, "{change}");
    found(&["--to", "10.0.0.1"]).failed_saying(&["none of its", "is for 10.0.0.1"]);
    found(&["--clocks", "100 ms"]).failed_saying(&["the own terminal is not found", "clocks that differ by more"]);
}

#[test]
fn a_page_has_its_pictures() {
    let folder = tempfile::tempdir().expect("a directory");
    for (name, columns) in [("ngscope_dl.dciLog", "RNTI 20001"), ("nrscope.csv", "RNTI 20002")] {
        let out = folder.path().join(name);
        run(lasthop(["cell", "--out"]).arg(&out).arg(written(name))).succeeded();
        let page = fs::read_to_string(out.join("cell.md")).expect("a page");
        for picture in ["blocks", "busiest", "idle", "users", "share"] {
            assert!(page.contains(&format!("(cell/{picture}.svg)")), "{picture} in {page}");
            let svg = fs::read_to_string(out.join(format!("cell/{picture}.svg"))).expect("a picture");
            assert!(svg.contains("</svg>") && !svg.contains("NaN"), "{svg}");
        }
        let blocks = fs::read_to_string(out.join("cell/blocks.svg")).expect("a picture");
        assert!(blocks.contains(columns) && blocks.contains("ghosts"), "{blocks}");
        assert!(page.contains("| 20001 | user |"), "{page}");
    }
}

#[test]
fn what_is_no_log_is_told_with_what_would_be_right() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("written");
        path
    };
    let saying = |path: &Path, more: &[&str], parts: &[&str]| {
        run(lasthop(["cell"]).args(more).arg(path)).failed_saying(parts);
    };
    saying(&folder.path().join("none"), &[], &["cannot read the log", "none", "No such file"]);
    saying(folder.path(), &[], &["is a directory: name a file"]);
    saying(Path::new("/dev/zero"), &[], &["is a device: name a file"]);
    saying(&file("empty", b""), &[], &["is no log of assignments", "it is empty"]);
    saying(&file("text", b"to be\n"), &[], &["is no log of assignments", "NG-Scope's lines of 12 or 14 numbers"]);
    saying(&file("phich", b"1\t0\t0\t1700000000000000\n"), &[], &["PHICH", "_dl_"]);
    saying(&file("rach", b"timestamp,system_frame_index,slot_index,rnti\n"), &[], &["without `_rach`"]);
    saying(&written("ngscope_ul.dciLog"), &[], &["rows of the uplink alone: add --up"]);
    saying(&written("ngscope_dl.dciLog"), &["--up"], &["rows of the downlink alone: leave out --up"]);
    saying(&written("ngscope_dl.dciLog"), &["--traffic", "/dev/null"], &["is a device"]);
    let wrong = |more: &[&str], part: &str| {
        let ended = run(lasthop(["cell"]).args(more).arg(written("ngscope_dl.dciLog")));
        assert!(ended.status == 2 && ended.err.contains(part), "{more:?}: {}", ended.err);
    };
    wrong(&["--prb", "25"], "--prb 25: 48 PRB are assigned");
    wrong(&["--prb", "276"], "276 is not in 1..=275");
    wrong(&["--scs", "30 kHz"], "subcarriers of LTE are 15 kHz apart");
    wrong(&["--scs", "30"], "write 15 kHz, 30 kHz, 60 kHz or 120 kHz");
    wrong(&["--carrier", "3"], "has rows of carrier 0 alone");
    wrong(&["--window", "2 min"], "must be at most");
    wrong(&["--rnti", "65535"], "65535 is not in 1..=65523");
    let ended = run(&mut lasthop(["cell", "-f", "-"]));
    assert!(ended.status == 1 && ended.err.contains("leave it out"), "{}", ended.err);
}

/// The recorded logs of the reference data; says so if they are not there.
#[test]
fn recorded_logs_are_summed_up() {
    let beside = || root().join("../shared/reference");
    let captures = std::env::var_os("LASTHOP_REFERENCE").map_or_else(beside, PathBuf::from).join("captures");
    for (name, up, taken, slots) in [
        ("dci_ngscope_lte/dci_raw_log_dl_freq_2127500000.dciLog", false, 12429, 12096),
        ("dci_ngscope_lte/dci_raw_log_ul_freq_2127500000.dciLog", true, 12427, 12096),
        ("dci_nrscope_nr/t_mobile1_ueactivity_afternoon_1.csv", false, 11853, 301_925),
        ("dci_nrscope_nr/t_mobile1_ueactivity_morning_2_128.csv", false, 10258, 164_755),
        ("dci_nrscope_nr/t_mobile2_ueactivity_morning_1.csv", false, 675, 103_748),
        ("dci_nrscope_nr/ue_activity_133.csv", false, 4752, 1_061_527),
        ("dci_nrscope_nr/ue_activity_133.csv", true, 2584, 1_009_362),
    ] {
        let path = captures.join(name);
        if !path.exists() {
            let _ = writeln!(std::io::stderr(), "SKIPPED: reference data absent: {}", path.display());
            continue;
        }
        let found = object(&path, if up { &["--up"] } else { &[] });
        assert_eq!((&found["rows"]["taken"], &found["rows"]["late"]), (&taken.into(), &0.into()), "{name}");
        assert_eq!(found["slots"], slots, "{name}");
    }
}
