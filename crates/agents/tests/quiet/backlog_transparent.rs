//! What waits in the proxy for a station to which many connect at one moment, over a wire of 20 ms: transparent mode, where the kernel
//! tells each of its first window before the proxy knows of it.
#![cfg(feature = "bpf")]
#![allow(clippy::disallowed_methods, reason = "real time is what is tested")]

use crate::support;

use lasthop_agents::proxy::{self, Rule};
use lasthop_agents::station;
use lasthop_agents::transparent;
use lasthop_laws::ReceiveWindow;
use lasthop_signals::Node;
use lasthop_units::{Rate, Span};
use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::delay::DelayWire;
use support::edge::Edge;
use support::netns::{Netns, available};
use support::others::Others;
use support::slots::{self, SEGMENT, Slot, TWO_PACKETS};

const RATE: Rate = Rate::from_mbit(50);
const ALLOWANCE: Span = ReceiveWindow::ALLOWANCE;
/// Of the wire between proxy and callers.
const ROUND_TRIP: Duration = Duration::from_millis(20);
const SERVICE: &str = "10.97.3.2:8080";
/// How long all call, and send what they can.
const LASTS: Duration = Duration::from_secs(3);

/// What `count` callers that connect at one moment, and send what they can, do to the proxy.
struct Called {
    slots: Vec<Slot>,
    /// Octets of each that came.
    brought: Vec<usize>,
    /// Whether nobody else needed the machine meanwhile.
    quiet: bool,
    /// How long it took to end while all went on.
    ending: Duration,
}

fn call_together(count: usize) -> Called {
    let wire = |server: &Netns, proxy: &Netns| DelayWire::new((server, "s0"), (proxy, "p0"), ROUND_TRIP / 2);
    let (edge, _wire) = Edge::joined(97, wire);
    let log = edge.path("log");
    edge.server.ip("route add 10.97.3.0/24 via 10.97.1.2");
    edge.station.ip("addr add 10.97.3.2/32 dev lo");
    let config = proxy::Config {
        transparent: Some(transparent::Config {
            iface: "p0".into(),
            stations: vec![("10.97.3.2".parse().expect("an address"), Node(1))],
        }),
        log: Some(log.clone()),
        ..proxy::Config::new("10.97.2.1:4848".parse().expect("an address"), edge.keys(), Rule::Fixed(RATE))
    };
    let proxy = edge.start_proxy(config);
    let config = station::Config {
        serve: vec![8080],
        slot: Span::from_millis(100),
        ..station::Config::new("10.97.2.1:4848".parse().expect("an address"), edge.key())
    };
    let _station = edge.start_station(config);
    let (service, counts) =
        (edge.station.within(|| TcpListener::bind(SERVICE)).expect("a listener"), Counts::default());
    count_what_comes(service, counts.clone());
    let until = Instant::now() + Duration::from_secs(60);
    // Before the agent is there nobody takes connections over, and there is no other way.
    while counts.lock().expect("no panic").is_empty() {
        assert!(Instant::now() < until, "the tunnel does not come up");
        let call = || TcpStream::connect_timeout(&SERVICE.parse().expect("an address"), Duration::from_millis(200));
        edge.server.within(|| call().is_ok_and(|mut socket| socket.write_all(b"x").is_ok()));
        std::thread::sleep(Duration::from_millis(100));
    }
    std::thread::sleep(Duration::from_millis(500));
    let (before, tried) = (slots::count(&log), counts.lock().expect("no panic").len());
    let others = Others::look();
    let calling = edge.server.within(|| (0..count).map(|_| call()).collect::<Vec<TcpStream>>());
    for mut socket in calling {
        // It waits until the connection stands.
        std::thread::spawn(move || while socket.write_all(&[0x5a; 16 << 10]).is_ok() {});
    }
    std::thread::sleep(LASTS);
    let read = |count: &Arc<AtomicUsize>| count.load(Ordering::Relaxed);
    let brought = counts.lock().expect("no panic")[tried..].iter().map(read).collect();
    let (slots, quiet) = (slots::read(&log, before), others.were_quiet("the bound, the throughput and fairness"));
    let began = Instant::now();
    proxy.end();
    Called { slots, brought, quiet, ending: began.elapsed() }
}

/// Octets that have come, by connection.
type Counts = Arc<Mutex<Vec<Arc<AtomicUsize>>>>;

fn count_what_comes(service: TcpListener, counts: Counts) {
    std::thread::spawn(move || {
        for mut socket in service.incoming().map_while(Result::ok) {
            let count = Arc::<AtomicUsize>::default();
            counts.lock().expect("no panic").push(Arc::clone(&count));
            std::thread::spawn(move || {
                let mut bytes = vec![0; 1 << 16];
                while let Ok(len @ 1..) = socket.read(&mut bytes) {
                    count.fetch_add(len, Ordering::Relaxed);
                }
            });
        }
    });
}

/// Begins to connect, without waiting for it; the first write will.
fn call() -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_nonblocking(true).expect("a socket");
    let address: SocketAddr = SERVICE.parse().expect("an address");
    let begun = socket.connect(&address.into());
    assert!(begun.is_ok() || begun.is_err_and(|error| error.raw_os_error() == Some(libc::EINPROGRESS)));
    socket.set_nonblocking(false).expect("a socket");
    socket.into()
}

#[test]
fn simultaneous_callers_keep_the_bound_and_are_served_alike() {
    if !available("transparent mode") {
        return;
    }
    for count in [1, 32, 256] {
        let Called { slots, brought, quiet, ending } = call_together(count);
        let filled: Vec<u64> = slots.iter().map(|slot| slot.backlog as u64).collect();
        let sum = brought.iter().sum::<usize>() as f64;
        let squares = brought.iter().map(|octets| (*octets as f64).powi(2)).sum::<f64>();
        let (mbit, jain) = (sum * 8e-6 / LASTS.as_secs_f64(), sum * sum / (squares * brought.len() as f64));
        println!(
            "{count} callers: {mbit:.1} Mbit/s, Jain's index {jain:.3}, ended within {ending:.2?}; {filled:?} octets at most in each slot"
        );
        let fullest = slots::fullest(&slots);
        // A segment each, and the part of the allowance that those that send leave.
        let spare = RATE.bytes_in(ALLOWANCE - ReceiveWindow::standing(ALLOWANCE)).get() as f64;
        let forced = SEGMENT * count as f64 + spare + TWO_PACKETS;
        println!("{fullest:?}, {forced} forced");
        assert_eq!(brought.len(), count, "connections that the agent made");
        assert!(brought.iter().all(|octets| *octets > 0), "{count} callers: {brought:?}");
        if !quiet {
            continue;
        }
        // A process that is held up cannot close windows: what all were allowed then comes, up to 1.9 times the bound.
        assert!(fullest.backlog <= 1.9 * fullest.bound.max(forced), "{count} callers: {fullest:?}, {forced} forced");
        // How much less than the rate it is depends on what else the machine does.
        assert!(mbit > 10.0, "{count} callers: {mbit:.1} Mbit/s of {RATE}");
        assert!(jain > 0.5, "{count} callers: {jain:.3}, {brought:?}");
    }
}
