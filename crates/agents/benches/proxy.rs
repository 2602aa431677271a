//! How fast the edge proxy is on one processor, and how punctual.
//!
//! Server, proxy and station on veth cables between namespaces. The proxy has a processor of its own, with everything that
//! the kernel does in its name: TCP from the server, UDP to the station, and the station's receive path up to its socket.
//! What the server's kernel does is done on the other one, as on a machine of its own ([`receive_on`]): on a veth cable the
//! proxy's acknowledgement would else make the server's TCP send its next hundred kilobytes before the proxy goes on. The pacing error is
//! measured that way, too.
//! Throughput is octets handed to a program at the station. The pacing error is by how much packets leave before or after
//! they are due at 100 Mbit/s, under SCHED_FIFO, as the proxy itself sees it. Two controls follow on the same processor at the same
//! priority: a thread that waits as the proxy does and does nothing else, and one that never sleeps while it is measured.
//! What the second misses, the machine under us has taken.
#![allow(clippy::disallowed_methods, reason = "real time is what is measured")]
#![allow(dead_code, reason = "not all of the namespaces' module is used")]

#[path = "../../../tests/src/machine.rs"]
mod machine;
#[path = "../tests/support/netns.rs"]
mod netns;

use lasthop_agents::proxy::{Config, Proxy, Rule, Summary};
use lasthop_agents::service::cpu_latency_guard::CpuLatencyGuard;
use lasthop_agents::service::poll::Poll;
use lasthop_agents::service::spin_sleeper::{SpinSleeper, Until};
use lasthop_agents::service::{Stop, clock};
use lasthop_agents::station::{self, Forward, Station};
use lasthop_agents::tunnel::keys;
use lasthop_signals::Node;
use lasthop_units::{Rate, Span, Time};
use lasthop_wire::proxy::Target;
use netns::{Netns, available};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::thread::JoinHandleExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

fn main() {
    if !available("proxy.*") {
        return;
    }
    // `cargo test --benches` only wants to see that it works.
    let time = if std::env::args().any(|argument| argument == "--bench") { 5.0 } else { 0.5 };
    let world = World::new(Server::Apart);
    let (gbit, _, _) = world.measure(Rate::from_mbit(20_000), time);
    println!("proxy.gbit_s {gbit:.3} Gbit/s");
    let mut runs: Vec<Run> = (0..RUNS).map(|_| world.run(time)).collect();
    for (n, run) in runs.iter().enumerate() {
        eprintln!("proxy: run {}: {run}", n + 1);
    }
    // Of an odd number of runs, the one in the middle; the worst as well, since the median of few says little of it.
    let mut of = |what: fn(&Run) -> f64, place: usize| {
        runs.sort_by(|a, b| what(a).total_cmp(&what(b)));
        what(&runs[place])
    };
    println!("proxy.pacing_error_us_p50 {:.1} us", of(|run| run.p50, RUNS / 2));
    println!("proxy.pacing_error_us_p99 {:.1} us", of(|run| run.p99, RUNS / 2));
    println!("proxy.pacing_error_us_p99_worst {:.1} us", of(|run| run.p99, RUNS - 1));
    println!("proxy.bare_timer_error_us_p99 {:.1} us", of(|run| run.waits, RUNS / 2));
    println!("proxy.spin_gap_us_p99 {:.1} us", of(|run| run.spins, RUNS / 2));
    println!("proxy.stolen_ms_worst {:.0} ms", of(|run| run.stolen, RUNS - 1));
    println!("proxy.cpu_at_100mbit {:.1} percent", of(|run| run.busy, RUNS / 2) * 100.0);
    let (beside, mut errors) = (World::new(Server::Beside), [0.0; RUNS]);
    errors.fill_with(|| {
        beside.measure(Rate::from_mbit(100), time).1.pacing_error.map_or(f64::NAN, |error| micros(error.1))
    });
    eprintln!("proxy: with the server's TCP on the same processor, 99th percentiles: {errors:.1?}");
    errors.sort_by(f64::total_cmp);
    println!("proxy.pacing_error_beside_server_us_p99 {:.1} us", errors[RUNS / 2]);
    let (_, _, busy) = world.measure(Rate::from_mbit(10), time);
    println!("proxy.cpu_at_10mbit {:.1} percent", busy * 100.0);
    let (gbit, summary, busy) = world.measure_many(MANY, Rate::from_mbit(1), time);
    let error = micros(summary.pacing_error.expect("packets were sent").1);
    let (mbit, lost) = (gbit * 1e3, summary.lost);
    eprintln!(
        "proxy: {MANY} stations: pacing error {error:.1} us at the 99th percentile; {mbit:.1} Mbit/s, {lost} lost"
    );
    println!("proxy.cpu_at_100_times_1mbit {:.1} percent", busy * 100.0);
    println!("proxy.pacing_error_100_times_1mbit_us_p99 {error:.0} us");
    println!("proxy.cpu_at_100_times_nothing {:.1} percent", world.measure_idle(MANY, time) * 100.0);
}

