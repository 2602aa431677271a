//! The rewriter on recorded connections, taken from either end of each: whichever end is the station, windows only
//! fall, no edge that was let pass is taken back, and checksums stay valid.
//!
//! Input: 100 captures with losses from the Zeek project (reference data `captures/tcp_loss`).

use lasthop_laws::oal::rwnd::Rewriter;
use lasthop_signals::Node;
use lasthop_units::{Bytes, Time};
use lasthop_wire::tcp::{Flags, TcpHeader};
use lasthop_wire::{FlowKey, Link, TcpPacket};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

fn captures() -> Option<Vec<PathBuf>> {
    let root = std::env::var_os("LASTHOP_REFERENCE")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference"), PathBuf::from);
    let mut directories = vec![root.join("captures/tcp_loss/traces")];
    let mut files = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).ok()? {
            let path = entry.ok()?.path();
            if path.is_dir() { directories.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    Some(files)
}

/// Time and frame of every record of a little-endian microsecond pcap file.
fn frames(bytes: &[u8]) -> Vec<(Time, &[u8])> {
    let word = |at: usize| bytes.get(at..at + 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    assert_eq!(word(0), Some(0xa1b2_c3d4), "a little-endian microsecond pcap file");
    let mut frames = Vec::new();
    let mut at = 24;
    while let (Some(s), Some(us), Some(captured)) = (word(at), word(at + 4), word(at + 8)) {
        let Some(frame) = bytes.get(at + 16..at + 16 + captured as usize) else { break };
        frames.push((Time::from_nanos(u64::from(s) * 1_000_000_000 + u64::from(us) * 1_000), frame));
        at += 16 + captured as usize;
    }
    frames
}

#[derive(Default, Debug)]
struct Counts {
    segments: usize,
    valid: usize,
    rewritten: usize,
}

/// An account of one connection that is independent of the rewriter's own.
#[derive(Default)]
struct Account {
    /// Window scale options of the SYNs of both ends, station first.
    scales: [Option<u8>; 2],
    /// Highest edge that was let pass.
    edge: Option<u32>,
}

impl Account {
    fn shift(&self) -> u32 {
        match self.scales {
            [Some(station), Some(_)] => u32::from(station.min(14)),
            _ => 0,
        }
    }

    fn see(&mut self, from_station: bool, header: &TcpHeader) {
        if header.flags.contains(Flags::SYN) {
            if !header.flags.contains(Flags::ACK) {
                *self = Account::default();
            }
            self.scales[usize::from(!from_station)] = header.options.window_scale;
        }
    }
}

fn later(a: u32, b: u32) -> u32 {
    if (b.wrapping_sub(a) as i32) > 0 { b } else { a }
}

/// Feeds a capture through the rewriter; `is_station` says which end of a connection is behind the access point.
fn replay(frames: &[(Time, &[u8])], is_station: impl Fn(&FlowKey) -> bool, counts: &mut Counts) {
    let mut table = Rewriter::new(1_000);
    let mut accounts: BTreeMap<FlowKey, Account> = BTreeMap::new();
    for (now, frame) in frames {
        let Ok(Some(found)) = TcpPacket::parse(frame, Link::Ethernet) else { continue };
        let header = found.header;
        counts.segments += 1;
        let valid = found.checksum_is_valid(frame);
        counts.valid += usize::from(valid);
        let from_station = is_station(&found.flow);
        let uplink = if from_station { found.flow } else { found.flow.reversed() };
        let account = accounts.entry(uplink).or_default();
        account.see(from_station, &header);
        if !from_station {
            table.on_downlink(*now, found.flow, Node(1), &header);
            continue;
        }
        let rewritten = table.on_uplink(*now, found.flow, Node(1), &header);
        let mut flows = Vec::new();
        table.report(*now, |report| flows.push(report.flow));
        for flow in flows {
            table.set_target(flow, Some(Bytes::new(4_000)));
        }
        let window = rewritten.unwrap_or(header.window);
        if header.flags.contains(Flags::ACK) && !header.flags.intersects(Flags::SYN | Flags::RST) {
            let edge = header.ack.wrapping_add(u32::from(window) << account.shift());
            let highest = account.edge.map_or(edge, |highest| later(highest, edge));
            assert!(rewritten.is_none() || edge == highest, "took an edge back: {header:?} {rewritten:?}");
            account.edge = Some(highest);
        } else {
            assert_eq!(rewritten, None);
        }
        if rewritten.is_some() {
            counts.rewritten += 1;
            assert!(window > 0 && window < header.window);
            let mut bytes = frame.to_vec();
            found.set_window(&mut bytes, window);
            assert_eq!(found.checksum_is_valid(&bytes), valid);
        }
    }
}

#[test]
fn recorded_connections_are_rewritten_without_harm() {
    let Some(files) = captures().filter(|files| !files.is_empty()) else {
        // Past the capture of test output.
        let _ = writeln!(std::io::stderr(), "SKIPPED: reference data absent: captures/tcp_loss");
        return;
    };
    let mut counts = Counts::default();
    for file in &files {
        let bytes = std::fs::read(file).expect("a readable capture");
        let frames = frames(&bytes);
        replay(&frames, |flow| flow.source_port > flow.destination_port, &mut counts);
        replay(&frames, |flow| flow.source_port < flow.destination_port, &mut counts);
    }
    println!("{} captures: {counts:?}", files.len());
    assert!(counts.segments > 10_000 && counts.rewritten > 100, "{counts:?}");
    // Addresses were made anonymous in all files but one; tcpdump -vv calls 432 checksums right.
    assert_eq!(counts.valid, 2 * 432, "{counts:?}");
}
