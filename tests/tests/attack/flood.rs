//! Agents that are flooded: with flows, with records, with connections that close, with datagrams.

use crate::case::{Case, Seen};
use crate::liar::noise;
use crate::lie::{WIDE, settled};
use crate::program::{Program, account};
use crate::radio::{Radio, Windows, kb};
use crate::scene::{PATIENCE, Scene};
use crate::support::driver::{admitted, idle_record, listening, tell};
use crate::support::netns::Netns;
use crate::tunnel::{MBIT_S, PROXY, Tunnel};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use socket2::{Domain, Socket, Type};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub const CASES: &[Case] = &[
    Case {
        name: "flood: handshakes",
        done: "9000 connections (1000 in the short form) that carry nothing and never end, beside a download",
        right: "the agent takes at most 10 % of a processor, and no interval 20 ms; flows lose their place; the download keeps its \
                window; it stops as ever",
        run: handshakes,
    },
    Case {
        name: "flood: records",
        done: "a driver that sends without pause",
        right: "a stop is obeyed within 100 ms",
        run: records,
    },
    Case {
        name: "flood: reconnections",
        done: "a driver that closes every connection at once",
        right: "at most 10 connections in the first 3 s, one a second in the end; a stop is obeyed within 100 ms",
        run: reconnections,
    },
    Case {
        name: "flood: datagrams",
        done: "20 000 datagrams a second that nobody vouches for at the proxy's port, beside a download",
        right: "the download keeps its rate; the proxy's memory grows by at most 8 MiB; they are refused",
        run: datagrams,
    },
];

/// The longest that a stop may take, in the long form.
const STOP: Duration = Duration::from_millis(100);
/// All intervals must be shorter than this in the long form.
const LONGEST_WORK_MS: f64 = 20.0;

fn handshakes(scene: &mut Scene) -> Seen {
    let radio = scene.radio();
    let agent = radio.agent(scene, &[]);
    let flow = radio.download();
    let before = settled(scene, &flow);
    let count = scene.pick(9000, 1000);
    let used = agent.processor_time();
    let began = Instant::now();
    let held = Handshakes::make(scene, &radio, count);
    let took = began.elapsed();
    let meanwhile = 100.0 * (agent.processor_time() - used).as_secs_f64() / took.as_secs_f64();
    let share = agent.share(scene, scene.ms(4000, 300));
    let mut after = before;
    let keeps = scene.until(scene.pick(Duration::ZERO, PATIENCE), || {
        after = Windows::of(scene, &flow, scene.ms(1000, 100));
        after.median < WIDE
    });
    let (_, status, said) = agent.stops(scene);
    let account = account(&said);
    let number = |key: &str| account[key].as_u64().expect("a number");
    let longest_ms = account["longest_work_us"].as_f64().expect("a number") / 1000.0;
    let seen = Seen::new(format!(
        "{} handshakes in {:.1} s: {meanwhile:.0} % of a processor meanwhile, {share:.0} % afterwards; {} evicted; longest \
         interval {longest_ms:.1} ms; window {} before, {} after",
        held.done,
        took.as_secs_f64(),
        number("evicted"),
        kb(before.median),
        kb(after.median)
    ))
    .must(status.success(), "it failed")
    .must(number("opened") >= held.done as u64, "the agent has not seen them")
    .must(!scene.is_whole() || share <= 10.0, "it costs too much")
    .must(!scene.is_whole() || longest_ms < LONGEST_WORK_MS, "an interval took too long")
    // In the short form there are fewer than the table holds.
    .must(!scene.is_whole() || (held.done > 0 && number("evicted") > 0), "there were too few to fill the table")
    .must(keeps.is_some(), "the download has lost its place");
    drop(held);
    drop(flow);
    scene.keep(radio);
    seen
}

/// Connections that are open and idle.
struct Handshakes {
    done: usize,
    _sockets: Vec<Socket>,
    _listeners: Vec<Socket>,
}

