//! The edge proxy and the station's agent between namespaces: server, proxy and station on cables, real TCP at both ends.
#![allow(clippy::disallowed_methods, reason = "real time is what is tested")]

use crate::support;

use lasthop_agents::proxy::{self, Rule};
use lasthop_agents::station::{self, Forward};
use lasthop_agents::tunnel::keys;
use lasthop_signals::Node;
use lasthop_units::{Rate, Span};
use lasthop_wire::proxy::Target;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::edge::{Agent, Edge};
use support::netns::available;

/// Server, proxy and station; [`middle`] can put a box between the last two that loses, repeats and records datagrams.
struct World(Edge);

impl Deref for World {
    type Target = Edge;

    fn deref(&self) -> &Edge {
        &self.0
    }
}

const SERVER: &str = "10.98.1.1";
const PROXY: &str = "10.98.2.1:4848";
const DOOR: &str = "127.0.0.1:1080";
const FORWARDED: &str = "127.0.0.1:9000";

impl World {
    fn new() -> World {
        World(Edge::new(98))
    }

    fn proxy(&self, rate: Rate) -> Agent<proxy::Summary> {
        let listen = PROXY.parse().expect("an address");
        let config = proxy::Config {
            log: Some(self.path("proxy.log")),
            ..proxy::Config::new(listen, self.keys(), Rule::Fixed(rate))
        };
        self.start_proxy(config)
    }

    fn station(&self, proxy: &str, key: &str) -> Agent<station::Summary> {
        self.start_station(self.station_config(proxy, key))
    }

    fn station_config(&self, proxy: &str, key: &str) -> station::Config {
        station::Config {
            listen: Some(DOOR.parse().expect("an address")),
            forwards: vec![Forward {
                listen: FORWARDED.parse().expect("an address"),
                target: Target::new(SERVER, 7).expect("a target"),
            }],
            serve: vec![8080],
            slot: Span::from_millis(100),
            ..station::Config::new(proxy.parse().expect("an address"), self.path(key))
        }
    }

