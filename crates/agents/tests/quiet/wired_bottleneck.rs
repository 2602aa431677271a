//! The agent where no driver tells it anything: its interface's TBF is the bottleneck, and the qdisc's counters are all it has.
//!
//! World: four downloads of kernel CUBIC over 50 Mbit/s (TBF with a burst of 16 kB and a queue of 250 ms) behind a wire
//! of 20 ms. Needs root and TBF; says so loudly and passes where that is missing.
#![cfg(feature = "bpf")]
#![allow(clippy::disallowed_methods, reason = "real time is what is tested")]

use crate::support;
use crate::support::agent;

use agent::AskAtEnd;
use lasthop_agents::ap::status::State;
use lasthop_agents::ap::{self, Config};
use lasthop_agents::service::Stop;
use lasthop_agents::service::status::{self, Status};
use lasthop_laws::oal::{AccessPoint, Params};
use std::net::IpAddr;
use std::process::Command;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use support::delay::DelayWire;
use support::netns::{Row, available};
use support::others::Others;
use support::tcp::{Bulk, Opener};

const ONE_WAY: Duration = Duration::from_millis(10);
/// The router's interface towards the station.
const BOTTLENECK: &str = "p1";
const TBF: &str = "rate 50mbit burst 16kb limit 1562500";
/// Octets a millisecond of the bottleneck.
const OCTETS_A_MS: f64 = 6250.0;
/// How long flows begin, and how long they are looked at.
const BEGINS: Duration = Duration::from_secs(3);
const LASTS: Duration = Duration::from_secs(8);
const FLOWS: usize = 4;

/// What a run shows.
#[derive(Debug)]
struct Seen {
    mbit_s: f64,
    /// Of the queue, in milliseconds that it takes to drain.
    p95_ms: f64,
}

struct World {
    row: Row,
    _wire: DelayWire,
}

impl World {
    /// `None` if the kernel has no TBF.
    fn new() -> Option<World> {
        let (row, wire) = Row::joined(99, |server, router| DelayWire::new((server, "s0"), (router, "p0"), ONE_WAY));
        for (netns, device) in [(&row.server, "s0"), (&row.proxy, "p0"), (&row.proxy, "p1"), (&row.station, "t0")] {
            netns.ip(&format!("link set {device} txqueuelen 10000"));
        }
        row.station.ip("route add default via 10.99.2.1");
        row.server.ip("route add default via 10.99.1.2");
        row.proxy.within(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")).expect("our own namespace");
        let line = format!("-n {} qdisc add dev {BOTTLENECK} root tbf {TBF}", row.proxy.name());
        let shaped = Command::new("tc").args(line.split(' ')).status().is_ok_and(|status| status.success());
        shaped.then_some(World { row, _wire: wire })
    }

    /// Octets that wait in the TBF, as tc(8) shows them.
    fn waits(&self) -> f64 {
        let line = format!("-n {} -s -j qdisc show dev {BOTTLENECK} root", self.row.proxy.name());
        let output = Command::new("tc").args(line.split(' ')).output().expect("iproute2");
        let shown: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        shown[0]["backlog"].as_f64().expect("a number")
    }

    fn flows(&self) -> Vec<Bulk> {
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let ends = ((&self.row.server, address("10.99.1.1")), (&self.row.station, address("10.99.2.2")));
        (0..FLOWS).map(|_| Bulk::start(ends.0, ends.1, Opener::Receiver)).collect()
    }

    fn download(&self) -> Seen {
        let flows = self.flows();
        std::thread::sleep(BEGINS);
        let acked = || flows.iter().map(|flow| flow.info().bytes_acked).sum::<u64>();
        let (before, began) = (acked(), Instant::now());
        let mut waits = Vec::new();
        while began.elapsed() < LASTS {
            waits.push(self.waits());
            std::thread::sleep(Duration::from_millis(20));
        }
        let mbit_s = (acked() - before) as f64 * 8e-6 / began.elapsed().as_secs_f64();
        waits.sort_by(f64::total_cmp);
        Seen { mbit_s, p95_ms: waits[waits.len() * 95 / 100] / OCTETS_A_MS }
    }

    /// Starts the agent, and waits until it is attached.
    fn agent(&self, stop: &'static Stop, shadow: bool) -> JoinHandle<Result<ap::Summary, ap::Error>> {
        let file = std::fs::File::open(format!("/run/netns/{}", self.row.proxy.name())).expect("a namespace");
        let thread = std::thread::spawn(move || {
            nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET).expect("root");
            let config = Config { shadow, say: |line| println!("{line}"), ..Config::new(BOTTLENECK) };
            ap::run(&config, Box::new(AccessPoint::new(Params::default()).expect("in bounds")), stop)
        });
        let began = Instant::now();
        let index = || nix::net::if_::if_nametoindex(BOTTLENECK).expect("there") as i32;
        // Both ways: a connection that sent its SYN before stays unmanaged.
        while self.row.proxy.within(|| ap::attached(index())) < 2 {
            assert!(!thread.is_finished() && began.elapsed() < Duration::from_secs(30), "it does not attach");
            std::thread::sleep(Duration::from_millis(10));
        }
        thread
    }
}