fn micros(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e3
}

/// Stations that are served at once.
const MANY: u16 = 100;

/// How often the pacing error is measured. An odd number.
const RUNS: usize = 5;

/// The pacing error of one run at 100 Mbit/s, and what the machine was like meanwhile: microseconds.
struct Run {
    p50: f64,
    p99: f64,
    /// The controls, right after it.
    waits: f64,
    spins: f64,
    /// Milliseconds for which the host did not let the proxy's processor run, in all of this.
    stolen: f64,
    /// Share of the processor that the proxy took.
    busy: f64,
    /// Mbit/s of data, and packets lost.
    mbit: f64,
    lost: u64,
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Run { p50, p99, waits, spins, stolen, mbit, lost, .. } = self;
        write!(
            f,
            "pacing error {p50:.1} us at the median, {p99:.1} at the 99th percentile; controls {waits:.1} and {spins:.1}; "
        )?;
        write!(f, "{stolen:.0} ms stolen; {mbit:.1} Mbit/s of data at 100 of packets, {lost} lost")
    }
}

/// Milliseconds for which the host has let the first processor wait since it started (`/proc/stat`, proc_stat(5)); it counts in ticks of
/// 10 ms, and not every host tells.
fn stolen() -> f64 {
    let text = std::fs::read_to_string("/proc/stat").expect("it is always there");
    let first = text.lines().find(|line| line.starts_with("cpu0 ")).expect("a first processor");
    first.split_whitespace().nth(8).map_or(0.0, |ticks| ticks.parse::<f64>().expect("a count") * 10.0)
}

/// As often as packets of 1500 octets are due at 100 Mbit/s.
const BETWEEN: Span = Span::from_micros(120);

/// The 99th percentile, in microseconds, of how late a thread is that does nothing but be on time, on the proxy's processor and at
/// its priority.
fn control(time: f64, errors: impl FnOnce(f64) -> Vec<Span> + Send + 'static) -> f64 {
    let watch = move || {
        pin(0);
        clock::sharpen_timers();
        clock::become_realtime(10);
        let mut latency_guard = CpuLatencyGuard::open();
        latency_guard.hold(true);
        errors(time)
    };
    let mut errors = std::thread::spawn(watch).join().expect("no panic");
    errors.sort();
    errors[errors.len() * 99 / 100].as_nanos() as f64 / 1e3
}

/// One that waits as the proxy waits: no sleeping thread can be more punctual on the machine at hand.
fn waits(time: f64) -> Vec<Span> {
    let mut poll = Poll::new().expect("epoll");
    let (mut sleeper, mut errors) = (SpinSleeper::new(2), Vec::new());
    let (began, mut due) = (Instant::now(), clock::now());
    while began.elapsed().as_secs_f64() < time {
        due += BETWEEN;
        while clock::now() < due {
            sleeper.wait(&mut poll, clock::now, Until { due: Some(due), about: Time::MAX }).expect("epoll");
        }
        errors.push(clock::now().since(due));
    }
    errors
}

/// One that only reads the clock, with a pause now and then because the kernel throttles a thread that never sleeps: no
/// thread at all can be more punctual.
fn spins(time: f64) -> Vec<Span> {
    let (began, mut errors) = (Instant::now(), Vec::new());
    while began.elapsed().as_secs_f64() < time {
        let mut due = clock::now();
        for _ in 0..300 {
            due += BETWEEN;
            while clock::now() < due {}
            errors.push(clock::now().since(due));
        }
        std::thread::sleep(Duration::from_millis(9));
    }
    errors
}

struct World {
    server: Netns,
    proxy: Netns,
    station: Netns,
    dir: tempfile::TempDir,
}

const SERVER: (&str, u16) = ("10.97.1.1", 7);
const PROXY: &str = "10.97.2.1:4848";

/// Where the kernel takes in what comes to the server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Server {
    /// On the other processor.
    Apart,
    /// Where it was sent: on the proxy's.
    Beside,
}

