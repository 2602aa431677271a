//! A station that runs out of file descriptors. In a process of its own, because the limit is a process's.
#![allow(clippy::disallowed_methods, reason = "real time is what is tested")]

#[path = "support/agent.rs"]
mod agent;

use agent::{AskAtEnd, busy};
use lasthop_agents::service::Stop;
use lasthop_agents::station::{Config, Station};
use lasthop_agents::tunnel::keys;
use lasthop_signals::Node;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::{Duration, Instant};

#[test]
fn a_station_out_of_descriptors_waits_and_ends_silent_programs() {
    let dir = tempfile::tempdir().expect("a directory");
    let key = dir.path().join("1");
    keys::pair(&dir.path().join("proxy"), Node(1), &key, false).expect("paired");
    let nobody = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let config = Config {
        listen: Some("127.0.0.1:0".parse().expect("an address")),
        drop_privileges: false,
        ..Config::new(nobody.local_addr().expect("an address"), key)
    };
    let station = Station::open(&config).expect("a station");
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    assert_eq!(soft, hard, "the limit was raised");
    let door = station.addresses().expect("an address")[0];
    // They wait in the listener's queue until the station runs.
    let mut programs: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(door).expect("it listens")).collect();
    setrlimit(Resource::RLIMIT_NOFILE, limit_that_leaves(SILENT), hard).expect("less is allowed");
    let stop: &'static Stop = Box::leak(Box::default());
    let clients = std::thread::spawn(move || {
        // However this ends, the station does.
        let _asked = AskAtEnd(stop);
        let (silent, speaking) = programs.split_at_mut(SILENT);
        silent[0].write_all(b"CONNECT 192.0.2.1:1 HTTP/1.1\r\nhost: ").expect("a connection");
        let began = Instant::now();
        for program in speaking.iter_mut() {
            program.write_all(&[5, 1, 0]).expect("a connection");
            program.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
        }
        // Each that has been answered goes, and so leaves room for the next.
        for program in speaking {
            let mut answer = [0; 2];
            program.read_exact(&mut answer).expect("an answer");
            assert_eq!(answer, [5, 0]);
            program.shutdown(std::net::Shutdown::Both).expect("a connection");
        }
        let waited = began.elapsed();
        assert!(waited >= Duration::from_secs(5), "there was room before the silent ones had gone: {waited:?}");
        let mut answer = String::new();
        silent[0].read_to_string(&mut answer).expect("an answer and an end");
        assert!(answer.starts_with("HTTP/1.1 408 "), "half a request: {answer:?}");
        for program in &mut silent[1..] {
            assert_eq!(program.read(&mut [0]).expect("an end"), 0);
        }
        waited
    });
    let before = busy();
    station.run(stop).expect("it runs");
    let busy = busy() - before;
    let waited = clients.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    assert!(busy < waited / 10, "{busy:?} of processor time in {waited:?}");
}

/// Programs that say nothing, and take all the room there is.
const SILENT: usize = 10;

/// The limit under which so many descriptors are left.
fn limit_that_leaves(count: usize) -> u64 {
    // Sockets are links to what is no path.
    let free = (0u64..).filter(|fd| std::fs::symlink_metadata(format!("/proc/self/fd/{fd}")).is_err());
    free.take(count).last().map_or(0, |last| last + 1)
}
