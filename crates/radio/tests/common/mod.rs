//! Drives a Wi-Fi hop with constant-rate sources, as a simulator would.

#![allow(dead_code)]

pub mod cell;
pub mod chains;

use lasthop_radio::wifi::{Air, Plan, PpduRecord, Wifi};
use lasthop_radio::{AccessClass, Dest, Drop, Ecn, Hop, Outbox, Packet, RxInfo};
use lasthop_signals::{Node, Signal};
use lasthop_units::{Bytes, Seed, Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write;
use std::path::PathBuf;

/// A file of the ns-3 reference data, which is not part of the project: `LASTHOP_REFERENCE`, or `../shared/reference` seen
/// from the workspace. `None`, said loudly, if it is not there.
pub fn reference(name: &str) -> Option<String> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join("../shared/reference");
    let root = std::env::var_os("LASTHOP_REFERENCE").map_or_else(beside, PathBuf::from);
    let path = root.join("ns3").join(name);
    let text = std::fs::read_to_string(&path);
    if text.is_err() {
        // Past the capture of test output: a test that checked nothing must not look like one that passed.
        let line = format!("SKIPPED: reference data absent: {} (set LASTHOP_REFERENCE)\n", path.display());
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    text.ok()
}

/// A constant-rate source.
#[derive(Clone, Copy, Debug)]
pub struct Cbr {
    pub from: Node,
    pub to: Node,
    pub len: Bytes,
    /// Time of its first packet.
    pub first: Time,
    /// Nanoseconds between packets, with their fraction.
    pub gap_ns: f64,
}

impl Cbr {
    pub fn packet<P>(&self, payload: P) -> Packet<P> {
        Packet {
            len: self.len,
            src: self.from,
            dst: Dest::Node(self.to),
            class: AccessClass::BestEffort,
            flow_hash: u32::from(self.from.0) << 16 | u32::from(self.to.0),
            ecn: Ecn::NotEct,
            payload,
        }
    }
}

/// Runs sources against a hop until `end`. Payloads are `(source, number)`.
pub fn run(plan: Plan, seed: Seed, sources: &[Cbr], end: Time, out: &mut impl Air<(u32, u64)>) -> Wifi<(u32, u64)> {
    let mut hop = Wifi::new(plan, seed);
    let mut agenda: BinaryHeap<Reverse<(Time, u32)>> =
        sources.iter().enumerate().map(|(i, source)| Reverse((source.first, i as u32))).collect();
    let mut sent = vec![0u64; sources.len()];
    while let Some(Reverse((at, index))) = agenda.pop() {
        if at >= end {
            break;
        }
        let source = &sources[index as usize];
        hop.enqueue(at, source.packet((index, sent[index as usize])), out);
        sent[index as usize] += 1;
        let next = source.first + Span::from_nanos((sent[index as usize] as f64 * source.gap_ns) as u64);
        agenda.push(Reverse((next, index)));
    }
    hop.advance(end, out);
    hop
}

/// Counts what comes out of a window of time.
#[derive(Default)]
pub struct Tally {
    pub from: Time,
    pub to: Time,
    pub bytes: u64,
    pub packets: u64,
    pub dropped: u64,
    /// Data PPDUs, their MPDUs, those received.
    pub ppdus: u64,
    pub mpdus: u64,
    pub received: u64,
    pub delay_ms: f64,
    pub delays: Vec<f64>,
    pub reports: u64,
    /// Delay to the Ack: sum and count, kept for packets of the frame on the air.
    pub ack_delay_ms: f64,
    pub acked: u64,
    waiting: Vec<Time>,
}

impl Tally {
    pub fn new(from: Time, to: Time) -> Tally {
        Tally { from, to, ..Tally::default() }
    }

    fn counts(&self, at: Time) -> bool {
        (self.from..self.to).contains(&at)
    }

    pub fn mbit_s(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.to.since(self.from).as_secs_f64() / 1e6
    }

    pub fn mean_mpdus(&self) -> f64 {
        self.mpdus as f64 / self.ppdus.max(1) as f64
    }

    pub fn mean_delay_ms(&self) -> f64 {
        self.delay_ms / self.packets.max(1) as f64
    }

    pub fn mean_ack_delay_ms(&self) -> f64 {
        self.ack_delay_ms / self.acked.max(1) as f64
    }
}

impl<P> Outbox<P> for Tally {
    fn deliver(&mut self, at: Time, _to: Node, packet: Packet<P>, rx: &RxInfo) {
        if self.counts(at) {
            self.bytes += packet.len.get();
            self.packets += 1;
            let delay = at.since(rx.queued_at).as_millis_f64();
            self.delay_ms += delay;
            self.delays.push(delay);
            self.waiting.push(rx.queued_at);
        }
    }

    fn dropped(&mut self, at: Time, _packet: Packet<P>, _why: Drop) {
        self.dropped += u64::from(self.counts(at));
    }

    fn driver(&mut self, _at: Time, _of: Node, _signal: &Signal) {
        self.reports += 1;
    }
}

impl<P> Air<P> for Tally {
    fn ppdu(&mut self, at: Time, ppdu: &PpduRecord) {
        use lasthop_radio::wifi::PpduKind::{Ack, BlockAck, Data};
        if ppdu.kind == Data && ppdu.to.is_some() && self.counts(ppdu.start) {
            self.ppdus += 1;
            self.mpdus += u64::from(ppdu.mpdus);
            self.received += u64::from(ppdu.received);
        }
        if matches!(ppdu.kind, Ack | BlockAck) {
            for queued_at in self.waiting.drain(..) {
                self.ack_delay_ms += at.since(queued_at).as_millis_f64();
                self.acked += 1;
            }
        }
    }
}
