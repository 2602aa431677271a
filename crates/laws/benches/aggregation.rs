//! What the aggregation regulator costs a station in a control interval, with a thousand stations: where all of them wait all the time, and
//! where most come and go. CPU time of the thread.

use lasthop_laws::HopLaw;
use lasthop_laws::aggregation::{Params, Regulator};
use lasthop_signals::{FrameSource, Node, Signal, StationFeedback, StreamReport};
use lasthop_units::{Bytes, Span, Time};
use nix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::Duration;

fn main() {
    // `cargo test --benches` only wants to know whether it runs.
    let measured = std::env::args().any(|arg| arg == "--bench");
    let tick = median(if measured { 300 } else { 3 }, all_wait);
    println!("law.aggregation.tick_ns_per_station {tick:.0} ns");
    let by_looks = median(if measured { 20 } else { 1 }, |law, number| come_and_go(law, number, Told::ByLooks));
    println!("law.aggregation.come_and_go_ns_per_station {by_looks:.0} ns");
    let one_by_one = median(if measured { 4 } else { 1 }, |law, number| come_and_go(law, number, Told::OneByOne));
    println!("law.aggregation.come_and_go_singly_ns_per_station {one_by_one:.0} ns");
}

const STATIONS: u16 = 1000;
/// Milliseconds.
const SLOT: u64 = 500;
/// Slots that are not measured: nothing is known of the stations.
const FIRST: u32 = 3;

/// Nanoseconds of CPU time a station, median of so many slots.
fn median(slots: u32, mut slot: impl FnMut(&mut Regulator, u32) -> u64) -> f64 {
    let mut law = Regulator::new(Params::default()).expect("valid parameters");
    (1..=FIRST).for_each(|number| {
        black_box(slot(&mut law, number));
    });
    let mut took: Vec<f64> = (FIRST + 1..=FIRST + slots)
        .map(|number| {
            let began = thread_time();
            black_box(slot(&mut law, number));
            (thread_time() - began).as_nanos() as f64 / f64::from(STATIONS)
        })
        .collect();
    took.sort_by(f64::total_cmp);
    took[took.len() / 2]
}

/// CPU time that the calling thread has had.
fn thread_time() -> Duration {
    Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("it is always there"))
}

/// Everything that a proxy does in a slot: two reports a station in, the tick, the rates out.
fn all_wait(law: &mut Regulator, number: u32) -> u64 {
    let now = at(number, 0);
    for station in (1..=STATIONS).map(Node) {
        let packets = u64::from(number) * 50;
        law.sense(now, &Signal::Stream(stream(station, packets, true)));
        law.sense(now, &Signal::Station(feedback(station, number, packets, (2, 50))));
    }
    rates(law, now)
}

/// How a slot's events are told.
#[derive(Clone, Copy, PartialEq)]
enum Told {
    /// As the proxy does: every 2 ms what has happened since, and then it asks for the rates once.
    ByLooks,
    /// As the simulator does: each at its moment, and it asks for the rates after each.
    OneByOne,
}

/// A look of the proxy, milliseconds.
const LOOK: u64 = 2;

/// The same where 100 stations wait all the time, 800 fetch four packets once a slot, of which 200 do so in every second slot only and are
/// absent in between, and 100 fetch four packets five times a slot. They come at moments that are all over the slot.
fn come_and_go(law: &mut Regulator, number: u32, told: Told) -> u64 {
    // What happens within a slot: when, to which station, and whether something waits from then on.
    let mut events: Vec<(u64, Node, bool)> = Vec::new();
    for station in (1..=STATIONS).map(Node) {
        let phase = u64::from(station.0) * 7919 % 80;
        for time in 0..fetches(station, number) {
            let comes = 3 + phase + 100 * ((u64::from(station.0) + time) % 5);
            events.extend([(comes, station, true), (comes + 11, station, false)]);
        }
    }
    events.sort();
    let mut sum = 0;
    for look in events.chunk_by(|a, b| a.0 / LOOK == b.0 / LOOK) {
        // When the look ends.
        let now = at(number, (look[0].0 / LOOK + 1) * LOOK);
        let signal = |(_, station, waits): &(u64, Node, bool)| match waits {
            true => Signal::Stream(stream(*station, sent(*station, number) - 1, true)),
            false => Signal::Idle(*station),
        };
        let signals: Vec<Signal> = look.iter().map(signal).collect();
        let together = if told == Told::ByLooks { signals.len() } else { 1 };
        for signals in signals.chunks(together) {
            law.sense_all(now, signals);
            sum += rates(law, now);
        }
    }
    let now = at(number + 1, 0);
    for station in (1..=STATIONS).map(Node) {
        let (fetches, packets) = (fetches(station, number), sent(station, number));
        let frames = if waits_always(station) { (2, 50) } else { (fetches as u32, 4 * fetches) };
        law.sense(now, &Signal::Stream(stream(station, packets, waits_always(station))));
        law.sense(now, &Signal::Station(feedback(station, number + 1, packets, frames)));
    }
    sum + rates(law, now)
}

fn waits_always(station: Node) -> bool {
    station.0.is_multiple_of(10)
}

/// How often something comes for a station in a slot.
fn fetches(station: Node, number: u32) -> u64 {
    match station.0 % 10 {
        0 => 0,
        1 => 5,
        2 | 3 => u64::from(number % 2),
        _ => 1,
    }
}

/// Packets that it has been sent when a slot ends.
fn sent(station: Node, number: u32) -> u64 {
    let each = |slot: u32| if waits_always(station) { 50 } else { 4 * fetches(station, slot) };
    (0..=number).map(each).sum::<u64>() + 1
}

fn at(slot: u32, ms: u64) -> Time {
    Time::ZERO + Span::from_millis(SLOT) * u64::from(slot) + Span::from_millis(ms)
}

fn stream(station: Node, packets: u64, waiting: bool) -> StreamReport {
    StreamReport { station, packets, bytes: Bytes::new(packets * 1500), waiting }
}

/// Of the slot that ends when that of this number begins.
fn feedback(station: Node, number: u32, highest: u64, (frames, packets): (u32, u64)) -> StationFeedback {
    let each = packets.checked_div(u64::from(frames)).unwrap_or(0);
    StationFeedback {
        station,
        slot: number,
        start: at(number - 1, 0),
        end: at(number, 0),
        frames,
        packets,
        packets_squared: u64::from(frames) * each * each,
        min_packets: each as u16,
        max_packets: each as u16,
        inverse_rate_sum: f64::from(frames) / (87.75e6 + f64::from(station.0) * 1e6),
        received: packets,
        highest_sequence: highest,
        lost: 0,
        delay_mean: None,
        delay_max: None,
        source: FrameSource::Radiotap,
    }
}

fn rates(law: &Regulator, now: Time) -> u64 {
    let mut sum = 0;
    law.decide(now, &mut |_, decision| sum += decision.pacing.map_or(0, |rate| rate.as_bps()));
    sum
}
