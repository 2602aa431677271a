//! What a relay measures at the kernel's tracepoints: the averages against `HopDelay`, and packets over a TAP device
//! with a slow reader, and over a veth pair behind a token bucket. Needs root; says so where it is not. None of it has
//! run on radio hardware.
#![cfg(feature = "bpf")]
#![allow(clippy::disallowed_methods, reason = "real time is what is measured")]

use crate::support;

use lasthop_agents::relay::measure::Measure;
use lasthop_agents::service::clock;
use lasthop_laws::atp::HopDelay;
use lasthop_signals::NodeDelay;
use lasthop_units::{Span, Time};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use proptest::prelude::*;
use std::fs::File;
use std::io::Read;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::process::Command;
use std::time::{Duration, Instant};
use support::delay::device;
use support::netns::{Netns, available};

/// `CLOCK_MONOTONIC`, which the programs go by.
fn now() -> Time {
    clock::monotonic(clock::now())
}

fn index(name: &str) -> i32 {
    nix::net::if_::if_nametoindex(name).expect("there") as i32
}

#[test]
fn the_averages_are_those_of_the_law() {
    if !available("the relay's measurement") {
        return;
    }
    // Each has its own averages: a program is loaded once a case.
    let step = (0u64..3_000_000, 0u64..5_000_000, 1u64..70, prop::bool::weighted(0.05));
    let config = ProptestConfig { cases: 40, max_shrink_iters: 20, ..ProptestConfig::default() };
    proptest!(config, |(steps in prop::collection::vec(step, 1..60))| {
        let measure = Measure::load(&[1]).expect("a kernel that takes the programs");
        let (mut node, mut now) = (HopDelay::new(Span::ZERO), Time::from_nanos(10_000_000_000));
        for (gap, waited, segments, rests) in steps {
            now += Span::from_nanos(gap + if rests { 1_200_000_000 } else { 0 });
            let queued = now.saturating_sub(Span::from_nanos(waited));
            measure.complete(now, queued, segments, false).expect("a test run");
            let head = node.node().last.map_or(queued, |last| last.max(queued)).min(now);
            let each = now.since(head) / segments;
            for n in 0..segments.min(32) {
                node.on_done(head + each * (n + 1), queued, head + each * n);
            }
            node = HopDelay::of(NodeDelay { last: Some(now), waiting: 0, ..node.node() });
            let (found, wanted) = (measure.delay(0), node.node());
            prop_assert_eq!(found.last, wanted.last);
            // The law rounds to the nearest nanosecond, the program down.
            let close = |a: Span, b: Span| a.saturating_sub(b).max(b.saturating_sub(a)) <= Span::from_nanos(8);
            prop_assert!(close(found.queueing, wanted.queueing) && close(found.service, wanted.service), "{found:?} {wanted:?}");
        }
    });
}

#[test]
fn credit_lowers_what_a_shaper_takes_by_little() {
    if !available("the relay's measurement") {
        return;
    }
    let measure = Measure::load(&[1]).expect("a kernel that takes the programs");
    let at = |us: u64| Time::from_nanos(1_000_000_000) + Span::from_micros(us);
    // One that goes at once, and a hundred that wait for each other, a millisecond each.
    for n in 0..100 {
        measure.complete(at(1_000 * n), at((1_000 * n).saturating_sub(1_500)), 1, true).expect("a test run");
    }
    let service = |measure: &Measure| measure.delay(0).service;
    assert!(service(&measure).since_about(Span::from_micros(1_000)), "{}", service(&measure));
    for n in 100..150 {
        measure.complete(at(10_000 * n), at(10_000 * n), 1, true).expect("a test run");
    }
    let after = service(&measure);
    assert!(after < Span::from_micros(920) && after > Span::from_micros(880), "{after}");
    // A driver that frees what it has sent says how long that took.
    for n in 150..200 {
        measure.complete(at(10_000 * n + 300), at(10_000 * n), 1, false).expect("a test run");
    }
    assert!(service(&measure).since_about(Span::from_micros(300)), "{}", service(&measure));
}

trait About {
    fn since_about(self, other: Span) -> bool;
}

impl About for Span {
    fn since_about(self, other: Span) -> bool {
        self.saturating_sub(other).max(other.saturating_sub(self)) < Span::from_micros(2)
    }
}

/// Tries what the machine's other work may spoil a few times.
fn within_tries(mut attempt: impl FnMut() -> Result<(), String>) {
    let mut said = Vec::new();
    for _ in 0..6 {
        match attempt() {
            Ok(()) => return,
            Err(why) => said.push(why),
        }
    }
    panic!("{said:#?}");
}

