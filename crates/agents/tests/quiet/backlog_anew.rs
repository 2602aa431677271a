//! What waits in the proxy when connections that have all been busy, one after the other, begin anew at one moment, over a wire of 20 ms.
#![allow(clippy::disallowed_methods, reason = "real time is what is tested")]

use crate::support;

use lasthop_units::Rate;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Barrier};
use std::time::Duration;
use support::bulk::{Downloads, read_for};
use support::netns::{Netns, available};
use support::slots::{self, Slot};

const RATE: Rate = Rate::from_mbit(50);
/// What each brings before.
const EACH: usize = 200_000;
/// Of the wire between proxy and servers.
const ROUND_TRIP: Duration = Duration::from_millis(20);

/// `connections` of one station bring [`EACH`] octets one after the other, each with the whole rate, and are quiet for a while; then all
/// their servers send what they can for two seconds. `retracts`: the proxy's kernel lets windows be taken back. Gives the proxy's slots from
/// that moment on, how much each connection brought, and how many segments servers repeated.
fn begin_anew(connections: usize, pause: Duration, retracts: bool) -> (Vec<Slot>, Vec<usize>, u64) {
    let downloads = Downloads::new(93, RATE, ROUND_TRIP, retracts);
    // For `n` it sends some, for anything else all it can as soon as all are asked.
    let begin = Arc::new(Barrier::new(connections + 1));
    let starts = Arc::clone(&begin);
    downloads.serve(move |mut socket: TcpStream| {
        let mut word = [0; 2];
        while socket.read_exact(&mut word).is_ok() {
            if word == *b"n\n" {
                let _ = socket.write_all(&[0x5a; EACH]);
                continue;
            }
            starts.wait();
            while socket.write_all(&[0x5a; 16 << 10]).is_ok() {}
        }
    });
    let some = |socket: &mut TcpStream| socket.write_all(b"n\n").and_then(|()| socket.read_exact(&mut [0; EACH]));
    let mut open = downloads.connect(connections, some);
    // Twice, the second time from an open window.
    open.iter_mut().for_each(|socket| some(socket).expect("data comes"));
    std::thread::sleep(pause);
    let (before, repeated_before) = (downloads.count(), repeated(&downloads.edge.server));
    open.iter_mut().for_each(|socket| socket.write_all(b"x\n").expect("a connection"));
    begin.wait();
    let brought = read_for(open, Duration::from_secs(2));
    (downloads.slots(before), brought, repeated(&downloads.edge.server) - repeated_before)
}

/// Segments that TCP has sent again in a namespace.
fn repeated(netns: &Netns) -> u64 {
    let text = netns.within(|| std::fs::read_to_string("/proc/thread-self/net/snmp")).expect("procfs");
    let mut lines = text.lines().filter(|line| line.starts_with("Tcp:")).map(|line| line.split_whitespace());
    let (mut names, mut values) = (lines.next().expect("a head"), lines.next().expect("a line"));
    let place = names.position(|name| name == "RetransSegs").expect("a counter");
    values.nth(place).and_then(|value| value.parse().ok()).expect("a number")
}

/// Senders here are the kernel's own, by its default law: BBR paces, and brings after any pause all that it was given; CUBIC and Reno begin
/// with ten segments again.
#[test]
#[ignore = "a measurement of some minutes (256 connections alone take two), for an idle machine: docs/decisions/0007-bound-proxy-backlog.md has the figures"]
fn connections_that_begin_anew() {
    if !available("edge proxy") {
        return;
    }
    let cases = [(1, 150), (1, 3000), (8, 1000), (32, 1000), (256, 1000)];
    for (connections, ms, retracts) in
        [false, true].into_iter().flat_map(|may| cases.map(|(count, ms)| (count, ms, may)))
    {
        let (slots, brought, repeated) = begin_anew(connections, Duration::from_millis(ms), retracts);
        let mbit = brought.iter().sum::<usize>() as f64 * 8e-6 / 2.0;
        let fullest = slots::fullest(&slots);
        println!(
            "{connections} connections after {ms} ms, windows taken back: {retracts}: {mbit:.1} Mbit/s, {repeated} segments repeated, {fullest:?}"
        );
        assert!(connections > 1 || repeated == 0, "{repeated} segments found no room that was promised");
        assert!(!retracts || fullest.backlog <= fullest.bound || connections > 32, "{fullest:?}");
        assert!(mbit > 25.0, "{mbit:.1} Mbit/s of {RATE}");
    }
}
