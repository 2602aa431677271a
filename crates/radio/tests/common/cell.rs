//! A cell at work, and what it hands out.
#![allow(dead_code, reason = "each user of this module uses part of it")]

use lasthop_radio::cell::mcs::Cqi;
use lasthop_radio::cell::{Cell, Params, StationParams};
use lasthop_radio::{AccessClass, Completion, Dest, Drop, Ecn, Hop, Outbox, Packet, RxInfo};
use lasthop_signals::{CellSubframe, Node, Signal};
use lasthop_units::{Bytes, Seed, Span, Time};

/// What has been handed out.
#[derive(Clone, Default)]
pub struct Log {
    /// When, when it was queued, and its number.
    pub delivered: Vec<(Time, Time, u32)>,
    pub dropped: Vec<(Time, u32, Drop)>,
    pub reports: Vec<(Time, Node, CellSubframe)>,
    pub completed: Vec<Completion>,
    pub completions: bool,
}

impl Log {
    /// What one station has decoded.
    pub fn seen_by(&self, node: Node) -> impl Iterator<Item = &CellSubframe> {
        self.reports.iter().filter(move |(_, of, _)| *of == node).map(|(_, _, shown)| shown)
    }
}

impl Outbox<u32> for Log {
    fn deliver(&mut self, at: Time, _to: Node, packet: Packet<u32>, rx: &RxInfo) {
        self.delivered.push((at, rx.queued_at, packet.payload));
    }
    fn dropped(&mut self, at: Time, packet: Packet<u32>, why: Drop) {
        self.dropped.push((at, packet.payload, why));
    }
    fn wants_completions(&self) -> bool {
        self.completions
    }
    fn completed(&mut self, _at: Time, completion: &Completion) {
        self.completed.push(*completion);
    }
    fn driver(&mut self, at: Time, of: Node, signal: &Signal) {
        if let Signal::Subframe(shown) = signal {
            self.reports.push((at, of, shown.clone()));
        }
    }
}

/// A quality by its number.
pub fn cqi(number: u8) -> Cqi {
    Cqi::new(number).expect("0 to 15")
}

/// A station of constant quality.
pub fn station(quality: u8) -> StationParams {
    StationParams::new(cqi(quality))
}

/// A packet from the base station.
pub fn packet(to: u16, len: u64, payload: u32) -> Packet<u32> {
    between(Node(0), Node(to), len, payload)
}

/// A packet to the base station.
pub fn uplink(from: u16, len: u64, payload: u32) -> Packet<u32> {
    between(Node(from), Node(0), len, payload)
}

fn between(src: Node, dst: Node, len: u64, payload: u32) -> Packet<u32> {
    let (dst, class, ecn) = (Dest::Node(dst), AccessClass::BestEffort, Ecn::NotEct);
    Packet { len: Bytes::new(len), src, dst, class, flow_hash: 0, ecn, payload }
}

/// A cell in which something waits for every station for so many milliseconds; packets of 1452 octets. Only the first station decodes.
pub fn saturated(mut params: Params, milliseconds: u64) -> Log {
    params.queue = Bytes::new(200_000);
    params.stations.iter_mut().skip(1).for_each(|station| station.decodes = false);
    let stations = params.stations.len() as u16;
    let mut cell = Cell::new(params.validate().expect("legal parameters"), Seed(1));
    let (mut log, mut number) = (Log::default(), 0);
    for n in 0..milliseconds {
        let now = Time::ZERO + Span::from_millis(n);
        cell.advance(now, &mut log);
        for station in 1..=stations {
            while cell.backlog(Node(station)).1 < Bytes::new(100_000) {
                cell.enqueue(now, packet(station, 1452, number), &mut log);
                number += 1;
            }
        }
    }
    cell.advance(Time::ZERO + Span::from_millis(milliseconds), &mut log);
    log
}

/// A number that looks random.
pub fn uniform(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) ^ number
}
