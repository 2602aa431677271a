//! Two gateways on the loopback interface: keys that are renewed, a gateway that is started again, others that hold no key.
#![allow(clippy::disallowed_methods, reason = "real time is what is tested")]

use crate::support::machine;
use lasthop_agents::gateway::{Config, Gateway, Peer, Summary};
use lasthop_agents::service::Stop;
use lasthop_agents::station::Forward;
use lasthop_agents::tunnel::keys;
use lasthop_signals::Node;
use lasthop_units::Span;
use lasthop_wire::proxy::Target;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A gateway on a thread; told to stop when dropped.
struct Running {
    stop: &'static Stop,
    thread: Option<JoinHandle<Summary>>,
    at: SocketAddr,
    doors: Vec<SocketAddr>,
}

impl Running {
    fn start(config: &Config) -> Running {
        let (config, (sender, receiver)) = (config.clone(), std::sync::mpsc::channel());
        let stop: &'static Stop = Box::leak(Box::default());
        let thread = std::thread::spawn(move || {
            let until = Instant::now() + Duration::from_secs(10);
            let gateway = loop {
                match Gateway::open(&config) {
                    Ok(gateway) => break gateway,
                    Err(error) => assert!(Instant::now() < until, "{error}"),
                }
                // The one before may not have let go yet.
                std::thread::sleep(Duration::from_millis(20));
            };
            let places = (gateway.address().expect("bound"), gateway.doors().expect("bound"));
            sender.send(places).expect("somebody waits");
            gateway.run(stop).expect("it runs")
        });
        let (at, doors) = receiver.recv().expect("it starts");
        Running { stop, thread: Some(thread), at, doors }
    }

    fn end(mut self) -> Summary {
        self.stop.ask();
        self.thread.take().expect("it runs").join().expect("no panic")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.ask();
        self.thread.take().map(JoinHandle::join);
    }
}

fn own() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn config(keys: &Path, bind: SocketAddr) -> Config {
    // The interface is fast, and its host has other things to do.
    let (least_delay, renew) = (Span::from_micros(200), Span::from_secs(1));
    Config { least_delay, renew, allow_local: true, drop_privileges: false, ..Config::new(bind, keys.to_owned()) }
}

/// A server that sends back what it gets.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind(own()).expect("a listener");
    let at = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let mut socket = socket;
                let _ = std::io::copy(&mut socket.try_clone().expect("a socket"), &mut socket);
                let _ = socket.shutdown(Shutdown::Write);
            });
        }
    });
    at
}

/// A connection through a door, once that leads somewhere.
fn connect(door: SocketAddr) -> TcpStream {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        assert!(Instant::now() < until, "no way through the gateways");
        let mut socket = TcpStream::connect(door).expect("the door is open");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
        let mut octet = [0];
        if socket.write_all(b"x").is_ok() && socket.read_exact(&mut octet).is_ok() && octet == *b"x" {
            return socket;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends a piece and has it back.
fn pass(socket: &mut TcpStream, seed: u32) -> std::io::Result<()> {
    let sent: Vec<u8> = (0..20_000u32).map(|n| (n.wrapping_mul(seed) >> 7) as u8).collect();
    let mut got = vec![0; sent.len()];
    socket.write_all(&sent)?;
    socket.read_exact(&mut got)?;
    assert!(sent == got, "other octets");
    Ok(())
}

fn pair(folder: &Path) -> [std::path::PathBuf; 2] {
    let [all, own] = ["all", "own"].map(|name| folder.join(name));
    keys::pair(&all, Node(3), &own, false).expect("paired");
    [all, own]
}

#[test]
fn a_connection_outlives_its_keys_and_ends_with_its_gateway() {
    let folder = tempfile::tempdir().expect("a directory");
    let [all, key] = pair(folder.path());
    let target = echo();
    let called = Running::start(&config(&all, own()));
    let at = called.at;
    let forward = Forward { listen: own(), target: Target::new("127.0.0.1", target.port()).expect("a target") };
    let calling = Running::start(&Config {
        peer: Some(Peer { key: None, addresses: vec![at] }),
        forwards: vec![forward],
        ..config(&key, own())
    });
    let mut socket = connect(calling.doors[0]);
    let until = Instant::now() + Duration::from_secs(4);
    let mut passed = 0;
    while Instant::now() < until {
        pass(&mut socket, passed + 7).expect("the connection stands");
        passed += 1;
        std::thread::sleep(Duration::from_millis(50));
    }
    // It is started again where it was, and says so.
    let first = called.end();
    assert!(first.sessions == 1 && first.renewals >= 2 && first.served >= 1, "{first:?}");
    let ended = (0..100).find_map(|seed| pass(&mut socket, seed).err());
    assert!(ended.is_some(), "its other end is gone");
    let called = Running::start(&config(&all, at));
    let mut socket = connect(calling.doors[0]);
    pass(&mut socket, 5).expect("the next connection stands");
    let (ours, second) = (calling.end(), called.end());
    assert!(ours.sessions == 2 && ours.renewals >= 2 && ours.connections >= 2, "{ours:?}");
    assert_eq!((second.sessions, ours.lost), (1, 0), "{second:?} {ours:?}");
}

#[test]
fn who_holds_no_key_is_neither_answered_nor_remembered() {
    machine::share(module_path!());
    let folder = tempfile::tempdir().expect("a directory");
    let [all, _] = pair(folder.path());
    let other = tempfile::tempdir().expect("a directory");
    let [_, wrong] = pair(other.path());
    let called = Running::start(&config(&all, own()));
    let stranger =
        Running::start(&Config { peer: Some(Peer { key: None, addresses: vec![called.at] }), ..config(&wrong, own()) });
    // What is no datagram of a gateway, and what only looks like one; from one socket and from many.
    let mut state = 1u64;
    for n in 0..2_000u32 {
        let mut octets: Vec<u8> = (0..n % 160)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as u8
            })
            .collect();
        if n % 2 == 0 {
            octets.splice(0..0, [0x1c, 0, 0, 0, 0, 0, 0, 1, (n / 2 % 5) as u8, 3, 0, 3, 0, 0, 0, (n % 7) as u8]);
        }
        let socket = UdpSocket::bind(own()).expect("a socket");
        socket.set_nonblocking(true).expect("a socket");
        socket.send_to(&octets, called.at).expect("sent");
        if n % 50 == 0 {
            std::thread::sleep(Duration::from_millis(5));
            assert!(socket.recv(&mut [0; 2048]).is_err(), "it was answered");
        }
    }
    std::thread::sleep(Duration::from_millis(700));
    let (ours, theirs) = (called.end(), stranger.end());
    assert_eq!((ours.sessions, ours.packets, theirs.sessions), (0, 0, 0), "{ours:?}");
    assert!(ours.refused > 100, "{ours:?}");
}
