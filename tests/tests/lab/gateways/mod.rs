//! `lasthop mesh-gateway` as its users start it: a host, a gateway, a slow hop, a gateway, a server; files both ways, kills, and lies on the way.

// Programs are waited for by the wall clock.
#![allow(clippy::disallowed_methods)]

use crate::support;
mod on_the_way;
mod server;
mod world;

use lasthop_tests::{PATIENCE, eventually, is_root, machine};
use nix::sys::signal::Signal;
use on_the_way::{Does, Lies, OnTheWay};
use server::{FILE, Server};
use std::io::Write as _;
use std::net::UdpSocket;
use std::time::{Duration, Instant};
use world::{Cgroup, Running, World};

/// The tunnel's rule on silence, and what a loaded machine may add.
const SILENCE: Duration = Duration::from_secs(30);

fn world(net: u8) -> Option<World> {
    if !is_root() {
        return None;
    }
    if std::process::Command::new("curl").arg("--version").output().is_err() {
        // Past the capture of test output.
        let _ = writeln!(std::io::stderr(), "SKIPPED: gateways: needs curl");
        return None;
    }
    let world = World::new(net);
    if world.is_none() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: gateways: no tc with TBF here");
    }
    world
}

#[test]
fn files_pass_two_gateways_whole_by_every_door_both_ways() {
    let Some(world) = world(141) else { return };
    let (server, other) = (Server::start(&world.b, &world.at("2.2:80")), Server::start(&world.a, &world.at("1.2:80")));
    let called = world.called(&["--socks5", &world.at("2.1:1080")]);
    let (door, forward) = (world.at("1.1:1080"), format!("{}={}", world.at("1.1:8000"), world.at("2.2:80")));
    let mut arguments = vec!["--socks5", &door, "--forward", &forward];
    let cgroup = Cgroup::new();
    let path = cgroup.as_ref().map(Cgroup::text);
    arguments.extend(path.iter().flat_map(|path| ["--transparent", path]));
    let calling = world.calling(&arguments);
    world.until_up(&door);
    let target = world.at("2.2:80");
    // By SOCKS5, by HTTP CONNECT, by a forwarded port.
    let http_door = format!("http://{door}");
    for options in [["--socks5-hostname", &door], ["--proxytunnel", "--proxy"], ["--noproxy", "*"]] {
        let mut line = options.to_vec();
        let mut to = target.clone();
        match options[0] {
            "--proxytunnel" => line.push(&http_door),
            "--noproxy" => to = world.at("1.1:8000"),
            _ => {}
        }
        let got = world.curl(&world.a, &line, &format!("http://{to}/file")).succeeded_with_file();
        assert!(got == *FILE, "{options:?}: other octets");
        let said = world.upload(&world.a, &line, &format!("http://{to}/file"));
        assert_eq!(said, "the same", "{options:?}");
    }
    assert_eq!(server.seen_last(), world.at("2.1"), "the other gateway has made the connections");
    // Connections may begin at the gateway that is called, too.
    let back = world.at("2.1:1080");
    let got = world.curl(&world.b, &["--socks5-hostname", &back], &format!("http://{}/file", world.at("1.2:80")));
    assert!(got.succeeded_with_file() == *FILE, "other octets");
    assert_eq!(other.seen_last(), world.at("1.1"));
    // Programs of the gateway itself that know of none.
    if let Some(cgroup) = &cgroup {
        let led = || {
            let got = world.curl_in(cgroup, &world.ga, &format!("http://{target}/file"));
            got.succeeded_with_file() == *FILE && server.seen_last() == world.at("2.1")
        };
        assert!(eventually(PATIENCE, led), "connections are not led to the gateway");
    }
    // What the other gateway may not be connected to, and what is not there.
    for (to, status) in [(world.at("2.1:22"), "2"), ("127.0.0.1:22".into(), "2"), (world.at("2.2:9"), "5")] {
        let ended = world.curl(&world.a, &["--socks5-hostname", &door], &format!("http://{to}/file"));
        assert!(ended.ended.err.contains(&format!("({status})")), "{to}: {}", ended.ended.err);
    }
    let (ours, theirs) = (calling.stop(), called.stop());
    assert_eq!((ours.status, theirs.status), (0, 0), "{} {}", ours.err, theirs.err);
    assert!(ours.err.contains(" there, 1 here; ") && theirs.err.contains("1 connection there, "), "{}", ours.err);
    // D of the slow hop, each way, was once that of a full packet at least: 0.24 ms at 50 Mbit/s. It is near zero while nothing waits.
    let (called, calling) = (world.called(&[]), world.calling(&["--socks5", &door]));
    world.until_up(&door);
    let (line, url) = (["--socks5-hostname", door.as_str()], format!("http://{target}/file"));
    assert!(world.curl(&world.a, &line, &url).succeeded_with_file() == *FILE, "other octets");
    assert_eq!(world.upload(&world.a, &line, &url), "the same");
    for ended in [calling.stop(), called.stop()] {
        let most = most_delay_us(&ended.err);
        assert!(most > 150.0, "{}", ended.err);
    }
}