    /// A server at port 7 that sends `count` octets to everyone, as fast as it may, and then echoes.
    fn serve(&self, count: usize) -> Arc<AtomicU64> {
        let listener = self.server.within(|| TcpListener::bind((SERVER, 7))).expect("a listener");
        let written = Arc::new(AtomicU64::new(0));
        let total = Arc::clone(&written);
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let total = Arc::clone(&total);
                std::thread::spawn(move || {
                    let mut socket = socket;
                    for at in (0..count).step_by(1000) {
                        let piece: Vec<u8> = (at..(at + 1000).min(count)).map(octet).collect();
                        if socket.write_all(&piece).is_err() {
                            return;
                        }
                        total.fetch_add(piece.len() as u64, Ordering::Relaxed);
                    }
                    let _ = std::io::copy(&mut socket.try_clone().expect("a socket"), &mut socket);
                });
            }
        });
        written
    }

    /// Waits until the tunnel is up, as an echo shows.
    #[cfg(feature = "bpf")]
    fn connect_when_up(&self) {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            assert!(Instant::now() < until, "the tunnel does not come up");
            let mut socket = self.station.within(|| TcpStream::connect(FORWARDED)).expect("the agent listens");
            socket.set_read_timeout(Some(Duration::from_secs(2))).expect("a socket");
            if socket.write_all(b"x").is_ok() && socket.read_exact(&mut [0]).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A connection of a local program through the forwarded port, once the tunnel is up.
    fn connect(&self) -> TcpStream {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            assert!(Instant::now() < until, "the tunnel does not come up");
            let socket = self.station.within(|| TcpStream::connect(FORWARDED)).expect("the agent listens");
            socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
            // While the tunnel is down a connection ends at once.
            if matches!(socket.peek(&mut [0]), Ok(1)) {
                return socket;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn octet(at: usize) -> u8 {
    (at * 31 % 251) as u8
}

fn read_all(socket: &mut TcpStream, count: usize) {
    let mut bytes = vec![0; count];
    socket.read_exact(&mut bytes).expect("everything comes");
    assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == octet(at)), "every octet is right");
}

/// Passes datagrams between station and proxy inside the proxy's namespace, as `judge` says: how many copies go on.
fn middle(world: &World, mut judge: impl FnMut(bool, &[u8]) -> usize + Send + 'static) -> &'static str {
    const MIDDLE: &str = "10.98.2.1:4900";
    let outer = world.proxy.within(|| UdpSocket::bind(MIDDLE)).expect("a socket");
    let inner = world.proxy.within(|| UdpSocket::bind("10.98.2.1:0")).expect("a socket");
    inner.connect(PROXY).expect("an address");
    outer.set_nonblocking(true).expect("a socket");
    inner.set_nonblocking(true).expect("a socket");
    std::thread::spawn(move || {
        let (mut bytes, mut station, began) = ([0; 2048], None::<SocketAddr>, Instant::now());
        while began.elapsed() < Duration::from_secs(60) {
            let mut idle = true;
            if let Ok((len, from)) = outer.recv_from(&mut bytes) {
                (station, idle) = (Some(from), false);
                for _ in 0..judge(true, &bytes[..len]) {
                    let _ = inner.send(&bytes[..len]);
                }
            }
            if let (Ok(len), Some(station)) = (inner.recv(&mut bytes), station) {
                idle = false;
                for _ in 0..judge(false, &bytes[..len]) {
                    let _ = outer.send_to(&bytes[..len], station);
                }
            }
            if idle {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    });
    MIDDLE
}

#[test]
fn data_passes_both_ways_at_the_rate_within_the_backlog_bound() {
    if !available("edge proxy") {
        return;
    }
    let world = World::new();
    const COUNT: usize = 20_000_000;
    let written = world.serve(COUNT);
    let proxy = world.proxy(Rate::from_mbit(100));
    let station = world.station(PROXY, "1");
    let mut socket = world.connect();
    let began = Instant::now();
    // What the server could get rid of is in the proxy, in kernel buffers of the server and the program, or here.
    read_all(&mut socket, COUNT);
    let mbit = COUNT as f64 * 8.0 / 1e6 / began.elapsed().as_secs_f64();
    // How much less it is depends on what else the machine does.
    assert!((20.0..100.0).contains(&mbit), "{mbit:.1} Mbit/s of payload at 100 Mbit/s of packets");
    assert_eq!(written.load(Ordering::Relaxed), COUNT as u64);
    socket.write_all(b"echo").expect("a connection");
    let mut answer = [0; 4];
    socket.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"echo");
    drop(socket);
    let received = station.end();
    let sent = proxy.end();
    assert_eq!((sent.sessions, sent.refused, received.refused), (1, 0, 0));
    assert_eq!(sent.doubted.count, 0, "{}", sent.doubted);
    let log = std::fs::read_to_string(world.path("proxy.log")).expect("a log");
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(lines.len() >= 5, "{log}");
    let number = |line: &serde_json::Value, key: &str| line[key].as_f64().expect("a number");
    for line in lines.iter().filter(|line| number(line, "bound_bytes") > 0.0) {
        let (most, bound) = (number(line, "backlog_bytes"), number(line, "bound_bytes"));
        // A process that is held up cannot close windows: what all were allowed then comes, up to 1.9 times the bound.
        assert!(most <= 1.9 * bound, "{most} octets held, {bound} allowed: {line}");
    }
}

#[test]
fn programs_are_served_by_socks_and_by_connect() {
    if !available("edge proxy") {
        return;
    }
    let world = World::new();
    world.serve(0);
    let _proxy = world.proxy(Rate::from_mbit(50));
    let _station = world.station(PROXY, "1");
    let until = Instant::now() + Duration::from_secs(60);
    let connected = |greeting: &[&[u8]], expected: &[u8]| loop {
        assert!(Instant::now() < until, "the tunnel does not come up");
        let mut socket = world.station.within(|| TcpStream::connect(DOOR)).expect("the agent listens");
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
        let mut answer = Vec::new();
        for part in greeting {
            socket.write_all(part).expect("a connection");
            let mut piece = [0; 256];
            let count = socket.read(&mut piece).unwrap_or(0);
            answer.extend_from_slice(&piece[..count]);
        }
        if answer == expected {
            socket.write_all(b"hello").expect("a connection");
            let mut echo = [0; 5];
            socket.read_exact(&mut echo).expect("an echo");
            assert_eq!(&echo, b"hello");
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    connected(&[&[5, 1, 0], &[5, 1, 0, 1, 10, 98, 1, 1, 0, 7]], &[5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    connected(&[b"CONNECT 10.98.1.1:7 HTTP/1.1\r\nhost: x\r\n\r\n"], b"HTTP/1.1 200 Connection established\r\n\r\n");
    // Nobody listens there; and this machine is not for stations.
    connected_is(&world, &[5, 1, 0, 1, 10, 98, 1, 1, 0, 9], 5);
    connected_is(&world, &[5, 1, 0, 1, 127, 0, 0, 1, 0, 22], 2);
    // Nor is it by its addresses on other interfaces, or by a range that is routed to it; whoever else has such addresses is.
    world.proxy.ip("addr add 192.0.2.77/32 dev p0");
    world.proxy.ip("route add local 198.51.100.0/24 dev lo");
    // All of a network that `lo` has an address of is this machine, whatever the address that it would send from.
    world.proxy.ip("addr add 10.9.0.1/24 dev lo");
    let own = [
        [10, 98, 1, 2],
        [10, 98, 2, 1],
        [192, 0, 2, 77],
        [198, 51, 100, 9],
        [10, 9, 0, 1],
        [10, 9, 0, 5],
        [10, 9, 0, 255],
    ];
    for own in own {
        let [a, b, c, d] = own;
        connected_is(&world, &[5, 1, 0, 1, a, b, c, d, 0, 22], 2);
    }
    connected_is(&world, &[5, 1, 0, 3, 9, b'1', b'0', b'.', b'9', b'8', b'.', b'1', b'.', b'2', 0, 22], 2);
    // A type of address that nobody knows.
    connected_is(&world, &[5, 1, 0, 9, 10, 98, 1, 1, 0, 7], 8);
}

/// A server at port 80 that answers every request with `body`.
fn serve_http(world: &World, body: Vec<u8>) {
    let listener = world.server.within(|| TcpListener::bind((SERVER, 80))).expect("a listener");
    std::thread::spawn(move || {
        for mut socket in listener.incoming().map_while(Result::ok) {
            let _ = socket.read(&mut [0; 4096]);
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            // Whoever has gone meanwhile has seen enough.
            let _ = socket.write_all(head.as_bytes()).and_then(|()| socket.write_all(&body));
        }
    });
}

#[test]
fn curl_fetches_through_every_door() {
    if !available("edge proxy") {
        return;
    }
    let curl = |arguments: &[&str]| std::process::Command::new("curl").args(arguments).output();
    if curl(&["--version"]).is_err() {
        eprintln!("SKIPPED: curl is not installed");
        return;
    }
    let world = World::new();
    let body: Vec<u8> = (0..300_000).map(octet).collect();
    serve_http(&world, body.clone());
    let _proxy = world.proxy(Rate::from_mbit(50));
    let _station = world.station(PROXY, "1");
    for how in [["--proxytunnel", "--proxy", "http://127.0.0.1:1080"], ["--silent", "--socks5", DOOR]] {
        let url = format!("http://{SERVER}/");
        let mut arguments = vec!["--silent", "--show-error", "--max-time", "10", "--retry", "50", "--retry-all-errors"];
        arguments.extend(["--retry-delay", "1", "--retry-max-time", "10"]);
        arguments.extend(how);
        arguments.push(&url);
        let fetched = world.station.within(|| curl(&arguments)).expect("curl runs");
        assert!(fetched.status.success(), "{how:?}: {}", String::from_utf8_lossy(&fetched.stderr));
        assert!(fetched.stdout == body, "{how:?}: {} octets instead of {}", fetched.stdout.len(), body.len());
    }
}

/// A SOCKS request that is answered with this code.
fn connected_is(world: &World, request: &[u8], code: u8) {
    let mut socket = world.station.within(|| TcpStream::connect(DOOR)).expect("the agent listens");
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
    socket.write_all(&[5, 1, 0]).expect("a connection");
    socket.read_exact(&mut [0; 2]).expect("an answer");
    socket.write_all(request).expect("a connection");
    let mut answer = [0; 10];
    socket.read_exact(&mut answer).expect("an answer");
    assert_eq!(answer[1], code);
}

#[test]
fn lost_packets_do_no_harm_and_repeated_ones_are_refused() {
    if !available("edge proxy") {
        return;
    }
    let world = World::new();
    const COUNT: usize = 3_000_000;
    world.serve(COUNT);
    let proxy = world.proxy(Rate::from_mbit(50));
    let (mut counts, repeated) = ([0u64; 2], Arc::new(AtomicU64::new(0)));
    let seen = Arc::clone(&repeated);
    let through = middle(&world, move |up, _| {
        // Of the few that go up, more often: one of them must be.
        let (count, every) = (&mut counts[usize::from(up)], if up { 4 } else { 17 });
        *count += 1;
        match *count {
            n if n.is_multiple_of(50) => 0,
            n if n.is_multiple_of(every) => {
                seen.fetch_add(u64::from(up), Ordering::Relaxed);
                2
            }
            _ => 1,
        }
    });
    let station = world.station(through, "1");
    read_all(&mut world.connect(), COUNT);
    let received = station.end();
    let sent = proxy.end();
    assert!(sent.lost > 10, "{sent:?}");
    assert!(received.refused > 50, "repetitions towards the station: {received:?}");
    let repeated = repeated.load(Ordering::Relaxed);
    assert!(sent.refused > 0 && sent.refused <= repeated, "{} of {repeated}", sent.refused);
}

#[test]
fn a_wrong_key_is_refused_and_logged_at_both_ends() {
    if !available("edge proxy") {
        return;
    }
    const ASKED: &str = "10.98.2.1:4851";
    let world = World::new();
    for (proxy, station) in [(world.keys(), world.path("9")), (world.path("other"), world.path("wrong"))] {
        keys::pair(&proxy, Node(9), &station, false).expect("paired");
    }
    let config = proxy::Config::new(ASKED.parse().expect("an address"), world.keys(), Rule::Fixed(Rate::from_mbit(50)));
    let proxy = world.start_proxy(proxy::Config { say: note, ..config });
    let station = world.start_station(station::Config { say: note, ..world.station_config(ASKED, "wrong") });
    until("the proxy tells of a wrong key", || has_said("refused, under a wrong key (of station 9: ") > 0);
    until("the station tells of silence", || has_said("nothing heard from 10.98.2.1:4851 for ") > 0);
    let (received, sent) = (station.end(), proxy.end());
    assert_eq!((received.sessions, sent.sessions), (0, 0));
    assert!(sent.refused >= 2, "{sent:?}");
}

#[test]
fn either_side_may_be_started_again() {
    if !available("edge proxy") {
        return;
    }
    let world = World::new();
    const COUNT: usize = 200_000;
    world.serve(COUNT);
    let proxy = world.proxy(Rate::from_mbit(50));
    let station = world.station(PROXY, "1");
    let mut old = world.connect();
    read_all(&mut old, COUNT);
    station.end();
    let station = world.station(PROXY, "1");
    read_all(&mut world.connect(), COUNT);
    assert_eq!(proxy.end().sessions, 2);
    let proxy = world.proxy(Rate::from_mbit(50));
    read_all(&mut world.connect(), COUNT);
    assert_eq!((proxy.end().sessions, station.end().sessions), (1, 2));
}

#[test]
fn ten_seconds_of_silence_cost_a_connection_nothing_but_time() {
    if !available("edge proxy") {
        return;
    }
    let world = World::new();
    const COUNT: usize = 12_000_000;
    world.serve(COUNT);
    let proxy = world.proxy(Rate::from_mbit(50));
    let deaf = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_deaf = Arc::clone(&deaf);
    let through = middle(&world, move |_, _| usize::from(!is_deaf.load(Ordering::Relaxed)));
    let station = world.station(through, "1");
    let mut socket = world.connect();
    let mut bytes = vec![0; COUNT];
    let (first, rest) = bytes.split_at_mut(COUNT / 3);
    socket.read_exact(first).expect("everything comes");
    deaf.store(true, Ordering::Relaxed);
    std::thread::sleep(Duration::from_secs(10));
    deaf.store(false, Ordering::Relaxed);
    let began = Instant::now();
    socket.read_exact(rest).expect("the connection is still there");
    let took = began.elapsed();
    assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == octet(at)), "every octet is right");
    println!("{took:?} after the silence, for 1.36 s of data");
    // A timer that has doubled all the while would wait for as long again.
    assert!(took < Duration::from_secs(8), "{took:?} after the silence");
    socket.write_all(b"echo").expect("a connection");
    socket.read_exact(&mut [0; 4]).expect("an answer");
    drop(socket);
    let (received, sent) = (station.end(), proxy.end());
    assert_eq!((sent.sessions, received.sessions), (1, 1), "one session all the time");
    // Whether the initiation beside it or a packet comes through first is chance.
    assert_eq!(sent.renewals, received.renewals);
}

#[test]
fn a_proxy_restart_is_noticed_and_ends_its_connections() {
    if !available("edge proxy") {
        return;
    }
    let world = World::new();
    world.serve(1000);
    let proxy = world.proxy(Rate::from_mbit(50));
    // Its farewell does not arrive, as if it had been killed.
    let cut = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_cut = Arc::clone(&cut);
    let through = middle(&world, move |_, _| usize::from(!is_cut.load(Ordering::Relaxed)));
    let station = world.station(through, "1");
    let mut socket = world.connect();
    read_all(&mut socket, 1000);
    cut.store(true, Ordering::Relaxed);
    proxy.end();
    let proxy = world.proxy(Rate::from_mbit(50));
    cut.store(false, Ordering::Relaxed);
    let began = Instant::now();
    let end = socket.read(&mut [0]);
    let took = began.elapsed();
    assert!(end.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset), "{end:?}");
    // One second of silence, and a handshake; the session itself would last much longer.
    assert!(took < Duration::from_secs(10), "{took:?}");
    read_all(&mut world.connect(), 1000);
    assert_eq!((proxy.end().sessions, station.end().sessions), (1, 2));
}

#[test]
fn roaming_and_key_renewal_keep_connections() {
    if !available("edge proxy") {
        return;
    }
    let world = World::new();
    const COUNT: usize = 20_000_000;
    world.serve(COUNT);
    let proxy = world.proxy(Rate::from_mbit(50));
    let station =
        world.start_station(station::Config { renew: Span::from_secs(1), ..world.station_config(PROXY, "1") });
    let mut socket = world.connect();
    let mut bytes = vec![0; COUNT];
    let (first, rest) = bytes.split_at_mut(COUNT / 2);
    socket.read_exact(first).expect("everything comes");
    world.station.ip("addr del 10.98.2.2/24 dev t0");
    std::thread::sleep(Duration::from_millis(300));
    world.station.ip("addr add 10.98.2.77/24 dev t0");
    let back = Instant::now();
    socket.read_exact(rest).expect("the connection is still there");
    let took = back.elapsed();
    assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == octet(at)), "every octet is right");
    println!("{took:?} for the rest");
    drop(socket);
    let (received, sent) = (station.end(), proxy.end());
    assert_eq!((sent.sessions, received.sessions), (1, 1), "one session all the time");
    assert!((2..10).contains(&received.renewals), "about every second: {received:?}");
    assert_eq!(sent.renewals, received.renewals);
}

/// What a box between proxy and station has seen of a move to another port.
#[derive(Default)]
struct Moved {
    /// The port is to change.
    wanted: std::sync::atomic::AtomicBool,
    /// From the station's first packet through the new port until data came back through it.
    took: std::sync::OnceLock<Duration>,
    /// Packets that came to the old port in between.
    lost: AtomicU64,
}

/// A box that translates addresses, and forgets its translation: from then on the station's packets come from another port, and what
/// comes to the old one is lost.
fn translator(world: &World, moved: &Arc<Moved>) -> &'static str {
    const MIDDLE: &str = "10.98.2.1:4900";
    let bind = |address: &str| {
        let socket = world.proxy.within(|| UdpSocket::bind(address)).expect("a socket");
        socket.set_nonblocking(true).expect("a socket");
        socket
    };
    let (outer, inner) = (bind(MIDDLE), ["10.98.2.1:0"; 2].map(bind));
    let moved = Arc::clone(moved);
    std::thread::spawn(move || {
        let (mut bytes, mut station, began) = ([0; 2048], None::<SocketAddr>, Instant::now());
        let mut first = None;
        while began.elapsed() < Duration::from_secs(30) {
            let now = usize::from(moved.wanted.load(Ordering::Relaxed));
            let mut idle = true;
            if let Ok((len, from)) = outer.recv_from(&mut bytes) {
                (station, idle) = (Some(from), false);
                let _ = inner[now].send_to(&bytes[..len], PROXY);
                if now == 1 {
                    first.get_or_insert_with(Instant::now);
                }
            }
            if let (Ok(len), Some(station)) = (inner[now].recv(&mut bytes), station) {
                idle = false;
                let _ = outer.send_to(&bytes[..len], station);
                if let Some(first) = first.filter(|_| len > 1000) {
                    moved.took.get_or_init(|| first.elapsed());
                }
            }
            if now == 1 && inner[0].recv(&mut bytes).is_ok() {
                idle = false;
                // Before the station has spoken nobody can know.
                moved.lost.fetch_add(u64::from(first.is_some()), Ordering::Relaxed);
            }
            if idle {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    });
    MIDDLE
}

#[test]
fn a_translation_that_is_forgotten_costs_a_round_trip() {
    if !available("edge proxy") {
        return;
    }
    let world = World::new();
    const COUNT: usize = 10_000_000;
    world.serve(COUNT);
    let proxy = world.proxy(Rate::from_mbit(50));
    let moved = Arc::new(Moved::default());
    let station = world.station(translator(&world, &moved), "1");
    let mut socket = world.connect();
    let mut bytes = vec![0; COUNT];
    let (first, rest) = bytes.split_at_mut(COUNT / 2);
    socket.read_exact(first).expect("everything comes");
    moved.wanted.store(true, Ordering::Relaxed);
    socket.read_exact(rest).expect("the connection is still there");
    assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == octet(at)), "every octet is right");
    let (took, lost) = (moved.took.get().expect("it came back"), moved.lost.load(Ordering::Relaxed));
    println!("data came back {took:?} after the first packet from there; {lost} packets lost in between");
    // Here a round trip takes some 0.2 ms, and the threads their turns on the processors; the next ping would be 500 ms away.
    assert!(*took < Duration::from_millis(450), "{took:?}");
    drop(socket);
    assert_eq!((station.end().sessions, proxy.end().sessions), (1, 1));
}

#[test]
fn a_replaying_host_does_not_receive_the_stations_packets() {
    if !available("edge proxy") {
        return;
    }
    let world = World::new();
    const COUNT: usize = 10_000_000;
    world.serve(COUNT);
    let proxy = world.proxy(Rate::from_mbit(50));
    let thief = world.proxy.within(|| UdpSocket::bind("10.98.2.1:0")).expect("a socket");
    thief.set_nonblocking(true).expect("a socket");
    let thief = Arc::new(thief);
    let (his, sent) = (Arc::clone(&thief), Arc::new(AtomicU64::new(0)));
    let count = Arc::clone(&sent);
    // From the packet on that begins the session.
    let through = middle(&world, move |up, bytes| {
        if up && bytes[0] == 3 {
            his.send_to(bytes, PROXY).expect("a way");
            count.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
        1
    });
    let station = world.station(through, "1");
    let mut socket = world.connect();
    let began = Instant::now();
    read_all(&mut socket, COUNT);
    let took = began.elapsed();
    drop(socket);
    station.end();
    let refused = proxy.end().refused;
    let (mut bytes, mut got, mut datagrams) = ([0; 2048], 0, 0);
    while let Ok(len) = thief.recv(&mut bytes) {
        (got, datagrams) = (got + len as u64, datagrams + 1);
    }
    let sent = sent.load(Ordering::Relaxed);
    println!(
        "{sent} octets sent, {got} received in {datagrams} datagrams; {refused} packets of the station came second; {took:?}"
    );
    assert!(refused > 10, "he was seldom the first: {refused}");
    assert!(got > 0 && got <= 3 * sent, "{got} octets for {sent}");
    assert!(took < Duration::from_secs(10), "{took:?} for 1.6 s of data");
}

#[test]
fn initiations_that_were_recorded_hold_nobody_out() {
    if !available("edge proxy") {
        return;
    }
    let world = World::new();
    const COUNT: usize = 3_000_000;
    world.serve(COUNT);
    let proxy = world.proxy(Rate::from_mbit(50));
    let recorded = Arc::new(std::sync::Mutex::new(Vec::new()));
    let tape = Arc::clone(&recorded);
    let through = middle(&world, move |up, bytes| {
        if up && bytes[0] == 1 {
            tape.lock().expect("no panic").push(bytes.to_vec());
        }
        1
    });
    for _ in 0..2 {
        let station = world.station(through, "1");
        read_all(&mut world.connect(), COUNT);
        station.end();
    }
    let recorded = recorded.lock().expect("no panic").clone();
    assert!(recorded.len() >= 3, "{} initiations", recorded.len());
    // A thousand times a second, while a station comes up and is served.
    let over = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    let attacker = world.proxy.within(|| UdpSocket::bind("10.98.2.1:0")).expect("a socket");
    let attack = std::thread::spawn(move || {
        let mut count = 0u64;
        while !is_over.load(Ordering::Relaxed) {
            for datagram in &recorded {
                let _ = attacker.send_to(datagram, PROXY);
                count += 1;
            }
            std::thread::sleep(Duration::from_millis(3));
        }
        count
    });
    let began = Instant::now();
    let station = world.station(PROXY, "1");
    read_all(&mut world.connect(), COUNT);
    let took = began.elapsed();
    over.store(true, Ordering::Relaxed);
    let count = attack.join().expect("no panic");
    station.end();
    let sent = proxy.end();
    assert!(took < Duration::from_secs(10), "{took:?} for 0.5 s of data");
    assert!(count > 200, "{count} replays");
    assert_eq!((sent.sessions, sent.renewals), (3, 0));
    assert_eq!(sent.handshakes, 3, "{count} replays cost no exponentiation");
    assert!(sent.challenges >= 3, "{sent:?}");
}

/// The log's last word on a field.
fn last_said(world: &World, key: &str) -> u64 {
    let log = std::fs::read_to_string(world.path("proxy.log")).expect("a log");
    let line: serde_json::Value = serde_json::from_str(log.lines().last().expect("a line")).expect("JSON");
    line[key].as_u64().expect("a number")
}

#[test]
fn packets_are_as_long_as_the_path_allows() {
    if !available("edge proxy") {
        return;
    }
    const COUNT: usize = 3_000_000;
    // As long as the link allows; and where that is too little to ask for, the kernel cuts them, and everything comes.
    for (mtu, expected) in [(1400, 1400), (9000, 1500), (1000, 1228)] {
        let world = World::new();
        world.proxy.ip(&format!("link set p1 mtu {mtu}"));
        world.station.ip(&format!("link set t0 mtu {mtu}"));
        world.serve(COUNT);
        let proxy = world.proxy(Rate::from_mbit(50));
        let station = world.station(PROXY, "1");
        read_all(&mut world.connect(), COUNT);
        std::thread::sleep(Duration::from_millis(300));
        station.end();
        let sent = proxy.end();
        assert_eq!((sent.sessions, sent.refused, sent.unsent.count), (1, 0, 0), "MTU {mtu}: {sent:?}");
        assert_eq!(last_said(&world, "packet_bytes"), expected, "MTU {mtu}");
        let each = sent.octets as f64 / sent.packets as f64;
        assert!(each > 0.9 * expected as f64, "MTU {mtu}: {each:.0} octets a packet");
    }
}

#[test]
fn a_shrinking_mtu_is_noticed_and_a_blocked_path_ends_nothing() {
    if !available("edge proxy") {
        return;
    }
    let world = World::new();
    const COUNT: usize = 40_000_000;
    world.serve(COUNT);
    let proxy = world.proxy(Rate::from_mbit(50));
    let station = world.station(PROXY, "1");
    let mut socket = world.connect();
    let mut bytes = vec![0; COUNT];
    let (first, rest) = bytes.split_at_mut(COUNT / 4);
    socket.read_exact(first).expect("everything comes");
    world.proxy.ip("link set p1 mtu 1300");
    let (second, rest) = rest.split_at_mut(COUNT / 4);
    socket.read_exact(second).expect("everything comes");
    world.proxy.ip("route add prohibit 10.98.2.2/32");
    std::thread::sleep(Duration::from_millis(300));
    world.proxy.ip("route del prohibit 10.98.2.2/32");
    socket.read_exact(rest).expect("everything comes");
    assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == octet(at)), "every octet is right");
    std::thread::sleep(Duration::from_millis(300));
    station.end();
    let sent = proxy.end();
    assert_eq!(sent.sessions, 1);
    assert!(sent.unsent.count > 0 && sent.unsent.to_string().contains("ermission"), "{}", sent.unsent);
    assert_eq!(last_said(&world, "packet_bytes"), 1300);
}

