//! The aggregation meter over captures that other tools have counted: small ones beside this file
//! (`captures/README.md`), and the reference data (`captures/README.md` there), where that is at hand.

use lasthop_laws::aggregation::meter::{Frame, Grouping, Meter, Tally};
use lasthop_signals::MacAddress;
use lasthop_signals::phy::{Format, TxVector};
use lasthop_units::Time;
use lasthop_wire::dot11::Kind;
use lasthop_wire::monitor::Captured;
use lasthop_wire::pcap;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::PathBuf;

/// What a capture holds.
#[derive(Default)]
struct Found {
    packets: u64,
    /// Frames with an A-MPDU status.
    aggregated: u64,
    block_acks: u64,
    a_msdus: u64,
    retries_in_ampdus: u64,
    last_flags: u64,
    vectors: BTreeSet<TxVector>,
    he_mcs: BTreeSet<u16>,
    by_receiver: BTreeMap<MacAddress, u64>,
    /// Sequence numbers of the MPDUs within A-MPDUs, unwrapped, by conversation.
    sequences: BTreeMap<(MacAddress, MacAddress, u8), Sequences>,
    /// As on the air.
    frames: Vec<Frame>,
    /// A-MPDUs alone, counted by reference number like the expected figures.
    ampdus: Tally,
    span: (Time, Time),
    truncated: bool,
}

/// Sequence numbers of one conversation, unwrapped: each is taken to lie within half the circle of the highest before it.
#[derive(Default)]
struct Sequences {
    highest: Option<i64>,
    /// How often each came.
    times: BTreeMap<i64, u64>,
}

impl Sequences {
    fn add(&mut self, number: u16) {
        let number = i64::from(number);
        let highest = self.highest.unwrap_or(number);
        let unwrapped = highest + (number - highest + 2_048).rem_euclid(4_096) - 2_048;
        self.highest = Some(highest.max(unwrapped));
        *self.times.entry(unwrapped).or_default() += 1;
    }

    /// Different numbers, and how many lie from the first to the last.
    fn distinct_and_span(&self) -> (usize, i64) {
        let ends = self.times.keys().next().zip(self.times.keys().next_back());
        (self.times.len(), ends.map_or(0, |(first, last)| last - first + 1))
    }

    /// How many numbers came once, twice, and so on.
    fn repetitions(&self) -> Vec<(u64, usize)> {
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        self.times.values().for_each(|times| *counts.entry(*times).or_default() += 1);
        counts.into_iter().collect()
    }
}

fn read(bytes: &[u8]) -> Found {
    let mut found = Found::default();
    let mut meters = [Grouping::Air, Grouping::Reference].map(|grouping| (Meter::new(grouping), Vec::new()));
    let mut capture = pcap::Stream::of(bytes);
    while let Some(packet) = capture.packet().expect("a pcap file") {
        let captured = Captured::parse(packet.bytes, packet.original as usize).expect("a radiotap header");
        if found.packets == 0 {
            found.span.0 = packet.at;
        }
        found.span.1 = packet.at;
        found.packets += 1;
        found.block_acks += u64::from(captured.header.is_some_and(|header| header.control.kind() == Kind::BlockAck));
        found.a_msdus += u64::from(captured.header.and_then(|header| header.qos).is_some_and(|qos| qos.is_a_msdu()));
        let status = captured.radiotap.ampdu;
        found.aggregated += u64::from(status.is_some());
        found.last_flags += u64::from(status.and_then(|status| status.last()) == Some(true));
        let Some(mpdu) = captured.mpdu() else { continue };
        if status.is_some() {
            found.retries_in_ampdus += u64::from(mpdu.retry);
            *found.by_receiver.entry(mpdu.receiver).or_default() += 1;
            found.sequences.entry((mpdu.transmitter, mpdu.receiver, mpdu.tid)).or_default().add(mpdu.sequence);
            found.vectors.extend(mpdu.tx);
            found.he_mcs.extend(captured.radiotap.he.map(|he| he.data[2] >> 8 & 0x0f));
        }
        for (meter, frames) in &mut meters {
            meter.receive(packet.at, &mpdu, &mut |frame| frames.push(*frame));
        }
    }
    for (meter, frames) in &mut meters {
        meter.finish(&mut |frame| frames.push(*frame));
    }
    found.truncated = capture.finish().expect("a pcap file");
    let [(_, air), (_, by_reference)] = meters;
    by_reference.iter().filter(|frame| frame.aggregated).for_each(|frame| found.ampdus.add(frame));
    found.frames = air;
    found
}