/// The most that a gateway was told of the delay of the slowest hop, in microseconds.
fn most_delay_us(err: &str) -> f64 {
    let told = err.lines().find_map(|line| line.strip_prefix("delay of the slowest hop: ")).expect("a line");
    let (most, _) = told.split_once(" at most, ").expect("the most");
    let (number, unit) = most.split_once(' ').expect("a unit");
    let number: f64 = number.parse().expect("a number");
    match unit {
        "ns" => number / 1e3,
        "us" => number,
        "ms" => number * 1e3,
        _ => panic!("{told}"),
    }
}

#[test]
fn a_killed_peer_gateway_ends_connections_and_refuses_new_ones() {
    let Some(world) = world(142) else { return };
    let server = Server::start(&world.b, &world.at("2.2:80"));
    let cgroup = Cgroup::new();
    let path = cgroup.as_ref().map(Cgroup::text);
    let door = world.at("1.1:1080");
    let mut arguments = vec!["--socks5", door.as_str()];
    arguments.extend(path.iter().flat_map(|path| ["--transparent", path]));
    let called = world.called(&[]);
    let calling = world.calling(&arguments);
    world.until_up(&door);
    let url = format!("http://{}/", world.at("2.2:80"));
    let slow = world.begin(&world.a, &["--socks5-hostname", &door], &format!("{url}endless"));
    assert!(eventually(PATIENCE, || server.has_begun("/endless")), "nothing came");
    called.kill(Signal::SIGKILL);
    let killed = Instant::now();
    // After three seconds of silence programs are told at once that nobody is there.
    let refused = || {
        let began = Instant::now();
        let ended = world.curl(&world.a, &["--socks5-hostname", &door, "-m", "20"], &format!("{url}file")).ended;
        ended.status != 0 && ended.err.contains("(3)") && began.elapsed() < Duration::from_secs(2)
    };
    assert!(eventually(PATIENCE, refused), "it does not say that nobody is there");
    if let Some(cgroup) = &cgroup {
        let ordinary = || {
            let got = world.curl_in(cgroup, &world.ga, &format!("{url}file"));
            got.ended.status == 0 && server.seen_last() == world.at("9.1")
        };
        assert!(eventually(PATIENCE, ordinary), "connections do not take their ordinary way");
    }
    let ended = slow.end();
    assert!(ended.status != 0 && killed.elapsed() < SILENCE * 2, "{}: {}", ended.status, ended.err);
    // It goes on by itself when the other one is there again.
    let called = world.called(&[]);
    world.until_up(&door);
    let got = world.curl(&world.a, &["--socks5-hostname", &door], &format!("{url}file"));
    assert!(got.succeeded_with_file() == *FILE, "other octets");
    calling.stop();
    called.stop();
}

#[test]
fn a_killed_gateway_resets_its_connections_and_leaves_nothing() {
    let Some(world) = world(143) else { return };
    let server = Server::start(&world.b, &world.at("2.2:80"));
    let cgroup = Cgroup::new();
    let path = cgroup.as_ref().map(Cgroup::text);
    let (door, forwarded) = (world.at("1.1:1080"), world.at("1.1:8000"));
    let forward = format!("{forwarded}={}", world.at("2.2:80"));
    let mut arguments = vec!["--socks5", door.as_str(), "--forward", &forward];
    arguments.extend(path.iter().flat_map(|path| ["--transparent", path]));
    let called = world.called(&[]);
    let calling = world.calling(&arguments);
    world.until_up(&door);
    // No length is told, so that an end in order would look like everything.
    let slow = world.begin(&world.a, &["--noproxy", "*"], &format!("http://{forwarded}/endless"));
    assert!(eventually(PATIENCE, || server.has_begun("/endless")), "nothing came");
    calling.kill(Signal::SIGKILL);
    let ended = slow.end();
    assert_eq!(ended.status, 56, "curl: a failure when receiving: {}", ended.err);
    if let Some(cgroup) = &cgroup {
        let got = world.curl_in(cgroup, &world.ga, &format!("http://{}/file", world.at("2.2:80")));
        assert!(got.succeeded_with_file() == *FILE, "other octets");
        assert_eq!(server.seen_last(), world.at("9.1"), "the ordinary way");
    }
    // The other gateway drops its half by the tunnel's rule on silence.
    assert!(eventually(SILENCE * 2, || server.has_failed("/endless")), "the server has heard nothing");
    assert_eq!(called.stop().status, 0);
}

