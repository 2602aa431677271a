//! A bottleneck in namespaces that loses by turns, a driver that tells of it, and flows of kernel TCP through it.
//!
//! World: 20 Mbit/s behind 20 ms, with a queue of 8 packets (4.8 ms); four downloads of kernel TCP. Between pauses of 0.8 to 1.6 s
//! (fixed seed: what repeats itself would meet TCP's timeouts again and again) datagrams at 28 Mbit/s go the same way for 0.3 s, and TCP loses
//! every few segments then. The driver does not count drops, as drivers may: only headers show that something is lost.

use crate::support::delay::{DelayWire, Queue};
use crate::support::driver::{admitted, listening, tell};
use crate::support::netns::Netns;
use crate::support::tcp::{Bulk, Opener};
use lasthop_signals::{ChannelTime, HopReport, Node, StationReport};
use lasthop_units::{Bytes, Rate, Span, Time};
use lasthop_wire::driver::{Record, encode};
use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const RATE: f64 = 20e6;
const QUEUE: Queue = Queue { octets_a_second: RATE / 8.0, packets: 8 };
const ONE_WAY: Duration = Duration::from_millis(10);
/// Datagrams of a burst, and how often they come.
const DATAGRAM: usize = 1_400;
const DATAGRAM_EVERY: Duration = Duration::from_micros(400);
const BURST: Duration = Duration::from_millis(300);
const FLOWS: usize = 4;
/// The station's address, and its number in the driver's reports.
pub const STATION: &str = "10.1.0.2=1";

