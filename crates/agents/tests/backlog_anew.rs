//! What waits in the proxy when connections that have all been busy, one after the other, begin anew at one moment, over a wire of 20 ms.
#![allow(clippy::disallowed_methods, reason = "real time is what is tested")]

mod support;

use lasthop_agents::proxy::{self, Proxy, Rule};
use lasthop_agents::station::{self, Forward, Station};
use lasthop_units::{Rate, Span};
use lasthop_wire::proxy::Target;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use support::delay::DelayWire;
use support::edge::{Agent, Edge};
use support::netns::{Netns, available};
use support::slots::{self, Slot};

const RATE: Rate = Rate::from_mbit(50);
/// What each brings before.
const EACH: usize = 200_000;
/// Of the wire between proxy and servers.
const ROUND_TRIP: Duration = Duration::from_millis(20);
/// `connections` of one station bring [`EACH`] octets one after the other, each with the whole rate, and are quiet for a while; then all
/// their servers send what they can for two seconds. Gives the proxy's slots from that moment on, how much each connection brought,
/// and how many segments servers repeated.
fn begin_anew(connections: usize, pause: Duration) -> (Vec<Slot>, Vec<usize>, u64) {
    let wire = |server: &Netns, proxy: &Netns| DelayWire::new((server, "s0"), (proxy, "p0"), ROUND_TRIP / 2);
    let (edge, _wire) = Edge::joined(93, wire);
    let (server, station, log) = (&edge.server, &edge.station, edge.path("log"));
    let listen = "10.93.2.1:4848".parse().expect("an address");
    let config = proxy::Config { log: Some(log.clone()), ..proxy::Config::new(listen, edge.keys(), Rule::Fixed(RATE)) };
    let _proxy = Agent::start(&edge.proxy, move |ready, stop| {
        let proxy = Proxy::open(&config).expect("a proxy");
        ready();
        drop(proxy.run(stop).expect("it runs"));
    });
    let target = Target::new("10.93.1.1", 7).expect("a target");
    let config = station::Config {
        forwards: vec![Forward { listen: "127.0.0.1:9000".parse().expect("an address"), target }],
        slot: Span::from_millis(100),
        ..station::Config::new(listen, edge.key())
    };
    let _station = Agent::start(&edge.station, move |ready, stop| {
        let station = Station::open(&config).expect("a station");
        ready();
        drop(station.run(stop).expect("it runs"));
    });
    // For `n` it sends some, for anything else all it can as soon as all are asked.
    let (listener, begin) = (
        server.within(|| TcpListener::bind("10.93.1.1:7")).expect("a listener"),
        Arc::new(Barrier::new(connections + 1)),
    );
    let starts = Arc::clone(&begin);
    std::thread::spawn(move || {
        for mut socket in listener.incoming().map_while(Result::ok) {
            let starts = Arc::clone(&starts);
            std::thread::spawn(move || {
                let mut word = [0];
                while socket.read_exact(&mut word).is_ok() {
                    if word == *b"n" {
                        let _ = socket.write_all(&[0x5a; EACH]);
                        continue;
                    }
                    starts.wait();
                    while socket.write_all(&[0x5a; 16 << 10]).is_ok() {}
                }
            });
        }
    });
    let until = Instant::now() + Duration::from_secs(60);
    let mut open: Vec<TcpStream> = Vec::new();
    while open.len() < connections {
        assert!(Instant::now() < until, "{} of {connections} connections stand", open.len());
        let mut socket = station.within(|| TcpStream::connect("127.0.0.1:9000")).expect("the agent listens");
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
        // While the tunnel is down a connection ends at once.
        match socket.write_all(b"n").and_then(|()| socket.read_exact(&mut [0; EACH])) {
            Ok(()) => open.push(socket),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    // Twice, the second time from an open window.
    for socket in &mut open {
        socket.write_all(b"n").and_then(|()| socket.read_exact(&mut [0; EACH])).expect("data comes");
    }
    std::thread::sleep(pause);
    let (before, repeated_before) = (slots::count(&log), repeated(server));
    open.iter_mut().for_each(|socket| socket.write_all(b"x").expect("a connection"));
    begin.wait();
    let ends = Instant::now() + Duration::from_secs(2);
    let readers: Vec<JoinHandle<usize>> = open
        .into_iter()
        .map(|mut socket| {
            std::thread::spawn(move || {
                let (mut bytes, mut count) = (vec![0; 1 << 16], 0);
                while Instant::now() < ends {
                    count += socket.read(&mut bytes).expect("data comes");
                }
                count
            })
        })
        .collect();
    let brought = readers.into_iter().map(|reader| reader.join().expect("no panic")).collect();
    (slots::read(&log, before), brought, repeated(server) - repeated_before)
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
#[ignore = "a measurement of half a minute, for an idle machine: docs/decisions/0007-what-waits-in-the-proxy.md has the figures"]
fn connections_that_begin_anew() {
    if !available("edge proxy") {
        return;
    }
    for (connections, ms) in [(1, 150), (1, 3000), (8, 1000), (32, 1000)] {
        let (slots, brought, repeated) = begin_anew(connections, Duration::from_millis(ms));
        let mbit = brought.iter().sum::<usize>() as f64 * 8e-6 / 2.0;
        let fullest = slots::fullest(&slots);
        println!(
            "{connections} connections after {ms} ms: {mbit:.1} Mbit/s, {repeated} segments repeated, {fullest:?}"
        );
        assert!(connections > 1 || repeated == 0, "{repeated} segments found no room that was promised");
        assert!(mbit > 25.0, "{mbit:.1} Mbit/s of {RATE}");
    }
}
