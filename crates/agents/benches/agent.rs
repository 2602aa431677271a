//! What the access point's agent takes, live: thirty stations, 250 reports of the driver a second, evidence on, 500
//! Mbit/s of kernel TCP through namespaces. The processor time of its thread, the kernel's in its name included; and
//! the time from a driver's record to the first acknowledgement that bears the window which follows from it.
//!
//! Prints `name value unit` lines; without root, one line on standard error.
#![allow(clippy::disallowed_methods, reason = "real time is what is measured")]

#[path = "agent/cell.rs"]
mod cell;
#[path = "../tests/support/mod.rs"]
mod support;
#[path = "agent/tap.rs"]
mod tap;

use cell::{Cell, STATIONS};
use lasthop_agents::ap::{self, Config, Summary};
use lasthop_agents::learn::{self, Desk};
use lasthop_agents::service::Stop;
use lasthop_laws::HopLaw;
use lasthop_laws::oal::learned::Learned;
use lasthop_laws::oal::predictor::BacklogThreshold;
use lasthop_laws::oal::{AccessPoint, Params, Prediction};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Rate, stats::Samples};
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use support::netns::{Netns, available};
use support::upload::Upload;
use tap::Tap;

/// Of all flows together: one a station.
const RATE: Rate = Rate::from_mbit(500);
/// How long flows begin, and how long the agent is watched.
const BEGINS: Duration = Duration::from_secs(4);
const WATCHED: Duration = Duration::from_secs(12);
/// Records after which windows are to be tight, how long they are, and how long the hop is well before the next.
const REPEATS: u32 = 200;
const TIGHT: Duration = Duration::from_millis(40);
const WELL: Duration = Duration::from_millis(83);

fn main() {
    // `cargo test --benches` asks for a quick look only.
    let quick = !std::env::args().any(|argument| argument == "--bench");
    if !available("agent benchmarks") {
        return;
    }
    let (watched, repeats) = if quick { (Duration::from_secs(1), 5) } else { (WATCHED, REPEATS) };
    let folder = tempfile::tempdir().expect("a directory");
    let path = Cable::new();
    let cell = Cell::listen(&folder.path().join("driver"), RATE);

    let law = |predictor| Params { predictor, explore: 0.0, ..Params::default() };
    let plain = Box::new(AccessPoint::new(law(Prediction::Threshold)).expect("in bounds"));
    let agent = Agent::start(&path, folder.path(), plain);
    let flows = path.flows();
    println!("agent.cpu_without_evidence {:.2} percent", agent.share(&flows, watched));
    drop(flows);
    agent.end();

    // The learner is a process of its own; here it is a thread of its own, which is not counted.
    let socket = folder.path().join("learn");
    let params = law(Prediction::Learned);
    let desk = Desk::open(&socket, None, |line| eprintln!("{line}")).expect("a free path");
    let threshold = BacklogThreshold::new(params.trigger);
    let learned = Learned::trained_elsewhere(params.learning(), threshold, Box::new(desk));
    let law = Box::new(AccessPoint::with_predictor(params, Box::new(learned)).expect("in bounds"));
    let stop: &'static Stop = Box::leak(Box::default());
    let config = learn::Config { socket, out: None, depth: 16, say: |_| {} };
    let learner = std::thread::spawn(move || learn::run(&config, stop).expect("nothing is kept"));
    let agent = Agent::start(&path, folder.path(), law);
    let flows = path.flows();
    println!("agent.cpu {:.2} percent", agent.share(&flows, watched));
    let (mut first, mut each) = reaction(&path, &cell, repeats);
    for (name, samples) in [("first", &mut first), ("each", &mut each)] {
        for (quantile, of) in [("p50", 0.5), ("p99", 0.99)] {
            match samples.quantile(of) {
                Some(us) => println!("agent.sample_to_{name}_ack_us_{quantile} {us:.0} us"),
                None => eprintln!("agent.sample_to_{name}_ack_us_{quantile}: no acknowledgement"),
            }
        }
    }
    drop(flows);
    agent.end();
    stop.ask();
    let taught = learner.join().expect("no panic");
    eprintln!("agent: the learner had {} lessons and sent {} trees", taught.lessons, taught.trees);
}

/// For each record after which windows are tight: microseconds until the first acknowledgement of any flow that bears a lowered window, and until
/// that of each flow.
fn reaction(path: &Cable, cell: &Cell, repeats: u32) -> (Samples, Samples) {
    let (mut first, mut each) = (Samples::default(), Samples::default());
    let tap = path.server.within(|| Tap::on("srv0"));
    let mut silent = 0;
    for repeat in 0..repeats {
        // Not always at one moment of the driver's interval.
        std::thread::sleep(WELL + Duration::from_micros(u64::from(repeat % 8) * 500));
        let told = cell.fill();
        std::thread::sleep(TIGHT);
        cell.drain();
        let delays = tap.lowered_after(told);
        each.extend(&delays);
        match delays.clone().quantile(0.0) {
            Some(least) => first.add(least),
            None => silent += 1,
        }
    }
    eprintln!(
        "agent: {} records, {} flows' first lowered windows; after {silent} there was none",
        repeats,
        each.count()
    );
    (first, each)
}