#[test]
fn the_tunnel_passes_over_ipv6_as_over_ipv4() {
    if !available("edge proxy") {
        return;
    }
    const COUNT: usize = 3_000_000;
    // A proxy for both families shows IPv4 stations as mapped addresses.
    for (listen, door) in [("[fd98::1]:4848", "[fd98::1]:4848"), ("[::]:4848", "[fd98::1]:4848"), ("[::]:4848", PROXY)]
    {
        let world = World::new();
        world.proxy.ip("addr add fd98::1/64 dev p1 nodad");
        world.station.ip("addr add fd98::2/64 dev t0 nodad");
        world.serve(COUNT);
        let proxy = world.start_proxy(proxy::Config {
            log: Some(world.path("proxy.log")),
            ..proxy::Config::new(
                listen.parse().expect("an address"),
                world.path("proxy"),
                Rule::Fixed(Rate::from_mbit(50)),
            )
        });
        let station = world.station(door, "1");
        read_all(&mut world.connect(), COUNT);
        std::thread::sleep(Duration::from_millis(300));
        let received = station.end();
        let sent = proxy.end();
        let counts = (sent.sessions, sent.refused, sent.unsent.count, received.unsent.count);
        assert_eq!(counts, (1, 0, 0, 0), "{listen}: {sent:?}");
        assert_eq!(last_said(&world, "packet_bytes"), 1500, "{listen}");
    }
}

