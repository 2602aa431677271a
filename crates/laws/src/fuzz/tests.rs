//! Each function over its corpus; those that read a cell, over histories and logs that are nearly
//! right, too.

use super::seeds::run;
use super::{cell_history, cell_log};
use crate::oal::features::FEATURES;
use crate::oal::lesson::Lesson;
use crate::oal::predictor::LossClass;
use crate::oal::tree::{Node, Tree};
use lasthop_signals::MacAddress;
use lasthop_signals::phy::{Format as Phy, GuardInterval, TxVector, Width};
use lasthop_units::Time;
use lasthop_wire::dci::Format;
use lasthop_wire::dot11::{FrameControl, Header, QosControl, SequenceControl};
use lasthop_wire::ip::{self, Ecn};
use lasthop_wire::radiotap::{Ampdu, Radiotap};
use lasthop_wire::tcp::{Flags, TcpHeader, TcpOptions, Timestamps};
use lasthop_wire::{FlowKey, ip_tcp_packet};
use proptest::prelude::*;
use std::net::IpAddr;
use std::path::Path;

/// A subframe of 100 PRB, all of them the terminal's, and the next one's number.
const SUBFRAME: [u8; 15] = [96, 0, 64, 100, 1, 1, 1, 100, 0, 1, 28 << 3, 0, 0, 1, 0];

#[test]
fn what_is_fed_is_told_of() {
    let bytes: Vec<u8> = std::iter::once(0).chain(SUBFRAME.into_iter().cycle().take(40 * SUBFRAME.len())).collect();
    assert_eq!(cell_history::play(&bytes), 40);
}

#[test]
fn dci() {
    let subframes = [&[0][..], &SUBFRAME.repeat(20)].concat();
    // An arrival, a round trip, a silence of 2 s, a number of flows; the second carrier.
    let events = [
        &[4, 0, 0, 1, 0, 0xdc, 5][..],
        &[6, 0x40, 0x9c, 0],
        &SUBFRAME,
        &[97, 1, 64, 50, 255, 1, 2, 20, 0, 1, 28 << 3, 0, 64, 0, 0],
        &[7, 0xd0, 7],
        &[247, 3],
        &SUBFRAME,
    ];
    run("dci", super::dci, &[("subframes", subframes), ("events", [&[1], &events.concat()[..]].concat())]);
}