impl World {
    fn new(place: Server) -> World {
        let (server, proxy, station) = (Netns::new("bsrv"), Netns::new("bprx"), Netns::new("bsta"));
        server.veth("s0", &proxy, "p0");
        proxy.veth("p1", &station, "t0");
        for (netns, device, address) in [
            (&server, "s0", "10.97.1.1/24"),
            (&proxy, "p0", "10.97.1.2/24"),
            (&proxy, "p1", "10.97.2.1/24"),
            (&station, "t0", "10.97.2.2/24"),
        ] {
            netns.ip(&format!("addr add {address} dev {device}"));
            netns.ip(&format!("link set {device} up"));
        }
        if place == Server::Apart {
            let of_proxy = [(&proxy, "p0"), (&proxy, "p1"), (&station, "t0")];
            of_proxy.into_iter().for_each(|(netns, device)| receive_on(netns, device, 0));
            receive_on(&server, "s0", 1);
        }
        let listener = server.within(|| TcpListener::bind(SERVER)).expect("a listener");
        std::thread::spawn(move || {
            pin(1);
            for mut socket in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || while socket.write_all(&[0x5a; 1 << 16]).is_ok() {});
            }
        });
        let dir = tempfile::tempdir().expect("a directory");
        for number in 1..=MANY {
            let key = dir.path().join(number.to_string());
            keys::pair(&dir.path().join("proxy"), Node(number), &key, false).expect("paired");
        }
        World { server, proxy, station, dir }
    }

    /// Measures the pacing error, and how punctual the machine lets anybody be.
    fn run(&self, time: f64) -> Run {
        let before = stolen();
        let (gbit, summary, busy) = self.measure(Rate::from_mbit(100), time);
        let (p50, p99) = summary.pacing_error.expect("packets were sent");
        // Together as long as one measurement.
        let (waits, spins) = (control(time / 2.0, waits), control(time / 2.0, spins));
        let (mbit, lost) = (gbit * 1e3, summary.lost);
        Run { p50: micros(p50), p99: micros(p99), waits, spins, stolen: stolen() - before, busy, mbit, lost }
    }

    /// Gbit/s that a program at the station reads, what the proxy says, and the share of a processor that it took.
    fn measure(&self, rate: Rate, time: f64) -> (f64, Summary, f64) {
        let stop: &'static Stop = Box::leak(Box::default());
        let proxy = self.proxy(rate, stop);
        let station = self.station(1, stop);
        let mut socket = self.station.within(|| connect(1));
        let (mut bytes, mut count) = (vec![0; 1 << 18], 0);
        let (warm, mut began) = (Instant::now(), None);
        let read = loop {
            let got = socket.read(&mut bytes).expect("data comes");
            assert!(got > 0, "the connection has ended");
            // The first moments are the window's.
            if began.is_none() && warm.elapsed() > Duration::from_secs_f64(time / 10.0) {
                (began, count) = (Some(Instant::now()), 0);
            }
            count += got;
            if let Some(began) = began
                && began.elapsed().as_secs_f64() >= time
            {
                break count as f64 * 8e-9 / began.elapsed().as_secs_f64();
            }
        };
        drop(socket);
        stop.ask();
        station.join().expect("no panic");
        let (summary, busy) = proxy.join().expect("no panic");
        (read, summary, busy)
    }

    /// The same of so many stations, each of which is sent to at this rate: Gbit/s of all together.
    fn measure_many(&self, stations: u16, rate: Rate, time: f64) -> (f64, Summary, f64) {
        let stop: &'static Stop = Box::leak(Box::default());
        let proxy = self.proxy(rate, stop);
        let read: &'static (AtomicU64, AtomicU64) = Box::leak(Box::default());
        let (octets, programs) = read;
        let mut threads = Vec::new();
        for number in 1..=stations {
            threads.push(self.station(number, stop));
            threads.push(in_netns(self.station.name(), 1, move || {
                let (mut socket, mut bytes) = (connect(number), vec![0; 1 << 16]);
                programs.fetch_add(1, Relaxed);
                // Until the station ends.
                while let Ok(got @ 1..) = socket.read(&mut bytes) {
                    octets.fetch_add(got as u64, Relaxed);
                }
            }));
        }
        let until = Instant::now() + Duration::from_secs(30);
        while programs.load(Relaxed) < u64::from(stations) {
            assert!(Instant::now() < until, "{} of {stations} tunnels came up", programs.load(Relaxed));
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_secs_f64(time / 10.0));
        let (began, before) = (Instant::now(), octets.load(Relaxed));
        std::thread::sleep(Duration::from_secs_f64(time));
        let gbit = (octets.load(Relaxed) - before) as f64 * 8e-9 / began.elapsed().as_secs_f64();
        stop.ask();
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        let (summary, busy) = proxy.join().expect("no panic");
        (gbit, summary, busy)
    }

    /// The share of a processor that the proxy takes while so many stations have sessions and want nothing.
    fn measure_idle(&self, stations: u16, time: f64) -> f64 {
        let stop: &'static Stop = Box::leak(Box::default());
        let proxy = self.proxy(Rate::from_mbit(10), stop);
        let threads: Vec<_> = (1..=stations).map(|number| self.station(number, stop)).collect();
        self.station.within(|| (1..=stations).for_each(|number| drop(connect(number))));
        // What was under way has come, and nobody waits for more.
        std::thread::sleep(Duration::from_secs(2));
        let (began, before) = (Instant::now(), processor_time(&proxy));
        std::thread::sleep(Duration::from_secs_f64(time));
        let busy = (processor_time(&proxy) - before).as_secs_f64() / began.elapsed().as_secs_f64();
        stop.ask();
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        proxy.join().expect("no panic");
        busy
    }

    /// A proxy: what it says when it stops, and the share of a processor that it took.
    fn proxy(&self, rate: Rate, stop: &'static Stop) -> JoinHandle<(Summary, f64)> {
        let config = Config::new(PROXY.parse().expect("an address"), self.dir.path().join("proxy"), Rule::Fixed(rate));
        in_netns(self.proxy.name(), 0, move || {
            let proxy = Proxy::open(&config).expect("a proxy");
            let (began, before) = (Instant::now(), thread_time());
            let summary = proxy.run(stop).expect("it runs");
            (summary, (thread_time() - before).as_secs_f64() / began.elapsed().as_secs_f64())
        })
    }

    fn station(&self, number: u16, stop: &'static Stop) -> JoinHandle<()> {
        let target = Target::new(SERVER.0, SERVER.1).expect("a target");
        let key = self.dir.path().join(number.to_string());
        let config = station::Config {
            forwards: vec![Forward { listen: door(number), target }],
            ..station::Config::new(PROXY.parse().expect("an address"), key)
        };
        in_netns(self.station.name(), 1, move || {
            // The proxy may not listen yet: the handshake is repeated until it does.
            let station = Station::open(&config).expect("a station");
            station.run(stop).expect("it runs");
        })
    }
}

