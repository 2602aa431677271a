//! Wrong input: a message that names what, where and what would be right; status 1 or 2; and nothing written.

use lasthop_tests::{Ended, lasthop, own_scenario, root, run};
use std::path::{Path, PathBuf};

/// Runs `path` into a directory that does not exist, and sees to it that it still does not afterwards.
fn refused(path: &Path, more: &[&str]) -> Ended {
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("results");
    let ended = run(lasthop(["run", "--world", "sim", "--out"]).arg(&out).arg(path).args(more));
    assert_ne!(ended.status, 0, "{} was accepted", path.display());
    assert!(!out.exists(), "{} left something in --out", path.display());
    assert!(ended.out.is_empty(), "{}: results of nothing:\n{}", path.display(), ended.out);
    ended
}

fn broken() -> Vec<PathBuf> {
    let folder = root().join("crates/scenario/tests/broken");
    let entries = std::fs::read_dir(folder).expect("readable").map(|entry| entry.expect("readable").path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|ext| ext == "toml")).collect();
    files.sort();
    files
}

#[test]
fn every_broken_scenario_is_refused_with_file_line_and_remedy() {
    let files = broken();
    assert!(files.len() >= 20, "only {} broken scenarios", files.len());
    for path in files {
        let ended = refused(&path, &[]).failed_saying(&["help: "]);
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        // FILE:LINE:COLUMN, of the scenario or of a file that it names; however long, no path is broken over lines.
        let said = &ended.err;
        let place = said
            .match_indices(".toml:")
            .chain(said.match_indices(".csv:"))
            .any(|(at, found)| said[at + found.len()..].starts_with(|next: char| next.is_ascii_digit()));
        assert!(place && said.contains(&*path.to_string_lossy()), "{name}: no file and line in\n{}", ended.err);
        let checked = run(lasthop(["check"]).arg(&path));
        assert_eq!((checked.status, checked.err), (1, ended.err), "check and run disagree about {name}");
    }
}

#[test]
fn what_is_no_scenario_at_all_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        path
    };
    refused(&folder.path().join("absent.toml"), &[]).failed_saying(&["absent.toml", "No such file", "help: "]);
    refused(folder.path(), &[]).failed_saying(&["Is a directory", "help: "]);
    // A file without an end.
    refused(Path::new("/dev/zero"), &[]).failed_saying(&["/dev/zero", "4 MiB"]);
    run(&mut lasthop(["aggregation", "/dev/zero"])).failed_saying(&["/dev/zero", "is a device"]);
    refused(&file("empty.toml", b""), &[]).failed_saying(&["empty.toml", "title", "help: "]);
    refused(&file("blank.toml", b"\n\n \n"), &[]).failed_saying(&["blank.toml", "title"]);
    refused(&file("binary.toml", &[0x7f, b'E', b'L', b'F', 0xff, 0, 0xfe]), &[])
        .failed_saying(&["binary.toml", "UTF-8"]);
    refused(&file("nul.toml", &[0; 4096]), &[]).failed_saying(&["nul.toml", "help: "]);
    refused(&file("page.toml", b"<!DOCTYPE html>\n<html></html>\n"), &[]).failed_saying(&["page.toml:1:"]);
}

fn scenarios_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("readable").map(|entry| entry.expect("readable").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let here = files.into_iter().filter(|path| path.extension().is_some_and(|ext| ext == "toml"));
    here.chain(folders.iter().flat_map(|folder| scenarios_below(folder))).collect()
}

#[test]
fn every_shipped_scenario_passes_the_check() {
    let all = scenarios_below(&root().join("scenarios"));
    assert!(all.len() >= 3, "{all:?}");
    let ended = run(lasthop(["check"]).args(&all));
    assert_eq!(ended.succeeded().out.lines().count(), all.len());
}

