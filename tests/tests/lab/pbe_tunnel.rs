//! PBE-CC over the tunnel: `lasthop proxy` goes at what `lasthop station --dci` tells of a cell, and is BBR while nothing is known of it.
//!
//! The cell is a log that the test writes: 50 PRB of 600 bits, of which the terminal is given 30 and another one 20. The path has 40 Mbit/s and 20 ms.

// Programs are waited for by the wall clock.
#![allow(clippy::disallowed_methods)]

use crate::support;

use lasthop_tests::decoder::{BITS, Decoder, GIVEN, OVERHEAD, OWN};
use lasthop_tests::{PATIENCE, ends_within, eventually, inside, lasthop, program, run};
use lasthop_units::Rate;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use support::delay::{DelayWire, Queue};
use support::netns::{Netns, available};

const PATH: f64 = 40e6;

/// C_t of that cell with so many bits a PRB: nothing is idle.
fn available_rate(bits: u64) -> Rate {
    Rate::from_bps(GIVEN * bits * 1000).scale(1.0 / (1.0 + OVERHEAD))
}

/// The same of the tunnel's IP packets: C_t is of payload, of which packets of 1500 octets have 1448 where it is TCP's.
fn pace(bits: u64) -> Rate {
    available_rate(bits).scale(1500.0 / 1448.0)
}

/// A terminal, a machine with a server and the proxy, and the wire between them.
struct World {
    terminal: Netns,
    server: Netns,
    folder: tempfile::TempDir,
    net: u8,
    _wire: DelayWire,
}

impl World {
    fn new(net: u8, what: &str) -> Option<World> {
        if !available(what) {
            return None;
        }
        let (server, terminal) = (Netns::new("srv"), Netns::new("ue"));
        let queue = Queue { octets_a_second: PATH / 8.0, packets: 200 };
        let ends = ((&server, "s0"), (&terminal, "w0"));
        let wire = DelayWire::narrow(ends.0, ends.1, Duration::from_millis(10), Some(queue));
        for (netns, device, end) in [(&server, "s0", 1), (&terminal, "w0", 2)] {
            netns.ip(&format!("addr add 10.{net}.1.{end}/24 dev {device}"));
            netns.ip(&format!("link set {device} up"));
        }
        let folder = tempfile::tempdir().expect("a directory");
        nix::unistd::mkfifo(&folder.path().join("dci"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let world = World { terminal, server, folder, net, _wire: wire };
        let (keys, own) = (world.path("keys"), world.path("own"));
        run(&mut lasthop(["pair", "--proxy", &keys, "--station", "1", "--out", &own])).succeeded();
        Some(world)
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_string_lossy().into_owned()
    }

    fn pipe(&self) -> PathBuf {
        self.folder.path().join("dci")
    }

    fn agent(&self, at: &Netns, arguments: &[&str]) -> Agent {
        let mut command = inside(at.name(), program(), arguments);
        // It does not outlive its test, however that ends.
        let with_parent = || nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(std::io::Error::from);
        // SAFETY: a system call, and nothing else, between fork and exec.
        unsafe { command.pre_exec(with_parent) };
        let mut child = command.spawn().expect("it starts");
        // The line that it is ready.
        let mut line = Vec::new();
        let out = child.stdout.as_mut().expect("piped");
        while !line.ends_with(b"\n") {
            let mut octet = [0];
            if out.read(&mut octet).expect("readable") == 0 {
                panic!("{}", ends_within(child, PATIENCE).err);
            }
            line.push(octet[0]);
        }
        Agent(Some(child))
    }

    fn proxy(&self, more: &[&str]) -> Agent {
        let (listen, keys, log) = (format!("10.{}.1.1:4848", self.net), self.path("keys"), self.path("log"));
        let arguments =
            ["proxy", "--listen", &listen, "--keys", &keys, "--log", &log, "--allow-local", "--no-realtime"];
        self.agent(&self.server, &[&arguments[..], more].concat())
    }

    /// With a port of its own that leads to where `server` listens.
    fn station(&self, server: SocketAddr, dci: &str) -> Agent {
        let (proxy, key) = (format!("10.{}.1.1:4848", self.net), self.path("own"));
        let (forward, own, log) = (format!("{FORWARD}={server}"), OWN.to_string(), self.path("station.log"));
        let arguments = ["station", "--proxy", &proxy, "--key", &key, "--forward", &forward, "--log", &log];
        let cell = ["--dci", dci, "--prb", "50", "--rnti", &own];
        self.agent(&self.terminal, &[&arguments[..], &cell].concat())
    }

    /// A server that sends for ever to each client.
    fn serve(&self) -> Server {
        let address: SocketAddr = format!("10.{}.1.1:0", self.net).parse().expect("an address");
        let listener = self.server.within(|| TcpListener::bind(address).expect("a free port"));
        let (address, stop) = (listener.local_addr().expect("bound"), Arc::new(AtomicBool::new(false)));
        listener.set_nonblocking(true).expect("a socket");
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut serving = Vec::new();
            while !seen.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((socket, _)) => serving.push(std::thread::spawn(move || send(socket))),
                    Err(_) => std::thread::sleep(Duration::from_millis(5)),
                }
            }
        });
        Server { address, stop, thread: Some(thread) }
    }

    fn download(&self) -> Download {
        let (count, counted) = (Arc::new(AtomicU64::new(0)), Instant::now());
        // The station may still be looking for its proxy, and ends what it cannot bring there.
        let mut socket = None;
        let mut first = [0];
        let begun = eventually(PATIENCE, || {
            let to = FORWARD.parse().expect("an address");
            let tried = self.terminal.within(|| TcpStream::connect_timeout(&to, Duration::from_secs(5)));
            socket = tried.ok().filter(|mut socket| socket.read_exact(&mut first).is_ok());
            socket.is_some()
        });
        assert!(begun && first == [octet(0)], "{first:?} after {:?}", counted.elapsed());
        let socket = socket.expect("begun");
        let (mut source, sum) = (socket.try_clone().expect("a descriptor"), Arc::clone(&count));
        let thread = std::thread::spawn(move || {
            let (mut place, mut block) = (1, vec![0; 1 << 18]);
            while let Ok(len @ 1..) = source.read(&mut block) {
                let wrong = block[..len].iter().zip(place..).find(|(got, place)| **got != octet(*place));
                assert!(wrong.is_none(), "octet {:?} is not what was sent", wrong.map(|(_, place)| place));
                place += len as u64;
                sum.store(place, Ordering::Relaxed);
            }
        });
        Download { socket, count, thread: Some(thread) }
    }

    /// The last line of the proxy's log on a cell.
    fn line(&self) -> Option<Value> {
        let log = std::fs::read_to_string(self.path("log")).ok()?;
        let lines = log.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.into_iter().find(|line| line["cell"].is_object())
    }

    /// Waits until the proxy has logged a line of which this holds.
    fn comes_to(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut last = None;
        let so = eventually(PATIENCE, || {
            last = self.line();
            last.as_ref().is_some_and(&is_so)
        });
        assert!(so, "{what}: {last:?}");
        last.expect("a line")
    }

    /// Waits until the proxy goes at what the cell has at so many bits a PRB.
    fn goes_at(&self, bits: u64) -> Value {
        let near = |value: &Value, rate: Rate| {
            let bps = value.as_u64().unwrap_or(0);
            bps.abs_diff(rate.as_bps()) * 50 < rate.as_bps()
        };
        self.comes_to(&format!("{} for {bits} bits", pace(bits)), |line| {
            let told = &line["cell"]["available_bps"];
            line["why"] == "PbeWireless" && near(told, available_rate(bits)) && near(&line["rate_bps"], pace(bits))
        })
    }

    /// Waits until it is BBR, and has found what the path has.
    fn is_bbr(&self, what: &str) {
        self.comes_to(what, |line| {
            let (rate, why) = (line["rate_bps"].as_u64().unwrap_or(0), line["why"].as_str().unwrap_or(""));
            why.starts_with("Bbr") && rate as f64 > PATH * 0.8
        });
    }
}