#[test]
fn qdisc_counters_alone_keep_a_wired_bottleneck_short() {
    if !available("wired bottleneck") {
        return;
    }
    let Some(world) = World::new() else {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "SKIPPED: wired bottleneck: no tc with TBF here");
        return;
    };
    let others = Others::look();
    let plain = world.download();
    let stop: &'static Stop = Box::leak(Box::new(Stop::new()));
    let (thread, ask) = (world.agent(stop, false), AskAtEnd(stop));
    let managed = world.download();
    drop(ask);
    let summary = thread.join().expect("no panic").expect("nothing is taken from it");
    println!("{plain:?} {managed:?} {:?}", summary.tally);
    assert!(summary.tally.flows >= FLOWS as u64 && summary.tally.strangers == 0, "{:?}", summary.tally);
    assert!(summary.counters.rewritten > 0, "{:?}", summary.counters);
    if others.were_quiet("throughput and queue") {
        assert!(managed.mbit_s >= 0.95 * plain.mbit_s, "{plain:?} {managed:?}");
        assert!(managed.p95_ms <= plain.p95_ms / 3.0, "{plain:?} {managed:?}");
    }
}

#[test]
fn shadow_mode_logs_decisions_and_changes_nothing() {
    if !available("shadow mode") {
        return;
    }
    let Some(world) = World::new() else { return };
    let ask = || -> Option<Status<State>> {
        let answers = world.row.proxy.within(|| status::ask(Some(BOTTLENECK))).expect("it may be asked");
        answers.into_iter().next().map(|answer| serde_json::from_value(answer.into()).expect("an agent's status"))
    };
    assert_eq!(ask(), None, "no agent runs");
    let stop: &'static Stop = Box::leak(Box::new(Stop::new()));
    let (thread, asks) = (world.agent(stop, true), AskAtEnd(stop));
    let flows = world.flows();
    let began = Instant::now();
    let status = loop {
        let status = ask().expect("it runs");
        if status.done["orders"].as_u64() > Some(0) && status.state.flows.tight > 0 {
            break status;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{status:?}");
    };
    let state = &status.state;
    assert!(state.shadow && state.law == "oal" && status.pid == std::process::id(), "{status:?}");
    assert_eq!((state.stations.len(), state.stations[0].flows), (1, FLOWS), "{status:?}");
    drop(flows);
    drop(asks);
    let summary = thread.join().expect("no panic").expect("nothing is taken from it");
    assert!(summary.shadow && summary.tally.orders > 0, "{:?}", summary.tally);
    assert_eq!(summary.counters.rewritten, 0, "{:?}", summary.counters);
    assert_eq!(ask(), None, "it has gone");
}
