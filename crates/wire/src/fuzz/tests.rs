//! Each function over its corpus. The seeds are what the encoders write, or what a kernel does.

use super::seeds::run;
use crate::atp::{self, Blocks};
use crate::datagram::{Challenge, Close, Datagram, Open, Reason, Transport, Variant, preamble, sealed};
use crate::delivery::DeliveryTrace;
use crate::dot11::{
    BlockAck, BlockAckRequest, FrameControl, Header, QosControl, SequenceControl, write_snap, write_subframe,
};
use crate::ip::Ecn;
use crate::notice::{self, signed};
use crate::olsr::{
    self, Aliases, Hello, LinkCode, LinkType, Message, NeighbourType, Network, Networks, Packet, Sequence,
    TopologyControl, Validity, Willingness, kind,
};
use crate::radiotap::{self, Ampdu, Radiotap};
use crate::tcp::{Capacity, Flags, SackBlock, SackBlocks, TcpHeader, TcpOptions, Timestamps};
use crate::{FlowKey, driver, ethernet, ip, ip_tcp_packet};
use lasthop_signals::phy::{Format, GuardInterval, TxVector, Width};
use lasthop_signals::{
    CellCapacity, ChannelTime, HopReport, MacAddress, Node, NodeDelay, Notice, QueueReport, StationReport,
};
use lasthop_units::{Bytes, Rate, Span, Time};
use std::net::{IpAddr, Ipv4Addr};

fn address(n: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, n])
}

fn atp_packet(kind: atp::Kind, blocks: u32, payload: &[u8]) -> Vec<u8> {
    let header = atp::Header {
        kind,
        window: 512,
        delay: Span::from_micros(1_200),
        average: Span::from_micros(800),
        epoch: Span::from_millis(40),
        connection: 9,
        number: 10,
        serial: 60,
        blocks: Blocks::of((0..blocks).map(|n| (20 + 2 * n, 21 + 2 * n))),
    };
    let mut out = Vec::new();
    header.encode(&mut out);
    out.extend_from_slice(payload);
    out
}

#[test]
fn atp() {
    let data = atp_packet(atp::Kind::Data, 0, b"payload");
    run("atp", super::atp, &[("data", data), ("ack", atp_packet(atp::Kind::Ack, 5, &[]))]);
}

/// Neither ends nor length: `ip_tcp_packet` fills them in.
fn segment(flags: Flags, options: TcpOptions) -> TcpHeader {
    let (source_port, destination_port) = (443, 40_000);
    TcpHeader { source_port, destination_port, seq: 1_000, ack: 2_000, flags, window: 502, options, payload_len: 0 }
}

fn later_options() -> TcpOptions {
    let mut sack = SackBlocks::default();
    sack.push(SackBlock { left: 5_000, right: 6_448 });
    sack.push(SackBlock { left: 9_000, right: 10_448 });
    TcpOptions { timestamps: Some(Timestamps { val: 7, ecr: 8 }), sack, ..TcpOptions::default() }
}

#[test]
fn datagram() {
    let octets = |datagram: Datagram<'_>| {
        let mut out = Vec::new();
        datagram.encode(&mut out).expect("options that fit");
        out
    };
    let (delay, cookie) = (Span::from_micros(9), [6; 32]);
    let transport = Transport::Atp(Variant::Adaptive);
    let open = Open { connection: 1, delay, transport, nonce: [5; 16], size: 1 << 40, cookie };
    let header = segment(Flags::ACK, later_options());
    let mut signed = octets(Datagram::Segment { connection: 1, delay, header, payload: b"payload" });
    sealed::seal(&mut signed, 0, 77, |_| [0xab; sealed::TAG_LEN]);
    let mut carried = preamble::preamble(delay).to_vec();
    carried.extend_from_slice(&crate::tunnel::sealed_header(1, 2));
    let seeds = [
        ("open", octets(Datagram::Open(open))),
        ("challenge", octets(Datagram::Challenge(Challenge { connection: 1, delay, keyed: true, cookie }))),
        ("close", octets(Datagram::Close(Close { connection: 1, reason: Reason::Kept, octets: 1 << 40 }))),
        ("segment", octets(Datagram::Segment { connection: 1, delay, header, payload: b"payload" })),
        ("sealed-segment", signed),
        ("atp", atp_packet(atp::Kind::Last, 2, b"end")),
        ("tunnel", carried),
    ];
    run("datagram", super::datagram, &seeds);
}

#[test]
fn delivery() {
    let steps = [(40, 6), (30, 0), (20, 24)].map(|(ms, mbit)| (Span::from_millis(ms), Rate::from_mbit(mbit)));
    let trace = DeliveryTrace::from_rates(steps).expect("a trace");
    run("delivery", super::delivery, &[("steps", trace.to_text().into_bytes()), ("no-line-feed", b"0\n0\n3".to_vec())]);
}

