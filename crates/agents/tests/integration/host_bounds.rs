//! The windows of a host's uploads, within bounds: kernel TCP between network namespaces.
#![cfg(feature = "bpf")]
#![allow(clippy::disallowed_methods, reason = "real time is what is tested")]

use crate::support;

use lasthop_agents::host::{Config, Destination, Guard, Host, Summary, Way};
use lasthop_agents::tunnel::keys::pair;
use lasthop_laws::{Bounds, Choice, Place};
use lasthop_signals::{MacAddress, Node, Notice};
use lasthop_units::{Rate, Time};
use lasthop_wire::notice::signed;
use lasthop_wire::tcp_info::{CaState, TcpInfo};
use std::net::UdpSocket;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use support::cgroup;
use support::delay::DelayWire;
use support::netns::{Netns, available};
use support::upload::Upload;

/// A station and a server, 20 ms apart.
struct Pair {
    station: Netns,
    server: Netns,
    _wire: DelayWire,
}

impl Pair {
    fn new(net: u8) -> Pair {
        let (station, server) = (Netns::new("sta"), Netns::new("srv"));
        let wire = DelayWire::new((&station, "t0"), (&server, "s0"), Duration::from_millis(10));
        for (netns, device, end) in [(&station, "t0", 2), (&server, "s0", 1)] {
            netns.ip(&format!("addr add 10.{net}.1.{end}/24 dev {device}"));
            netns.ip(&format!("link set {device} up"));
        }
        Pair { station, server, _wire: wire }
    }

    fn upload(&self, net: u8) -> Upload {
        Upload::start(&self.station, &self.server, &format!("10.{net}.1.1:0"), "cubic")
    }

    fn guard(&self, cgroup: &Path, way: Way) -> Guard {
        self.station.within(|| Guard::begin(cgroup, Some(way), &|_| {})).expect("a kernel that can")
    }
}

fn bounds(lower: u32, upper: u32) -> Option<Bounds<u32>> {
    Some(Bounds { lower, upper })
}

const FOREVER: Time = Time::from_nanos(u64::MAX / 2);

fn open(states: &[TcpInfo]) -> impl Iterator<Item = &TcpInfo> {
    states.iter().filter(|info| info.ca_state == CaState::Open)
}

#[test]
fn an_upload_keeps_its_bounds_until_they_expire() {
    let Some(cgroup) = available("bounds on windows").then(|| cgroup::own("bounds on windows")).flatten() else {
        return;
    };
    let pair = Pair::new(121);
    let mut guard = pair.guard(&cgroup, Way::Within);
    let upload = pair.upload(121);
    assert!(upload.congestion().starts_with("lasthop"), "{}", upload.congestion());
    assert_eq!(guard.adopted(), 1);
    guard.hold_until(FOREVER);

    guard.set(upload.cookie(), bounds(20, 40)).expect("a map");
    upload.until("at its upper bound", |info| info.cwnd == 40 && info.unacked > 20);
    let states = upload.states(Duration::from_millis(500));
    assert!(open(&states).count() > 10);
    for info in open(&states) {
        assert!((20..=40).contains(&info.cwnd) && info.ssthresh.is_some_and(|ssthresh| ssthresh <= 40), "{info:?}");
    }

    guard.set(upload.cookie(), bounds(90, 100)).expect("a map");
    upload.until("raised to its lower bound", |info| (90..=100).contains(&info.cwnd));
    guard.set(upload.cookie(), bounds(5, 10)).expect("a map");
    upload.until("lowered at once", |info| info.cwnd == 10 && info.ssthresh == Some(10));

    // Nobody says so any more, and the bounds are still in the map.
    guard.hold_until(Time::ZERO);
    upload.until("let go", |info| info.cwnd > 30);
    guard.hold_until(FOREVER);
    upload.until("held again", |info| info.cwnd == 10);
    drop(guard);
    let acked = upload.info().bytes_acked.map_or(0, |octets| octets.get());
    upload.until("as long as there is an agent, or without one", |info| {
        info.bytes_acked.is_some_and(|octets| octets.get() > acked + 1_000_000)
    });
    assert_eq!(pair.upload(121).congestion(), "cubic", "nobody adopts any more");
}

#[test]
fn a_clamp_bounds_windows_and_opens_in_steps() {
    let Some(cgroup) = available("clamps").then(|| cgroup::own("clamps")).flatten() else { return };
    let pair = Pair::new(122);
    let mut guard = pair.guard(&cgroup, Way::Clamp);
    let upload = pair.upload(122);
    assert_eq!((upload.congestion().as_str(), guard.adopted()), ("cubic", 1));
    guard.hold_until(FOREVER);
    guard.set(upload.cookie(), bounds(1, 30)).expect("a map");
    upload.until("clamped", |info| info.cwnd <= 30);
    assert!(upload.states(Duration::from_millis(300)).iter().all(|info| info.cwnd <= 30));
    guard.set(upload.cookie(), None).expect("a map");
    upload.until("open again", |info| info.cwnd > 60);
}

