//! A regulator on a channel that others use too: how long its rounds may become.

use lasthop_laws::HopLaw;
use lasthop_laws::aggregation::{OverheadRule, Params, Regulator};
use lasthop_signals::{Node, Signal, StationFeedback, StreamReport};
use lasthop_units::{Bytes, Span, Time};

/// The set point after a minute in which each of `stations` has reported frames of `level` packets every `interval` at `mbit`.
fn set_point(params: &Params, stations: u16, level: f64, interval: Span, mbit: f64) -> f64 {
    let mut law = Regulator::new(params.clone()).expect("valid");
    let slot = Span::from_millis(500);
    for number in 0..120u32 {
        let start = Time::ZERO + slot * u64::from(number);
        let frames = (slot.as_secs_f64() / interval.as_secs_f64()).round();
        for station in (1..=stations).map(Node) {
            let packets = (frames * level) as u64 * u64::from(number + 1);
            let bytes = Bytes::new(packets * 1500);
            law.sense(start + slot, &Signal::Stream(StreamReport { station, packets, bytes, waiting: true }));
            let feedback = StationFeedback {
                frames: frames as u32,
                packets: (frames * level) as u64,
                inverse_rate_sum: frames / (mbit * 1e6),
                ..StationFeedback::empty(station, number + 1, start, start + slot)
            };
            law.sense(start + slot, &Signal::Station(feedback));
        }
    }
    law.set_point()
}

#[test]
fn only_stations_with_less_than_the_others_may_wait_longer() {
    let params = Params::default();
    let target = params.target;
    // 20 packets of 32 us in a round of 10 ms, and an access of 200 us: others have 0.916 of the time, these stations 0.064.
    let claimed = set_point(&params, 1, 20.0, target, 390.0);
    let claim = 0.3 * (0.9165 - 0.0635) / 0.98;
    assert!((claimed / (20.0 * (1.0 + claim)) - 1.0).abs() < 0.01, "{claimed}");
    // Two stations at 87.75 Mbit/s with 25 packets each take 0.7 of it.
    let content = set_point(&params, 2, 25.0, target, 87.75);
    assert!((content - 25.0).abs() < 0.1, "{content}");
    // Rounds of 5 ms: nobody fills the rest, and the set point is as far away as the target makes it.
    let alone = set_point(&params, 1, 20.0, target / 2, 390.0);
    assert!((alone - 40.0).abs() < 0.1, "{alone}");
    // And as published nobody does.
    let published = Params { overhead_rule: OverheadRule::Round, ..params.clone() };
    let modest = set_point(&published, 1, 20.0, target, 390.0);
    assert!((modest - 20.0).abs() < 0.2, "{modest}");
}
