//! `lasthop aggregation` on a monitor interface of the lab, beside a capture of the same frames.

use lasthop_tests::{PATIENCE, ends_within, eventually, inside, lab, lasthop, own_scenario, program, run};
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Stdio};

/// What objects say together of the frames from the access point to station 2: how many, and how many packets in them.
fn to_second_station<'a>(objects: impl Iterator<Item = &'a str>) -> (u64, u64) {
    let (mut frames, mut packets) = (0, 0);
    for object in objects {
        let object: Value = serde_json::from_str(object).expect("an object a line");
        let all = object["conversations"].as_array().expect("a list").clone();
        let ours = |one: &&Value| (&one["transmitter"], &one["receiver"]) == (&Value::from(AP), &Value::from(STATION));
        for one in all.iter().filter(ours) {
            frames += one["frames"].as_u64().expect("a count");
            packets += one["packets"]["sum"].as_u64().expect("a count");
        }
    }
    (frames, packets)
}

const AP: &str = "02:4c:48:01:00:00";
const STATION: &str = "02:4c:48:01:00:02";

#[test]
fn live_and_captured_measurements_of_an_interface_agree() {
    let Some(_lab) = lab() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let (out, captured) = (folder.path().join("out"), folder.path().join("mon0.pcap"));
    let mut command = lasthop(["run", "--world", "lab", "--seed", "1", "--out"]);
    command.arg(&out).arg(own_scenario("radio")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = command.spawn().expect("the program starts");
    let namespace = format!("lasthop-{}-0-sta2", running.id());
    let has_monitor = || {
        let mut look = inside(&namespace, Path::new("grep"), &["-q", "mon0:", "/proc/self/net/dev"]);
        look.output().is_ok_and(|found| found.status.success())
    };
    assert!(eventually(PATIENCE, has_monitor), "no monitor interface came up");
    let tcpdump = ["-i", "mon0", "-B", "16384", "-w", captured.to_str().expect("ASCII")];
    let tcpdump: Option<Child> = inside(&namespace, Path::new("tcpdump"), &tcpdump).spawn().ok();
    let measure = ["aggregation", "-i", "mon0", "--json", "--interval", "500 ms"];
    // Into a file: nobody reads a pipe while the run lasts, and a full one would stop the program.
    let told = folder.path().join("live");
    let file = std::fs::File::create(&told).expect("a file");
    let live = inside(&namespace, program(), &measure).stdout(file).spawn().expect("nsenter starts");
    ends_within(running, PATIENCE).succeeded();
    ends_within(live, PATIENCE).failed_saying(&["mon0 is gone"]);
    let live = std::fs::read_to_string(&told).expect("written");
    assert!(live.lines().count() >= 2, "{live}");
    let (frames, packets) = to_second_station(live.lines());
    assert!(frames > 100 && packets > 5 * frames, "{packets} packets in {frames} frames");

    let Some(tcpdump) = tcpdump else { return };
    let ended = ends_within(tcpdump, PATIENCE);
    if !captured.exists() {
        let _ = writeln!(std::io::stderr(), "SKIPPED in part: tcpdump does not run here: {}", ended.err);
        return;
    }
    let file = run(lasthop(["aggregation", "--json"]).arg(&captured)).succeeded();
    let (in_file, packets_in_file) = to_second_station(file.out.lines());
    println!("live {packets} packets in {frames} frames, captured {packets_in_file} in {in_file}");
    // They did not begin at the same moment, so that one may have missed what the other has.
    let sizes = [(packets, frames), (packets_in_file, in_file)].map(|(packets, frames)| packets as f64 / frames as f64);
    assert!((sizes[0] / sizes[1] - 1.0).abs() <= 0.1, "{frames}/{in_file}, {packets}/{packets_in_file}");
}