/// Threads that work until this is dropped.
#[derive(Default)]
struct Threads {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Threads {
    fn start(&mut self, mut turn: impl FnMut() + Send + 'static) {
        let stop = Arc::clone(&self.stop);
        let until = move || {
            while !stop.load(Ordering::Relaxed) {
                turn();
            }
        };
        self.threads.push(std::thread::spawn(until));
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// What the bottleneck has taken, and when it will have sent that.
struct Taken {
    free: Instant,
    packets: u64,
    octets: u64,
}

/// The namespaces, and all that is in them but the agent.
pub struct World {
    // In this order: what carries packets goes before the namespaces.
    _threads: Threads,
    _wires: [DelayWire; 2],
    station: Netns,
    /// Where the agent runs, on `wlan0`.
    pub ap: Netns,
    server: Netns,
}

impl World {
    /// Without flows; the driver listens at `driver`.
    pub fn new(driver: &Path) -> World {
        let (station, ap, server) = (Netns::new("sta"), Netns::new("ap"), Netns::new("srv"));
        let wire = DelayWire::new((&server, "srv0"), (&ap, "eth0"), ONE_WAY);
        let taken = Arc::new(Mutex::new(Taken { free: Instant::now(), packets: 0, octets: 0 }));
        let counts = Arc::clone(&taken);
        let fate = move |packet: &[u8], place: bool| {
            if place {
                let mut taken = counts.lock().expect("no panic");
                taken.free = taken.free.max(Instant::now()) + Duration::from_secs_f64(packet.len() as f64 * 8.0 / RATE);
                (taken.packets, taken.octets) = (taken.packets + 1, taken.octets + packet.len() as u64);
            }
            place
        };
        let quiet = Box::new(|_: usize, _: &mut Vec<u8>| {});
        let hop = DelayWire::fated(
            (&ap, "wlan0"),
            (&station, "sta0"),
            Duration::from_millis(1),
            Some(QUEUE),
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
        let mut threads = Threads::default();
        let (listener, began) = (listening(driver), Instant::now());
        let (mut readers, mut before) = (Vec::new(), StationReport::unseen(Node(1)));
        threads.start(move || {
            readers.extend(admitted(&listener));
            let record = record(&taken.lock().expect("no panic"), began, &mut before);
            tell(&mut readers, &record);
            std::thread::sleep(Duration::from_millis(4));
        });
        let nobody = station.within(|| UdpSocket::bind("10.1.0.2:9").expect("a free port"));
        let socket = server.within(|| UdpSocket::bind("10.2.0.2:0").expect("a free port"));
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        threads.start(move || {
            // It keeps the port, and reads nothing.
            let _ = &nobody;
            let (began, mut sent) = (Instant::now(), 0);
            while began.elapsed() < BURST {
                let due = (began.elapsed().as_nanos() / DATAGRAM_EVERY.as_nanos()) as usize;
                // What a busy machine kept from being sent in time is not sent.
                (sent.max(due.saturating_sub(20))..due)
                    .for_each(|_| drop(socket.send_to(&[7; DATAGRAM], "10.1.0.2:9")));
                sent = due;
                std::thread::sleep(Duration::from_millis(1));
            }
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            std::thread::sleep(Duration::from_millis(800 + (state >> 32) % 800));
        });
        World { _threads: threads, _wires: [wire, hop], station, ap, server }
    }

    /// Begins the downloads.
    pub fn flows(&self) -> Vec<Bulk> {
        let address = |octets: [u8; 4]| IpAddr::from(octets);
        let ends = ((&self.server, address([10, 2, 0, 2])), (&self.station, address([10, 1, 0, 2])));
        (0..FLOWS).map(|_| Bulk::start(ends.0, ends.1, Opener::Receiver)).collect()
    }
}

/// What a driver of that bottleneck tells now. Its counters never fall.
fn record(taken: &Taken, began: Instant, before: &mut StationReport) -> Vec<u8> {
    let waits = taken.free.saturating_duration_since(Instant::now()).as_secs_f64() * RATE / 8.0;
    let sent = taken.octets.saturating_sub(waits.ceil() as u64).max(before.tx_bytes.get());
    let packets = (waits / 1_500.0).ceil() as u64;
    let airtime = Span::from_secs_f64(sent as f64 * 8.0 / RATE);
    *before = StationReport {
        backlog_packets: packets as u32,
        backlog_bytes: Bytes::new(waits as u64),
        head_wait: None,
        tx_attempts: None,
        tx_retries: None,
        tx_failed: None,
        tx_packets: taken.packets.saturating_sub(packets).max(before.tx_packets),
        tx_bytes: Bytes::new(sent),
        tx_airtime: Some(airtime),
        rx_airtime: None,
        tx_ppdus: None,
        phy_rate: Rate::from_mbit(20),
        ..StationReport::unseen(Node(1))
    };
    let active = Span::from_nanos(began.elapsed().as_nanos() as u64);
    let channel = ChannelTime { active, busy: Some(airtime), tx: Some(airtime), ..ChannelTime::default() };
    let report = HopReport { channel, stations: vec![*before], ..HopReport::default() };
    encode(&Record { at: now(), report, addresses: [].into() }).expect("one station")
}

/// `CLOCK_MONOTONIC`, as the agent's.
pub fn now() -> Time {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).expect("always there");
    Time::from_nanos(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

/// What is seen of each flow while it runs.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    acked: u64,
    /// For how long nothing of it has been acknowledged, and the longest that this took.
    silent: Duration,
    pub longest_silence: Duration,
    /// The window that its sender sees, and the smallest that it saw.
    pub window: u32,
    pub least_window: u32,
    /// Windows are multiples of this.
    pub unit: u32,
}

/// Looks at flows until it is dropped.
pub struct Eye {
    seen: Arc<Mutex<Vec<Seen>>>,
    _threads: Threads,
}

impl Eye {
    pub fn on(flows: Vec<Bulk>) -> Eye {
        let first = Seen {
            acked: 0,
            silent: Duration::ZERO,
            longest_silence: Duration::ZERO,
            window: 0,
            least_window: u32::MAX,
            unit: 1,
        };
        let seen = Arc::new(Mutex::new(vec![first; flows.len()]));
        let (kept, mut threads, mut last) = (Arc::clone(&seen), Threads::default(), Instant::now());
        threads.start(move || {
            std::thread::sleep(Duration::from_millis(50));
            // Time in which this thread did not run says nothing of the flows: the whole machine may have stood still.
            let passed = std::mem::replace(&mut last, Instant::now()).elapsed().min(Duration::from_millis(100));
            for (seen, flow) in kept.lock().expect("no panic").iter_mut().zip(&flows) {
                let info = flow.info();
                seen.silent = if info.bytes_acked > seen.acked { Duration::ZERO } else { seen.silent + passed };
                seen.longest_silence = seen.longest_silence.max(seen.silent);
                (seen.acked, seen.window, seen.unit) = (info.bytes_acked, info.snd_wnd, info.snd_wnd_unit);
                seen.least_window = seen.least_window.min(info.snd_wnd);
            }
        });
        Eye { seen, _threads: threads }
    }

    pub fn flows(&self) -> Vec<Seen> {
        self.seen.lock().expect("no panic").clone()
    }
}