fn data_header(qos: u16) -> Header {
    Header {
        control: FrameControl(FrameControl::QOS_DATA | FrameControl::FROM_DS),
        duration: 60,
        receiver: address(1),
        transmitter: Some(address(2)),
        address3: Some(address(3)),
        sequence: Some(SequenceControl { number: 0x19d, fragment: 0 }),
        address4: None,
        qos: Some(QosControl(qos)),
        ht_control: None,
    }
}

/// A frame with two MSDUs.
fn a_msdu() -> Vec<u8> {
    let mut frame = Vec::new();
    data_header(QosControl::A_MSDU).write(&mut frame);
    let start = frame.len();
    for n in 0..2 {
        let mut msdu = Vec::new();
        write_snap(&mut msdu, ethernet::IPV4);
        msdu.extend_from_slice(&[n; 21]);
        write_subframe(&mut frame, start, address(1), address(3), &msdu);
    }
    frame
}

fn control_frame(control: u16) -> Vec<u8> {
    let header = Header { control: FrameControl(control), address3: None, sequence: None, qos: None, ..data_header(0) };
    let mut frame = Vec::new();
    header.write(&mut frame);
    frame
}

#[test]
fn dot11() {
    let mut block_ack = control_frame(FrameControl::BLOCK_ACK);
    BlockAck { tid: 6, start: 4_000, bitmap: vec![0xff, 1, 0, 0, 0, 0, 0, 0x80] }.write(&mut block_ack);
    let mut request = control_frame(FrameControl::BLOCK_ACK_REQUEST);
    BlockAckRequest { tid: 3, start: 77 }.write(&mut request);
    let mut four_addresses = Vec::new();
    let control =
        FrameControl(FrameControl::QOS_DATA | FrameControl::TO_DS | FrameControl::FROM_DS | FrameControl::HTC);
    Header { control, address4: Some(address(4)), ht_control: Some(5), ..data_header(5) }.write(&mut four_addresses);
    let seeds =
        [("a-msdu", a_msdu()), ("block-ack", block_ack), ("request", request), ("four-addresses", four_addresses)];
    run("dot11", super::dot11, &seeds);
}

#[test]
fn driver() {
    let ms = |n| Some(Span::from_millis(n));
    let channel = ChannelTime {
        active: Span::from_secs(9),
        busy: ms(700),
        rx: ms(200),
        tx: ms(400),
        scan: None,
        noise: Some(-92),
    };
    let station = StationReport {
        backlog_packets: 3,
        backlog_bytes: Bytes::new(4_500),
        head_wait: ms(2),
        tx_airtime: None,
        phy_rate: Rate::from_mbit(300),
        ..StationReport::unseen(Node(7))
    };
    let queue = QueueReport { queue: 1, backlog_packets: 2, drops: 1, ..QueueReport::default() };
    let record = driver::Record {
        at: Time::from_nanos(5_000_000),
        report: HopReport { channel, stations: vec![station, StationReport::unseen(Node(8))], queues: vec![queue] },
        addresses: [(Node(7), address(7).0)].into_iter().collect(),
    };
    let (queueing, service) = (Span::from_micros(900), Span::from_micros(300));
    let delay = NodeDelay { queueing, service, last: Some(Time::from_nanos(4_000_000)), waiting: 2 };
    let node = driver::NodeRecord { at: record.at, node: 3, delay };
    let seeds = [
        ("access-point", driver::encode(&record).expect("two stations")),
        ("node", driver::encode_node(&node).to_vec()),
    ];
    run("driver", super::driver, &seeds);
}

/// `tests/integration/nl80211.rs` writes the seeds.
#[test]
fn nl80211() {
    run("nl80211", super::nl80211, &[]);
}

#[test]
fn notice() {
    let rate = Rate::from_mbit(12);
    let notice = Notice { bssid: address(7), terminal: 9, sequence: 1, flows: 3, rate, drains: true };
    let signed = signed::encode(&notice, 1_700_000_000_000, |_| [0xab; signed::TAG_LEN]);
    run("notice", super::notice, &[("plain", notice::encode(&notice).to_vec()), ("signed", signed.to_vec())]);
}

#[test]
fn olsr() {
    let node = |n| Ipv4Addr::new(10, 0, 0, n);
    let code = |link, neighbour| LinkCode::new(link, neighbour).expect("a code");
    let groups = vec![
        (code(LinkType::Symmetric, NeighbourType::Relay), vec![node(2)]),
        (code(LinkType::Asymmetric, NeighbourType::No), vec![node(3), node(4)]),
    ];
    let hello = Hello { interval: Validity(5), willingness: Willingness::DEFAULT, groups };
    let network = Network { address: Ipv4Addr::new(192, 0, 2, 0), mask: Ipv4Addr::new(255, 255, 255, 0) };
    let bodies = [
        (kind::HELLO, hello.encode().expect("short")),
        (kind::TC, TopologyControl { ansn: Sequence(4), neighbours: vec![node(2), node(5)] }.encode()),
        (kind::MID, Aliases(vec![node(9)]).encode()),
        (kind::HNA, Networks(vec![network]).encode()),
    ];
    let header = |kind| olsr::Header {
        kind,
        validity: Validity::at_least(Span::from_secs(15)),
        originator: node(1),
        ttl: 255,
        hops: 0,
        sequence: Sequence(kind.into()),
    };
    let messages: Vec<_> = bodies.iter().map(|(kind, body)| Message { header: header(*kind), body }).collect();
    let octets = |messages: &[Message<'_>]| {
        Packet { sequence: Sequence(1), messages: messages.to_vec() }.encode().expect("short")
    };
    run("olsr", super::olsr, &[("hello", octets(&messages[..1])), ("all", octets(&messages))]);
}

