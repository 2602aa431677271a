//! What the eBPF rewriter leaves of TCP's throughput: `iperf3` at 1 Gbit/s through the lab's path, with the hook and
//! without, in alternating pairs; and what it costs a packet there, by the kernel's BPF statistics.
//!
//! The target is below what the station advertises, so that ACKs are rewritten, and far above the bandwidth-delay
//! product, so that it does not limit: what is left of the difference is the cost. No queue of the path can overflow,
//! with the hook or without. Prints `name value unit` lines; without root, one line on standard error.
#![allow(clippy::disallowed_methods, reason = "real time is what is measured")]

use anyhow::ensure;
use lasthop_agents::ap::kernel::{Direction, Load, Rewriter};
use lasthop_agents::service::program_info::enable_statistics;
use lasthop_agents::service::{Error, Method};
use lasthop_lab::address::{self, Family};
use lasthop_lab::emulator::{Emulator, Segment};
use lasthop_lab::topology::{Hosts, WIRE};
use lasthop_lab::{Clock, LabError, Namespace, RunDir, Stop, clean};
use lasthop_radio::last_hop::Model;
use lasthop_radio::star::Star;
use lasthop_radio::wired::{Params, Wire};
use lasthop_scenario::graph::{Cable, Graph};
use lasthop_signals::Node;
use lasthop_units::stats::Samples;
use lasthop_units::{Bytes, Rate, Span, Time};
use serde_json::Value;
use std::fs;
use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// At least 20 are required.
const PAIRS: usize = 24;
/// Connections of which the cost a packet is measured.
const COSTS: usize = 5;
/// Slow start is over long before, seconds.
const RAMP: f64 = 0.25;
/// Longest that a connection of a second may take, from its first program's start.
const PATIENCE: Duration = Duration::from_secs(10);
/// As often as an agent's.
const HEARTBEAT: Duration = Duration::from_millis(4);
/// The bandwidth-delay product is 500 kB.
const LINE: Params = Params { rate: Rate::from_mbit(1000), delay: Span::from_millis(1), queue_packets: 5000 };
/// Of which the kernel advertises a half or more, and never more than the path's queue holds.
const RECEIVE_BUFFER: u64 = 6_000_000;
const TARGET: Bytes = Bytes::new(2_000_000);

fn main() -> anyhow::Result<()> {
    // `cargo test --benches` only wants to see that it works.
    let pairs = if std::env::args().any(|argument| argument == "--bench") { PAIRS } else { 1 };
    let mut rewriter = match Rewriter::load(Load::default()) {
        Err(Error::Permission { .. }) => {
            eprintln!("SKIPPED: bpf.rwnd.iperf_ratio: needs root to load eBPF programs and to make namespaces");
            return Ok(());
        }
        loaded => loaded?,
    };
    if Command::new("iperf3").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("SKIPPED: bpf.rwnd.iperf_ratio: iperf3 is missing (Debian and Ubuntu: apt-get install iperf3)");
        return Ok(());
    }
    clean()?;
    let path = Path::new()?;
    let (mut ratios, mut with, mut without) = (Samples::default(), Samples::default(), Samples::default());
    for pair in 0..pairs {
        // Whoever is second may find the machine in another state than the first: take turns.
        let (hooked, plain) = match pair % 2 {
            0 => {
                let hooked = path.throughput(Some(&mut rewriter))?;
                (hooked, path.throughput(None)?)
            }
            _ => {
                let plain = path.throughput(None)?;
                (path.throughput(Some(&mut rewriter))?, plain)
            }
        };
        ratios.add(hooked / plain);
        with.add(hooked);
        without.add(plain);
    }
    // Apart from the pairs: statistics cost something too.
    let mut cost = path.cost(&mut rewriter, if pairs > 1 { COSTS } else { 1 })?;
    let late = path.emulator.finish()?.lateness.summary(lasthop_lab::LatenessKind::Delivery);
    let counters = rewriter.counters()?;
    let each = counters.rewritten / pairs as u64;
    ensure!(each > 5_000, "only {each} windows a connection were rewritten: this measures nothing");
    let quantile = |samples: &mut Samples, q| samples.quantile(q).expect("at least one pair");
    eprintln!(
        "bpf.rwnd.iperf_ratio: {:.0} Mbit/s with the hook, {:.0} without (medians of {pairs}); {each} windows \
         rewritten in each; emulator late by {} (median), {} (p99)",
        quantile(&mut with, 0.5),
        quantile(&mut without, 0.5),
        late.p50,
        late.p99
    );
    println!("bpf.rwnd.ns_per_packet {:.1} ns", quantile(&mut cost.uplink, 0.5));
    println!("bpf.rwnd.downlink_ns_per_packet {:.1} ns", quantile(&mut cost.downlink, 0.5));
    println!("bpf.rwnd.both_ns_per_packet {:.1} ns", quantile(&mut cost.both, 0.5));
    println!("bpf.rwnd.iperf_ratio {:.4} ratio", quantile(&mut ratios, 0.5));
    println!("bpf.rwnd.iperf_ratio_iqr {:.4} ratio", quantile(&mut ratios, 0.75) - quantile(&mut ratios, 0.25));
    Ok(())
}

