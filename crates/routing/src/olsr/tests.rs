//! One node, to which packets are handed.

use super::*;
use lasthop_units::Seed;
use lasthop_units::brief::at;
use lasthop_wire::olsr::{LinkCode, LinkType, Willingness};

const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

fn node(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, n)
}

fn olsr() -> Olsr {
    Olsr::new(OWN, Params::default(), Seed(1).stream("olsr"), Time::ZERO).expect("defaults are right")
}

fn message(kind: u8, originator: Ipv4Addr, sequence: u16, ttl: u8, body: &[u8]) -> Vec<u8> {
    let validity = Validity::at_least(Span::from_secs(15));
    let header = Header { kind, validity, originator, ttl, hops: 0, sequence: Sequence(sequence) };
    Packet { sequence: Sequence(0), messages: vec![Message { header, body }] }.encode().expect("short")
}

/// A HELLO that lists some with what is said of each.
fn hello(of: Ipv4Addr, sequence: u16, listed: &[(LinkType, NeighbourType, Ipv4Addr)]) -> Vec<u8> {
    let code = |link, neighbour| LinkCode::new(link, neighbour).expect("a code");
    let groups = listed.iter().map(|(link, neighbour, address)| (code(*link, *neighbour), vec![*address])).collect();
    let body = Hello { interval: Validity(5), willingness: Willingness::DEFAULT, groups }.encode().expect("short");
    message(kind::HELLO, of, sequence, 1, &body)
}

fn tc(of: Ipv4Addr, sequence: u16, ttl: u8, neighbours: &[Ipv4Addr]) -> Vec<u8> {
    let body = TopologyControl { ansn: Sequence(sequence), neighbours: neighbours.to_vec() }.encode();
    message(kind::TC, of, sequence, ttl, &body)
}

/// Everything that it has to send until `end`, with when.
fn sent_until(olsr: &mut Olsr, end: Time) -> Vec<(Time, Vec<u8>)> {
    let mut all = Vec::new();
    loop {
        let now = olsr.next_timeout();
        if now > end {
            return all;
        }
        while let Some(packet) = olsr.poll_transmit(now) {
            all.push((now, packet));
        }
        assert!(olsr.next_timeout() > now, "it asks for no moment that is over");
    }
}

/// A node with a neighbour, 2, that has chosen it, and one that has not, 3.
fn with_neighbours() -> Olsr {
    let mut olsr = olsr();
    let symmetric = |neighbour| [(LinkType::Symmetric, neighbour, OWN)];
    olsr.on_packet(at(1), node(2), &hello(node(2), 1, &symmetric(NeighbourType::Relay))).expect("a packet");
    olsr.on_packet(at(1), node(3), &hello(node(3), 1, &symmetric(NeighbourType::Symmetric))).expect("a packet");
    assert_eq!(olsr.poll_transmit(at(1)), None);
    olsr
}

/// Types, senders and times to live of the messages in packets, but HELLOs.
fn messages(packets: &[(Time, Vec<u8>)]) -> Vec<(u8, Ipv4Addr, u8, u8)> {
    let decoded = packets.iter().map(|(_, bytes)| Packet::decode(bytes).expect("ours"));
    let headers = decoded.flat_map(|packet| packet.messages.into_iter().map(|message| message.header));
    headers.filter(|header| header.kind != kind::HELLO).map(|h| (h.kind, h.originator, h.ttl, h.hops)).collect()
}

#[test]
fn a_lone_node_sends_only_hello_at_its_jittered_interval() {
    let sent = sent_until(&mut olsr(), at(60_000));
    assert!((30..=40).contains(&sent.len()), "{}", sent.len());
    for pair in sent.windows(2) {
        let gap = pair[1].0.since(pair[0].0);
        assert!((Span::from_millis(1500)..=Span::from_secs(2)).contains(&gap), "{gap}");
        let [first, second] = [0, 1].map(|n| Packet::decode(&pair[n].1).expect("ours"));
        assert_eq!(second.sequence, first.sequence.next());
        assert_eq!(second.messages[0].header.sequence, first.messages[0].header.sequence.next());
        assert_eq!((second.messages.len(), second.messages[0].header.ttl), (1, 1));
    }
}

#[test]
fn only_messages_of_mpr_selectors_are_forwarded_once() {
    let mut olsr = with_neighbours();
    let (chosen, other) = (tc(node(9), 1, 255, &[node(8)]), tc(node(9), 2, 255, &[node(8)]));
    for _ in 0..3 {
        olsr.on_packet(at(10), node(2), &chosen).expect("a packet");
    }
    olsr.on_packet(at(10), node(3), &other).expect("a packet");
    // First from 3, which has not chosen it: not when it comes from 2 either.
    olsr.on_packet(at(20), node(2), &other).expect("a packet");
    olsr.on_packet(at(20), node(7), &tc(node(9), 3, 255, &[])).expect("a packet of a stranger");
    let sent = messages(&sent_until(&mut olsr, at(1000)));
    let of_others: Vec<_> = sent.iter().filter(|(_, originator, ..)| *originator != OWN).collect();
    assert_eq!(of_others, [&(kind::TC, node(9), 254, 1)]);
    assert_eq!(olsr.account().forwarded, 1);
}

