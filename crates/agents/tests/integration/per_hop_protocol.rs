//! The example of a protocol that acts at every hop: it does what it says, and stands in the book as it is.
#![cfg(feature = "bpf")]
#![allow(clippy::disallowed_methods, reason = "packets are waited for by the wall clock")]

use crate::support;

#[path = "../../examples/path_delay.rs"]
#[allow(dead_code, reason = "its `main` is for its users")]
mod path_delay;

use lasthop_agents::relay::{Config, Handled, Relay};
use lasthop_agents::service::Stop;
use path_delay::PathDelay;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use support::netns::{Row, available};

#[test]
fn the_book_shows_the_example_as_it_is() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to/add-a-per-hop-protocol.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let example = include_str!("../../examples/path_delay.rs");
    assert!(page.contains(&format!("```rust\n{example}```")), "copy examples/path_delay.rs into the page");
    assert!(example.lines().count() < 60);
}

#[test]
fn datagrams_count_their_hops() {
    if !available("handlers of packets") {
        return;
    }
    if Command::new("iptables").arg("-V").output().is_err() {
        eprintln!("SKIPPED: handlers of packets: no iptables");
        return;
    }
    let row = Row::new(135);
    row.server.ip("route add default via 10.135.1.2");
    row.proxy.within(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")).expect("our own namespace");
    let stop = Stop::new();
    std::thread::scope(|scope| {
        // A relay at the sender and one behind it: two hops.
        let relays = [(&row.server, "s0"), (&row.proxy, "p1")].map(|(netns, device)| {
            let stop = &stop;
            scope.spawn(move || {
                netns.enter();
                let config = Config { drop_privileges: false, ..Config::new(vec![device.to_owned()]) };
                let relay = Relay::open_with(&config, Box::new(PathDelay)).expect("root");
                relay.run(stop).expect("nothing goes").handled.expect("a handler")
            })
        });
        let from = row.server.within(|| UdpSocket::bind("10.135.1.1:0")).expect("an address of ours");
        let to = row.station.within(|| UdpSocket::bind("10.135.2.2:4950")).expect("an address of ours");
        to.set_read_timeout(Some(Duration::from_millis(300))).expect("a timeout");
        let began = Instant::now();
        let mut hops = 0;
        while hops != 2 && began.elapsed() < Duration::from_secs(60) {
            let mut octets = [7; 100];
            octets[..8].fill(0);
            from.send_to(&octets, "10.135.2.2:4950").expect("sent");
            let mut found = [0; 200];
            let Ok(len) = to.recv(&mut found) else { continue };
            assert_eq!((len, &found[8..100]), (100, &octets[8..]));
            hops = u32::from_be_bytes([found[0], found[1], found[2], found[3]]);
        }
        stop.ask();
        let handled: Vec<Handled> = relays.into_iter().map(|relay| relay.join().expect("no panic")).collect();
        assert_eq!(hops, 2, "{handled:?}");
        assert!(handled.iter().all(|handled| handled.changed > 0 && handled.seen >= handled.changed), "{handled:?}");
    });
}