/// Sends a UDP datagram from port 0, which no socket does.
#[test]
fn proxy_addresses_are_tried_in_turn_until_one_answers() {
    if !available("edge proxy") {
        return;
    }
    let world = World::new();
    let _total = world.serve(1);
    let _proxy = world.proxy(Rate::from_mbit(50));
    // Nobody listens at the first, and there is no way to the second: that of a name with an IPv6 address where there is no IPv6.
    let proxies = ["10.98.2.1:4847", "[2001:db8::1]:4848", PROXY].map(|text| text.parse().expect("an address"));
    let station = world
        .start_station(station::Config { more: proxies[1..].to_vec(), ..world.station_config("10.98.2.1:4847", "1") });
    let began = Instant::now();
    read_all(&mut world.connect(), 1);
    assert!(began.elapsed() > Duration::from_secs(3), "two addresses are tried before: {:?}", began.elapsed());
    // The station stays with the address that has answered once.
    std::thread::sleep(Duration::from_millis(2500));
    read_all(&mut world.connect(), 1);
    assert_eq!(station.end().sessions, 1);
}

fn send_from_port_0(to: SocketAddr, payload: &[u8]) {
    use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, sendto, socket};
    let SocketAddr::V4(to) = to else { panic!("IPv4") };
    let raw = socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Udp).expect("root");
    let len = u16::try_from(8 + payload.len()).expect("short");
    // A checksum of zero is none.
    let header = [0, to.port(), len, 0].map(u16::to_be_bytes).concat();
    let datagram = [&header[..], payload].concat();
    sendto(std::os::fd::AsRawFd::as_raw_fd(&raw), &datagram, &SockaddrIn::from(to), MsgFlags::empty()).expect("sent");
}

