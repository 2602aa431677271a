//! What the agent concludes from the headers of real TCP, beside what a bottleneck behind it has really lost.
//!
//! Which segment was lost is known by its number, so that nothing here depends on when a busy machine looks. Needs root; says so loudly
//! and passes where that is missing.
#![cfg(feature = "bpf")]
#![allow(clippy::disallowed_methods, reason = "real time is what is tested")]

use crate::support;
use crate::support::agent;

use agent::AskAtEnd;
use lasthop_agents::ap::{self, Config};
use lasthop_agents::service::Stop;
use lasthop_laws::oal::label::{Collector, Timing};
use lasthop_laws::oal::predictor::LossClass;
use lasthop_laws::{Decision, HopLaw};
use lasthop_signals::{FlowId, Node, Signal, Way};
use lasthop_units::{Span, Time};
use lasthop_wire::{Link, TcpPacket};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::delay::{DelayWire, Queue};
use support::driver::IdleDriver;
use support::netns::{Netns, available};
use support::tcp::{Bulk, Opener};

const ONE_WAY: Duration = Duration::from_millis(10);
const STATION: [u8; 6] = [2, 0x4c, 0x48, 0, 0, 9];

/// A law that only listens.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Vec<(Time, Signal)>>>);

impl HopLaw for Listener {
    fn sense(&mut self, now: Time, signal: &Signal) {
        self.0.lock().expect("one thread").push((now, signal.clone()));
    }

    fn wants_segments(&self) -> bool {
        true
    }

    fn decide(&self, _: Time, _: &mut dyn FnMut(FlowId, Decision)) {}

    fn name(&self) -> &'static str {
        "listener"
    }
}

/// What a bottleneck has done to a first copy.
#[derive(Clone, Copy, Debug)]
struct Copy {
    /// Its first octet, and the one behind it.
    seq: u32,
    end: u32,
    lost: bool,
    came: Instant,
    /// How long after it the first repeat of its first octet came; `None` before that.
    repaired: Option<Duration>,
}

impl Copy {
    /// True if what the agent hears within so long tells what became of it. After an outage, whether a timeout's repeat gets through
    /// before that is a matter of some milliseconds of the sender's timer.
    fn can_be_told(&self, within: Span) -> bool {
        !self.lost || self.repaired.is_some_and(|after| after <= within.into())
    }
}

/// First copies by the station's port.
type Copies = BTreeMap<u16, VecDeque<Copy>>;

/// Seconds, octets a second, packets of queue, flows; and for how long of every two seconds nothing goes on.
struct World {
    name: &'static str,
    lasts: Duration,
    queue: Queue,
    flows: usize,
    outage: Duration,
}

/// What is said beside what is.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    are: u64,
    said: u64,
    right: u64,
}

impl Score {
    fn add(&mut self, said: bool, is: bool) {
        self.are += u64::from(is);
        self.said += u64::from(said);
        self.right += u64::from(is && said);
    }

    fn precision(&self) -> f64 {
        self.right as f64 / self.said.max(1) as f64
    }

    fn recall(&self) -> f64 {
        self.right as f64 / self.are.max(1) as f64
    }
}

struct Run {
    signals: Vec<(Time, Signal)>,
    copies: Copies,
    /// The station's port of each flow.
    ports: BTreeMap<FlowId, u16>,
    /// Segments that were sent again, and of these those of fast retransmissions.
    again: u64,
    fast: u64,
    /// Why this run says nothing of the agent: the machine was too busy for it.
    doubt: Option<String>,
}

/// A counter of a namespace's TCP.
fn counter(netns: &Netns, file: &str, group: &str, name: &str) -> u64 {
    let text = netns.within(|| std::fs::read_to_string(format!("/proc/thread-self/net/{file}"))).expect("procfs");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group)).map(str::split_whitespace);
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let value = names.zip(values).find(|(other, _)| *other == name).expect("this counter").1;
    value.parse().expect("a number")
}

/// Packets that interfaces of a namespace could not hand to their reader.
fn dropped(netns: &Netns) -> u64 {
    let text = netns.within(|| std::fs::read_to_string("/proc/thread-self/net/dev")).expect("procfs");
    let drops = |line: &str| line.split_whitespace().nth(12).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    text.lines().filter(|line| line.contains(':') && !line.contains("lo:")).map(drops).sum()
}

