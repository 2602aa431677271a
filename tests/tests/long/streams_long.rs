//! A gigabyte by `lasthop send` over a wired hop, once.

use lasthop_tests::stream::{Pair, Receiver, file};
use lasthop_tests::{inside, is_root, program};
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

const SIZE: usize = 1_000_000_000;
/// At a tenth of what the hop carries.
const LONGEST: Duration = Duration::from_secs(200);

#[test]
fn a_gigabyte_arrives_intact_over_a_wired_hop() {
    if !is_root() {
        return;
    }
    let (pair, folder) = (Pair::new(), tempfile::tempdir().expect("a directory"));
    let [a, b] = &pair.0;
    if !pair.shaped("rate 400mbit burst 64kb limit 1mb") {
        let _ = writeln!(std::io::stderr(), "SKIPPED: no tc with TBF here");
        return;
    }
    let (sent, out) = (file(folder.path(), SIZE), folder.path().join("out"));
    let [from, to] = [&sent, &out].map(|path| path.to_str().expect("a path of letters"));
    let recv = ["recv", "--bind", "10.77.0.2:0", "--out", to, "--sha256", "--json"];
    let receiver = Receiver::start(inside(b, program(), &recv));
    let mut send = inside(a, program(), &["send", &receiver.address, from, "--sha256", "--json"]);
    let send = send.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let send = lasthop_tests::ends_within(send, LONGEST).succeeded();
    let recv = receiver.end().succeeded();
    let [ours, theirs] = [&send, &recv]
        .map(|ended| -> Value { serde_json::from_str(ended.out.lines().last().expect("a line")).expect("JSON") });
    assert_eq!((&ours["bytes"], &theirs["bytes"]), (&SIZE.into(), &SIZE.into()), "{ours} {theirs}");
    assert!(ours["sha256"].is_string() && ours["sha256"] == theirs["sha256"], "{ours} {theirs}");
    assert_eq!(fs::metadata(&out).expect("whole").len(), SIZE as u64);
    let _ = writeln!(std::io::stderr(), "{ours}");
}
