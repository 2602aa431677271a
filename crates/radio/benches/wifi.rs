//! Packets that the Wi-Fi hop by itself carries per second of CPU time, in the cases of ns-3's timing reference:
//! 802.11ac, 80 MHz, short guard interval, three streams at MCS 9, 80 % load, one station and twenty. The simulator's
//! own benchmark runs the same cases with everything around the hop.
//!
//! Prints `name value unit` lines, the best of some repetitions. Throughput and aggregation go to standard error, so
//! that the speed belongs to a result that can be checked.

use lasthop_radio::queue::Kind;
use lasthop_radio::wifi::{
    Air, GuardInterval, Mcs, NodeParams, Params, PpduKind, PpduRecord, Role, Standard, Width, Wifi,
};
use lasthop_radio::{AccessClass, Dest, Ecn, Hop, Outbox, Packet, RxInfo};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Seed, Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const REPETITIONS: usize = 7;
const SIMULATED: Span = Span::from_secs(10);
/// Packets a second, all stations together: ns-3 carried 750.6 Mbit/s of 1500-byte packets.
const PACKETS_PER_S: f64 = 62_550.0;

#[derive(Default)]
struct Count {
    packets: u64,
    bytes: u64,
    ppdus: u64,
    mpdus: u64,
    delay_ns: u64,
}

impl Outbox<u32> for Count {
    fn deliver(&mut self, at: Time, _to: Node, packet: Packet<u32>, rx: &RxInfo) {
        self.packets += 1;
        self.bytes += packet.len.get();
        self.delay_ns += at.since(rx.queued_at).as_nanos();
    }
}

impl Air<u32> for Count {
    fn ppdu(&mut self, _at: Time, ppdu: &PpduRecord) {
        if ppdu.kind == PpduKind::Data {
            self.ppdus += 1;
            self.mpdus += u64::from(ppdu.mpdus);
        }
    }
}

fn simulate(stations: u16, seed: u64) -> Count {
    let mcs = Mcs::new(9, 3);
    let mut nodes = vec![NodeParams::new(Role::Ap, mcs)];
    nodes.extend((0..stations).map(|_| NodeParams::new(Role::Station { ap: Node(0) }, mcs)));
    let mut params = Params::new(Standard::Dot11ac, Width::Mhz80, GuardInterval::Ns400, nodes);
    params.ap_queue = Kind::Fifo { packets: 1000.max(500 * usize::from(stations)) };
    let mut hop: Wifi<u32> = Wifi::new(params.validate().expect("legal"), Seed(seed));
    let mut out = Count::default();
    let gap = Span::from_secs_f64(f64::from(stations) / PACKETS_PER_S);
    // Sources in the order of their next packet, as a simulator's agenda holds them.
    let mut agenda: BinaryHeap<Reverse<(Time, u16)>> =
        (1..=stations).map(|i| Reverse((Time::ZERO + gap.scale(f64::from(i) / f64::from(stations)), i))).collect();
    let end = Time::ZERO + SIMULATED;
    while let Some(mut first) = agenda.peek_mut() {
        let Reverse((at, station)) = *first;
        if at >= end {
            break;
        }
        first.0.0 = at + gap;
        drop(first);
        let packet = Packet {
            len: Bytes::new(1500),
            src: Node(0),
            dst: Dest::Node(Node(station)),
            class: AccessClass::BestEffort,
            flow_hash: u32::from(station),
            ecn: Ecn::NotEct,
            payload: 0,
        };
        hop.enqueue(at, packet, &mut out);
    }
    hop.advance(end, &mut out);
    out
}

/// CPU time of this process in seconds.
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid, writable timespec for the duration of the call.
    let answer = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(answer, 0, "CLOCK_PROCESS_CPUTIME_ID is always there on Linux");
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() {
    // `cargo test --benches` only wants to know that it runs.
    let repetitions = if std::env::args().any(|arg| arg == "--bench") { REPETITIONS } else { 1 };
    for stations in [1, 20] {
        let mut speeds = Vec::with_capacity(repetitions);
        let mut last = Count::default();
        for seed in 0..repetitions as u64 {
            let start = cpu_seconds();
            last = simulate(stations, seed);
            speeds.push(last.packets as f64 / (cpu_seconds() - start));
        }
        speeds.sort_by(f64::total_cmp);
        println!("radio.wifi_{stations}sta.packets_per_cpu_s {:.0} packets/s", speeds[repetitions - 1]);
        eprintln!(
            "{stations} stations: {:.2} Mbit/s, {:.2} MPDUs a PPDU, mean delay {:.4} ms",
            last.bytes as f64 * 8.0 / SIMULATED.as_secs_f64() / 1e6,
            last.mpdus as f64 / last.ppdus as f64,
            last.delay_ns as f64 / last.packets as f64 / 1e6
        );
    }
}