/// Subframes one after the other, mostly, with arrivals between them.
fn history() -> impl Strategy<Value = Vec<u8>> {
    let block = (any::<u8>(), 0u32..100_000).prop_map(|(coding, bits)| [&[coding][..], &bits.to_le_bytes()].concat());
    let dci = (any::<u8>(), 0u8..=110, any::<u8>(), 0u8..200).prop_flat_map(move |(rnti, prb, process, shape)| {
        let shape = shape / 24 * 24;
        let blocks = prop::collection::vec(block.clone(), usize::from(shape % 3));
        blocks.prop_map(move |blocks| [&[rnti, prb, process, shape][..], &blocks.concat()].concat())
    });
    let dcis = prop::collection::vec(dci, 0..6);
    let subframe = (prop::sample::select(vec![96u8, 97, 98, 99]), any::<u8>(), 0u8..250, dcis).prop_map(
        |(kind, carrier, own, dcis)| {
            let head = [kind, carrier, 64, 100, own, dcis.len() as u8];
            [&head[..], &dcis.concat()].concat()
        },
    );
    let other = prop::collection::vec(any::<u8>(), 1..8);
    let event = prop_oneof![8 => subframe, 1 => other];
    (any::<u8>(), prop::collection::vec(event, 0..200)).prop_map(|(settings, events)| {
        let mut bytes = events.concat();
        bytes.insert(0, settings);
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_subframes_leave_a_capacity_that_the_carriers_have(bytes in history()) {
        super::dci(&bytes);
    }

    #[test]
    fn so_do_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        super::dci(&bytes);
    }
}

/// The logs that are written for the readers' tests.
fn log(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/dci").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Some lines of them, with what stands before and behind.
fn lines(name: &str, from: usize, count: usize, around: [&str; 2]) -> Vec<u8> {
    let log = String::from_utf8(log(name)).expect("text");
    let lines: String = log.split_inclusive('\n').skip(from).take(count).collect();
    [around[0], &lines, around[1]].concat().into_bytes()
}

#[test]
fn dci_csv() {
    run("dci_csv", super::dci_csv, &[("slots", lines("nrscope.csv", 1, 8, ["", ""]))]);
}

#[test]
fn dci_json() {
    // The terminal's first assignments.
    run("dci_json", super::dci_json, &[("subframes", lines("ngscope_dl.json", 302, 44, ["[\n{\n", "}]\n"]))]);
}

#[test]
fn dci_text() {
    let seeds = [
        ("downlink", lines("ngscope_dl.dciLog", 19, 16, ["", ""])),
        ("uplink", lines("ngscope_ul.dciLog", 0, 12, ["", ""])),
    ];
    run("dci_text", super::dci_text, &seeds);
}

const LOGS: [(Format, &str, u64); 4] = [
    (Format::NgScope, "ngscope_dl.dciLog", 60),
    (Format::NgScope, "ngscope_ul.dciLog", 30),
    (Format::NgScopeJson, "ngscope_dl.json", 60),
    (Format::NrScope, "nrscope.csv", 143),
];

#[test]
fn every_slot_of_a_log_is_measured() {
    for (format, name, slots) in LOGS {
        assert_eq!(cell_log::play(format, &log(name)), slots, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn logs_with_wrong_octets_are_measured(
        which in 0usize..4, wrong in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        cut: prop::sample::Index,
    ) {
        let (format, name, _) = LOGS[which];
        let mut bytes = log(name);
        for (at, octet) in wrong {
            let at = at.index(bytes.len());
            // Mostly digits, so that rows stay rows.
            bytes[at] = if bytes[at].is_ascii_digit() { b'0' + octet % 10 } else { octet };
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        cell_log::play(format, &bytes);
    }
}

#[test]
fn lesson() {
    let mut features = [f32::NAN; FEATURES.len()];
    (features[0], features[2]) = (40.5, -0.0);
    let lesson = Lesson { until: Time::from_nanos(350_000_000), abstained: true, class: LossClass::Poor, features };
    run("lesson", super::lesson, &[("lesson", lesson.encode())]);
}

/// A capture (pcap) of an A-MPDU of four and a lone MPDU, by one radio.
fn capture() -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut file = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 4_096, 127]);
    for n in 0..5u16 {
        let mut packet = Vec::new();
        let ampdu =
            Ampdu { reference: 5, flags: Ampdu::LAST_KNOWN | if n == 3 { Ampdu::LAST } else { 0 }, delimiter_crc: 0 };
        let mut radiotap = Radiotap { ampdu: (n < 4).then_some(ampdu), ..Radiotap::default() };
        let (width, guard_interval) = (Width::Mhz80, GuardInterval::Ns800);
        radiotap.set_tx_vector(TxVector { format: Phy::Vht, mcs: 9, nss: 2, width, guard_interval });
        radiotap.write(&mut packet);
        let address = |n| MacAddress([2, 0, 0, 0, 0, n]);
        let header = Header {
            control: FrameControl(FrameControl::QOS_DATA | FrameControl::FROM_DS),
            duration: 60,
            receiver: address(1),
            transmitter: Some(address(2)),
            address3: Some(address(3)),
            // The third is missing.
            sequence: Some(SequenceControl { number: 100 + n + u16::from(n > 1), fragment: 0 }),
            address4: None,
            qos: Some(QosControl(0)),
            ht_control: None,
        };
        header.write(&mut packet);
        packet.extend_from_slice(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 0x45]);
        let len = u32::try_from(packet.len()).expect("short");
        file.extend(words(&[1, if n < 4 { 0 } else { 9_000 }, len, len + 1_400]));
        file.extend(packet);
    }
    file
}

#[test]
fn pcap() {
    run("pcap", super::pcap, &[("frames", capture())]);
}

/// A handshake, data towards the station, and its ACKs.
fn segments() -> Vec<u8> {
    let (server, station) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([10, 0, 0, 2]));
    let syn = TcpOptions { mss: Some(1_460), window_scale: Some(7), sack_permitted: true, ..TcpOptions::default() };
    let mut bytes = 20_000u32.to_le_bytes().to_vec();
    let mut add = |up: bool, seq, ack, flags, options: TcpOptions, payload: &[u8]| {
        let (source, destination) = if up { (station, server) } else { (server, station) };
        let (source_port, destination_port) = if up { (40_000, 443) } else { (443, 40_000) };
        let flow = FlowKey { source, destination, source_port, destination_port, protocol: ip::TCP };
        let stamps = Timestamps { val: seq, ecr: ack };
        let options = TcpOptions { timestamps: Some(stamps), ..options };
        let header =
            TcpHeader { source_port, destination_port, seq, ack, flags, window: 60_000, options, payload_len: 0 };
        let packet = ip_tcp_packet(&flow, Ecn::NotEct, &header, payload).expect("options fit");
        bytes.extend_from_slice(&[u8::try_from(packet.len()).expect("short"), 10 + u8::from(up)]);
        bytes.extend(packet);
    };
    let later = TcpOptions::default();
    add(true, 99, 0, Flags::SYN, syn, &[]);
    add(false, 499, 100, Flags::SYN | Flags::ACK, syn, &[]);
    add(true, 100, 500, Flags::ACK, later, &[]);
    for n in 0..3 {
        add(false, 500 + 20 * n, 100, Flags::ACK, later, &[7; 20]);
        add(true, 100, 520 + 20 * n, Flags::ACK, later, &[]);
    }
    bytes
}

#[test]
fn rewriter() {
    run("rewriter", super::rewriter, &[("download", segments())]);
}

#[test]
fn tree() {
    let split = |feature, left, right| Node::Split { feature, threshold: 5.0, left, right, missing_left: feature == 1 };
    let leaf = Node::Leaf;
    let nodes =
        vec![split(1, 1, 2), leaf(LossClass::Good), split(0, 3, 4), leaf(LossClass::Poor), leaf(LossClass::Bad)];
    let small = Tree::new(1, 1, vec![leaf(LossClass::Good)]).expect("valid");
    let seeds = [("leaf", small.encode()), ("splits", Tree::new(7, 0b1101, nodes).expect("valid").encode())];
    run("tree", super::tree, &seeds);
}
