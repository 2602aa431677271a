//! Properties of the parsers and writers, over arbitrary bytes and arbitrary headers.

use lasthop_signals::{CellCapacity, ChannelTime, HopReport, Node, NodeDelay, QueueReport, StationReport};
use lasthop_units::{Bytes, Rate, Span, Time};
use lasthop_wire::ip::Ecn;
use lasthop_wire::tcp::{Capacity, Flags, SackBlock, SackBlocks, TcpHeader, TcpOptions, Timestamps};
use lasthop_wire::{FlowKey, Link, TcpPacket, checksum, driver, ethernet, ip, ip_tcp_packet, tcp};
use proptest::collection::vec;
use proptest::prelude::*;
use std::net::IpAddr;

fn any_flow() -> impl Strategy<Value = FlowKey> {
    let v4 = (any::<[u8; 4]>(), any::<[u8; 4]>()).prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b)));
    let v6 = (any::<[u8; 16]>(), any::<[u8; 16]>()).prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b)));
    (prop_oneof![v4, v6], any::<(u16, u16)>()).prop_map(|((source, destination), (source_port, destination_port))| {
        FlowKey { source, destination, source_port, destination_port, protocol: ip::TCP }
    })
}

/// Options that fit into a header: those of a SYN, or those of any other segment.
fn any_options() -> impl Strategy<Value = TcpOptions> {
    let timestamps = || proptest::option::of(any::<(u32, u32)>().prop_map(|(val, ecr)| Timestamps { val, ecr }));
    // Any capacity that the option can carry.
    let capacity = || {
        let told = (any::<(u32, u32)>(), any::<(bool, bool, bool)>(), 0u8..16).prop_map(
            |((available, fair), (elsewhere, restart, coarse), number)| {
                let rate = |kbps: u32| Rate::from_bps(u64::from(kbps) * 1000);
                let (available, fair) = (rate(available), rate(fair));
                Capacity::of(&CellCapacity { available, fair, elsewhere, restart, coarse }, number)
            },
        );
        proptest::option::of(told)
    };
    let syn = (any::<Option<u16>>(), any::<Option<u8>>(), any::<bool>(), timestamps(), any::<bool>(), capacity())
        .prop_map(|(mss, window_scale, sack_permitted, timestamps, hands_off, capacity)| TcpOptions {
            mss,
            window_scale,
            sack_permitted,
            timestamps,
            hands_off,
            capacity,
            ..TcpOptions::default()
        });
    let later =
        (timestamps(), vec(any::<(u32, u32)>(), 0..=3), capacity()).prop_map(|(timestamps, blocks, capacity)| {
            let mut sack = SackBlocks::default();
            blocks.iter().for_each(|&(left, right)| sack.push(SackBlock { left, right }));
            // Three blocks and timestamps leave no room.
            let capacity = capacity.filter(|_| blocks.len() < 3);
            TcpOptions { timestamps, sack, capacity, ..TcpOptions::default() }
        });
    prop_oneof![syn, later]
}

fn any_header() -> impl Strategy<Value = TcpHeader> {
    (any::<(u32, u32, u8, u16)>(), any_options()).prop_map(|((seq, ack, flags, window), options)| TcpHeader {
        source_port: 0,
        destination_port: 0,
        seq,
        ack,
        flags: Flags(flags),
        window,
        options,
        payload_len: 0,
    })
}

fn any_ecn() -> impl Strategy<Value = Ecn> {
    (0u8..4).prop_map(Ecn::from_bits)
}

/// A counter that the driver lacks now and then.
fn counted(n: u64) -> Option<u64> {
    (n % 4 != 3).then_some(n)
}

fn any_station() -> impl Strategy<Value = StationReport> {
    (any::<u16>(), any::<u32>(), any::<[u64; 14]>()).prop_map(|(station, backlog_packets, n)| StationReport {
        station: Node(station),
        backlog_packets,
        backlog_bytes: Bytes::new(n[0]),
        head_wait: counted(n[1]).map(Span::from_nanos),
        queue_drops: n[2],
        tx_attempts: counted(n[3]),
        tx_retries: counted(n[4]),
        tx_failed: counted(n[5]),
        tx_packets: n[6],
        tx_bytes: Bytes::new(n[7]),
        rx_packets: n[8],
        rx_bytes: Bytes::new(n[9]),
        tx_airtime: counted(n[10]).map(Span::from_nanos),
        rx_airtime: counted(n[11]).map(Span::from_nanos),
        tx_ppdus: counted(n[12]),
        phy_rate: Rate::from_bps(n[13]),
    })
}