/// Server, access point and one station, on cables.
struct Path {
    emulator: Emulator,
    hosts: Hosts,
    // Last, so that it is dropped last.
    _run: RunDir,
}

impl Path {
    fn new() -> anyhow::Result<Path> {
        let run = RunDir::claim()?;
        let mut hosts = Hosts::of_graph(&run, &Graph::street(&Cable::plain(LINE), &["sta1".into()]), &Stop::default())?;
        let (last, wire) = (hosts.taps.pop(), hosts.taps.pop());
        let segment = |model, ports: Option<_>| Segment {
            model,
            ports: ports.expect("a hop has interfaces"),
            logged: false,
            watched: 0..0,
            drivers: Vec::new(),
            delays: Vec::new(),
            monitors: Vec::new(),
            controls: Vec::new(),
        };
        let segments = vec![
            segment(Model::Cable(Wire::new(Node(0), Node(1), LINE, LINE)), wire),
            segment(Model::Wired(Box::new(Star::new(1, LINE, LINE))), last),
        ];
        // Fixed windows: how the kernel grows them would be measured too.
        hosts.stations[0].within(|| setting("tcp_rmem", &format!("4096 {RECEIVE_BUFFER} {RECEIVE_BUFFER}")))?;
        hosts.server.within(|| setting("tcp_wmem", "4096 65536 16000000"))?;
        Ok(Path { emulator: Emulator::start(Clock::start(), segments)?, hosts, _run: run })
    }

    /// Mbit/s that the station reads from a connection of its own, through the hook if there is one.
    fn throughput(&self, mut hook: Option<&mut Rewriter>) -> anyhow::Result<f64> {
        if let Some(rewriter) = &mut hook {
            let ap = self.hosts.ap.as_ref().expect("behind an access point");
            let _ = rewriter.heartbeat(monotonic());
            ap.within(|| {
                let index = nix::net::if_::if_nametoindex("wlan0").map_err(io::Error::from);
                let index = index.map_err(failed("finding the interface"))?;
                rewriter
                    .attach(index as i32, Method::Best)
                    .map_err(|error| LabError::Program { program: "the rewriter".into(), why: error.to_string() })
            })?;
        }
        let measured = self.transfer(hook.as_deref());
        if let Some(rewriter) = hook {
            for (key, _) in rewriter.flows() {
                rewriter.forget(&key);
            }
            rewriter.detach();
        }
        measured
    }

    /// Nanoseconds a packet, of each of some connections.
    fn cost(&self, rewriter: &mut Rewriter, connections: usize) -> anyhow::Result<Cost> {
        let _statistics = enable_statistics()?;
        let runs = |rewriter: &Rewriter| {
            let of = |direction| rewriter.run_time(direction);
            Ok::<_, Error>([of(Direction::Uplink)?, of(Direction::Downlink)?])
        };
        let mut cost = Cost::default();
        for _ in 0..connections {
            let (before, lowered) = (runs(rewriter)?, rewriter.counters()?.rewritten);
            self.throughput(Some(rewriter))?;
            let (after, lowered) = (runs(rewriter)?, rewriter.counters()?.rewritten - lowered);
            let spent = |i: usize| {
                let ns = after[i].1.saturating_sub(before[i].1).as_nanos();
                ((after[i].0 - before[i].0) as f64, ns as f64)
            };
            let ((up, up_ns), (down, down_ns)) = (spent(0), spent(1));
            ensure!(lowered as f64 > 0.8 * up, "only {lowered} of {up} uplink segments were rewritten");
            eprintln!(
                "bpf.rwnd.ns_per_packet: {up} uplink segments, {lowered} windows lowered, {down} downlink segments"
            );
            cost.uplink.add(up_ns / up);
            cost.downlink.add(down_ns / down);
            cost.both.add((up_ns + down_ns) / (up + down));
        }
        Ok(cost)
    }