#[test]
fn packet() {
    let flow = |source, destination| FlowKey {
        source,
        destination,
        source_port: 443,
        destination_port: 40_000,
        protocol: ip::TCP,
    };
    let v4 = flow(IpAddr::from([192, 0, 2, 1]), IpAddr::from([10, 0, 0, 2]));
    let v6 = flow("2001:db8::1".parse().expect("an address"), "2001:db8::2".parse().expect("an address"));
    let rate = Rate::from_mbit(40);
    let told = CellCapacity { available: rate, fair: rate, elsewhere: false, restart: true, coarse: false };
    let syn = TcpOptions {
        mss: Some(1_460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { val: 7, ecr: 0 }),
        capacity: Some(Capacity::of(&told, 3)),
        ..TcpOptions::default()
    };
    let packet = |flow, header, payload| ip_tcp_packet(flow, Ecn::Ect0, &header, payload).expect("options fit");
    let syn = packet(&v4, segment(Flags::SYN, syn), b"");
    let mut frame = Vec::new();
    ethernet::write(&mut frame, address(1).0, address(2).0, ethernet::IPV6);
    frame.extend(packet(&v6, segment(Flags::ACK | Flags::PSH, later_options()), b"payload"));
    // From the TCP header on: what `tcp::parse` is given.
    let bare = syn[20..].to_vec();
    run("packet", super::packet, &[("ipv4-syn", syn), ("ethernet-ipv6", frame), ("segment", bare)]);
}

#[test]
fn radiotap() {
    let captured = |format, mcs, frame: &[u8]| {
        let mut radiotap = Radiotap {
            tsft: Some(1_000_000),
            flags: Some(radiotap::Flags(0)),
            signal: Some(-50),
            ampdu: Some(Ampdu { reference: 5, flags: Ampdu::LAST_KNOWN, delimiter_crc: 0 }),
            ..Radiotap::default()
        };
        let (width, guard_interval) = (Width::Mhz80, GuardInterval::Ns800);
        radiotap.set_tx_vector(TxVector { format, mcs, nss: 2, width, guard_interval });
        let mut out = Vec::new();
        radiotap.write(&mut out);
        out.extend_from_slice(frame);
        out
    };
    let legacy = Radiotap { rate: Some(12), antenna: Some(0), ..Radiotap::default() };
    let mut ack = Vec::new();
    legacy.write(&mut ack);
    ack.extend_from_slice(&[0xd4, 0, 0, 0, 2, 0, 0, 0, 0, 1]);
    let seeds = [
        ("vht-a-msdu", captured(Format::Vht, 9, &a_msdu())),
        ("he", captured(Format::He, 11, &a_msdu()[..26])),
        ("eht", captured(Format::Eht, 13, &a_msdu()[..26])),
        ("ack", ack),
    ];
    run("radiotap", super::radiotap, &seeds);
}

/// A netlink message, as a host with little-endian numbers writes it.
fn netlink(kind: u16, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(16 + body.len()).expect("short");
    [&len.to_le_bytes()[..], &kind.to_le_bytes(), &2u16.to_le_bytes(), &7u32.to_le_bytes(), &[0; 4], body].concat()
}

#[test]
fn sock_diag() {
    let mut info = [0; 248];
    info[..3].copy_from_slice(&[1, 3, 2]);
    for (at, value) in [(8, 204_000u32), (16, 1_448), (24, 20), (68, 40_000), (72, 5_000), (80, 30), (232, 131_072)] {
        info[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    let mut socket = [0; 72];
    socket[..8].copy_from_slice(&[2, 1, 0, 0, 0x9c, 0x40, 0x01, 0xbb]);
    socket[8..12].copy_from_slice(&[10, 0, 0, 2]);
    socket[24..28].copy_from_slice(&[192, 0, 2, 9]);
    // Attribute 2, the state, as a kernel of Linux 3.2 has it; attribute 4, the congestion
    // control's name and its padding.
    let attributes = [&[108, 0, 2, 0][..], &info[..104], &[10, 0, 4, 0], b"cubic\0\0\0"].concat();
    let list = [netlink(20, &[&socket[..], &attributes].concat()), netlink(3, &[0; 4])].concat();
    let refused = netlink(2, &(-13i32).to_le_bytes());
    run("sock_diag", super::sock_diag, &[("list", list), ("refused", refused), ("tcp-info", info.to_vec())]);
}