#[test]
fn the_delay_that_a_relay_writes_is_the_time_between_packets() {
    machine::share(module_path!());
    let Some(world) = world(145) else { return };
    let _server = Server::start(&world.b, &world.at("2.2:80"));
    let called = world.called(&[]);
    let way = OnTheWay::begin(&world.gb, &world.at("9.2:4901"), &world.at("9.2:4900"), Does::Raises(5_000));
    let door = world.at("1.1:1080");
    let calling = world.calling_at(&world.at("9.2:4901"), &["--socks5", &door]);
    world.until_up(&door);
    let (url, began) = (format!("http://{}/short", world.at("2.2:80")), Instant::now());
    let got = world.curl(&world.a, &["--socks5-hostname", &door], &url).succeeded_with_file();
    let took = began.elapsed();
    assert!(got == FILE[..server::SHORT], "other octets");
    // 143 packets 5 ms apart.
    assert!(took > Duration::from_millis(650), "{took:?}");
    way.end();
    calling.stop();
    let told = called.stop().err;
    assert!(told.contains("delay of the slowest hop: 5.0 ms at most"), "{told}");
}

#[test]
fn lies_repetitions_and_forgeries_on_the_way_do_no_harm() {
    machine::share(module_path!());
    let Some(world) = world(144) else { return };
    let _server = Server::start(&world.b, &world.at("2.2:80"));
    let called = world.called(&["--least-delay", "200us"]);
    let way =
        OnTheWay::begin(&world.gb, &world.at("9.2:4901"), &world.at("9.2:4900"), Does::Lies(Lies { seed: 7, of: 60 }));
    let door = world.at("1.1:1080");
    let calling = world.calling_at(&world.at("9.2:4901"), &["--socks5", &door, "--least-delay", "200us"]);
    world.until_up(&door);
    for _ in 0..2 {
        let url = format!("http://{}/short", world.at("2.2:80"));
        let got = world.curl(&world.a, &["--socks5-hostname", &door], &url).succeeded_with_file();
        assert!(got == FILE[..server::SHORT], "other octets");
    }
    let told = way.end();
    assert!(told.lies > 0 && told.repeated > 20 && told.forged > 20, "{told:?}");
    let (ours, theirs) = (calling.stop(), called.stop());
    for ended in [&ours, &theirs] {
        assert_eq!(ended.status, 0, "{}", ended.err);
        assert!(ended.err.contains("1 session") && !ended.err.contains(" 0 datagrams refused"), "{}", ended.err);
    }
}

#[test]
fn a_call_that_is_sent_back_to_its_caller_makes_no_session() {
    machine::share(module_path!());
    let folder = tempfile::tempdir().expect("a directory");
    let [_, key] = world::keys(folder.path());
    let mirror = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    mirror.set_read_timeout(Some(Duration::from_secs(1))).expect("a socket");
    let at = mirror.local_addr().expect("bound").to_string();
    let calling = Running::here(&["--key", &key, "--peer", &at]);
    let (mut bytes, mut sent_back) = ([0; 2048], 0);
    while sent_back < 8 {
        let (len, from) = mirror.recv_from(&mut bytes).expect("it calls three times a second");
        mirror.send_to(&bytes[..len], from).expect("sent");
        sent_back += 1;
    }
    let ended = calling.stop().failed_saying(&["never answered", "0 sessions"]);
    assert!(!ended.err.contains(" 0 datagrams refused"), "{}", ended.err);
}

#[test]
fn what_cannot_be_is_told_with_what_would_be_right() {
    machine::share(module_path!());
    let folder = tempfile::tempdir().expect("a directory");
    let [all, own] = world::keys(folder.path());
    let refused = |arguments: &[&str], says: &[&str]| {
        let ended = Running::never_starts(&[&["mesh-gateway", "--bind", "127.0.0.1:0"], arguments].concat());
        assert!(ended.status != 0 && says.iter().all(|part| ended.err.contains(part)), "{arguments:?}: {}", ended.err);
    };
    refused(&["--key", "/none/such"], &["key file /none/such", "No such file"]);
    refused(&["--key", &all, "--peer", "127.0.0.1:9"], &["NUMBER=HOST:PORT", "several keys"]);
    refused(&["--key", &all, "--socks5", "127.0.0.1:0"], &["via", "the file has several"]);
    refused(&["--key", &own, "--via", "9"], &["via 9", "number of a key of the file"]);
    refused(&["--key", &own, "--peer", "[::1]:9"], &["of the family of --bind"]);
    refused(&["--key", &own, "--least-delay", "5s"], &["--least-delay", "at most 4 s"]);
    refused(&["--key", &own, "--allow", "10.1.2.3/8"], &["did you mean 10.0.0.0/8?"]);
    refused(&["--key", &own, "--transparent", "/tmp"], &["transparent mode"]);
}