fn run(world: &World) -> Run {
    // Each run has its own, for as long as the process lives.
    let stop: &'static Stop = Box::leak(Box::default());
    let (station, ap, server) = (Netns::new("sta"), Netns::new("ap"), Netns::new("srv"));
    let wire = DelayWire::new((&server, "srv0"), (&ap, "eth0"), ONE_WAY);
    let copies: Arc<Mutex<Copies>> = Arc::default();
    let (kept, began, outage) = (Arc::clone(&copies), Instant::now(), world.outage);
    let fate = move |packet: &[u8], place: bool| {
        let since = began.elapsed().as_millis() % 2_000;
        let goes = place && since >= outage.as_millis();
        let Ok(Some(found)) = TcpPacket::parse(packet, Link::Ip) else { return goes };
        let (seq, len) = (found.header.seq, found.header.payload_len);
        if len > 0 {
            let mut copies = kept.lock().expect("no panic");
            let flow = copies.entry(found.flow.destination_port).or_default();
            // The wire before it keeps the order and loses nothing: what is not beyond all that came is a repeat.
            if flow.back().is_none_or(|last| seq.wrapping_sub(last.end) as i32 >= 0) {
                let (end, came) = (seq.wrapping_add(len), Instant::now());
                flow.push_back(Copy { seq, end, lost: !goes, came, repaired: None });
            } else {
                let first = flow.partition_point(|copy| (copy.seq.wrapping_sub(seq) as i32) < 0);
                let again = |copy: &&mut Copy| (copy.seq.wrapping_sub(seq.wrapping_add(len)) as i32) < 0;
                for copy in flow.iter_mut().skip(first).take_while(again) {
                    copy.repaired.get_or_insert_with(|| copy.came.elapsed());
                }
            }
        }
        goes
    };
    let quiet = Box::new(|_: usize, _: &mut Vec<u8>| {});
    let hop = DelayWire::fated(
        (&ap, "wlan0"),
        (&station, "sta0"),
        Duration::from_millis(1),
        Some(world.queue),
        (quiet, Box::new(fate)),
    );
    for (netns, device, address) in [
        (&station, "sta0", "10.1.0.2/24"),
        (&ap, "wlan0", "10.1.0.1/24"),
        (&ap, "eth0", "10.2.0.1/24"),
        (&server, "srv0", "10.2.0.2/24"),
    ] {
        netns.ip(&format!("addr add {address} dev {device}"));
        netns.ip(&format!("link set {device} txqueuelen 10000 up"));
    }
    station.ip("route add default via 10.1.0.1");
    server.ip("route add default via 10.2.0.1");
    ap.within(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")).expect("our own namespace");
    let dir = tempfile::tempdir().expect("a directory");
    let _driver = IdleDriver::listen(&dir.path().join("driver"), STATION);
    let log = dir.path().join("log");
    let config = Config {
        stations: vec![(IpAddr::from([10, 1, 0, 2]), Node(1))],
        log: Some(log.clone()),
        driver: Some(dir.path().join("driver")),
        ..Config::new("wlan0")
    };
    let listener = Listener::default();
    let law = Box::new(listener.clone());
    let (address, index) =
        (|octets: [u8; 4]| IpAddr::from(octets), || nix::net::if_::if_nametoindex("wlan0").expect("there"));
    let drops = || dropped(&ap) + dropped(&server);
    // Devices drop what they are to send before anybody reads them.
    let before = drops();
    let summary = std::thread::scope(|scope| {
        let agent = scope.spawn(|| ap.within(|| ap::run(&config, law, stop).expect("it runs")));
        let _ask = AskAtEnd(stop);
        let patience = Instant::now() + Duration::from_secs(30);
        while ap.within(|| ap::attached(index() as i32)) < 2 {
            assert!(Instant::now() < patience, "no agent");
            std::thread::sleep(Duration::from_millis(20));
        }
        let transfer =
            |_| Bulk::start((&server, address([10, 2, 0, 2])), (&station, address([10, 1, 0, 2])), Opener::Receiver);
        let transfers: Vec<Bulk> = (0..world.flows).map(transfer).collect();
        std::thread::sleep(world.lasts);
        // What is lost last is not repaired before the end; it is not judged.
        stop.ask();
        let summary = agent.join().expect("no panic");
        drop(transfers);
        summary
    });
    let fast = counter(&server, "netstat", "TcpExt:", "TCPFastRetrans");
    let again = counter(&server, "snmp", "Tcp:", "RetransSegs");
    let drops = drops() - before;
    drop((hop, wire));
    let missed = summary.tally.events_missed;
    let doubt = [
        (drops > 0).then(|| format!("interfaces dropped {drops} packets")),
        (missed > 0).then(|| format!("{missed} events were missed")),
        (summary.tally.driver_losses > 0).then(|| "the driver was not heard".to_owned()),
    ];
    let opened = std::fs::read_to_string(&log).expect("a log");
    let port = |line: &str| -> Option<(FlowId, u16)> {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        let opened = line.get("opened")?;
        let port = opened["station_address"].as_str()?.rsplit(':').next()?.parse().ok()?;
        Some((FlowId(opened["flow"].as_u64()? as u32), port))
    };
    let signals = std::mem::take(&mut *listener.0.lock().expect("no panic"));
    let copies = std::mem::take(&mut *copies.lock().expect("no panic"));
    let ports = opened.lines().filter_map(port).collect();
    Run { signals, copies, ports, again, fast, doubt: doubt.into_iter().flatten().next() }
}

/// A first copy as it was told to the law.
struct Told {
    at: Time,
    flow: FlowId,
    copy: Copy,
}

/// Lost segments, of which the repair came within the time that is waited for it, and the items of each class.
fn judge(run: &Run, timing: Timing) -> (Score, [Score; 4]) {
    let (mut collector, mut copies) = (Collector::new(timing), run.copies.clone());
    let (mut segments, mut items) = (Score::default(), Vec::new());
    let (mut told, mut next): (Vec<Told>, usize) = (Vec::new(), 0);
    for (now, signal) in &run.signals {
        collector.sense(*now, signal);
        if let Signal::Segment(segment) = signal
            && segment.way == Way::Down
            && let Some(copies) = run.ports.get(&segment.flow).and_then(|port| copies.get_mut(port))
        {
            let end = segment.seq.wrapping_add(segment.len);
            while copies.front().is_some_and(|copy| end.wrapping_sub(copy.end) as i32 >= 0) {
                let copy = copies.pop_front().expect("just seen");
                told.push(Told { at: *now, flow: segment.flow, copy });
            }
        }
        if !matches!(signal, Signal::Hop(_)) {
            continue;
        }
        // Before they are forgotten, and after an interval that may still have lasted then.
        while let Some(Told { at, flow, copy }) = told.get(next) {
            if *at + timing.repair + Span::from_millis(50) > *now {
                break;
            }
            if let Some(said) = collector.evidence().is_lost(*flow, copy.seq)
                && copy.can_be_told(timing.repair)
            {
                segments.add(said, copy.lost);
            }
            next += 1;
        }
        collector.take(|item| items.push(item));
    }
    let mut classes = [Score::default(); 4];
    for item in &items {
        let from = told.partition_point(|copy| copy.at <= item.at);
        let entered = &told[from..told.partition_point(|copy| copy.at <= item.until)];
        let lost = entered.iter().filter(|told| told.copy.lost).count();
        let is = LossClass::of(lost as f64 / entered.len().max(1) as f64);
        LossClass::ALL.iter().for_each(|class| classes[*class as usize].add(item.class() == *class, is == *class));
    }
    (segments, classes)
}

/// Runs a world until the machine was not too busy for it, three times at most.
fn judged(world: &World) -> Option<(Run, Score, [Score; 4])> {
    // One world at a time.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for _ in 0..3 {
        let run = run(world);
        let (segments, classes) = judge(&run, Timing::default());
        let (precision, recall) = (segments.precision(), segments.recall());
        eprintln!(
            "{}: {} lost, {} said, precision {precision:.4}, recall {recall:.4}; {} sent again, {} of them fast; classes {classes:?}",
            world.name, segments.are, segments.said, run.again, run.fast
        );
        let Some(doubt) = &run.doubt else { return Some((run, segments, classes)) };
        eprintln!("{}: again, since {doubt}", world.name);
    }
    None
}

