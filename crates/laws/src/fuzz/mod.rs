//! What must hold on any bytes, a function for each fuzz target of this crate. A function panics
//! where it does not hold.
//!
//! Nothing of the laws panics; the functions say what must hold besides. `fuzz/README.md` says
//! how they are run.

mod cell_history;
mod cell_log;
#[cfg(test)]
#[path = "../../../../fuzz/seeds.rs"]
mod seeds;
#[cfg(test)]
mod tests;

use crate::aggregation::meter::{Frame, Grouping, LONGEST, Meter, Tally};
use crate::oal::features::FEATURES;
use crate::oal::lesson::Lesson;
use crate::oal::rwnd::Flow;
use crate::oal::tree::Tree;
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::dci::Format;
use lasthop_wire::monitor::Captured;
use lasthop_wire::pcap::Stream;
use lasthop_wire::{Link, TcpPacket};

/// Subframes of an LTE cell and arrivals, to PBE-CC's receiver: it tells no more than the
/// carriers can carry, and decides the same when it is asked again. `cell_history` says how bytes
/// are read.
pub fn dci(bytes: &[u8]) {
    cell_history::play(bytes);
}

/// A log of a cell in NR-Scope's CSV, through the order of slots and the meter: no more is told
/// than the carrier has, and every DCI is counted once.
pub fn dci_csv(bytes: &[u8]) {
    cell_log::play(Format::NrScope, bytes);
}

/// As [`dci_csv`], of NG-Scope's JSON.
pub fn dci_json(bytes: &[u8]) {
    cell_log::play(Format::NgScopeJson, bytes);
}

/// As [`dci_csv`], of NG-Scope's lines.
pub fn dci_text(bytes: &[u8]) {
    cell_log::play(Format::NgScope, bytes);
}

/// A lesson: one that is read is written as it was.
pub fn lesson(bytes: &[u8]) {
    if let Ok(lesson) = Lesson::decode(bytes) {
        assert_eq!(lesson.encode(), bytes);
    }
}

/// A capture file, its frames through the aggregation meter: no frame lasts longer than the
/// longest, and every good MPDU is counted once.
pub fn pcap(bytes: &[u8]) {
    let mut capture = Stream::of(bytes);
    let (mut meter, mut tally, mut good, mut now) = (Meter::new(Grouping::Air), Tally::default(), 0u64, Time::ZERO);
    let mut add = |frame: &Frame| {
        assert!(frame.end.since(frame.start) <= LONGEST);
        tally.add(frame);
    };
    while let Ok(Some(packet)) = capture.packet() {
        let Ok(captured) = Captured::parse(packet.bytes, packet.original as usize) else { continue };
        let Some(mpdu) = captured.mpdu() else { continue };
        // Captures of broken clocks exist; the meter is promised one that does not go back.
        now = now.max(packet.at);
        good += u64::from(mpdu.fcs_good);
        meter.receive(now, &mpdu, &mut add);
    }
    meter.finish(&mut add);
    assert_eq!(tally.received.sum(), good);
}

/// Packets in any order and direction, through the rewriter: windows only fall, none becomes
/// zero, and a checksum stays as valid as it was.
///
/// The bytes are a target window (4 octets), then packets, each behind its length (1 octet) and
/// direction (1 octet).
pub fn rewriter(bytes: &[u8]) {
    let Some((target, mut rest)) = bytes.split_first_chunk::<4>() else { return };
    let mut flow = Flow::default();
    flow.set_target(Some(Bytes::new(u64::from(u32::from_le_bytes(*target)))));
    let mut now = Time::ZERO;
    while let [len, direction, after @ ..] = rest {
        let (packet, next) = after.split_at(usize::from(*len).min(after.len()));
        rest = next;
        now += Span::from_micros(u64::from(*direction) * 100);
        let Ok(Some(found)) = TcpPacket::parse(packet, Link::Ip) else { continue };
        if direction % 2 == 0 {
            flow.on_downlink(now, &found.header);
        } else if let Some(window) = flow.on_uplink(now, &found.header) {
            assert!(window > 0 && window < found.header.window);
            let mut rewritten = packet.to_vec();
            found.set_window(&mut rewritten, window);
            assert_eq!(found.checksum_is_valid(&rewritten), found.checksum_is_valid(packet));
        }
    }
}

/// A decision tree: one that is read is written as it was, and decides on any vector.
pub fn tree(bytes: &[u8]) {
    if let Ok(tree) = Tree::decode(bytes) {
        assert_eq!(tree.encode(), bytes);
        for value in [f32::NAN, f32::NEG_INFINITY, -1.0, 0.0, 1.0, 1e9, f32::INFINITY] {
            tree.classify(&[value; FEATURES.len()]);
        }
    }
}