#[test]
fn unknown_types_are_forwarded_unless_no_hop_is_left() {
    let mut olsr = with_neighbours();
    olsr.on_packet(at(10), node(2), &message(130, node(9), 1, 7, &[1, 2, 3])).expect("a packet");
    olsr.on_packet(at(10), node(2), &message(131, node(9), 2, 1, &[])).expect("a packet");
    olsr.on_packet(at(10), node(2), &message(132, node(9), 3, 0, &[])).expect("a packet");
    olsr.on_packet(at(10), node(2), &message(133, OWN, 4, 9, &[])).expect("a packet");
    let sent = sent_until(&mut olsr, at(1000));
    let others: Vec<_> = messages(&sent).into_iter().filter(|(kind, ..)| *kind != kind::TC).collect();
    assert_eq!(others, [(130, node(9), 6, 1)]);
    let packets: Vec<_> = sent.iter().map(|(_, bytes)| Packet::decode(bytes).expect("ours")).collect();
    let found = packets.iter().flat_map(|packet| &packet.messages).find(|message| message.header.kind == 130);
    assert_eq!(found.expect("as just now").body, [1, 2, 3]);
}

#[test]
fn many_messages_fill_frames_and_no_packet_is_longer_than_one() {
    let mut olsr = with_neighbours();
    for n in 0..200 {
        olsr.on_packet(at(10), node(2), &message(130, node(9), n, 7, &[0; 100])).expect("a packet");
    }
    olsr.on_packet(at(10), node(2), &message(131, node(9), 999, 7, &[0; 9000])).expect("a packet");
    let sent = sent_until(&mut olsr, at(1000));
    let lens: Vec<usize> = sent.iter().map(|(_, bytes)| bytes.len()).filter(|len| *len > 1000).collect();
    assert!(lens.len() <= 20 && lens.iter().all(|len| *len <= PAYLOAD || *len == 9016), "{lens:?}");
    assert_eq!(messages(&sent).iter().filter(|(kind, ..)| *kind >= 130).count(), 201);
}

#[test]
fn empty_advertisements_last_as_long_as_old_ones_are_valid() {
    let mut olsr = with_neighbours();
    let sent = sent_until(&mut olsr, at(60_000));
    let tcs: Vec<(Time, TopologyControl)> = sent
        .iter()
        .flat_map(|(now, bytes)| Packet::decode(bytes).expect("ours").messages.into_iter().map(|m| (*now, m)))
        .filter(|(_, message)| message.header.kind == kind::TC)
        .map(|(now, message)| (now, TopologyControl::decode(message.body).expect("ours")))
        .collect();
    // Neighbours are gone 15 s after their only HELLO, and what was told of them is withdrawn for 15 s.
    let (with, without): (Vec<_>, Vec<_>) = tcs.iter().partition(|(_, tc)| !tc.neighbours.is_empty());
    assert!(
        with.len() >= 3 && with.iter().all(|(now, tc)| *now < at(15_200) && tc.neighbours == [node(2)]),
        "{with:?}"
    );
    assert!(without.len() >= 3, "{without:?}");
    assert!(without.iter().all(|(now, tc)| *now <= at(30_200) && tc.ansn == with[0].1.ansn.next()), "{without:?}");
    assert!(olsr.routes().is_empty() && olsr.neighbours().is_empty());
    assert_eq!(olsr.sizes(), [0; 5]);
}

#[test]
fn routes_go_over_neighbours_and_topology() {
    let mut olsr = with_neighbours();
    let symmetric = |address| (LinkType::Symmetric, NeighbourType::Symmetric, address);
    olsr.on_packet(at(10), node(2), &hello(node(2), 2, &[symmetric(OWN), symmetric(node(4))])).expect("a packet");
    olsr.on_packet(at(10), node(2), &tc(node(4), 1, 255, &[node(5), OWN])).expect("a packet");
    olsr.on_packet(at(10), node(2), &tc(node(5), 1, 255, &[node(4), node(6)])).expect("a packet");
    let _ = olsr.poll_transmit(at(10));
    let route = |hops, next| Route { next: node(next), hops };
    let wanted = [(2, route(1, 2)), (3, route(1, 3)), (4, route(2, 2)), (5, route(3, 2)), (6, route(4, 2))];
    assert_eq!(*olsr.routes(), wanted.into_iter().map(|(n, route)| (node(n), route)).collect());
    assert_eq!(olsr.relays().iter().copied().collect::<Vec<_>>(), [node(2)]);
    // The neighbour says that it has lost 4: with it go all beyond, although what they advertise is still valid.
    let lost = (LinkType::Lost, NeighbourType::No, node(4));
    olsr.on_packet(at(20), node(2), &hello(node(2), 3, &[symmetric(OWN), lost])).expect("a packet");
    let _ = olsr.poll_transmit(at(20));
    assert_eq!(olsr.routes().keys().copied().collect::<Vec<_>>(), [node(2), node(3)]);
}

