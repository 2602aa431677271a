//! What waits in the proxy for a station with one connection, and with many that all begin at one moment, over a wire of 20 ms.
#![allow(clippy::disallowed_methods, reason = "real time is what is tested")]

mod support;

use lasthop_agents::proxy::{self, Proxy, Rule};
use lasthop_agents::station::{self, Forward, Station};
use lasthop_laws::Intake;
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
use support::slots::{self, SEGMENT, Slot, TWO_PACKETS};

const RATE: Rate = Rate::from_mbit(50);
const ALLOWANCE: Span = Intake::ALLOWANCE;
/// Of the wire between proxy and servers.
const ROUND_TRIP: Duration = Duration::from_millis(20);
/// `connections` of one station stand and are quiet for a while; then all their servers send what they can for two seconds. Gives
/// the proxy's slots from that moment on, and how much each connection brought.
fn begin_together(connections: usize) -> (Vec<Slot>, Vec<usize>) {
    let wire = |server: &Netns, proxy: &Netns| DelayWire::new((server, "s0"), (proxy, "p0"), ROUND_TRIP / 2);
    let (edge, _wire) = Edge::joined(95, wire);
    let (server, station, log) = (&edge.server, &edge.station, edge.path("log"));
    let listen = "10.95.2.1:4848".parse().expect("an address");
    let config = proxy::Config { log: Some(log.clone()), ..proxy::Config::new(listen, edge.keys(), Rule::Fixed(RATE)) };
    let _proxy = Agent::start(&edge.proxy, move |ready, stop| {
        let proxy = Proxy::open(&config).expect("a proxy");
        ready();
        drop(proxy.run(stop).expect("it runs"));
    });
    let target = Target::new("10.95.1.1", 7).expect("a target");
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
    // One that is told to begin, and then never stops.
    let (listener, begin) = (
        server.within(|| TcpListener::bind("10.95.1.1:7")).expect("a listener"),
        Arc::new(Barrier::new(connections + 1)),
    );
    let starts = Arc::clone(&begin);
    std::thread::spawn(move || {
        for mut socket in listener.incoming().map_while(Result::ok) {
            let starts = Arc::clone(&starts);
            std::thread::spawn(move || {
                if socket.write_all(b"!").is_ok() && socket.read_exact(&mut [0]).is_ok() {
                    starts.wait();
                    while socket.write_all(&[0x5a; 16 << 10]).is_ok() {}
                }
            });
        }
    });
    let until = Instant::now() + Duration::from_secs(20);
    let mut open: Vec<TcpStream> = Vec::new();
    while open.len() < connections {
        assert!(Instant::now() < until, "{} of {connections} connections stand", open.len());
        let mut socket = station.within(|| TcpStream::connect("127.0.0.1:9000")).expect("the agent listens");
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
        // While the tunnel is down a connection ends at once.
        match socket.read_exact(&mut [0]) {
            Ok(()) => open.push(socket),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    std::thread::sleep(Duration::from_millis(500));
    let before = slots::count(&log);
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
    (slots::read(&log, before), brought)
}

#[test]
fn one_connection_and_many_that_begin_together_stay_within_the_bound() {
    if !available("edge proxy") {
        return;
    }
    for connections in [1, 32, 256] {
        let (slots, brought) = begin_together(connections);
        let filled: Vec<u64> = slots.iter().map(|slot| slot.backlog as u64).collect();
        let mbit = brought.iter().sum::<usize>() as f64 * 8e-6 / 2.0;
        println!("{connections} connections: {mbit:.1} Mbit/s, {filled:?} octets at most in each slot");
        let fullest = slots::fullest(&slots);
        // What all may begin with at once: a segment each, and the part of the allowance that those that send leave.
        let spare = RATE.bytes_in(ALLOWANCE - Intake::standing(ALLOWANCE)).get() as f64;
        let forced = SEGMENT * connections as f64 + spare + TWO_PACKETS;
        let most = fullest.bound.max(forced);
        assert!(fullest.backlog <= most, "{connections} connections: {fullest:?}, {most} allowed");
        let over = slots.iter().map(|slot| slot.over).sum::<f64>() / slots.len() as f64;
        assert!(
            over < 0.1 || forced > fullest.bound,
            "{connections} connections: {over:.3} of all looks found more than the bound"
        );
        assert!(mbit > 25.0, "{connections} connections: {mbit:.1} Mbit/s of {RATE}");
        assert!(brought.iter().all(|count| *count > 0), "{connections} connections: some brought nothing: {brought:?}");
    }
}