#[test]
fn a_reader_that_takes_its_time_shows_in_the_delay() {
    if !available("the relay's measurement") {
        return;
    }
    let netns = Netns::new("tap");
    let mut tap: File = netns.within(|| device("t0", libc::IFF_TAP));
    netns.ip("addr add 10.7.0.1/24 dev t0");
    netns.ip("link set t0 up");
    netns.ip("neigh add 10.7.0.2 lladdr 02:00:00:00:00:02 nud permanent dev t0");
    netns.within(|| std::fs::write("/proc/sys/net/ipv6/conf/t0/disable_ipv6", "1")).expect("our own namespace");
    let measure = netns.within(|| Measure::begin(&[index("t0")])).expect("a kernel that takes the programs");
    let socket = netns.within(|| UdpSocket::bind("10.7.0.1:0")).expect("an address of ours");
    within_tries(|| {
        while readable(&tap, 50) {
            let _ = tap.read(&mut [0; 2048]);
        }
        let before = measure.measured(0).done;
        // Thirty at once, and a reader that takes 2 ms for each: what it really took is its own record.
        let queued = now();
        (0..30).for_each(|_| assert_eq!(socket.send_to(&[0; 500], "10.7.0.2:9").expect("sent"), 500));
        let (mut node, mut last) =
            (HopDelay::of(NodeDelay { last: measure.delay(0).last, ..measure.delay(0) }), queued);
        for _ in 0..30 {
            std::thread::sleep(Duration::from_millis(2));
            if !readable(&tap, 1000) || tap.read(&mut [0; 2048]).is_err() {
                return Err("no packet".into());
            }
            let done = now();
            node.on_done(done, queued, last);
            last = done;
        }
        let (found, wanted) = (measure.delay(0), node.node());
        let near = |a: Span, b: Span| a.saturating_sub(b).max(b.saturating_sub(a)) < b / 10 + Span::from_micros(100);
        let counted = measure.measured(0).done - before;
        if counted != 30 || found.waiting != 0 {
            return Err(format!("{counted} of 30, {} waiting", found.waiting));
        }
        let fits = near(found.service, wanted.service) && near(found.queueing, wanted.queueing);
        if fits && found.service >= Span::from_micros(1_900) {
            return Ok(());
        }
        Err(format!("{found:?}, the reader says {wanted:?}"))
    });
}

fn readable(tap: &File, ms: u16) -> bool {
    poll(&mut [PollFd::new(tap.as_fd(), PollFlags::POLLIN)], PollTimeout::from(ms)).is_ok_and(|ready| ready > 0)
}

#[test]
fn a_token_bucket_shows_in_delay_and_trains_count_by_datagram() {
    if !available("the relay's measurement") {
        return;
    }
    let (here, there) = (Netns::new("here"), Netns::new("there"));
    here.veth("v0", &there, "v1");
    for (netns, device, address) in [(&here, "v0", "10.7.1.1/24"), (&there, "v1", "10.7.1.2/24")] {
        netns.within(|| std::fs::write(format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6"), "1")).expect("ours");
        netns.ip(&format!("addr add {address} dev {device}"));
        netns.ip(&format!("link set {device} up"));
    }
    // 1042 octets a frame: 1.042 ms each.
    let line = "qdisc add dev v0 root tbf rate 8mbit burst 4kb limit 120kb";
    let tc = Command::new("tc").args(["-n", here.name()]).args(line.split(' ')).status().expect("iproute2");
    assert!(tc.success());
    let measure = here.within(|| Measure::begin(&[index("v0")])).expect("a kernel that takes the programs");
    let sink = there.within(|| UdpSocket::bind("10.7.1.2:9")).expect("an address of ours");
    let socket = train_socket(&here);
    // The address is asked for before anything is counted.
    socket.send_to(b"x", "10.7.1.2:9").expect("sent");
    sink.recv(&mut [0; 8]).expect("it comes");
    within_tries(|| {
        std::thread::sleep(Duration::from_millis(50));
        let before = measure.measured(0);
        let began = Instant::now();
        // Ten trains of ten datagrams: the bucket lets four go at once and takes the rest apart.
        (0..10).for_each(|_| assert_eq!(socket.send_to(&[0; 10_000], "10.7.1.2:9").expect("sent"), 10_000));
        let counted = || measure.measured(0).done - before.done;
        while counted() < 100 && began.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let (found, after) = (measure.delay(0), measure.measured(0));
        if counted() != 100 || after.dropped != before.dropped || found.waiting != 0 {
            return Err(format!("{} of 100, {found:?}, {after:?}", counted()));
        }
        let (least, most) = (Span::from_micros(900), Span::from_micros(1_200));
        // The last of a hundred has waited for those before it, and the average for three quarters of the last ones.
        let waited = found.queueing > Span::from_millis(80) && found.queueing < Span::from_millis(110);
        if (least..most).contains(&found.service) && waited {
            return Ok(());
        }
        Err(format!("{found:?}"))
    });
    // What finds no room counts for nothing, and nothing is left behind.
    let before = measure.measured(0);
    // A socket alone waits for room; four of them fill more than the queue holds.
    let sockets: Vec<UdpSocket> = (0..4).map(|_| train_socket(&here)).collect();
    for _ in 0..15 {
        sockets.iter().for_each(|socket| assert!(socket.send_to(&[0; 10_000], "10.7.1.2:9").is_ok()));
    }
    let began = Instant::now();
    while measure.delay(0).waiting > 0 && began.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(100));
        measure.look(0, now()).expect("a map");
    }
    let after = measure.measured(0);
    assert_eq!(measure.delay(0).waiting, 0, "{after:?}");
    assert!(after.dropped > before.dropped + 50, "{before:?} {after:?}");
    drop(sink);
}

/// A socket that sends long datagrams as trains of a thousand octets each.
fn train_socket(netns: &Netns) -> UdpSocket {
    let socket = netns.within(|| UdpSocket::bind("10.7.1.1:0")).expect("an address of ours");
    let segment: libc::c_int = 1000;
    // SAFETY: the kernel reads an int of this length, which outlives the call.
    let failed = unsafe {
        let value = (&raw const segment).cast();
        libc::setsockopt(std::os::fd::AsRawFd::as_raw_fd(&socket), libc::SOL_UDP, libc::UDP_SEGMENT, value, 4)
    };
    assert_eq!(failed, 0, "a kernel that segments");
    socket
}
