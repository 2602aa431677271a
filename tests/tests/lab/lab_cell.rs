//! A cell in the lab, in real time: its control channel in pipes that programs read, and PBE-CC's pair on the kernel's TCP over it.

// Pipes are waited for by the wall clock.
#![allow(clippy::disallowed_methods)]

use lasthop_tests::{
    PATIENCE, bpf, children, ends_within, eventually, json, lab, lab_run, lasthop, leavings, mean, own_scenario,
    reliable, root, run,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

/// The number of a cell's first station (36.321 table 7.1-1).
const PHONE: u64 = 0x3d;
/// Subframes of the run.
const SUBFRAMES: u64 = 5_000;
/// Octets of IP and TCP headers of a full segment with timestamps, and of its payload.
const SEGMENT: (f64, f64) = (52.0, 1448.0);

/// The pipe of what the first station of a run decodes, once it is there.
fn pipe(run: &Child) -> Option<PathBuf> {
    let folder = leavings(run.id()).into_iter().find(|name| !name.starts_with("lasthop-"))?;
    let path = Path::new("/run/lasthop").join(folder).join("control-1-0.dciLog");
    path.exists().then_some(path)
}

/// Copies what comes out of a pipe until its writer has gone.
fn copy(pipe: &Path, run: &mut Child, into: &Path) {
    // Opening does not wait for the writer, nor reading.
    let mut from = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(pipe).expect("a pipe");
    let (mut to, mut buffer, mut begun) = (File::create(into).expect("a file"), vec![0; 1 << 16], false);
    loop {
        match from.read(&mut buffer) {
            Ok(0) if begun || run.try_wait().expect("our child").is_some() => return,
            Ok(count) => {
                begun |= count > 0;
                to.write_all(&buffer[..count]).expect("written");
            }
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Leaves the rows of the run's own time in a log, and gives its first subframe; `None` if the beginning is missing. The cell goes on while the run is
/// taken down.
fn cut(log: &Path) -> Option<u64> {
    let number = |row: &str| row.split('\t').next()?.parse::<u64>().ok();
    let text = fs::read_to_string(log).expect("text");
    let rows: Vec<&str> = text.lines().filter(|row| number(row).is_some_and(|number| number < SUBFRAMES)).collect();
    // No round trip is shorter: nothing was sent by then.
    let begins = rows.first().and_then(|row| number(row)).filter(|begins| *begins < 20)?;
    fs::write(log, rows.join("\n") + "\n").expect("written");
    Some(begins)
}

fn of_phone(log: &Value) -> &Value {
    let mut terminals = log["terminals"].as_array().expect("a list").iter();
    terminals.find(|terminal| terminal["rnti"] == PHONE).unwrap_or_else(|| panic!("{PHONE} is not in {log}"))
}

#[test]
fn what_a_station_decodes_is_what_it_was_given() {
    let Some(_lab) = lab() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let log = folder.path().join("control.dciLog");
    let attempt = |_| {
        let mut child = lab_run("cubic", "cell", folder.path()).spawn().expect("it starts");
        let id = child.id();
        assert!(eventually(PATIENCE, || pipe(&child).is_some()), "there is no pipe");
        copy(&pipe(&child).expect("it was there"), &mut child, &log);
        ends_within(child, PATIENCE).succeeded();
        assert_eq!(leavings(id), [""; 0]);
        folder.path().to_path_buf()
    };
    if reliable(attempt).is_none() {
        return;
    }
    let Some(begins) = cut(&log) else {
        // Past the capture of test output.
        let _ = writeln!(std::io::stderr(), "SKIPPED: what a station decodes: the pipe was opened too late");
        return;
    };
    let told =
        run(lasthop(["cell", "--json", "--prb", "50", "--top", "9999", "--rnti"]).arg(PHONE.to_string()).arg(&log));
    let told: Value = serde_json::from_str(told.succeeded().out.lines().last().expect("an object")).expect("JSON");
    let rows = &told["rows"];
    for none in ["unread", "duplicates", "late", "misplaced", "strays"] {
        assert_eq!(rows[none], 0, "{none}: {rows}");
    }
    assert_eq!((&told["slots_not_decoded"], &told["dcis"]["impossible"]), (&0.into(), &0.into()), "{told}");
    assert_eq!(told["slots"], SUBFRAMES - begins, "{told}");
    let phone = of_phone(&told);
    assert_eq!(phone["class"], "user", "{phone}");
    let given = phone["mbit_s"].as_f64().expect("a rate") * told["length_s"].as_f64().expect("a length") * 1e6 / 8.0;
    let carried = mean(&json(&folder.path().join("result.json")), "cubic", "throughput_mbit_s") * 5e6 / 8.0;
    // What was given holds the payload, with its headers. A twentieth beside them is padding of blocks, headers of RLC and PDCP, what was sent again, and
    // what was on its way at the end.
    let whole = carried * (SEGMENT.0 + SEGMENT.1) / SEGMENT.1;
    println!("given / carried with headers: {}", given / whole);
    assert!(given >= whole && given <= whole * 1.05, "given {given} octets, carried {carried}, with headers {whole}");
    // Others are there: terminals with signalling alone, a hundred a second.
    let others = told["rntis"].as_u64().expect("a count") - 1;
    assert!((380..=620).contains(&others), "{others} others");
}

/// The congestion control that a run's sender brings, once its agents have their programs.
fn brought(run: &Child) -> Option<(String, BTreeSet<u32>)> {
    let agents: Vec<(u32, String)> =
        children(run.id()).into_iter().filter(|(_, line)| line.contains("\0pbe\0")).collect();
    let name =
        agents.iter().find_map(|(_, line)| Some(line.split_once("--name\0")?.1.split('\0').next()?.to_owned()))?;
    let each: Vec<BTreeSet<u32>> = agents.iter().map(|(agent, _)| bpf::programs_of(*agent)).collect();
    // Eight programs of the congestion control and one that reads options; two of the receiver.
    let ready = each.len() == 2 && each.iter().map(BTreeSet::len).sum::<usize>() >= 11;
    ready.then(|| (name, each.into_iter().flatten().collect()))
}

fn has_congestion_control(name: &str) -> bool {
    let offered = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("Linux");
    offered.split_whitespace().any(|offer| offer == name)
}

#[test]
fn pbe_on_kernel_tcp_follows_the_cell_and_leaves_nothing() {
    let Some(_lab) = lab() else { return };
    let doctor = run(&mut lasthop(["doctor"]));
    if !doctor.out.contains("The agent can run here.") {
        // Past the capture of test output.
        let _ = writeln!(std::io::stderr(), "SKIPPED: PBE-CC's pair in the lab: {}", doctor.out);
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let attempt = |_| {
        let child = lab_run("pbe", "cell", folder.path()).spawn().expect("it starts");
        let id = child.id();
        let mut found = None;
        // The programs are loaded first, and then the congestion control is registered.
        let began = eventually(PATIENCE, || {
            found = brought(&child);
            found.as_ref().is_some_and(|(name, _)| has_congestion_control(name))
        });
        assert!(began, "no agents, or no congestion control {found:?}: {:?}", children(id));
        let (name, programs) = found.expect("it was there");
        ends_within(child, PATIENCE).succeeded();
        assert_eq!(leavings(id), [""; 0]);
        assert!(eventually(PATIENCE, || programs.iter().all(|id| !bpf::is_loaded(*id))), "programs are left");
        assert!(!has_congestion_control(&name), "{name} is left");
        folder.path().to_path_buf()
    };
    let Some(info) = reliable(attempt) else { return };
    let account = &info["runs"][0]["pbe"];
    let count = |key: &str| account[key].as_u64().unwrap_or_else(|| panic!("{key}: {account}"));
    // One connection, and its ends agreed; every subframe of five seconds; as many packets as were carried, and ACKs
    // that tell of each second one.
    assert_eq!([count("promised"), count("agreed"), count("unread"), count("lost")], [1, 1, 0, 0], "{account}");
    assert!(count("subframes") > 4_900, "{account}");
    let throughput = mean(&json(&folder.path().join("result.json")), "pbe", "throughput_mbit_s");
    let packets = throughput * 5e6 / 8.0 / SEGMENT.1;
    let arrived = count("arrived") as f64;
    assert!(arrived >= packets * 0.99 && arrived <= packets * 1.05, "{packets} packets: {account}");
    assert!(count("options") > 100 && count("written") >= count("options") && count("changes") > 10, "{account}");
    // The simulator's runs of the same seed.
    let simulated = folder.path().join("sim");
    let mut command = lasthop(["run", "--world", "sim", "--law", "pbe", "--out"]);
    run(command.arg(&simulated).arg(own_scenario("cell"))).succeeded();
    let expected = mean(&json(&simulated.join("result.json")), "pbe", "throughput_mbit_s");
    assert!(throughput > expected * 0.5 && throughput < expected * 1.1, "{throughput} beside {expected} Mbit/s");
}

#[test]
fn missing_pbe_support_is_reported_before_anything_is_built() {
    let refused = |scenario: &Path, says: &[&str]| {
        let folder = tempfile::tempdir().expect("a directory");
        let mut command = lasthop(["run", "--world", "lab", "--law", "pbe", "--out"]);
        let ended = run(command.arg(folder.path().join("out")).arg(scenario));
        if nix::unistd::geteuid().is_root() {
            ended.failed_saying(&[says, &["--world sim"]].concat());
        } else {
            ended.failed_saying(&["root"]);
        }
    };
    let shipped = |name: &str| root().join("scenarios/pbe").join(name).with_extension("toml");
    refused(&shipped("handover"), &["do not follow their number through handovers"]);
    refused(&shipped("recorded"), &["tell capacity in cells only"]);
    let folder = tempfile::tempdir().expect("a directory");
    let text = fs::read_to_string(own_scenario("cell")).expect("readable");
    let own = "sender = { law = \"pbe\", jitter = \"4 ms\", keep-probing = false }";
    assert!(text.contains(own));
    let unlike = "sender = { default = \"pbe\", phone = { law = \"pbe\", jitter = \"4 ms\" } }";
    let file = folder.path().join("unlike.toml");
    fs::write(&file, text.replace(own, unlike)).expect("written");
    refused(&file, &["one set of parameters in the lab"]);
}
