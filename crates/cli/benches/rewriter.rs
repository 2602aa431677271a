//! What the eBPF rewriter leaves of TCP's throughput: kernel TCP at 1 Gbit/s through the lab's path, with the hook and
//! without, in alternating pairs.
//!
//! The target is below what the station advertises, so that ACKs are rewritten, and far above the bandwidth-delay
//! product, so that it does not limit: what is left of the difference is the cost. No queue of the path can overflow,
//! with the hook or without. Prints `name value unit` lines; without root, one line on standard error.
#![allow(clippy::disallowed_methods, reason = "real time is what is measured")]

use anyhow::ensure;
use lasthop_agents::ap::kernel::{Load, Rewriter};
use lasthop_agents::ap::{Error, Method};
use lasthop_lab::address::{self, Family};
use lasthop_lab::emulator::{Emulator, Model, Segment};
use lasthop_lab::topology::{Hosts, WIRE};
use lasthop_lab::{Clock, LabError, RunDir, clean};
use lasthop_radio::star::Star;
use lasthop_radio::wired::{Params, Wire};
use lasthop_signals::Node;
use lasthop_units::stats::Samples;
use lasthop_units::{Bytes, Rate, Span, Time};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Of which the issue wants at least 20.
const PAIRS: usize = 24;
/// Slow start is over long before.
const RAMP: Duration = Duration::from_millis(200);
const MEASURED: Duration = Duration::from_millis(800);
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
        let mut hosts = Hosts::behind_ap(&run, 1)?;
        let (last, wire) = (hosts.taps.pop(), hosts.taps.pop());
        let segment = |model, ports: Option<_>| Segment {
            model,
            ports: ports.expect("a hop has interfaces"),
            logged: false,
            watched: false,
            driver: None,
        };
        let segments = vec![
            segment(Model::Wire(Wire::new(Node(0), Node(1), LINE, LINE)), wire),
            segment(Model::Star(Star::new(1, LINE, LINE)), last),
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

    fn transfer(&self, hook: Option<&Rewriter>) -> anyhow::Result<f64> {
        let at = SocketAddr::new(address::ip(Family::V4, WIRE, Node(0)), 0);
        let listener = self.hosts.server.within(|| TcpListener::bind(at).map_err(failed("listening")))?;
        let at = listener.local_addr()?;
        let connect = || TcpStream::connect_timeout(&at, Duration::from_secs(5)).map_err(failed("connecting"));
        let mut station = self.hosts.stations[0].within(connect)?;
        let (mut server, _) = listener.accept()?;
        let ends = (station.try_clone()?, server.try_clone()?);
        if let Some(rewriter) = hook {
            let flows = rewriter.flows();
            let [(key, flow)] = flows.as_slice() else { anyhow::bail!("{} flows, of one", flows.len()) };
            ensure!(rewriter.set_target(key, flow.born(), Some(TARGET)), "the flow has gone");
        }
        let read = AtomicU64::new(0);
        let mbit_s = std::thread::scope(|scope| {
            scope.spawn(move || {
                let block = vec![7; 1 << 18];
                while server.write_all(&block).is_ok() {}
            });
            scope.spawn(|| {
                let mut block = vec![0; 1 << 18];
                while let Ok(len @ 1..) = station.read(&mut block) {
                    read.fetch_add(len as u64, Ordering::Relaxed);
                }
            });
            pass(RAMP, hook);
            let (began, before) = (Instant::now(), read.load(Ordering::Relaxed));
            pass(MEASURED, hook);
            let (took, bytes) = (began.elapsed(), read.load(Ordering::Relaxed) - before);
            // Both threads end, whatever they wait for; an end that was shut before is no error.
            for end in [&ends.0, &ends.1] {
                let _ = end.shutdown(Shutdown::Both);
            }
            bytes as f64 * 8.0 / 1e6 / took.as_secs_f64()
        });
        // What is still on its way belongs to no measurement.
        std::thread::sleep(Duration::from_millis(100));
        ensure!(mbit_s > 0.0, "nothing came through");
        Ok(mbit_s)
    }
}

/// Lets time pass, and the rewriter know that somebody is there.
fn pass(span: Duration, hook: Option<&Rewriter>) {
    let end = Instant::now() + span;
    loop {
        if let Some(rewriter) = hook {
            let _ = rewriter.heartbeat(monotonic());
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
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