impl Handshakes {
    /// From the station to the server, in parts.
    fn make(scene: &Scene, radio: &Radio, count: usize) -> Handshakes {
        const LISTENERS: usize = 4;
        const AT_ONCE: usize = 100;
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
        setrlimit(Resource::RLIMIT_NOFILE, hard.max(soft), hard).expect("up to the hard limit");
        // Nobody accepts: the kernel has done the handshake, and keeps the connection for a later accept.
        let listener = |_| {
            radio.server.within(|| {
                let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
                socket.bind(&SocketAddr::new(radio.server_address(), 0).into()).expect("a free port");
                socket.listen(4096).expect("it listens");
                socket
            })
        };
        let listeners: Vec<Socket> = (0..LISTENERS).map(listener).collect();
        let mut sockets: Vec<Socket> = Vec::new();
        let mut done = 0;
        while sockets.len() < count {
            let start = |number: usize| {
                let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a descriptor");
                socket.set_nonblocking(true).expect("a socket");
                // It goes on by itself.
                let _ = socket.connect(&listeners[number % LISTENERS].local_addr().expect("bound"));
                socket
            };
            let from = sockets.len();
            let numbers = from..count.min(from + AT_ONCE);
            sockets.extend(radio.station.within(|| numbers.map(start).collect::<Vec<Socket>>()));
            let mut open: Vec<&Socket> = sockets[from..].iter().collect();
            let all = open.len();
            scene.until(PATIENCE, || {
                open.retain(|socket| socket.peer_addr().is_err());
                open.is_empty()
            });
            done += all - open.len();
        }
        Handshakes { done, _sockets: sockets, _listeners: listeners }
    }
}

/// An access point's interface on a cable, with an agent that looks for its driver at `socket`.
fn on_cable(scene: &Scene, socket: &Path) -> (Netns, Program) {
    let ap = Netns::new("ap");
    ap.ip("link add wlan0 type veth peer name sta0");
    ap.ip("link set wlan0 up");
    let driver = socket.to_str().expect("a path in ASCII");
    let mut agent = Program::lasthop(&ap, &["ap", "--iface", "wlan0", "--driver", driver]);
    agent.says(scene, "is connected");
    (ap, agent)
}

/// Does something to agents on a thread of its own, until dropped.
struct Driver {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    fn start(path: &Path, mut turn: impl FnMut(&OwnedFd) + Send + 'static) -> Driver {
        let listener = listening(path);
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                turn(&listener);
            }
        });
        Driver { stop, thread: Some(thread) }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

fn records(scene: &mut Scene) -> Seen {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("driver");
    let (mut readers, sent) = (Vec::new(), Arc::new(AtomicU64::new(0)));
    let count = Arc::clone(&sent);
    let driver = Driver::start(&path, move |listener| {
        readers.extend(admitted(listener));
        (0..64).for_each(|_| tell(&mut readers, &idle_record([2; 6])));
        count.fetch_add(64, Ordering::Relaxed);
    });
    let (ap, agent) = on_cable(scene, &path);
    let before = sent.load(Ordering::Relaxed);
    let span = scene.ms(3000, 500);
    let share = agent.share(scene, span);
    let rate = (sent.load(Ordering::Relaxed) - before) as f64 / span.as_secs_f64();
    let (took, status, _) = agent.stops(scene);
    drop(driver);
    drop(ap);
    Seen::new(format!(
        "{:.0} thousand records offered a second, {share:.0} % of a processor; stopped after {} ms",
        rate / 1000.0,
        took.as_millis()
    ))
    .must(status.success(), "it failed")
    .must(!scene.is_whole() || took <= STOP, "too late")
}