fn any_queue() -> impl Strategy<Value = QueueReport> {
    (any::<u16>(), any::<u32>(), any::<[u64; 5]>()).prop_map(|(queue, backlog_packets, n)| QueueReport {
        queue,
        backlog_packets,
        backlog_bytes: Bytes::new(n[0]),
        drops: n[1],
        requeues: n[2],
        tx_packets: n[3],
        tx_bytes: Bytes::new(n[4]),
    })
}

/// Calls everything that takes bytes from outside. The result does not matter: that there is one does.
fn swallow(bytes: &[u8]) {
    let _ = ethernet::parse(bytes);
    let _ = ip::parse(bytes);
    let _ = tcp::parse(bytes);
    let _ = driver::decode(bytes);
    let _ = driver::decode_node(bytes);
    let _ = FlowKey::of_packet(bytes);
    let mut scratch = bytes.to_vec();
    ip::mark_ce(&mut scratch);
    for link in [Link::Ethernet, Link::Ip] {
        if let Ok(Some(found)) = TcpPacket::parse(bytes, link) {
            found.checksum_is_valid(bytes);
            found.set_window(&mut scratch, 1);
            found.set_window(&mut [], 1);
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_make_a_parser_panic(bytes in vec(any::<u8>(), 0..200)) {
        swallow(&bytes);
    }

    #[test]
    fn no_damage_to_a_valid_packet_makes_a_parser_panic(
        flow in any_flow(), header in any_header(), ecn in any_ecn(),
        damage in vec((0usize..120, any::<u8>()), 0..6), cut in 0usize..140,
    ) {
        let mut packet = ip_tcp_packet(&flow, ecn, &header, &[7; 20]).expect("options fit");
        for (at, value) in damage {
            if let Some(byte) = packet.get_mut(at) {
                *byte = value;
            }
        }
        packet.truncate(cut);
        swallow(&packet);
    }

    #[test]
    fn what_is_written_is_read_back(
        flow in any_flow(), header in any_header(), ecn in any_ecn(), payload in vec(any::<u8>(), 0..40),
        padding in 0usize..6,
    ) {
        let mut packet = ip_tcp_packet(&flow, ecn, &header, &payload).expect("options fit");
        let len = packet.len();
        packet.extend(std::iter::repeat_n(0xee, padding));
        let found = TcpPacket::parse(&packet, Link::Ip).expect("well formed").expect("a segment");
        let expected = TcpHeader {
            source_port: flow.source_port,
            destination_port: flow.destination_port,
            payload_len: payload.len() as u32,
            ..header
        };
        prop_assert_eq!(found.header, expected);
        prop_assert_eq!((found.flow, found.ecn, found.end), (flow, ecn, len));
        prop_assert!(found.checksum_is_valid(&packet));
        prop_assert_eq!(FlowKey::of_packet(&packet), Ok(flow));
    }

    #[test]
    fn a_changed_window_keeps_a_checksum_valid_or_invalid(
        flow in any_flow(), header in any_header(), window in any::<u16>(), spoil in any::<u16>(),
    ) {
        let mut packet = ip_tcp_packet(&flow, Ecn::NotEct, &header, b"payload").expect("options fit");
        let found = TcpPacket::parse(&packet, Link::Ip).expect("well formed").expect("a segment");
        let sum = u16::from_be_bytes([packet[found.tcp_at + 16], packet[found.tcp_at + 17]]);
        packet[found.tcp_at + 16..found.tcp_at + 18].copy_from_slice(&sum.wrapping_add(spoil).to_be_bytes());
        let valid = found.checksum_is_valid(&packet);
        found.set_window(&mut packet, window);
        prop_assert_eq!(found.checksum_is_valid(&packet), valid);
        let again = TcpPacket::parse(&packet, Link::Ip).expect("well formed").expect("a segment");
        prop_assert_eq!(again.header.window, window);
    }

    #[test]
    fn an_incremental_update_equals_recomputation(mut words in vec(any::<u16>(), 1..30), at in any::<usize>(), new: u16) {
        // Of the two representations of zero a recomputed sum over non-zero data never is 0xffff (RFC 1624, section 3).
        words.push(1);
        let recomputed = |words: &[u16]| words.iter().fold(checksum::Sum::default(), |sum, w| sum.word(*w)).finish();
        let at = at % (words.len() - 1);
        let (before, old) = (recomputed(&words), words[at]);
        words[at] = new;
        prop_assert_eq!(checksum::update(before, old, new), recomputed(&words));
    }

    #[test]
    fn marking_changes_ecn_and_keeps_the_header_checksum_valid(
        flow in any_flow(), header in any_header(), ecn in any_ecn(),
    ) {
        let mut packet = ip_tcp_packet(&flow, ecn, &header, b"payload").expect("options fit");
        let before = packet.clone();
        prop_assert_eq!(ip::mark_ce(&mut packet), ecn.is_capable());
        if !ecn.is_capable() {
            prop_assert_eq!(&packet, &before);
            return Ok(());
        }
        prop_assert_eq!(ip::parse(&packet).map(|h| h.ecn), Ok(Ecn::Ce));
        if flow.source.is_ipv4() {
            prop_assert_eq!(checksum::Sum::default().bytes(&packet[..20]).finish(), 0);
        }
        prop_assert!(ip::mark_ce(&mut packet), "marked already");
    }

    #[test]
    fn driver_records_survive_the_trip(
        at in any::<u64>(), channel in any::<[u64; 5]>(), noise in any::<Option<i8>>(), queues in vec(any_queue(), 0..8),
        stations in vec((any_station(), any::<Option<[u8; 6]>>()), 0..20),
    ) {
        let active = Span::from_nanos(channel[0]);
        let [busy, rx, tx, scan] = [1, 2, 3, 4].map(|n| counted(channel[n]).map(Span::from_nanos));
        let known = stations.iter().filter_map(|(station, address)| Some((station.station, (*address)?)));
        let addresses = known.filter(|(_, address)| *address != [0; 6]).collect();
        let stations = stations.iter().map(|(station, _)| *station).collect();
        let report = HopReport { channel: ChannelTime { active, busy, rx, tx, scan, noise }, stations, queues };
        let record = driver::Record { at: Time::from_nanos(at), report, addresses };
        let message = driver::encode(&record).expect("few stations");
        prop_assert_eq!(driver::decode(&message), Ok(record));
        prop_assert!(driver::decode(&message[..message.len() - 1]).is_err());
        let longer = [message.as_slice(), &[0]].concat();
        prop_assert!(driver::decode(&longer).is_err());
    }
}

#[test]
fn a_record_of_the_version_before_queues_is_read() {
    let station = StationReport::unseen(Node(7));
    let record = driver::Record {
        at: Time::from_nanos(5),
        report: HopReport { stations: vec![station], ..HopReport::default() },
        ..driver::Record::default()
    };
    let message = driver::encode(&record).expect("few stations");
    let mut before = [&message[..48], &message[64..]].concat();
    before[4] = 3;
    assert_eq!(driver::decode(&before), Ok(record));
    before[4] = 1;
    assert!(driver::decode(&before).is_err());
}

#[test]
fn a_record_of_too_many_stations_is_refused() {
    let station = StationReport::unseen(Node(0));
    let with = |n, queues| HopReport {
        stations: vec![station; n],
        queues: vec![QueueReport::default(); queues],
        ..HopReport::default()
    };
    let record = |n, queues| driver::Record { report: with(n, queues), ..driver::Record::default() };
    assert_eq!(driver::encode(&record(1024, 64)).map(|m| m.len()), Ok(driver::MAX_LEN));
    assert!(driver::encode(&record(1025, 0)).is_err());
    assert!(driver::encode(&record(0, 65)).is_err());
}

#[test]
fn fragments_and_other_protocols_are_no_segments() {
    let flow = FlowKey {
        source: IpAddr::from([10, 0, 0, 1]),
        destination: IpAddr::from([10, 0, 0, 2]),
        source_port: 1,
        destination_port: 2,
        protocol: ip::TCP,
    };
    let header = tcp::parse(&[0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 1, 0, 0, 0, 0, 0]).expect("a header").0;
    let packet = ip_tcp_packet(&flow, Ecn::NotEct, &header, b"").expect("fits");
    let with = |at: usize, value: u8| {
        let mut packet = packet.clone();
        packet[at] = value;
        TcpPacket::parse(&packet, Link::Ip)
    };
    assert!(with(8, 1).expect("well formed").is_some());
    assert_eq!(with(6, 0x20), Ok(None), "more fragments");
    assert_eq!(with(7, 1), Ok(None), "a later fragment");
    assert_eq!(with(9, ip::UDP), Ok(None));
    assert!(with(0, 0x44).is_err(), "IHL below five words");
    assert!(with(0, 0x55).is_err(), "version 5");
    assert!(with(32, 0x40).is_err(), "data offset below five words");
}

#[test]
fn ipv6_extensions_are_traversed_and_fragments_recognised() {
    let flow = FlowKey {
        source: "2001:db8::1".parse().expect("an address"),
        destination: "2001:db8::2".parse().expect("an address"),
        source_port: 1,
        destination_port: 2,
        protocol: ip::TCP,
    };
    let header = tcp::parse(&[0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 1, 0, 0, 0, 0, 0]).expect("a header").0;
    let plain = ip_tcp_packet(&flow, Ecn::NotEct, &header, b"x").expect("fits");
    // Puts `chain` (kinds of 8-octet headers) before the segment.
    let with = |chain: &[u8]| {
        let mut packet = plain[..40].to_vec();
        packet[6] = *chain.first().unwrap_or(&ip::TCP);
        for (i, _) in chain.iter().enumerate() {
            packet.extend_from_slice(&[*chain.get(i + 1).unwrap_or(&ip::TCP), 0, 0, 0, 0, 0, 0, 0]);
        }
        packet.extend_from_slice(&plain[40..]);
        let len = (packet.len() - 40) as u16;
        packet[4..6].copy_from_slice(&len.to_be_bytes());
        packet
    };
    for chain in [&[][..], &[0], &[0, 60], &[0, 60, 43, 60]] {
        let packet = with(chain);
        let found = TcpPacket::parse(&packet, Link::Ip).expect("well formed").expect("a segment");
        assert_eq!((found.flow, found.header.payload_len), (flow, 1));
        assert!(found.checksum_is_valid(&packet));
    }
    assert_eq!(TcpPacket::parse(&with(&[0, 44]), Link::Ip), Ok(None));
    assert_eq!(FlowKey::of_packet(&with(&[44])).map(|f| f.source_port), Ok(0));
    assert!(TcpPacket::parse(&with(&[60; 5]), Link::Ip).is_err());
}

proptest! {
    #[test]
    fn node_records_round_trip_and_other_lengths_are_refused(
        at: u64, node: u16, spans: (u64, u64), last in prop::option::of(0..u64::MAX), waiting: u32, more in 1usize..9,
    ) {
        let delay = NodeDelay {
            queueing: Span::from_nanos(spans.0),
            service: Span::from_nanos(spans.1),
            last: last.map(Time::from_nanos),
            waiting,
        };
        let record = driver::NodeRecord { at: Time::from_nanos(at), node, delay };
        let message = driver::encode_node(&record);
        prop_assert_eq!(driver::decode_node(&message), Ok(record));
        prop_assert!(driver::decode(&message).is_err(), "it is none of an access point");
        prop_assert!(driver::decode_node(&message[..message.len() - more]).is_err());
        prop_assert!(driver::decode_node(&[&message[..], &vec![0; more]].concat()).is_err());
        for (place, octet) in [(0, b'X'), (4, 2), (4, 5), (5, 1), (5, 3)] {
            let mut other = message;
            other[place] = octet;
            prop_assert!(driver::decode_node(&other).is_err());
        }
        // The version before had the same records of nodes.
        let mut before = message;
        before[4] = 3;
        prop_assert_eq!(driver::decode_node(&before), Ok(record));
    }
}