#[test]
fn a_neighbour_with_two_interfaces_is_one_neighbour() {
    let mut olsr = olsr();
    let listed = [(LinkType::Symmetric, NeighbourType::Symmetric, OWN)];
    olsr.on_packet(at(1), node(21), &hello(node(2), 1, &listed)).expect("a packet");
    olsr.on_packet(at(1), node(22), &hello(node(2), 2, &listed)).expect("a packet");
    let _ = olsr.poll_transmit(at(1));
    let next = |n| olsr.routes().get(&node(n)).map(|route| (route.next, route.hops));
    assert_eq!(olsr.neighbours().len(), 1);
    assert_eq!(next(21), Some((node(21), 1)));
    assert_eq!(next(22), Some((node(22), 1)));
    assert_eq!(next(2), Some((node(21), 1)), "through the interface that is heard");
}

#[test]
fn broken_packets_and_messages_have_no_effect_and_are_counted() {
    let mut olsr = with_neighbours();
    let mut broken = hello(node(4), 1, &[(LinkType::Symmetric, NeighbourType::Symmetric, OWN)]);
    assert!(olsr.on_packet(at(2), node(4), &broken[..20]).is_err());
    // The group claims to be longer than the HELLO.
    let at_size = broken.len() - 5;
    broken[at_size] = 200;
    assert!(olsr.on_packet(at(2), node(4), &broken).is_ok());
    let account = olsr.account();
    assert_eq!((account.broken_packets, account.broken_messages), (1, 1));
    let _ = olsr.poll_transmit(at(2));
    assert_eq!(olsr.neighbours().len(), 2);
}

#[test]
fn floods_of_forged_messages_cost_bounded_passing_memory() {
    let mut olsr = with_neighbours();
    let forged = |n: u32| Ipv4Addr::from(0x0b00_0000 + n);
    let symmetric = |neighbour, address| (LinkType::Symmetric, neighbour, address);
    for n in 0..2000 {
        let far = (0..50).map(|k| symmetric(NeighbourType::Symmetric, forged(100_000 + n * 50 + k)));
        let listed: Vec<_> = std::iter::once(symmetric(NeighbourType::Relay, OWN)).chain(far).collect();
        olsr.on_packet(at(10), forged(n), &hello(forged(n), 1, &listed)).expect("a packet");
        let advertised: Vec<_> = (0..50).map(|k| forged(500_000 + n * 50 + k)).collect();
        olsr.on_packet(at(10), node(2), &tc(forged(n), 1, 255, &advertised)).expect("a packet");
        for k in 0..4 {
            olsr.on_packet(at(10), node(2), &message(140 + k, forged(n), 2 + u16::from(k), 9, &[0; 400])).expect("one");
        }
    }
    let bounds = [MOST_LINKS, MOST_TWO_HOP, MOST_TOPOLOGY, MOST_DUPLICATES];
    let sizes = olsr.sizes();
    assert_eq!(sizes[..4], bounds);
    assert!(sizes[4] <= MOST_FORWARDS && olsr.account().refused > 10_000, "{sizes:?} {:?}", olsr.account());
    assert!(olsr.poll_transmit(at(10)).is_none_or(|packet| packet.len() <= PAYLOAD));
    assert!(olsr.selectors().len() <= MOST_LINKS && olsr.relays().len() <= MOST_LINKS);
    let _ = sent_until(&mut olsr, at(60_000));
    assert_eq!(olsr.sizes(), [0; 5]);
    assert!(olsr.routes().is_empty());
}

#[test]
fn a_forged_validity_does_not_last() {
    let mut olsr = with_neighbours();
    let mut bytes = tc(node(9), 1, 255, &[node(8)]);
    bytes[PACKET_HEADER_LEN + 1] = Validity::MAX.0;
    olsr.on_packet(at(10), node(2), &bytes).expect("a packet");
    let day = Span::from_secs(86_400);
    let _ = sent_until(&mut olsr, Time::ZERO + LONGEST);
    assert_eq!(olsr.sizes()[2], 1);
    let _ = sent_until(&mut olsr, Time::ZERO + day);
    assert_eq!(olsr.sizes()[2], 0);
}