/// What arrives at a device is taken in by this processor (receive packet steering) and not by the sender's.
fn receive_on(netns: &Netns, device: &str, processor: usize) {
    // `ip netns exec` shows the namespace's own devices below /sys.
    let set = format!("echo {:x} > /sys/class/net/{device}/queues/rx-0/rps_cpus", 1 << processor);
    let done = Command::new("ip").args(["netns", "exec", netns.name(), "sh", "-c", &set]).status();
    assert!(
        done.is_ok_and(|status| status.success()),
        "{device}: two processors and a kernel with CONFIG_RPS are needed"
    );
}

/// Where a station listens for connections that it brings to the server.
fn door(number: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 9_000 + number))
}

/// A connection through a station to the server, from the station's namespace, when the first data has come.
fn connect(number: u16) -> TcpStream {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        assert!(Instant::now() < until, "the tunnel does not come up");
        if let Ok(socket) = TcpStream::connect(door(number)) {
            socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
            if matches!(socket.peek(&mut [0]), Ok(1)) {
                return socket;
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn in_netns<T: Send + 'static>(
    name: &str,
    processor: usize,
    run: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let path = Path::new("/run/netns").join(name);
    std::thread::spawn(move || {
        let file = std::fs::File::open(path).expect("a namespace");
        nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET).expect("root");
        pin(processor);
        run()
    })
}

/// Keeps the calling thread on one processor, if there are two.
fn pin(processor: usize) {
    let mut set = CpuSet::new();
    if set.set(processor).is_ok() {
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    }
}

/// Processor time that another thread has had.
fn processor_time<T>(thread: &JoinHandle<T>) -> Duration {
    let mut clock = 0;
    // SAFETY: the thread has not been joined, and the answer goes into a variable of its type.
    let failed = unsafe { libc::pthread_getcpuclockid(thread.as_pthread_t(), &raw mut clock) };
    assert_eq!(failed, 0, "it runs");
    Duration::from(nix::time::clock_gettime(nix::time::ClockId::from_raw(clock)).expect("it runs"))
}

/// Processor time that the calling thread has had.
fn thread_time() -> Duration {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID).expect("it is always there");
    Duration::from(time)
}