/// Server, access point, and a machine that has the addresses of all stations, on veth pairs.
struct Cable {
    station: Netns,
    ap: Netns,
    server: Netns,
}

impl Cable {
    fn new() -> Cable {
        let (station, ap, server) = (Netns::new("sta"), Netns::new("ap"), Netns::new("srv"));
        station.veth("sta0", &ap, "wlan0");
        server.veth("srv0", &ap, "eth0");
        for (netns, device, address) in
            [(&ap, "wlan0", "10.1.0.1/24"), (&ap, "eth0", "10.2.0.1/24"), (&server, "srv0", "10.2.0.2/24")]
        {
            netns.ip(&format!("addr add {address} dev {device}"));
        }
        (1..=STATIONS).for_each(|number| station.ip(&format!("addr add {}/24 dev sta0", address(number))));
        for (netns, device) in [(&station, "sta0"), (&ap, "wlan0"), (&ap, "eth0"), (&server, "srv0")] {
            netns.ip(&format!("link set {device} up"));
        }
        station.ip("route add default via 10.1.0.1");
        server.ip("route add default via 10.2.0.1");
        ap.within(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")).expect("our own namespace");
        // The stations' own windows are so large that the agent's are those that senders see.
        let room = "4096 16777216 16777216";
        station.within(|| std::fs::write("/proc/sys/net/ipv4/tcp_rmem", room)).expect("our own namespace");
        Cable { station, ap, server }
    }

    /// One download a station.
    fn flows(&self) -> Vec<Upload> {
        let flow = |number| {
            let flow = Upload::start(&self.server, &self.station, &format!("{}:0", address(number)), "cubic");
            flow.no_faster_than(RATE.scale(1.0 / f64::from(STATIONS)));
            flow
        };
        let flows = (1..=STATIONS).map(flow).collect();
        std::thread::sleep(BEGINS);
        flows
    }
}

fn address(station: u16) -> IpAddr {
    IpAddr::from([10, 1, 0, 100 + station as u8])
}

/// An agent that runs on a thread of its own.
struct Agent {
    stop: &'static Stop,
    thread: JoinHandle<Summary>,
    id: i32,
}

impl Agent {
    fn start(path: &Cable, folder: &Path, law: Box<dyn HopLaw>) -> Agent {
        let stop: &'static Stop = Box::leak(Box::default());
        let config = Config {
            driver: Some(folder.join("driver")),
            stations: (1..=STATIONS).map(|number| (address(number), Node(number))).collect(),
            ..Config::new("wlan0")
        };
        static ID: AtomicI32 = AtomicI32::new(0);
        ID.store(0, Ordering::Release);
        let name = path.ap.name().to_owned();
        let thread = std::thread::spawn(move || {
            Netns::of_another(name).enter();
            ID.store(nix::unistd::gettid().as_raw(), Ordering::Release);
            ap::run(&config, law, stop).expect("nothing is taken from it")
        });
        let (index, began) = (|| nix::net::if_::if_nametoindex("wlan0").expect("there") as i32, Instant::now());
        while path.ap.within(|| ap::attached(index())) < 2 {
            assert!(!thread.is_finished() && began.elapsed() < Duration::from_secs(30), "it does not attach");
            std::thread::sleep(Duration::from_millis(10));
        }
        Agent { stop, thread, id: ID.load(Ordering::Acquire) }
    }

    /// Processor time of its thread.
    fn busy(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{}/schedstat", self.id)).expect("it runs");
        Duration::from_nanos(stat.split(' ').next().and_then(|field| field.parse().ok()).expect("a number"))
    }

    /// Its share of a processor, in percent, over `span`.
    fn share(&self, flows: &[Upload], span: Duration) -> f64 {
        let carried = || flows.iter().filter_map(|flow| flow.info().bytes_acked).map(Bytes::get).sum::<u64>();
        let (before, busy, began) = (carried(), self.busy(), Instant::now());
        std::thread::sleep(span);
        let (took, busy) = (began.elapsed().as_secs_f64(), self.busy() - busy);
        eprintln!("agent: {:.0} Mbit/s passed", (carried() - before) as f64 * 8e-6 / took);
        100.0 * busy.as_secs_f64() / took
    }

    fn end(self) {
        self.stop.ask();
        let summary = self.thread.join().expect("no panic");
        let (tally, counters) = (summary.tally, summary.counters);
        eprintln!(
            "agent: {} flows, {} intervals, {} late and {} refused records, {} orders; {} windows lowered, {} segments took the long way, {} events missed; \
             longest interval {}",
            tally.flows,
            tally.intervals,
            tally.stale_reports,
            tally.refused_reports,
            tally.orders,
            counters.rewritten,
            counters.apart,
            tally.events_missed,
            tally.longest_work
        );
    }
}
