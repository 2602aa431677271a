//! What the controllers of an edge proxy keep beside what every law does, whatever they are shown: stations that lie, fall silent,
//! repeat themselves, count backwards; proxies that restart.

use super::signals::{count, feedback};
use lasthop_laws::aggregation::{Allocation, LinearPi, OverheadRule, Params, PiParams, Regulator};
use lasthop_laws::{Decision, HopLaw};
use lasthop_signals::{FlowId, FrameSource, HopReport, Node, Signal, StationFeedback, StreamReport};
use lasthop_units::{Bytes, Rate, Span, Time};
use proptest::prelude::*;

fn params() -> impl Strategy<Value = Params> {
    let allocation = prop_oneof![Just(Allocation::Exact), Just(Allocation::Paper)];
    let rule = prop_oneof![Just(OverheadRule::Access), Just(OverheadRule::Round)];
    (allocation, rule, 0.05..3.0f64, 0.05..3.0f64).prop_map(|(allocation, overhead_rule, k1, k2)| Params {
        allocation,
        overhead_rule,
        k1,
        k2,
        ..Params::default()
    })
}

fn signal() -> impl Strategy<Value = Signal> {
    prop_oneof![
        6 => feedback(),
        6 => (0u16..6, count(), count(), any::<bool>()).prop_map(|(station, packets, bytes, waiting)| {
            Signal::Stream(StreamReport { station: Node(station), packets, bytes: Bytes::new(bytes), waiting })
        }),
        2 => (0u16..6).prop_map(|station| Signal::Idle(Node(station))),
        3 => Just(Signal::Wakeup),
        1 => Just(Signal::Recovered),
        1 => Just(Signal::FlowGone(FlowId(1))),
        1 => Just(Signal::Hop(HopReport::default())),
    ]
}

fn decisions(law: &dyn HopLaw, now: Time) -> Vec<(FlowId, Decision)> {
    let mut decisions = Vec::new();
    law.decide(now, &mut |flow, decision| decisions.push((flow, decision)));
    decisions
}

/// Every stream is paced, and faster than one packet of 65 535 B every 20 us, the least overhead that is believed, none is.
fn check(decisions: &[(FlowId, Decision)]) -> Result<(), TestCaseError> {
    for (flow, decision) in decisions {
        let rate = decision.pacing.expect("it paces");
        prop_assert!(rate <= Rate::from_mbit(6_000_000), "{flow:?}: {decision:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_history_makes_the_regulator_flood_or_starve(
        params in params(),
        history in prop::collection::vec((0u64..700_000_000, signal()), 0..150),
    ) {
        let (mut law, mut now) = (Regulator::new(params).expect("valid"), Time::ZERO);
        for (gap, signal) in &history {
            now += Span::from_nanos(*gap);
            law.sense(now, signal);
            check(&decisions(&law, now))?;
            // A packet in ten rounds of single packets, or one a second from a backhaul that carries nothing.
            let active = || law.views().filter(|view| view.active);
            let singles = law.overhead() + active().map(|view| view.airtime).sum::<f64>();
            for view in active() {
                prop_assert!(view.rate >= 0.999 * (0.1 / singles).min(1.0), "{view:?} in rounds of {singles} s");
            }
        }
    }

    #[test]
    fn no_history_makes_the_predecessor_flood(
        history in prop::collection::vec((0u64..700_000_000, signal()), 0..150),
    ) {
        let (mut law, mut now) = (LinearPi::new(PiParams::default()).expect("valid"), Time::ZERO);
        for (gap, signal) in &history {
            now += Span::from_nanos(*gap);
            law.sense(now, signal);
            check(&decisions(&law, now))?;
        }
    }
}

#[test]
fn a_stale_slot_changes_nothing() {
    let mut law = Regulator::new(Params::default()).expect("valid");
    let report = |slot, packets| {
        Signal::Station(StationFeedback {
            station: Node(1),
            slot,
            start: Time::ZERO,
            end: Time::ZERO + Span::from_millis(500),
            frames: 500,
            packets,
            packets_squared: 0,
            min_packets: 1,
            max_packets: 64,
            inverse_rate_sum: 500.0 / 390e6,
            received: packets,
            highest_sequence: packets,
            lost: 0,
            delay_mean: None,
            delay_max: None,
            source: FrameSource::Radiotap,
        })
    };
    let at = |ms: u64| Time::ZERO + Span::from_millis(ms);
    (1..20u32).for_each(|slot| law.sense(at(u64::from(slot) * 500), &report(slot, 10_000)));
    let before = decisions(&law, at(10_000));
    law.sense(at(9_800), &report(7, 32_000));
    law.sense(at(9_900), &report(19, 32_000));
    assert_eq!(before, decisions(&law, at(10_000)));
}