impl Found {
    /// A-MPDUs as they were on the air.
    fn air(&self) -> Tally {
        let mut tally = Tally::default();
        self.frames.iter().filter(|frame| frame.aggregated).for_each(|frame| tally.add(frame));
        tally
    }
}

/// The capture at `path` of the reference data; says so if it is not there.
fn reference(path: &str) -> Option<Found> {
    let root = match std::env::var_os("LASTHOP_REFERENCE") {
        Some(root) => PathBuf::from(root),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference"),
    };
    let path = root.join("captures").join(path);
    match std::fs::read(&path) {
        Ok(bytes) => Some(read(&bytes)),
        Err(error) => {
            // Past the capture of test output.
            let _ = writeln!(std::io::stderr(), "SKIPPED: {}: {error}", path.display());
            None
        }
    }
}

/// One of the small captures beside this file.
fn small(name: &str) -> Found {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/captures").join(name);
    read(&std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn histogram(found: &Found) -> Vec<(u32, u64)> {
    found.ampdus.received.histogram().collect()
}

#[test]
fn the_station_of_the_minstrel_run() {
    let path = "wifi_minstrel_blues_set/carambola2/carambola2-1-1-d10-10M-1.pcap";
    let Some(found) = reference(path) else { return };
    assert_eq!((found.packets, found.aggregated), (6_482, 6_207));
    assert_eq!(format!("{:.3}", found.span.1.since(found.span.0).as_secs_f64()), "8.706");
    assert!(found.vectors.iter().all(|tx| (tx.format, tx.mcs, tx.nss) == (Format::Ht, 1, 1)), "{:?}", found.vectors);
    assert_eq!((found.ampdus.received.frames(), found.last_flags), (1_540, 1_540));
    assert_eq!(format!("{:.4}", found.ampdus.received.mean().expect("frames")), "4.0305");
    assert_eq!(found.ampdus.received.max(), Some(7));
    assert_eq!(histogram(&found), [(4, 1_518), (5, 7), (6, 5), (7, 10)]);
    assert_eq!((found.a_msdus, found.retries_in_ampdus, found.ampdus.retries), (0, 1_487, 1_487));
    // Every number arrived, 1006 of them more than once: 6207 MPDUs are 4949 and 1258 repetitions. Nothing is unmatched.
    let only: Vec<&Sequences> = found.sequences.values().collect();
    let [sequences] = only[..] else { panic!("{} conversations", only.len()) };
    assert_eq!(sequences.distinct_and_span(), (4_949, 4_949));
    assert_eq!(sequences.repetitions(), [(1, 3_943), (2, 799), (3, 166), (4, 37), (5, 4)]);
    // On the air there were more: this driver goes on with a number when it missed the last subframe. 20 numbers hold the
    // MPDUs of two PPDUs and one those of three, as their sequence numbers show. With the lost subframes inferred, the
    // PPDUs are of four, as the access point says itself.
    let air = found.air();
    assert_eq!((air.received.frames(), air.received.max()), (1_562, Some(5)));
    let sent = air.packets.mean().expect("frames");
    assert!((sent - 4.0).abs() < 0.01 && !air.in_part, "{sent}");
}

#[test]
fn the_access_point_of_the_minstrel_run() {
    let Some(found) = reference("wifi_minstrel_blues_set/tp4300-2/tp4300-2-1-1-d10-10M-1.pcap") else { return };
    assert_eq!((found.packets, found.block_acks, found.aggregated), (1_776, 1_398, 25));
    assert_eq!((found.ampdus.received.frames(), found.ampdus.received.sum()), (17, 25));
    // A neighbour's frames of which one in some is heard: as many as came are known, and nothing of what else was in them.
    let mut neighbour = Tally::default();
    let from = |frame: &&Frame| frame.transmitter.to_string() == "78:94:b4:17:3f:44" && frame.aggregated;
    found.frames.iter().filter(from).for_each(|frame| neighbour.add(frame));
    assert_eq!((neighbour.in_part, neighbour.received.sum(), neighbour.missing), (true, 25, 0));
    assert_eq!(neighbour.packets, neighbour.received);
    let lone: u32 = found.frames.iter().filter(|frame| !frame.aggregated).map(|frame| frame.missing).sum();
    assert_eq!(lone, 0, "a lone MPDU has no others beside it");
}

#[test]
fn long_aggregates_of_ns_3() {
    for (name, mpdus, ampdus, mean, max, tx, receivers) in [
        ("vht_nss1_mcs4_n1_sta0", 2_901, 327, "8.8716", 12, (Format::Vht, 4, 1), &[2_901][..]),
        ("vht_nss2_mcs7_n3_sta0", 12_456, 200, "62.2800", 64, (Format::Vht, 7, 2), &[4_157, 4_150, 4_149]),
        ("he_nss2_mcs11_n1_sta0", 14_502, 328, "44.2134", 61, (Format::He, 11, 2), &[14_502]),
    ] {
        let Some(found) = reference(&format!("wifi_ns3/{name}.pcap")) else { return };
        assert_eq!(found.aggregated, mpdus, "{name}");
        let sizes = &found.ampdus.received;
        assert_eq!((sizes.sum(), sizes.frames(), sizes.max()), (mpdus, ampdus, Some(max)), "{name}");
        assert_eq!(format!("{:.4}", sizes.mean().expect("frames")), mean, "{name}");
        assert!(
            found.vectors.iter().all(|seen| (seen.format, seen.mcs, seen.nss) == tx),
            "{name}: {:?}",
            found.vectors
        );
        let mut by_receiver: Vec<u64> = found.by_receiver.values().copied().collect();
        by_receiver.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(by_receiver, receivers, "{name}");
        let air = found.air();
        assert_eq!((air.received == *sizes, air.missing), (true, 0), "{name}: nothing is lost in these runs");
    }
}

#[test]
fn the_beginnings_of_the_captures_of_ns_3() {
    for (name, packets, sizes, tx) in [
        ("ns3_vht_nss1_mcs4_n1_sta0.pcap", 75, &[6, 6, 8, 7, 7, 7, 8, 8][..], (Format::Vht, 4, 1)),
        ("ns3_vht_nss2_mcs7_n3_sta0.pcap", 71, &[8, 14, 20], (Format::Vht, 7, 2)),
        ("ns3_he_nss2_mcs11_n1_sta0.pcap", 71, &[29, 29], (Format::He, 11, 2)),
    ] {
        let found = small(name);
        let all: u32 = sizes.iter().sum();
        assert_eq!((found.packets, found.aggregated), (packets, u64::from(all)), "{name}");
        let frames: Vec<&Frame> = found.frames.iter().filter(|frame| frame.aggregated).collect();
        let got: Vec<u32> = frames.iter().map(|frame| frame.mpdus).collect();
        assert_eq!(got, sizes, "{name}");
        assert!(frames.iter().all(|frame| frame.missing == 0 && frame.msdus == frame.mpdus), "{name}");
        assert!(
            found.vectors.iter().all(|seen| (seen.format, seen.mcs, seen.nss) == tx),
            "{name}: {:?}",
            found.vectors
        );
        for (conversation, sequences) in &found.sequences {
            let (distinct, span) = sequences.distinct_and_span();
            assert_eq!(distinct as i64, span, "{name}, {conversation:?}: nothing was lost");
        }
        assert_eq!(found.ampdus, found.air(), "{name}: by reference number it is the same");
    }
}

#[test]
fn the_small_captures_of_the_tcpdump_group() {
    let exthdr = small("tcpdump_ieee802.11_exthdr.pcap");
    assert_eq!((exthdr.packets, exthdr.aggregated), (26, 0), "bit 20 of a second word is not the A-MPDU status");
    let htc = small("tcpdump_ieee802.11_htc.pcap");
    let tx = htc.frames.iter().filter_map(|frame| frame.tx).next().expect("one HE frame");
    assert_eq!((htc.packets, htc.frames.len(), tx.format, tx.mcs), (1, 1, Format::He, 9));
    let stbc = small("tcpdump_ieee802.11_rx-stbc.pcap");
    let sent: Vec<(Format, u8)> =
        stbc.frames.iter().filter_map(|frame| frame.tx).map(|tx| (tx.format, tx.mcs)).collect();
    assert_eq!(sent, [(Format::Ht, 7); 3]);
}
