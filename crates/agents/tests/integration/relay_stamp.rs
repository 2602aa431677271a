//! The relay's program against its rule in Rust, on packets that are built octet by octet. Needs root; says so where it is not.
#![cfg(feature = "bpf")]

use crate::support;

use lasthop_agents::relay::stamper::{Place, Stamper};
use lasthop_agents::relay::{Counters, MAX_PORTS};
use lasthop_units::{Span, Time};
use lasthop_wire::relay::{Stamp, stamp};
use lasthop_wire::{Link, checksum, ip};
use proptest::prelude::*;
use std::net::IpAddr;
use support::netns::available;

/// A test run's packets leave through the loopback interface.
const LOOPBACK: i32 = 1;
const PORTS: [u16; 2] = [4900, 53];

fn load(link: Link) -> (Stamper, Place) {
    let mut stamper = Stamper::load(&PORTS, None).expect("a kernel that takes the program");
    let place = stamper.add(LOOPBACK, if link == Link::Ethernet { 14 } else { 0 });
    (stamper, place)
}

/// What a packet is made of; its lengths are right unless `lie` says otherwise.
#[derive(Clone, Debug)]
struct Recipe {
    v6: bool,
    tags: usize,
    /// Words of IPv4 options, or units of IPv6 extension headers: kind and length.
    options: usize,
    extensions: Vec<(u8, u8)>,
    /// Offset in units of 8 octets, and whether more follow.
    fragment: Option<(u16, bool)>,
    ports: (u16, u16),
    payload: Vec<u8>,
    sum: Sum,
    padding: usize,
    /// Octet and value.
    lie: Option<(usize, u8)>,
    cut: Option<usize>,
    protocol: u8,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sum {
    Right,
    Zero,
    Wrong(u16),
}

impl Recipe {
    fn build(&self, link: Link) -> Vec<u8> {
        let addresses = if self.v6 { ["2001:db8::1", "2001:db8::2:3"] } else { ["192.0.2.1", "198.51.100.7"] };
        let [from, to] = addresses.map(|address| address.parse::<IpAddr>().expect("an address"));
        let mut udp = [self.ports.0, self.ports.1, 8 + self.payload.len() as u16, 0].map(u16::to_be_bytes).concat();
        udp.extend_from_slice(&self.payload);
        let right = checksum::transport(from, to, ip::UDP, &udp);
        let sum = match self.sum {
            Sum::Right if right == 0 => u16::MAX,
            Sum::Right => right,
            Sum::Zero => 0,
            Sum::Wrong(sum) => sum,
        };
        udp[6..8].copy_from_slice(&sum.to_be_bytes());
        let mut packet = Vec::new();
        if self.v6 {
            self.extend6(&mut udp);
            ip::write(&mut packet, from, to, self.protocol, ip::Ecn::NotEct, udp.len()).expect("short");
            let first = self.extensions.first().map(|(kind, _)| *kind).or(self.fragment.map(|_| 44));
            packet[6] = first.unwrap_or(self.protocol);
        } else {
            ip::write(&mut packet, from, to, self.protocol, ip::Ecn::NotEct, udp.len() + 4 * self.options)
                .expect("short");
            packet[0] += self.options as u8;
            packet.resize(20 + 4 * self.options, 1);
            if let Some((offset, more)) = self.fragment {
                packet[6..8].copy_from_slice(&(offset & 0x1fff | u16::from(more) << 13).to_be_bytes());
            }
        }
        packet.extend_from_slice(&udp);
        packet.resize(packet.len() + self.padding, 0x5a);
        let mut frame = Vec::new();
        if link == Link::Ethernet {
            frame.extend_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
            (0..self.tags).for_each(|_| frame.extend_from_slice(&[0x81, 0, 0, 7]));
            frame.extend_from_slice(if self.v6 { &[0x86, 0xdd] } else { &[8, 0] });
        }
        frame.extend_from_slice(&packet);
        if let Some((at, value)) = self.lie {
            let at = at % frame.len();
            frame[at] = value;
        }
        // A test run takes nothing shorter than this.
        frame.truncate(self.cut.unwrap_or(usize::MAX).max(34));
        frame
    }