#[test]
fn laws_are_known_named_once_and_two_for_a_comparison() {
    let path = own_scenario("short");
    refused(&path, &["--law", "cubik"]).failed_saying(&["cubik", "cubic"]);
    refused(&path, &["--law", ""]).failed_saying(&["help: "]);
    refused(&path, &["--law", "cubic", "--law", "cubic"]).failed_saying(&["cubic is named twice"]);
    let compare = |laws: &str| run(lasthop(["compare", "--world", "sim", "--laws", laws]).arg(&path));
    compare("cubic").failed_saying(&["a comparison needs two laws", "--laws"]);
    compare("cubic,,").failed_saying(&["no law ``"]);
}

#[test]
fn wrong_command_lines_are_status_2_with_the_correction() {
    let path = own_scenario("short");
    let path = path.to_string_lossy();
    for (line, says) in [
        (&["run", &path, "--seeds", "0"][..], "1..=1000"),
        (&["run", &path, "--seeds", "1001"], "1..=1000"),
        (&["run", &path, "--seed", "-1"], "--seed"),
        (&["run", &path, "--seed", "x"], "invalid digit"),
        (&["run", &path, "--seed", "1", "--seeds", "2"], "cannot be used with"),
        (&["run", &path, "--world", "moon"], "sim, lab"),
        (&["run", &path, "--frobnicate"], "--help"),
        (&["run"], "SCENARIO"),
        (&["rum", &path], "similar"),
        (&["ap"], "--iface"),
        (&["ap", "--iface", "lo", "--driver", "d", "--slack", "5"], "unit"),
        (&["ap", "--iface", "lo", "--driver", "d", "--slack", "-5ms"], "cannot be negative"),
        (
            &["ap", "--iface", "lo", "--driver", "d", "--slack-max", "1ms"],
            "--slack-max 1 ms: it must be at least --slack",
        ),
        (
            &["ap", "--iface", "lo", "--driver", "d", "--ceiling-gain", "-1"],
            "--ceiling-gain -1: it must be from 1 to 64",
        ),
        (&["ap", "--iface", "lo", "--driver", "d", "--age-limit", "1s"], "--age-limit 1 s: it must be 20 ms to 500 ms"),
        (&["ap", "--iface", "lo", "--driver", "d", "--max-flows", "1"], "--max-flows 1: it must be 128 to 1048576"),
        (&["ap", "--iface", "lo", "--driver", "d", "--station", "10.0.0.1"], "ADDRESS=NUMBER"),
        (&["proxy", "--keys", "k", "--listen", "4848"], "such as 192.0.2.1:4848"),
        (&["proxy", "--keys", "k", "--rate", "-5Mbit/s"], "cannot be negative"),
        (&["proxy", "--keys", "k", "--law", "linear-pi", "--k1", "1"], "--k1 has no meaning with --law linear-pi"),
        (&["proxy", "--keys", "k", "--k1", "-1"], "--k1 -1: it must be above 0 and at most 10"),
        (&["proxy", "--keys", "k", "--slot", "1ms"], "--slot 1 ms: it must be from 10 ms to 60 s"),
        (&["proxy", "--keys", "k", "--aim-packets", "65"], "--aim-packets 65: it must be from 1 to --max-packets"),
        (&["station", "--proxy", "example.org", "--key", "k"], "there is no port"),
        (&["station", "--proxy", "192.0.2.1:0", "--key", "k"], "port 0"),
        (&["station", "--proxy", "192.0.2.1:1", "--key", "k", "--serve", "0"], "1..=65535"),
        (&["station", "--proxy", "192.0.2.1:1", "--key", "k", "--forward", "127.0.0.1:1=host"], "`host` has no port"),
        (&["pair", "--proxy", "p", "--station", "-1", "--out", "o"], "0..=65535"),
        (&["aggregation", "--interval", "-1s", "x"], "cannot be negative"),
        (
            &["trace", "convert", "x", "--rate", "r", "--unit", "bit/s", "--every", "0 s", "-o", "o"],
            "write more than 0, such as `1 s`",
        ),
    ] {
        let ended = run(&mut lasthop(line));
        assert_eq!(ended.status, 2, "{line:?}: {}", ended.err);
        assert!(ended.err.contains(says), "{line:?}: `{says}` is missing in\n{}", ended.err);
    }
}

