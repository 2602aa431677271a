//! A proxy in transparent mode that runs out of file descriptors. In a process of its own, because the limit is a process's.
#![cfg(feature = "bpf")]
#![allow(clippy::disallowed_methods, reason = "real time is what is tested")]
#![allow(dead_code, reason = "not all of the namespaces' module is used")]

#[path = "support/agent.rs"]
mod agent;
#[path = "support/edge.rs"]
mod edge;
#[path = "../../../tests/src/machine.rs"]
#[allow(dead_code, reason = "nothing here needs the machine alone")]
mod machine;
#[path = "support/netns.rs"]
mod netns;

use agent::{AskAtEnd, busy};
use edge::Edge;
use lasthop_agents::proxy::{Config, Proxy, Rule};
use lasthop_agents::service::Stop;
use lasthop_agents::station::{self, Station};
use lasthop_agents::transparent;
use lasthop_signals::Node;
use lasthop_units::Rate;
use netns::available;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

const SERVICE: &str = "10.96.3.2:8080";

#[test]
fn a_proxy_out_of_descriptors_serves_waiting_callers_later() {
    if !available("transparent mode") {
        return;
    }
    let edge = Edge::new(96);
    let (server, proxy, station) = (&edge.server, &edge.proxy, &edge.station);
    // The station's address has no way to it but through the proxy.
    server.ip("route add 10.96.3.0/24 via 10.96.1.2");
    station.ip("addr add 10.96.3.2/32 dev lo");
    let config = Config {
        transparent: Some(transparent::Config {
            iface: "p0".into(),
            stations: vec![("10.96.3.2".parse().expect("an address"), Node(1))],
        }),
        ..Config::new("10.96.2.1:4848".parse().expect("an address"), edge.keys(), Rule::Fixed(Rate::from_mbit(50)))
    };
    let stop: &'static Stop = Box::leak(Box::default());
    let (ready, opened) = channel();
    let name = proxy.name().to_owned();
    let running = std::thread::spawn(move || {
        enter(&name);
        let proxy = Proxy::open(&config).expect("a proxy");
        ready.send(()).expect("somebody waits");
        proxy.run(stop).expect("it runs");
        busy()
    });
    opened.recv().expect("it starts");
    let asked = AskAtEnd(stop);
    let config = station::Config {
        serve: vec![8080],
        ..station::Config::new("10.96.2.1:4848".parse().expect("an address"), edge.key())
    };
    let name = station.name().to_owned();
    let agent = std::thread::spawn(move || {
        enter(&name);
        Station::open(&config).expect("a station").run(stop).expect("it runs")
    });
    let service = station.within(|| TcpListener::bind(SERVICE)).expect("a listener");
    std::thread::spawn(move || {
        for mut socket in service.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut socket.try_clone().expect("a socket"), &mut socket);
            });
        }
    });
    // Until the station is there, nobody takes the connection.
    let until = Instant::now() + Duration::from_secs(60);
    while !server.within(|| call().is_ok_and(|mut socket| echoes(&mut socket))) {
        assert!(Instant::now() < until, "the tunnel does not come up");
    }
    wait_until_all_is_closed();
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    // The callers' own sockets are there before there is no more room.
    let sockets: Vec<socket2::Socket> = server.within(|| (0..5).map(|_| socket()).collect());
    setrlimit(Resource::RLIMIT_NOFILE, used() + 1, hard).expect("less is allowed");
    let full: Vec<std::fs::File> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
    assert!(!full.is_empty());
    for socket in &sockets {
        socket
            .connect_timeout(
                &SERVICE.parse::<std::net::SocketAddr>().expect("an address").into(),
                Duration::from_secs(5),
            )
            .expect("the kernel answers for the proxy");
    }
    std::thread::sleep(Duration::from_secs(2));
    // There is room for all at once: the station and its service, which are of this process too, need theirs as soon as
    // the proxy takes one.
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).expect("as before");
    drop(full);
    for socket in sockets {
        assert!(echoes(&mut TcpStream::from(socket)), "it waited for nothing");
    }
    drop(asked);
    agent.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let busy = running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    assert!(busy < Duration::from_secs(1), "{busy:?} of processor time, 2 s of them without room");
    assert!(proxy.within(transparent::clean).expect("root"));
}

fn enter(name: &str) {
    let file = std::fs::File::open(format!("/run/netns/{name}")).expect("a namespace");
    nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET).expect("root");
}

fn call() -> std::io::Result<TcpStream> {
    TcpStream::connect_timeout(&SERVICE.parse().expect("an address"), Duration::from_millis(200))
}

fn socket() -> socket2::Socket {
    socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket")
}

fn echoes(socket: &mut TcpStream) -> bool {
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
    socket.write_all(b"x").is_ok() && socket.read_exact(&mut [0]).is_ok()
}

/// Waits for the ends of earlier connections: what they leave free later would let the proxy take one caller that the
/// station then has no room for.
fn wait_until_all_is_closed() {
    let (until, mut count, mut since) = (Instant::now() + Duration::from_secs(60), open().count(), Instant::now());
    while since.elapsed() < Duration::from_secs(1) {
        assert!(Instant::now() < until, "connections come and go");
        std::thread::sleep(Duration::from_millis(20));
        if open().count() != count {
            (count, since) = (open().count(), Instant::now());
        }
    }
}

/// The descriptors of this process.
fn open() -> impl Iterator<Item = u64> {
    let entries = std::fs::read_dir("/proc/self/fd").expect("procfs").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The lowest descriptor above all that are open.
fn used() -> u64 {
    open().max().map_or(0, |highest| highest + 1)
}
