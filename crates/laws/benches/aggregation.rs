//! Cost of one control interval of the aggregation regulator with a thousand stations, a station.

// A benchmark measures wall-clock time.
#![allow(clippy::disallowed_methods)]

use lasthop_laws::HopLaw;
use lasthop_laws::aggregation::{Params, Regulator};
use lasthop_signals::{FrameSource, Node, Signal, StationFeedback, StreamReport};
use lasthop_units::{Bytes, Span, Time};
use std::hint::black_box;
use std::time::Instant;

const STATIONS: u16 = 1000;

/// Everything that a proxy does in a slot: two reports a station in, the tick, the rates out.
fn slot(law: &mut Regulator, number: u32) -> u64 {
    let now = Time::ZERO + Span::from_millis(500) * u64::from(number);
    for station in (1..=STATIONS).map(Node) {
        let packets = u64::from(number) * 50;
        let stream = StreamReport { station, packets, bytes: Bytes::new(packets * 1500), waiting: true };
        law.sense(now, &Signal::Stream(stream));
        law.sense(
            now,
            &Signal::Station(StationFeedback {
                station,
                slot: number,
                start: now.saturating_sub(Span::from_millis(500)),
                end: now,
                frames: 2,
                packets: 50,
                packets_squared: 1250,
                min_packets: 25,
                max_packets: 25,
                inverse_rate_sum: 2.0 / (87.75e6 + f64::from(station.0) * 1e6),
                received: 50,
                highest_sequence: packets,
                lost: 0,
                delay_mean: None,
                delay_max: None,
                source: FrameSource::Radiotap,
            }),
        );
    }
    let mut sum = 0;
    law.decide(now, &mut |_, decision| sum += decision.pacing.map_or(0, |rate| rate.as_bps()));
    sum
}

fn main() {
    // `cargo test --benches` only wants to know whether it runs.
    let rounds = if std::env::args().any(|arg| arg == "--bench") { 300 } else { 3 };
    let mut law = Regulator::new(Params::default()).expect("valid parameters");
    (1..=3).for_each(|number| {
        black_box(slot(&mut law, number));
    });
    let mut took: Vec<f64> = (4..4 + rounds)
        .map(|number| {
            let began = Instant::now();
            black_box(slot(&mut law, number));
            began.elapsed().as_nanos() as f64 / f64::from(STATIONS)
        })
        .collect();
    took.sort_by(f64::total_cmp);
    println!("law.aggregation.tick_ns_per_station {:.0} ns", took[took.len() / 2]);
}