#[test]
fn what_comes_from_port_0_is_refused_and_ends_nothing() {
    if !available("edge proxy") {
        return;
    }
    let world = World::new();
    const COUNT: usize = 500_000;
    world.serve(COUNT);
    let proxy = world.proxy(Rate::from_mbit(50));
    // Genuine datagrams: an initiation, and then packets, of which every one comes from port 0 first.
    let to = PROXY.parse().expect("an address");
    let sent_so = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&sent_so);
    let netns = world.proxy.name().to_owned();
    let through = middle(&world, move |up, bytes| {
        if up {
            let file = std::fs::File::open(format!("/run/netns/{netns}")).expect("a namespace");
            nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET).expect("root");
            // First counted: the proxy may have refused it before the call returns.
            count.fetch_add(1, Ordering::Relaxed);
            send_from_port_0(to, bytes);
        }
        1
    });
    let station = world.station(through, "1");
    read_all(&mut world.connect(), COUNT);
    station.end();
    let sent = proxy.end();
    assert_eq!((sent.sessions, sent.unsent.count), (1, 0));
    assert!(sent.refused > 3 && sent.refused <= sent_so.load(Ordering::Relaxed), "{sent:?}");
}

#[cfg(feature = "bpf")]
#[test]
fn connections_to_a_station_address_need_a_running_proxy() {
    if !available("transparent mode") {
        return;
    }
    let world = World::new();
    // The address that the server calls is one that only the station has; its own way there leads past the proxy's host.
    world.server.ip("route add 10.98.3.0/24 via 10.98.1.2");
    world.station.ip("addr add 10.98.3.2/32 dev lo");
    let listen = PROXY.parse().expect("an address");
    let config = proxy::Config {
        transparent: Some(lasthop_agents::transparent::Config {
            iface: "p0".into(),
            stations: vec![("10.98.3.2".parse().expect("an address"), Node(1))],
        }),
        ..proxy::Config::new(listen, world.path("proxy"), Rule::Fixed(Rate::from_mbit(50)))
    };
    let proxy = world.start_proxy(config);
    let station = world.station(PROXY, "1");
    world.serve(0);
    world.connect_when_up();
    let service = world.station.within(|| TcpListener::bind("10.98.3.2:8080")).expect("a listener");
    std::thread::spawn(move || {
        let (mut socket, from) = service.accept().expect("somebody comes");
        let mut bytes = Vec::new();
        socket.read_to_end(&mut bytes).expect("until the end");
        socket.write_all(format!("{} octets from {}", bytes.len(), from.ip()).as_bytes()).expect("a connection");
    });
    let call = || TcpStream::connect_timeout(&"10.98.3.2:8080".parse().expect("an address"), Duration::from_secs(2));
    let mut socket = world.server.within(call).expect("the proxy takes it");
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
    let bytes: Vec<u8> = (0..1_000_000).map(octet).collect();
    socket.write_all(&bytes).expect("a connection");
    socket.shutdown(std::net::Shutdown::Write).expect("a connection");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    assert_eq!(answer, "1000000 octets from 10.98.3.2");
    drop(station.end());
    assert!(proxy.end().connections >= 1);
    // No program is left to take connections; the rule without effect is, until it is removed.
    let rule = || world.proxy.within(lasthop_agents::transparent::clean).expect("root");
    assert!(world.server.within(call).is_err(), "there is no way to the station but through the proxy");
    assert!(rule() && !rule());
}