    fn transfer(&self, hook: Option<&Rewriter>) -> anyhow::Result<f64> {
        const PORT: &str = "5201";
        let host = address::ip(Family::V4, WIRE, Node(0)).to_string();
        let began = Instant::now();
        let serve = Program::start(&self.hosts.server, &["--server", "--one-off", "--bind", &host, "--port", PORT])?;
        // It has no way to say that it listens.
        std::thread::sleep(Duration::from_millis(100));
        #[rustfmt::skip]
        let call = [
            "--client", &host, "--port", PORT, "--reverse", "--time", "1", "--interval", "0.1",
            "--connect-timeout", "3000", "--json",
        ];
        let mut call = Program::start(&self.hosts.stations[0], &call)?;
        let mut out = call.0.stdout.take().expect("piped");
        let text = std::thread::scope(|scope| {
            let text = scope.spawn(move || {
                let mut text = String::new();
                out.read_to_string(&mut text).map(|_| text)
            });
            while call.0.try_wait()?.is_none() {
                ensure!(began.elapsed() < PATIENCE, "iperf3 does not end");
                if let Some(rewriter) = hook {
                    attend(rewriter)?;
                }
                std::thread::sleep(HEARTBEAT);
            }
            Ok(text.join().expect("no panic")?)
        })?;
        drop((call, serve));
        // What is still on its way belongs to no measurement.
        std::thread::sleep(Duration::from_millis(100));
        mbit_s(&serde_json::from_str(&text)?)
    }
}

#[derive(Default)]
struct Cost {
    uplink: Samples,
    downlink: Samples,
    both: Samples,
}

/// What an agent does, for every flow alike.
fn attend(rewriter: &Rewriter) -> anyhow::Result<()> {
    rewriter.heartbeat(monotonic())?;
    for (key, flow) in rewriter.flows() {
        if flow.target().is_none() {
            rewriter.set_target(&key, flow.born(), Some(TARGET));
        }
    }
    Ok(())
}

/// Mbit/s that the station received, slow start left out.
fn mbit_s(said: &Value) -> anyhow::Result<f64> {
    ensure!(said["error"].is_null(), "iperf3: {}", said["error"]);
    let (mut bytes, mut seconds) = (0.0, 0.0);
    for interval in said["intervals"].as_array().into_iter().flatten() {
        let number = |field: &str| interval["sum"][field].as_f64().unwrap_or(0.0);
        if number("start") >= RAMP {
            bytes += number("bytes");
            seconds += number("seconds");
        }
    }
    ensure!(bytes > 0.0 && seconds > 0.5, "iperf3 measured {bytes} octets in {seconds} s");
    Ok(bytes * 8.0 / 1e6 / seconds)
}

/// A running `iperf3`; killed when dropped.
struct Program(Child);

impl Program {
    fn start(host: &Namespace, arguments: &[&str]) -> Result<Program, LabError> {
        let spawn = || {
            let mut command = Command::new("iperf3");
            command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
            command.spawn().map_err(failed("starting iperf3"))
        };
        host.within(spawn).map(Program)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn monotonic() -> Time {
    // A world that began now began at this moment of CLOCK_MONOTONIC.
    Clock::start().on_monotonic(Time::ZERO)
}

/// Sets a TCP setting of the calling thread's namespace.
fn setting(name: &str, value: &str) -> Result<(), LabError> {
    let path = std::path::Path::new("/proc/sys/net/ipv4").join(name);
    fs::write(&path, value).map_err(failed("setting buffer sizes"))
}

fn failed(doing: &'static str) -> impl Fn(io::Error) -> LabError {
    move |source| LabError::System { doing: doing.into(), source }
}
