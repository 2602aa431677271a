//! What every hop law must keep, whatever it is shown: stations that come and go, drivers that restart, rates of zero,
//! flows with an unknown round trip.

use lasthop_laws::oal::{AccessPoint, CapacityRule, Params, Weights, WindowRule};
use lasthop_laws::{Decision, HopLaw};
use lasthop_signals::{ChannelTime, FlowId, FlowReport, HopReport, Node, Signal, StationReport};
use lasthop_units::{Bytes, Rate, Span, Time};
use proptest::prelude::*;
use std::collections::BTreeMap;

const MSS: u64 = 1448;

/// What happens in one control interval.
#[derive(Clone, Debug)]
struct Interval {
    gap_us: u64,
    /// For each of four stations: absent, or what it did.
    stations: Vec<Option<Did>>,
    flows: Vec<Flow>,
    restart: bool,
    gone: Option<u32>,
}

#[derive(Clone, Debug)]
struct Did {
    exchanges: u64,
    frames: u64,
    backlog: u32,
    drops: u64,
    phy_mbit: u64,
}

#[derive(Clone, Debug)]
struct Flow {
    id: u32,
    station: u16,
    acked: u64,
    rtt_ms: Option<u64>,
    idle: bool,
}

fn interval() -> impl Strategy<Value = Interval> {
    let did = (0u64..20, 0u64..65, 0u32..2000, 0u64..5, prop_oneof![Just(0u64), 1u64..1300])
        .prop_map(|(exchanges, frames, backlog, drops, phy_mbit)| Did { exchanges, frames, backlog, drops, phy_mbit });
    let flow = (0u32..6, 0u16..6, 0u64..2_000_000, proptest::option::of(0u64..300), any::<bool>())
        .prop_map(|(id, station, acked, rtt_ms, idle)| Flow { id, station, acked, rtt_ms, idle });
    (
        0u64..50_000,
        proptest::collection::vec(proptest::option::weighted(0.8, did), 4),
        proptest::collection::vec(flow, 0..4),
        proptest::bool::weighted(0.05),
        proptest::option::weighted(0.1, 0u32..6),
    )
        .prop_map(|(gap_us, stations, flows, restart, gone)| Interval { gap_us, stations, flows, restart, gone })
}

fn params() -> impl Strategy<Value = Params> {
    let weights =
        prop_oneof![Just(Weights::Flow), Just(Weights::Station), Just(Weights::Airtime), Just(Weights::PotentialDelay)];
    let capacity = prop_oneof![Just(CapacityRule::Airtime), Just(CapacityRule::Paper)];
    let window = prop_oneof![Just(WindowRule::Unloaded), Just(WindowRule::Paper), Just(WindowRule::Learned)];
    (weights, capacity, window).prop_map(|(weights, capacity, window)| Params {
        weights,
        capacity,
        window,
        ..Params::default()
    })
}

/// Counters as a driver keeps them, except that absent stations lose theirs.
#[derive(Default)]
struct Driver {
    active: Span,
    tx: Span,
    stations: BTreeMap<u16, StationReport>,
}

impl Driver {
    fn report(&mut self, interval: &Interval) -> HopReport {
        if interval.restart {
            *self = Driver::default();
        }
        self.active += Span::from_micros(interval.gap_us);
        for (number, did) in (1u16..).zip(&interval.stations) {
            let Some(did) = did else {
                self.stations.remove(&number);
                continue;
            };
            let station = self.stations.entry(number).or_insert_with(|| StationReport::unseen(Node(number)));
            let sent = did.exchanges * did.frames;
            *station.tx_attempts.get_or_insert(0) += sent;
            station.tx_packets += sent;
            station.tx_bytes += Bytes::new(sent * 1500);
            *station.tx_ppdus.get_or_insert(0) += did.exchanges;
            station.queue_drops += did.drops;
            let airtime = Span::from_micros(did.exchanges * (90 + did.frames * 12));
            *station.tx_airtime.get_or_insert(Span::ZERO) += airtime;
            self.tx += airtime;
            station.backlog_packets = did.backlog;
            station.backlog_bytes = Bytes::new(u64::from(did.backlog) * 1500);
            station.phy_rate = Rate::from_mbit(did.phy_mbit);
        }
        let channel = ChannelTime {
            active: self.active,
            busy: Some(self.tx),
            rx: Some(Span::ZERO),
            tx: Some(self.tx),
            ..ChannelTime::default()
        };
        HopReport { channel, stations: self.stations.values().copied().collect(), ..HopReport::default() }
    }
}

fn decisions(law: &dyn HopLaw, now: Time) -> Vec<(FlowId, Decision)> {
    let mut decisions = Vec::new();
    law.decide(now, &mut |flow, decision| decisions.push((flow, decision)));
    decisions
}

proptest! {
    #[test]
    fn windows_are_sane_and_unknown_stations_are_left_alone(
        params in params(),
        history in proptest::collection::vec(interval(), 0..60),
    ) {
        let mut law: Box<dyn HopLaw> = Box::new(AccessPoint::new(params).expect("valid parameters"));
        let (mut driver, mut now) = (Driver::default(), Time::ZERO);
        let mut station_of = BTreeMap::new();
        let mut acked: BTreeMap<u32, u64> = BTreeMap::new();
        for interval in &history {
            now += Span::from_micros(interval.gap_us);
            for flow in &interval.flows {
                let total = acked.entry(flow.id).or_default();
                *total += flow.acked;
                let station = *station_of.entry(flow.id).or_insert(flow.station);
                law.sense(now, &Signal::Flow(FlowReport {
                    flow: FlowId(flow.id),
                    station: Node(station),
                    forwarded: Bytes::new(*total + MSS),
                    acked: Bytes::new(*total),
                    in_flight: Bytes::new(MSS),
                    wired_rtt: flow.rtt_ms.map(Span::from_millis),
                    wireless_rtt: flow.rtt_ms.map(|_| Span::from_micros(500)),
                    mss: Bytes::new(MSS),
                    advertised: Bytes::new(1 << 20),
                    last_data: if flow.idle { Time::ZERO } else { now },
                    recovering: false,
                }));
            }
            if let Some(gone) = interval.gone {
                law.sense(now, &Signal::FlowGone(FlowId(gone)));
                station_of.remove(&gone);
                acked.remove(&gone);
            }
            let report = driver.report(interval);
            // A copy of the law as it was before this interval's account of the hop decides as the law itself does.
            let mut copy = law.clone();
            law.sense(now, &Signal::Hop(report.clone()));
            copy.sense(now, &Signal::Hop(report.clone()));
            let first = decisions(&*law, now);
            prop_assert_eq!(&first, &decisions(&*law, now), "deciding has no side effect");
            prop_assert_eq!(&first, &decisions(&*copy, now), "a copy decides the same");
            prop_assert!(first.is_sorted_by_key(|(flow, _)| *flow));
            for (flow, decision) in &first {
                let reported = report.stations.iter().any(|s| s.station == Node(station_of[&flow.0]) && !s.phy_rate.is_zero());
                prop_assert!(reported || decision.rwnd.is_none(), "{flow:?} is limited by a link that nobody knows");
                prop_assert!(decision.rwnd.is_none_or(|rwnd| rwnd >= Bytes::new(2 * MSS)), "{decision:?}");
            }
        }
    }
}
