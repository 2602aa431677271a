//! `lasthop echo`: started by the lab for a law that asks for it, and asked for its status and its metrics.

// Programs are waited for by the wall clock.
#![allow(clippy::disallowed_methods)]

use crate::support;

use lasthop_tests::{PATIENCE, ends_within, eventually, inside, json, lab, lasthop, own_scenario, program, run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use support::netns::{Row, available};

#[test]
fn the_labs_run_has_the_echos_counters() {
    let Some(_lab) = lab() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let (file, out) = (folder.path().join("echo.toml"), folder.path().join("out"));
    let law = "\n[laws.echo]\nsender = \"cubic\"\npart = [{ at = \"relay\", law = \"echo\", rate = \"1 Mbit/s\" }]\n";
    std::fs::write(&file, std::fs::read_to_string(own_scenario("short")).expect("a scenario") + law).expect("written");
    run(lasthop(["run", "--world", "lab", "--law", "echo", "--out"]).arg(&out).arg(&file)).succeeded();
    let info = json(&out.join("run.json"));
    let counter = |name: &str| info["runs"][0]["echo"][name].as_u64().unwrap_or_else(|| panic!("{name}: {info}"));
    // Two stations ask ten times a second, for three seconds.
    assert!((40..100).contains(&counter("asked")), "{info}");
    assert!(counter("heard") > 20 && counter("answered") >= counter("heard"), "{info}");
}

#[test]
fn it_tells_its_status_and_its_metrics_and_stops() {
    if !available("an agent that answers probes") {
        return;
    }
    let row = Row::new(141);
    let begin = |netns: &str, more: &[&str]| {
        inside(netns, program(), &[&["echo", "--user", "65534"], more].concat()).spawn().expect("it starts")
    };
    let slow = ["--iface", "p1", "--rate", "2 kbit/s", "--listen", "127.0.0.1:9100"];
    let (answers, asks) =
        (begin(row.proxy.name(), &slow), begin(row.station.name(), &["--iface", "t0", "--ask", "10.141.2.1"]));
    let status = || {
        let told = run(&mut inside(row.proxy.name(), program(), &["status", "--iface", "p1", "--json"]));
        serde_json::from_str::<Value>(&told.out).unwrap_or_default()
    };
    // More probes come than may be answered.
    let counted = |name: &str| status()["done"][name].as_u64().unwrap_or(0);
    assert!(eventually(PATIENCE, || counted("answered") > 2 && counted("spared") > 2), "{}", status());
    assert_eq!((&status()["agent"], &status()["iface"]), (&"echo".into(), &"p1".into()));
    let text = run(&mut inside(row.proxy.name(), program(), &["status"])).succeeded().out;
    assert!(text.contains("p1: echo; process") && text.contains("answered "), "{text}");
    // What is no probe, and an address from elsewhere.
    let stray = row.server.within(|| UdpSocket::bind("10.141.1.1:0")).expect("ours");
    let near = row.station.within(|| UdpSocket::bind("10.141.2.2:0")).expect("ours");
    stray.send_to(b"LHecho1?01234567", "10.141.1.2:19529").expect("sent");
    near.send_to(b"LHecho1?", "10.141.2.1:19529").expect("sent");
    assert!(eventually(PATIENCE, || counted("refused") == 1), "{}", status());
    let page = || {
        let mut stream = row.proxy.within(|| TcpStream::connect("127.0.0.1:9100")).expect("it listens");
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("sent");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("text");
        page
    };
    let told = |line: &str| page().lines().any(|found| found == line);
    assert!(eventually(PATIENCE, || told("lasthop_echo_refused_total 1")), "{}", page());
    assert!(told("# HELP lasthop_echo_answered Probes that were answered."), "{}", page());
    for (child, told) in [(asks, "heard"), (answers, "answered")] {
        kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).expect("our child");
        let ended = ends_within(child, PATIENCE).succeeded();
        let line = ended.out.lines().last().expect("an account").to_owned();
        let account = serde_json::from_str::<Value>(&line).expect("JSON");
        assert!(account["echo"][told].as_u64() > Some(2), "{ended:?}");
    }
}