fn mbit(rate: f64, packets: usize) -> Queue {
    Queue { octets_a_second: rate * 1e6 / 8.0, packets }
}

#[test]
fn first_copies_that_a_real_queue_loses_are_found() {
    if !available("what the agent concludes from headers") {
        return;
    }
    let (lasts, outage) = (Duration::from_secs(20), Duration::ZERO);
    for world in [
        World { name: "10 Mbit/s", lasts, queue: mbit(10.0, 30), flows: 4, outage },
        World { name: "100 Mbit/s", lasts, queue: mbit(100.0, 100), flows: 8, outage },
    ] {
        let (_, segments, _) = judged(&world).expect("the machine is too busy");
        assert!(segments.are > 100, "{}: {} are lost", world.name, segments.are);
        assert!(segments.precision() >= 0.95 && segments.recall() >= 0.95, "{}: {segments:?}", world.name);
    }
}

#[test]
fn what_timeouts_repair_is_found_too() {
    if !available("what the agent concludes from headers") {
        return;
    }
    let (lasts, outage) = (Duration::from_secs(24), Duration::from_millis(600));
    let world = World { name: "outages", lasts, queue: mbit(10.0, 120), flows: 4, outage };
    let (run, segments, classes) = judged(&world).expect("the machine is too busy");
    assert!(2 * run.fast <= run.again, "timeouts repair half: {} of {} were fast", run.fast, run.again);
    assert!(segments.are > 500, "{} are lost and repaired in time", segments.are);
    assert!(segments.precision() >= 0.95 && segments.recall() >= 0.95, "{segments:?}");
    let bad = classes[LossClass::Bad as usize];
    assert!(bad.are > 30 && bad.recall() >= 0.9, "{bad:?}");
}