/// Sends an octet and waits for it to come back.
#[cfg(feature = "bpf")]
fn echoes(socket: &mut TcpStream) -> bool {
    socket.set_read_timeout(Some(Duration::from_secs(3))).expect("a socket");
    socket.write_all(b"x").is_ok() && socket.read_exact(&mut [0]).is_ok()
}

#[cfg(feature = "bpf")]
#[test]
fn other_traffic_bypasses_the_proxy() {
    if !available("transparent mode") {
        return;
    }
    let world = World::new();
    // Here the station is reached without a proxy too.
    world.proxy.within(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("our own namespace"));
    world.proxy.ip("route add 10.98.3.2 via 10.98.2.2");
    world.server.ip("route add 10.98.3.0/24 via 10.98.1.2");
    world.station.ip("addr add 10.98.3.2/32 dev lo");
    world.station.ip("route add default via 10.98.2.1");
    world.serve(0);
    // Services that answer with the address of their caller.
    for port in [8080, 2222] {
        let service = world.station.within(|| TcpListener::bind(("10.98.3.2", port))).expect("a listener");
        std::thread::spawn(move || {
            while let Ok((mut socket, from)) = service.accept() {
                let _ = socket.write_all(from.ip().to_string().as_bytes());
            }
        });
    }
    let seen_by = |port: u16| {
        let to = SocketAddr::from(([10, 98, 3, 2], port));
        let mut socket = world.server.within(|| TcpStream::connect_timeout(&to, Duration::from_secs(2))).ok()?;
        socket.set_read_timeout(Some(Duration::from_secs(2))).expect("a socket");
        let mut text = String::new();
        socket.read_to_string(&mut text).ok().filter(|len| *len > 0).map(|_| text)
    };
    let from_station = || {
        world.station.within(|| {
            let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
            let address = |text: &str| text.parse::<SocketAddr>().expect("an address").into();
            socket.bind(&address("10.98.3.2:0")).expect("its address");
            let connected = socket.connect_timeout(&address("10.98.1.1:7"), Duration::from_secs(2));
            connected.map(|()| TcpStream::from(socket))
        })
    };
    let (server, station) = (Some("10.98.1.1".to_owned()), Some("10.98.3.2".to_owned()));
    let mut older = from_station().expect("there is a way");
    assert!(echoes(&mut older));

    let config = proxy::Config {
        transparent: Some(lasthop_agents::transparent::Config {
            iface: "p0".into(),
            stations: vec![("10.98.3.2".parse().expect("an address"), Node(1))],
        }),
        ..proxy::Config::new(PROXY.parse().expect("an address"), world.path("proxy"), Rule::Fixed(Rate::from_mbit(50)))
    };
    let proxy = world.start_proxy(config);
    assert_eq!(seen_by(8080), server, "no agent is there to bring it to");
    let agent = world.station(PROXY, "1");
    world.connect_when_up();
    let until = Instant::now() + Duration::from_secs(60);
    while seen_by(8080) != station {
        assert!(Instant::now() < until, "connections are not taken over");
    }
    assert!(echoes(&mut older), "a connection from before");
    assert!(from_station().is_ok_and(|mut socket| echoes(&mut socket)), "a connection that the station makes");
    // The agent does not serve this port, which is found out by the first connection.
    let until = Instant::now() + Duration::from_secs(60);
    while seen_by(2222) != server {
        assert!(Instant::now() < until, "a service that the agent does not serve is cut off");
    }
    drop(agent.end());
    let until = Instant::now() + Duration::from_secs(60);
    while seen_by(8080) != server {
        assert!(Instant::now() < until, "connections are taken over for nobody");
    }
    drop(proxy.end());
    assert!(world.proxy.within(lasthop_agents::transparent::clean).expect("root"));
}

