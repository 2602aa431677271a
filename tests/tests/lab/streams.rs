//! `lasthop send` and `lasthop recv` as their users start them: over loopback, between namespaces, stopped and killed.

use lasthop_tests::stream::{Pair, Receiver, file};
use lasthop_tests::{Ended, PATIENCE, ends_within, eventually, inside, is_root, lasthop, machine, program, run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const SIZE: usize = 64 << 20;

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of letters")
}

/// Keys of both ends.
fn keys(folder: &Path) -> [PathBuf; 2] {
    [1, 2].map(|n| {
        let (all, own) = (folder.join(format!("all-{n}")), folder.join(format!("own-{n}")));
        run(&mut lasthop(["pair", "--proxy", text(&all), "--station", "0", "--out", text(&own)])).succeeded();
        own
    })
}

#[test]
fn a_file_arrives_intact_by_atp_and_by_cubic() {
    machine::share(module_path!());
    let folder = tempfile::tempdir().expect("a directory");
    let (sent, [key, _]) = (file(folder.path(), SIZE), keys(folder.path()));
    for (law, name, sealed) in [("adaptive", "adaptive", true), ("cubic", "tcp", false)] {
        let out = folder.path().join(law);
        let sealed = if sealed { vec!["--key", text(&key)] } else { vec![] };
        let receiver = Receiver::here(&[&["--out", text(&out), "--sha256", "--json"], sealed.as_slice()].concat());
        let arguments = ["send", &receiver.address, text(&sent), "--law", law, "--sha256", "--json"];
        let send = run(&mut lasthop([arguments.as_slice(), sealed.as_slice()].concat())).succeeded();
        let recv = receiver.end().succeeded();
        let summary =
            |ended: &Ended| -> Value { serde_json::from_str(ended.out.lines().last().expect("a line")).expect("JSON") };
        let (ours, theirs) = (summary(&send), summary(&recv));
        assert_eq!((&ours["kind"], &ours["law"], &theirs["law"]), (&"summary".into(), &law.into(), &name.into()));
        assert_eq!((&ours["bytes"], &theirs["bytes"]), (&SIZE.into(), &SIZE.into()), "{ours} {theirs}");
        assert!(ours["sha256"].is_string() && ours["sha256"] == theirs["sha256"], "{ours} {theirs}");
        assert!(fs::read(&out).expect("whole") == fs::read(&sent).expect("ours"), "{law}: other octets");
        assert!(!folder.path().join(format!("{law}.part")).exists());
    }
}

#[test]
fn standard_input_goes_to_standard_output() {
    machine::share(module_path!());
    let mut receiver = Receiver::here(&["--out", "-"]);
    let mut send = lasthop(["send", &receiver.address, "-"]);
    let mut send = send.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut input = send.stdin.take().expect("piped");
    let mut output = receiver.output();
    for word in ["one ", "two ", "three"] {
        input.write_all(word.as_bytes()).expect("it reads");
        let mut seen = vec![0; word.len()];
        output.read_exact(&mut seen).expect("it comes without waiting for more");
        assert_eq!(seen, word.as_bytes());
    }
    drop(input);
    ends_within(send, PATIENCE).succeeded();
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("text");
    assert_eq!(rest, "");
    receiver.end().succeeded();
}