    /// Puts extension headers before the datagram.
    fn extend6(&self, udp: &mut Vec<u8>) {
        let mut heads = Vec::new();
        for (place, (_, units)) in self.extensions.iter().enumerate() {
            let next = self.extensions.get(place + 1).map(|(kind, _)| *kind).or(self.fragment.map(|_| 44));
            let start = heads.len();
            heads.extend_from_slice(&[next.unwrap_or(self.protocol), *units]);
            heads.resize(start + 8 * (usize::from(*units) + 1), 0);
        }
        if let Some((offset, more)) = self.fragment {
            heads.extend_from_slice(&[self.protocol, 0]);
            heads.extend_from_slice(&(offset << 3 | u16::from(more)).to_be_bytes());
            heads.extend_from_slice(&[0, 0, 0, 9]);
        }
        udp.splice(0..0, heads);
    }
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let port = || prop_oneof![3 => Just(4900u16), 1 => Just(53), 2 => any::<u16>(), 1 => Just(0)];
    let payload = (
        prop::collection::vec(any::<u8>(), 0..40),
        prop_oneof![6 => Just(0x10u8), 1 => Just(0x20), 1 => Just(0)],
        0u32..20,
    )
        .prop_map(|(mut payload, version, delay)| {
            if let Some(first) = payload.first_mut() {
                *first = *first & 15 | version;
            }
            if payload.len() >= 8 {
                payload[4..8].copy_from_slice(&(delay * 1000).to_be_bytes());
            }
            payload
        });
    let sum = prop_oneof![4 => Just(Sum::Right), 1 => Just(Sum::Zero), 1 => any::<u16>().prop_map(Sum::Wrong), 1 => Just(Sum::Wrong(u16::MAX))];
    let fragment = prop::option::weighted(0.3, (prop_oneof![Just(0u16), 1..0x1fffu16], any::<bool>()));
    let kind = prop_oneof![Just(0u8), Just(43), Just(60), Just(51)];
    let extensions = prop::collection::vec((kind, 0u8..3), 0..6);
    let shape = (any::<bool>(), 0usize..4, 0usize..3, prop_oneof![2 => Just(Vec::new()), 1 => extensions], fragment);
    let oddities = (
        0usize..20,
        prop::option::weighted(0.3, (any::<usize>(), any::<u8>())),
        prop::option::weighted(0.2, 0usize..100),
        prop_oneof![9 => Just(ip::UDP), 1 => Just(ip::TCP)],
    );
    (shape, (port(), port()), payload, sum, oddities).prop_map(
        |((v6, tags, options, extensions, fragment), ports, payload, sum, (padding, lie, cut, protocol))| Recipe {
            v6,
            tags,
            options,
            extensions: if v6 { extensions } else { Vec::new() },
            fragment,
            ports,
            payload,
            sum,
            padding,
            lie,
            cut,
            protocol,
        },
    )
}

/// What the counters have grown by, after a packet that the rule does this to.
fn counted(what: Stamp, fresh: bool) -> Counters {
    let mut counters = Counters::default();
    match what {
        Stamp::Elsewhere => {}
        Stamp::Other => counters.other = 1,
        Stamp::Larger | Stamp::Raised => {
            counters.seen = 1;
            counters.stale = u64::from(!fresh);
            counters.stamped = u64::from(fresh && what == Stamp::Raised);
        }
    }
    counters
}

fn less(now: Counters, before: Counters) -> Counters {
    Counters {
        seen: now.seen - before.seen,
        stamped: now.stamped - before.stamped,
        stale: now.stale - before.stale,
        other: now.other - before.other,
        marked: now.marked - before.marked,
    }
}

#[test]
fn any_packet_leaves_as_the_rule_has_it() {
    if !available("the relay's program") {
        return;
    }
    let links = [Link::Ethernet, Link::Ip].map(|link| (link, load(link)));
    let seen = std::cell::Cell::new([0u32; 4]);
    let config = ProptestConfig { cases: 6000, ..ProptestConfig::default() };
    proptest!(config, |(recipe in recipe(), own in 0u32..25_000, fresh in prop::bool::weighted(0.9))| {
        for (link, (stamper, place)) in &links {
            let packet = recipe.build(*link);
            let until = if fresh { Time::MAX } else { Time::ZERO };
            stamper.set(*place, Span::from_micros(own.into()), until);
            let before = stamper.counters(*place);
            let out = stamper.test_run(&packet, None);
            // The kernel itself refuses to run some packets that are cut short.
            let Ok(out) = out else { continue };
            let mut wanted = packet.clone();
            let what = stamp(&mut wanted, *link, &PORTS, own);
            if !fresh {
                wanted.copy_from_slice(&packet);
            }
            prop_assert_eq!(&out, &wanted, "{:?} on {:?}: {:?}", recipe, link, what);
            prop_assert_eq!(less(stamper.counters(*place), before), counted(what, fresh));
            if recipe.sum == Sum::Right && recipe.lie.is_none() && recipe.cut.is_none() && what == Stamp::Raised && fresh {
                prop_assert!(is_right(&out, &recipe, *link), "the checksum is right afterwards: {:?}", recipe);
            }
            let mut tally = seen.get();
            tally[what as usize] += 1;
            seen.set(tally);
        }
    });
    let tally = seen.get();
    assert!(tally.iter().all(|count| *count > 100), "every kind of packet comes often: {tally:?}");
}

/// True unless the datagram's checksum, computed anew, is wrong.
fn is_right(frame: &[u8], recipe: &Recipe, link: Link) -> bool {
    let at = if link == Link::Ethernet { 14 + 4 * recipe.tags } else { 0 };
    let packet = &frame[at..];
    let header = ip::parse(packet).expect("whole");
    let datagram = &header.payload(packet)[..8 + recipe.payload.len()];
    checksum::transport(header.source, header.destination, ip::UDP, datagram) == 0
}

#[test]
fn every_datagram_of_a_train_is_stamped() {
    if !available("the relay's program") {
        return;
    }
    let (stamper, place) = load(Link::Ethernet);
    stamper.set(place, Span::from_micros(5_000), Time::MAX);
    // Twenty datagrams of 50 octets, and one of 11 that is too short to be ours: D is 0, 1, 2… ms, and the third is of another version.
    let mut payload = Vec::new();
    for n in 0..20u32 {
        let mut one = [0u8; 50];
        one[0] = if n == 2 { 0x22 } else { 0x12 };
        one[4..8].copy_from_slice(&(n * 1000).to_be_bytes());
        payload.extend_from_slice(&one);
    }
    payload.extend_from_slice(&[0x12, 0, 0, 0, 0, 0, 0]);
    let recipe = Recipe {
        v6: false,
        tags: 1,
        options: 0,
        extensions: Vec::new(),
        fragment: None,
        ports: (1, 4900),
        payload: payload.clone(),
        sum: Sum::Right,
        padding: 0,
        lie: None,
        cut: None,
        protocol: ip::UDP,
    };
    let frame = recipe.build(Link::Ethernet);
    let out = stamper.test_run(&frame, Some(50)).expect("a test run");
    assert!(is_right(&out, &recipe, Link::Ethernet));
    let datagrams = &out[14 + 4 + 20 + 8..];
    for (n, (one, before)) in datagrams.chunks(50).zip(payload.chunks(50)).enumerate() {
        let mut wanted = before.to_vec();
        if n < 5 && n != 2 {
            wanted[4..8].copy_from_slice(&5000u32.to_be_bytes());
        }
        assert_eq!(one, wanted, "datagram {n}");
    }
    let counters = stamper.counters(place);
    assert_eq!((counters.seen, counters.stamped, counters.other), (19, 4, 2));
}

#[test]
fn ecn_capable_packets_are_marked_above_the_threshold() {
    if !available("the relay's program") {
        return;
    }
    let mut stamper = Stamper::load(&[], Some(Span::from_millis(20))).expect("a kernel that takes the program");
    let place = stamper.add(LOOPBACK, 0);
    let addresses = |v6| if v6 { ["2001:db8::1", "2001:db8::2"] } else { ["192.0.2.1", "192.0.2.2"] };
    for v6 in [false, true] {
        for bits in 0..4u8 {
            for (delay, until, above) in
                [(20_000, Time::MAX, true), (19_999, Time::MAX, false), (90_000, Time::ZERO, false)]
            {
                let [from, to] = addresses(v6).map(|address| address.parse::<IpAddr>().expect("an address"));
                let mut packet = Vec::new();
                ip::write(&mut packet, from, to, ip::TCP, ip::Ecn::from_bits(bits), 20).expect("short");
                packet.resize(packet.len() + 20, 7);
                let mut wanted = packet.clone();
                if above {
                    ip::mark_ce(&mut wanted);
                }
                let before = stamper.counters(place);
                stamper.set(place, Span::from_micros(delay), until);
                assert_eq!(stamper.test_run(&packet, None).expect("a test run"), wanted, "{v6} {bits} {delay}");
                let marked = less(stamper.counters(place), before).marked;
                assert_eq!(marked, u64::from(wanted != packet));
            }
        }
    }
}

#[test]
fn as_many_ports_as_are_promised_are_looked_at() {
    if !available("the relay's program") {
        return;
    }
    let ports: Vec<u16> = (1000..1000 + MAX_PORTS as u16).collect();
    let mut stamper = Stamper::load(&ports, None).expect("a kernel that takes the program");
    let place = stamper.add(LOOPBACK, 0);
    stamper.set(place, Span::from_millis(1), Time::MAX);
    for port in 998..1010 {
        let recipe = Recipe {
            v6: true,
            tags: 0,
            options: 0,
            extensions: Vec::new(),
            fragment: None,
            ports: (port, 9),
            payload: vec![0x10, 0, 0, 0, 0, 0, 0, 0],
            sum: Sum::Right,
            padding: 0,
            lie: None,
            cut: None,
            protocol: ip::UDP,
        };
        let before = stamper.counters(place).stamped;
        stamper.test_run(&recipe.build(Link::Ip), None).expect("a test run");
        assert_eq!(stamper.counters(place).stamped - before, u64::from(ports.contains(&port)), "{port}");
    }
}