/// What agents have said, for those tests that listen.
static SAID: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

fn note(line: &str) {
    SAID.lock().expect("no panic").push(line.to_owned());
}

fn has_said(what: &str) -> usize {
    SAID.lock().expect("no panic").iter().filter(|line| line.contains(what)).count()
}

/// Waits until `what` is so.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: not in a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_lost_monitor_ends_nothing_and_is_reopened() {
    if !available("edge proxy") {
        return;
    }
    let world = World::new();
    world.serve(0);
    let monitor = support::monitor::monitor(&world.station, "mon0");
    let _proxy = world.proxy(Rate::from_mbit(50));
    let config = station::Config {
        forwards: vec![Forward {
            listen: FORWARDED.parse().expect("an address"),
            target: Target::new(SERVER, 7).expect("a target"),
        }],
        monitor: Some("mon0".into()),
        log: Some(world.path("station.log")),
        slot: Span::from_millis(100),
        say: note,
        ..station::Config::new(PROXY.parse().expect("an address"), world.path("1"))
    };
    let station = world.start_station(config);
    // The source of the last slot's account.
    let source = |wanted: &str| {
        let log = std::fs::read_to_string(world.path("station.log")).unwrap_or_default();
        log.lines().last().is_some_and(|line| line.contains(&format!("\"source\":\"{wanted}\"")))
    };
    until("the monitor is read", || source("radiotap"));
    until("the station tells of its session", || has_said("1 session begun, the last with the proxy at ") > 0);
    assert_eq!(has_said("frames are told from what mon0 shows"), 1);
    world.station.ip("link set mon0 down");
    until("down", || source("timestamps"));
    assert_eq!(has_said("mon0 is down"), 1);
    // It is told once, however long it lasts.
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!((has_said("mon0 is down"), has_said("mon0 is back")), (1, 0));
    world.station.ip("link set mon0 up");
    until("up again", || source("radiotap"));
    assert_eq!(has_said("mon0 is back"), 1);
    drop(monitor);
    until("gone", || source("timestamps"));
    assert_eq!(has_said("mon0 is gone"), 1);
    // Another one of that name, with another index.
    let _monitor = support::monitor::monitor(&world.station, "mon0");
    until("another one", || source("radiotap"));
    let mut socket = world.station.within(|| TcpStream::connect(FORWARDED)).expect("the agent listens");
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
    socket.write_all(b"still here").expect("a connection");
    socket.read_exact(&mut [0; 10]).expect("an echo");
    assert_eq!(station.end().sessions, 1);
}