#[test]
fn transfers_keep_bytes_and_time_and_are_served_in_turn() {
    let receiver = Receiver::here(&["--quiet"].map(|_| "--json"));
    let ended = run(&mut lasthop(["send", &receiver.address, "--bytes", "3 MB", "--law", "reno"])).succeeded();
    assert!(ended.out.starts_with("reno: 3.00 MB in "), "{}", ended.out);
    let ended = run(&mut lasthop(["send", &receiver.address, "--time", "1200ms", "--json"])).succeeded();
    let first: Value = serde_json::from_str(ended.out.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&first["kind"], &first["from_s"]), (&"interval".into(), &0.0.into()), "{}", ended.out);
    assert!(first["bytes"].as_u64() > Some(1_000_000) && first["rate_packets_s"].as_f64() > Some(100.0), "{first}");
    receiver.signal(Signal::SIGINT);
    let ended = receiver.end();
    assert_eq!(ended.status, 130, "{}", ended.err);
    assert_eq!(ended.out.lines().filter(|line| line.contains(r#""kind":"summary""#)).count(), 2, "{}", ended.out);
}

#[test]
fn a_killed_receiver_is_noticed_and_its_part_stays() {
    machine::share(module_path!());
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("got");
    for law in ["adaptive", "cubic"] {
        let receiver = Receiver::here(&["--out", text(&out)]);
        let mut send = lasthop(["send", &receiver.address, "--time", "60s", "--law", law, "--patience", "2s"]);
        let send = send.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let part = folder.path().join("got.part");
        let begun = || fs::metadata(&part).is_ok_and(|about| about.len() > 100_000);
        assert!(eventually(PATIENCE, begun), "{law}: nothing came");
        receiver.signal(Signal::SIGKILL);
        let ended = ends_within(send, PATIENCE).failed_saying(&["the other end has not been heard for 2 s"]);
        assert!(ended.err.contains("octets had arrived"), "{}", ended.err);
        let next = run(&mut lasthop(["recv", "--bind", "127.0.0.1:0", "--out", text(&out)]));
        next.failed_saying(&["got.part: a part of an earlier stream"]);
        assert!(!out.exists());
        fs::remove_file(part).expect("ours");
        receiver.end();
    }
}

#[test]
fn an_end_that_is_told_to_stop_tells_the_other_one() {
    machine::share(module_path!());
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("got");
    for stops_receiver in [true, false] {
        let receiver = Receiver::here(&["--out", text(&out)]);
        let mut send = lasthop(["send", &receiver.address, "--time", "60s"]);
        let send = send.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let part = folder.path().join("got.part");
        let begun = || fs::metadata(&part).is_ok_and(|about| about.len() > 100_000);
        assert!(eventually(PATIENCE, begun), "nothing came");
        if stops_receiver {
            receiver.signal(Signal::SIGINT);
            ends_within(send, PATIENCE).failed_saying(&["the other end was told to stop"]);
            let ended = receiver.end();
            assert!(
                ended.status == 130 && ended.err.contains("is in ") && ended.err.contains("got.part"),
                "{}",
                ended.err
            );
        } else {
            kill(Pid::from_raw(send.id() as i32), Signal::SIGINT).expect("our child");
            let ended = ends_within(send, PATIENCE);
            assert!(ended.status == 130 && ended.err.contains("the receiver has been told"), "{}", ended.err);
            receiver.end().failed_saying(&["the other end was told to stop", "got.part"]);
        }
        assert!(!out.exists());
        fs::remove_file(part).expect("ours");
    }
}

#[test]
fn what_cannot_be_is_told_with_what_would_be_right() {
    machine::share(module_path!());
    let folder = tempfile::tempdir().expect("a directory");
    let [one, other] = keys(folder.path());
    let send = |arguments: &[&str]| run(&mut lasthop([&["send", "127.0.0.1:9"], arguments].concat()));
    let ended = send(&["--law", "fast"]);
    assert!(
        ended.status == 2 && ["adaptive", "default", "aggressive", "cubic"].iter().all(|law| ended.err.contains(law)),
        "{}",
        ended.err
    );
    send(&["/none/such"]).failed_saying(&["cannot read /none/such", "No such file"]);
    send(&["/tmp"]).failed_saying(&["this is a directory"]);
    let ended = send(&["--patience", "1s"]);
    assert!(ended.status == 2 && ended.err.contains("at least 2 s"), "{}", ended.err);
    send(&["--bytes", "1 kB", "--patience", "2s"]).failed_saying(&["nobody answered within 2 s", "lasthop recv"]);
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = taken.local_addr().expect("bound").to_string();
    run(&mut lasthop(["recv", "--bind", &address])).failed_saying(&["cannot listen at", &address, "in use"]);
    run(&mut lasthop(["recv", "--out", text(&one)])).failed_saying(&["never overwritten"]);
    run(&mut lasthop(["recv", "--out", "/none/such"])).failed_saying(&["cannot make /none/such.part"]);
    for (ours, theirs, says) in [
        (None, Some(&one), "takes only streams with its key"),
        (Some(&one), None, "the receiver has no key"),
        (Some(&one), Some(&other), "nobody answered"),
    ] {
        let of = |key: Option<&PathBuf>| key.map_or(vec![], |key| vec!["--key".to_owned(), text(key).to_owned()]);
        let theirs = of(theirs);
        let receiver = Receiver::here(&theirs.iter().map(String::as_str).collect::<Vec<_>>());
        let base = ["send", &receiver.address, "--bytes", "1 kB", "--patience", "2s"].map(str::to_owned);
        run(&mut lasthop([base.as_slice(), of(ours).as_slice()].concat())).failed_saying(&[says]);
        receiver.signal(Signal::SIGTERM);
        receiver.end();
    }
}

#[test]
fn over_a_slow_interface_atp_knows_its_delay_and_loses_nothing() {
    machine::share(module_path!());
    if !is_root() {
        return;
    }
    let pair = Pair::new();
    let [a, b] = &pair.0;
    if !pair.shaped("rate 50mbit burst 4kb limit 300kb") {
        let _ = writeln!(std::io::stderr(), "SKIPPED: no tc with TBF here");
        return;
    }
    let receiver = Receiver::start(inside(b, program(), &["recv", "--bind", "10.77.0.2:0"]));
    for law in ["adaptive", "cubic"] {
        let arguments = ["send", &receiver.address, "--bytes", "20 MB", "--law", law, "--json"];
        let ended = run(&mut inside(a, program(), &arguments)).succeeded();
        let lines: Vec<Value> = ended.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let summary = lines.last().expect("a line");
        // How much of it a busy machine lets through is the machine's; more than the interface has is nobody's.
        let goodput = summary["goodput_mbit_s"].as_f64().expect("a number");
        assert!(goodput > 1.0 && goodput < 50.0, "{summary}");
        if law == "adaptive" {
            // 1514 octets at 50 Mbit/s take 0.242 ms, and D is that or more when something has waited; it falls while nothing does.
            let largest = lines.iter().filter_map(|line| line["delay_ms"].as_f64()).fold(0.0, f64::max);
            assert!(largest > 0.15, "{lines:?}");
        }
        let [retransmitted, packets] =
            ["retransmitted", "packets"].map(|name| summary[name].as_u64().expect("a count"));
        println!("{law}: {retransmitted} of {packets} again");
        // ATP hears of the queue before it is full. CUBIC knows that it is full by losing: a slow start that a busy machine's delays
        // keep going loses what it had on the way.
        assert!(retransmitted < if law == "adaptive" { 200 } else { packets / 10 }, "{summary}");
    }
    receiver.signal(Signal::SIGINT);
    assert_eq!(receiver.end().status, 130);
}