#[test]
fn agents_of_several_namespaces_do_not_meddle_with_each_other() {
    let Some(cgroup) = available("several agents").then(|| cgroup::own("several agents")).flatten() else { return };
    let pairs = [Pair::new(123), Pair::new(124)];
    let mut guards = [pairs[0].guard(&cgroup, Way::Within), pairs[1].guard(&cgroup, Way::Within)];
    let uploads = [pairs[0].upload(123), pairs[1].upload(124)];
    for (place, (guard, upload)) in guards.iter_mut().zip(&uploads).enumerate() {
        assert_eq!(guard.adopted(), 1);
        assert!(guard.holds(&upload.congestion()));
        guard.hold_until(FOREVER);
        guard.set(upload.cookie(), bounds(2, 20 + 20 * place as u32)).expect("a map");
    }
    for (upload, upper) in uploads.iter().zip([20, 40]) {
        upload.until("its own bound", |info| info.cwnd == upper);
    }
    let [first, second] = guards;
    drop(first);
    uploads[1].until("the other's is still there", |info| info.cwnd == 40);
    drop(second);
}

/// A running agent in a namespace; asked to stop when dropped.
struct Agent {
    stop: &'static lasthop_agents::service::Stop,
    thread: Option<JoinHandle<Summary>>,
}

impl Agent {
    fn start(at: &Netns, config: Config) -> Agent {
        let stop: &'static lasthop_agents::service::Stop = Box::leak(Box::default());
        let name = at.name().to_owned();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            Netns::of_another(name).enter();
            let choice = Choice::named(Place::Terminal, "terminal").expect("a law");
            let host = Host::open(&config, &choice).expect("an agent");
            ready.send(()).expect("somebody waits");
            host.run(stop).expect("the kernel takes nothing away")
        });
        is_ready.recv().expect("it is ready");
        Agent { stop, thread: Some(thread) }
    }

    fn end(mut self) -> Summary {
        self.stop.ask();
        self.thread.take().expect("not ended yet").join().expect("no panic")
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.stop.ask();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The last look in an agent's log.
fn last(log: &Path) -> Option<serde_json::Value> {
    let text = std::fs::read_to_string(log).ok()?;
    text.lines().rev().find_map(|line| serde_json::from_str(line).ok())
}

fn until(what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

const BSSID: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);

#[test]
fn terminals_count_each_other_and_nobody_else() {
    let Some(cgroup) = available("neighbours").then(|| cgroup::own("neighbours")).flatten() else { return };
    // Two stations and a stranger on one link, and a server behind each station.
    let link = [Netns::new("one"), Netns::new("two"), Netns::new("stranger"), Netns::new("bridge")];
    link[3].ip("link add br0 type bridge");
    link[3].ip("link set br0 up");
    for (place, netns) in link[..3].iter().enumerate() {
        netns.veth("w0", &link[3], &format!("b{place}"));
        link[3].ip(&format!("link set b{place} master br0 up"));
        netns.ip(&format!("addr add 10.125.1.{}/24 dev w0", place + 1));
        netns.ip("link set w0 up");
    }
    let folder = tempfile::tempdir().expect("a directory");
    let (all, key) = (folder.path().join("all"), folder.path().join("key"));
    pair(&all, Node(0), &key, false).expect("a key");
    let config = |name: &str, destination| Config {
        key: Some(key.clone()),
        bssid: Some(BSSID),
        destination,
        log: Some(folder.path().join(name)),
        // The test's own threads go on with what they have.
        drop_privileges: false,
        ..Config::new("w0", &cgroup)
    };
    let one = Agent::start(&link[0], config("one", Destination::Broadcast));
    let two = Agent::start(&link[1], config("two", Destination::Multicast6));
    let uploads = [
        Upload::start(&link[0], &link[2], "10.125.1.3:0", "cubic"),
        Upload::start(&link[1], &link[2], "10.125.1.3:0", "cubic"),
    ];
    let terminals = |name: &str| last(&folder.path().join(name)).and_then(|look| look["terminals"].as_u64());
    until("they hear each other", || terminals("one") == Some(2) && terminals("two") == Some(2));

    // Whoever does not know the key may say what he likes.
    let socket = link[2].within(|| {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
        socket.set_broadcast(true).expect("a socket");
        socket.set_ttl(255).expect("a socket");
        socket
    });
    let forged = |sequence: u32| {
        let notice =
            Notice { bssid: BSSID, terminal: u64::from(sequence), sequence, flows: 9, rate: Rate::ZERO, drains: true };
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        signed::encode(&notice, now.as_millis() as u64, |_| [0; signed::TAG_LEN])
    };
    let refused = |name: &str| last(&folder.path().join(name)).map_or(0, |look| look["refused"].as_u64().unwrap_or(0));
    let mut sequence = 0;
    until("forged notices are refused", || {
        for _ in 0..10 {
            sequence += 1;
            let octets = forged(sequence);
            let _ = link[2].within(|| socket.send_to(&octets, "10.125.1.255:19528"));
            let _ = link[2].within(|| socket.send_to(&octets, "10.125.1.1:19528"));
        }
        refused("one") > 50
    });
    assert!(terminals("one").is_some_and(|n| n <= 2), "{:?}", terminals("one"));
    until("they hear each other still", || terminals("one") == Some(2) && terminals("two") == Some(2));
    drop(uploads);
    let (one, two) = (one.end(), two.end());
    assert_eq!((one.terminals, two.terminals), (2, 2), "{one:?} {two:?}");
    assert!(one.refused.forged > 50 && one.heard > 0 && one.bounded == 1, "{one:?}");
    assert!(one.log_error.is_none(), "{one:?}");
}