#[test]
fn a_replaced_key_shuts_out_the_old_one_in_a_running_proxy() {
    if !available("edge proxy") {
        return;
    }
    let world = World::new();
    keys::pair(&world.path("proxy"), Node(2), &world.path("2"), false).expect("paired");
    world.serve(1000);
    let proxy = world.proxy(Rate::from_mbit(50));
    let station = world.station(PROXY, "1");
    let mut socket = world.connect();
    read_all(&mut socket, 1000);
    // Another station's key changes nothing for this one.
    keys::pair(&world.path("proxy"), Node(2), &world.path("2-new"), true).expect("replaced");
    std::thread::sleep(Duration::from_millis(1500));
    socket.write_all(b"x").expect("a connection");
    socket.read_exact(&mut [0]).expect("an echo");
    let began = Instant::now();
    keys::pair(&world.path("proxy"), Node(1), &world.path("1-new"), true).expect("replaced");
    assert!(!matches!(socket.read(&mut [0]), Ok(1)), "the connection is over");
    println!("over {:?} after its key was replaced", began.elapsed());
    // The old key opens nothing any more.
    std::thread::sleep(Duration::from_millis(1000));
    let mut refused = world.station.within(|| TcpStream::connect(FORWARDED)).expect("the agent listens");
    refused.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
    assert!(!matches!(refused.read(&mut [0]), Ok(1)));
    assert_eq!(station.end().sessions, 1);
    let renewed = world.station(PROXY, "1-new");
    read_all(&mut world.connect(), 1000);
    assert_eq!(renewed.end().sessions, 1);
    assert_eq!(proxy.end().sessions, 2);
}