#[test]
fn rates_that_make_no_trace_are_refused_with_their_line() {
    let folder = tempfile::tempdir().expect("a directory");
    let convert = |rows: &str, unit: &str| {
        std::fs::write(folder.path().join("rates.csv"), format!("time,rate\n{rows}")).expect("written");
        let line =
            ["trace", "convert", "rates.csv", "--rate", "rate", "--time", "time", "--unit", unit, "-o", "out.down"];
        run(lasthop(line).current_dir(folder.path()))
    };
    for (rows, unit, says) in [
        ("0,1\n1,100001\n2,1\n", "Mbit/s", &["rates.csv, line 3: ", "up to 100 Gbit/s", "unit"][..]),
        ("0,1\n0,300001\n2,1\n", "Mbit/s", &["rates.csv, line 3: 150.001 Gbit/s", "up to 100 Gbit/s"]),
        ("0,1e300\n", "Mbit/s", &["rates.csv, line 2: ", "up to 100 Gbit/s"]),
        ("0,1\n1,1\n1e10,1\n", "kbit/s", &["rates.csv, line 3: ", "a trace ends within 4294967.295 s"]),
        ("-1e308,1\n1e308,1\n", "bit/s", &["rates.csv, line 2: ", "a trace ends within"]),
        ("0,1\n1,99999\n1000,1\n", "Mbit/s", &["rates.csv, line 3: ", "more than 100000000 opportunities"]),
        ("0,1\n1,1\n", "bit/s", &["rates.csv: nothing passes"]),
    ] {
        let _ = convert(rows, unit).failed_saying(says);
        assert!(!folder.path().join("out.down").exists(), "{rows}");
    }
    let _ = convert("0,10\n1,20\n", "Mbit/s").succeeded();
}

#[test]
fn files_and_addresses_that_will_not_do_are_told_with_a_remedy() {
    let folder = tempfile::tempdir().expect("a directory");
    let in_folder = |line: &[&str]| run(lasthop(line).current_dir(folder.path()));
    let _ = in_folder(&["proxy", "--keys", "none"]).failed_saying(&["key file none", "lasthop pair"]);
    let _ = in_folder(&["proxy", "--keys", "."]).failed_saying(&["key file .", "name a file"]);
    let _ = in_folder(&["pair", "--proxy", "p", "--station", "1", "--out", "none/o"])
        .failed_saying(&["none/o", "directory"]);
    let _ = in_folder(&["pair", "--proxy", "p", "--station", "1", "--out", "o"]).succeeded();
    let _ = in_folder(&["pair", "--proxy", "p", "--station", "2", "--out", "o"])
        .failed_saying(&["o: ", "never overwritten"]);
    let _ = in_folder(&["pair", "--proxy", "p", "--station", "1", "--out", "q"]).failed_saying(&["--replace"]);
    // An address that is for documents only (RFC 5737), so nobody's.
    let foreign = in_folder(&["proxy", "--keys", "p", "--listen", "192.0.2.1:4848"]);
    let _ = foreign.failed_saying(&["192.0.2.1:4848", "ip addr"]);
    // A top-level domain that there will never be (RFC 2606).
    let _ = in_folder(&["station", "--proxy", "proxy.invalid:4848", "--key", "o"]).failed_saying(&["`proxy.invalid`"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = taken.local_addr().expect("bound").to_string();
    let line = ["station", "--proxy", "127.0.0.1:4848", "--key", "o", "--listen", &address];
    let _ = in_folder(&line).failed_saying(&[&address, "another program has it"]);
}

#[test]
fn the_agent_says_what_it_did_not_find() {
    let none = run(&mut lasthop(["ap", "--iface", "lasthop-none", "--driver", "/nonexistent"]));
    // A build without the eBPF programs, or an ordinary user, comes no further than to hear of that.
    let told =
        ["no eBPF programs", "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"].iter().any(|early| none.err.contains(early));
    none.failed_saying(if told { &["lasthop: "] } else { &["lasthop-none"] });
}