fn reconnections(scene: &mut Scene) -> Seen {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("driver");
    let closed = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&closed);
    let driver = Driver::start(&path, move |listener| match admitted(listener) {
        Some(reader) => {
            drop(reader);
            count.fetch_add(1, Ordering::Relaxed);
        }
        None => std::thread::sleep(Duration::from_micros(200)),
    });
    let (ap, mut agent) = on_cable(scene, &path);
    let span = scene.ms(3000, 700);
    scene.rest(span);
    let first = closed.load(Ordering::Relaxed);
    let share = agent.share(scene, scene.ms(4000, 300));
    let later = (closed.load(Ordering::Relaxed) - first) as f64 / scene.ms(4000, 300).as_secs_f64();
    agent.says(scene, "all windows are released");
    let (took, status, _) = agent.stops(scene);
    drop(driver);
    drop(ap);
    Seen::new(format!(
        "{first} connections in the first {:.0} s, then {later:.1} a second; {share:.1} % of a processor; stopped after {} ms",
        span.as_secs_f64(),
        took.as_millis()
    ))
    .must(status.success(), "it failed")
    // Each waits twice as long as the one before: a slow machine only makes fewer.
    .must((1..=10).contains(&first), "too many connections, or none")
    .must(!scene.is_whole() || (later <= 1.5 && took <= STOP), "too many later, or stopped too late")
}

fn datagrams(scene: &mut Scene) -> Seen {
    let tunnel = Tunnel::new();
    let proxy = tunnel.proxy(scene, &[]);
    let station = tunnel.station(scene, &[]);
    let (download, _) = tunnel.download(scene);
    scene.rest(scene.ms(1000, 100));
    let before = download.rate(scene, scene.ms(2000, 200));
    let memory = proxy.memory();
    let flood = Datagrams::start(&tunnel);
    let span = scene.ms(5000, 400);
    let beside = download.rate(scene, span);
    let so_far = download.octets();
    scene.await_that("the download goes on", || download.octets() > so_far);
    let sent = flood.end();
    let grown = proxy.memory() - memory;
    proxy.signal(Signal::SIGTERM);
    let (_, status, said) = proxy.ends(scene);
    drop((download, station));
    let refused = said.iter().filter_map(|line| line.split_once(" lost on the way; ")).next().map(|(_, rest)| rest);
    let seen = Seen::new(format!(
        "{before:.1} Mbit/s before, {beside:.1} beside {sent} datagrams; memory {grown:+.1} MiB; {}",
        refused.unwrap_or("no account")
    ));
    seen.must(status.success(), "it failed")
        .must(!scene.is_whole() || beside > 0.9 * before.min(MBIT_S), "the download became slower")
        .must(grown <= 8.0, "memory grows")
        .must(refused.is_some_and(|refused| !refused.starts_with("0 ")), "nothing was refused")
}

/// Datagrams from the station's host to the proxy, from sixteen ports: noise, requests for a session, sealed packets.
struct Datagrams {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Datagrams {
    fn start(tunnel: &Tunnel) -> Datagrams {
        let bind = || (0..16).map(|_| UdpSocket::bind("10.93.2.2:0").expect("a free port")).collect::<Vec<_>>();
        let sockets = tunnel.row.station.within(bind);
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let (began, mut sent) = (Instant::now(), 0u64);
            while !seen.load(Ordering::Relaxed) {
                // 20 a millisecond.
                while u128::from(sent) < began.elapsed().as_micros() / 50 {
                    let mut datagram = noise(sent);
                    // Kind and version (docs/reference/tunnel.md), then the station's number or that of keys.
                    match sent % 3 {
                        0 => datagram[..8].copy_from_slice(&[1, 3, 0, 1, 0, 0, 0, 0]),
                        1 => datagram[..8].copy_from_slice(&[3, 3, 0, 0, 0, 0, 0, 1]),
                        _ => {}
                    }
                    // What a full buffer does not take is lost.
                    let _ = sockets[sent as usize % sockets.len()].send_to(&datagram, PROXY);
                    sent += 1;
                }
                std::thread::sleep(Duration::from_micros(500));
            }
            sent
        });
        Datagrams { stop, thread }
    }

    /// Ends it; how many there were.
    fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic")
    }
}