const FORWARD: &str = "127.0.0.1:5201";

/// The octet at a place of what is sent.
fn octet(place: u64) -> u8 {
    (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn send(mut socket: TcpStream) {
    let mut place = 0;
    // Accepted sockets do not wait, as little as their listener.
    if socket.set_nonblocking(false).is_err() {
        return;
    }
    loop {
        let block: Vec<u8> = (place..place + 65_536).map(octet).collect();
        place += 65_536;
        if socket.write_all(&block).is_err() {
            return;
        }
    }
}

/// Stops accepting when dropped; what it serves ends with those that are served.
struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A download that goes on until dropped; what comes is compared with what was sent.
struct Download {
    socket: TcpStream,
    count: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Download {
    /// Waits until another megabyte has arrived.
    fn goes_on(&self) {
        let before = self.count.load(Ordering::Relaxed);
        let more = || self.count.load(Ordering::Relaxed) > before + 1_000_000;
        assert!(eventually(PATIENCE, more), "{} octets after {before}", self.count.load(Ordering::Relaxed));
    }

    /// Ends it; fails if something came that was not sent.
    fn ends(mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        self.thread.take().into_iter().for_each(|thread| thread.join().expect("what came is what was sent"));
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

/// An agent that is killed at the test's end, however that comes.
struct Agent(Option<Child>);

impl Agent {
    fn signal(&self, signal: Signal) {
        let child = self.0.as_ref().expect("it runs");
        kill(Pid::from_raw(child.id() as i32), signal).expect("our child");
    }

    /// Ends it; gives what it has said.
    fn ends(mut self) -> lasthop_tests::Ended {
        self.signal(Signal::SIGTERM);
        ends_within(self.0.take().expect("it runs"), PATIENCE).succeeded()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn the_proxy_follows_station_reports_until_they_expire() {
    let Some(world) = World::new(141, "PBE over the tunnel") else { return };
    let (server, decoder) = (world.serve(), Decoder::start(&world.pipe()));
    let (proxy, dci) = (world.proxy(&[]), world.path("dci"));
    let station = world.station(server.address, &dci);
    let download = world.download();
    let first = world.goes_at(BITS);
    download.goes_on();
    // Lines are of different moments: what left between them left at the pace, as far as it held all the time.
    let later =
        world.comes_to("a second", |line| line["t_ns"].as_u64() > first["t_ns"].as_u64().map(|ns| ns + 1_000_000_000));
    let between = |field: &str| later[field].as_u64().expect("a number") - first[field].as_u64().expect("a number");
    let left = between("sent_bytes") as f64 * 8e9 / between("t_ns") as f64;
    assert!(left < pace(BITS).as_bps() as f64 * 1.1, "{left} bit/s: {first} {later}");
    // Half as much comes in a PRB.
    decoder.set_bits(BITS / 2);
    world.goes_at(BITS / 2);
    download.goes_on();
    drop(decoder);
    world.is_bbr("the decoder has ended");
    download.goes_on();
    let decoder = Decoder::start(&world.pipe());
    world.goes_at(BITS);
    download.goes_on();

    // A station that is killed takes its connections along, and nothing else.
    drop(station);
    download.ends();
    let station = world.station(server.address, &dci);
    let download = world.download();
    world.goes_at(BITS);
    download.goes_on();
    download.ends();
    let ended = station.ends();
    assert!(ended.out.contains("tells what RNTI 100 can have of 1 carrier"), "{}", ended.out);
    let subframes = ended.err.lines().find_map(|line| line.split_once(" subframes, 0 rows unread"));
    assert!(subframes.is_some(), "{}", ended.err);
    let log = std::fs::read_to_string(world.path("station.log")).expect("a log");
    let last: Value = serde_json::from_str(log.lines().last().expect("a line")).expect("JSON");
    assert!(last["available_bps"].as_u64() > Some(0) && last["hop_delay"]["count"].is_number(), "{last}");
    drop(decoder);
    let ended = proxy.ends();
    assert!(ended.err.contains("tell of their cell, the last of station 1: pbe serves it"), "{}", ended.err);
}

#[test]
fn a_log_that_is_none_leaves_the_station_to_bbr() {
    let Some(world) = World::new(142, "PBE over the tunnel without a log") else { return };
    let (server, dci) = (world.serve(), world.path("no.log"));
    std::fs::write(&dci, "no log\n".repeat(30)).expect("written");
    let (_proxy, station) = (world.proxy(&[]), world.station(server.address, &dci));
    let download = world.download();
    world.is_bbr("no cell is known");
    download.goes_on();
    download.ends();
    let ended = station.ends();
    assert!(ended.err.contains("is no log of assignments"), "{}", ended.err);
}

#[test]
fn a_fixed_rate_is_that_of_stations_in_cells_too() {
    let Some(world) = World::new(143, "a fixed rate beside a cell") else { return };
    let (server, dci, _decoder) = (world.serve(), world.path("dci"), Decoder::start(&world.pipe()));
    let proxy = world.proxy(&["--rate", "5 Mbit/s"]);
    let _station = world.station(server.address, &dci);
    let download = world.download();
    download.goes_on();
    download.ends();
    assert_eq!(world.line(), None, "no line on a cell");
    let said = proxy.ends().err;
    assert!(said.contains("at the rate of all the same (--rate)"), "{said}");
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let key = ["station", "--proxy", "192.0.2.1:4848", "--key", "no.key"];
    let dci = ["--dci", "a.log", "--rnti", "7"];
    for (more, says) in [
        (&[&dci[..], &["--monitor", "mon0"]].concat()[..], "--monitor"),
        (&[&dci[..], &["--slot", "1 s"]].concat(), "--slot"),
        (&["--dci", "a.log"], "--rnti"),
        (&["--rnti", "7"], "--dci"),
        (&["--prb", "50"], "--dci"),
        (&[&dci[..], &["--prb", "6", "--prb", "6"]].concat(), "once for each --dci"),
        (&[&dci[..], &["--dci", "-", "--dci", "-"]].concat(), "standard input once at most"),
    ] {
        let ended = run(&mut lasthop([&key[..], more].concat()));
        assert!(ended.status == 2 && ended.err.contains(says), "{more:?}: {ended:?}");
    }
    for more in [&["--rate", "1 Mbit/s", "--cell-most", "9 Mbit/s"][..], &["--cell-most", "1 kbit/s"]] {
        let ended = run(&mut lasthop([&["proxy", "--keys", "no.keys"], more].concat()));
        assert!(ended.status == 2 && ended.err.contains("--cell-most"), "{more:?}: {ended:?}");
    }
}
