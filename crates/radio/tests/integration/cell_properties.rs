//! What must hold in any cell, whatever is sent there.

use crate::common::cell;

use cell::{Log, cqi, packet, uplink};
use lasthop_radio::cell::mcs::Tables;
use lasthop_radio::cell::{
    Aggregation, Background, BlockError, Bursts, Cell, DecoderErrors, Handovers, Params, Scheduler, StationParams, Step,
};
use lasthop_radio::{Hop, NextEvent, wired};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn errors() -> impl Strategy<Value = BlockError> {
    prop_oneof![
        Just(BlockError::NONE),
        (0.0..1e-4f64, 0.0..1.0f64).prop_map(|(rate, combining)| BlockError::BitErrorRate { rate, combining }),
        (0.0..1.0f64, 0.0..1.0f64).prop_map(|(first, repeat)| BlockError::Fixed { first, repeat }),
    ]
}

/// Terminals stay in range: what waits for one that is not would wait for ever.
fn station() -> impl Strategy<Value = StationParams> {
    let step = (1u8..=15, errors());
    let decoder = (0.0..1.0f64, 0.0..1.0f64);
    let handovers = (vec(1u64..150, 0..3), 0u64..30);
    ((vec(step, 1..4), any::<bool>(), 1u8..=4), (0u8..3, 1u8..=3), (any::<bool>(), decoder), handovers).prop_map(
        |((steps, high, layers), (primary, carriers), (decodes, (missed, spurious)), (mut at, interruption))| {
            let ms = |n: u64| Time::ZERO + Span::from_millis(n);
            let steps = steps.into_iter().enumerate();
            // Times in steps of the interruption: in order, and far enough apart.
            at.sort_unstable();
            let at = at.iter().enumerate().map(|(n, at)| ms(*at + (interruption + 1) * n as u64)).collect();
            StationParams {
                channel: steps
                    .map(|(n, (quality, errors))| Step { at: ms(20 * n as u64), cqi: cqi(quality), errors })
                    .collect(),
                tables: if high { Tables::Qam256 } else { Tables::Qam64 },
                layers,
                primary,
                carriers,
                uplink: wired::Params { rate: Rate::from_mbit(10), delay: Span::from_millis(5), queue_packets: 20 },
                decodes,
                decoder: DecoderErrors { missed, spurious },
                handovers: Handovers { at, interruption: Span::from_millis(interruption) },
            }
        },
    )
}

fn background() -> impl Strategy<Value = Background> {
    prop_oneof![
        (1u8..=15, errors(), 1.0..100.0f64, 1u64..20_000, 1u8..=4).prop_map(|(quality, errors, rate, size, layers)| {
            Background::Data {
                carrier: 0,
                layers,
                tables: if layers % 2 == 0 { Tables::Qam256 } else { Tables::Qam64 },
                cqi: cqi(quality),
                errors,
                rate,
                bursts: Bursts::Exponential(Bytes::new(size)),
            }
        }),
        (1u8..=15, 1.0..1000.0f64).prop_map(|(quality, rate)| Background::Control {
            carrier: 0,
            cqi: cqi(quality),
            rate
        }),
    ]
}

fn params() -> impl Strategy<Value = Params> {
    let scheduler =
        prop_oneof![Just(Scheduler::RoundRobin), (1u32..200).prop_map(|window| Scheduler::ProportionalFair { window })];
    let aggregation = (1u64..50, 0.1..1.0f64, 0u64..30, 20u64..100);
    let cell = (vec(6u8..=110, 1..4), scheduler, any::<bool>(), 0u8..=4, 2_000u64..60_000);
    (cell, vec(station(), 1..5), vec(background(), 0..3), aggregation).prop_map(
        |((carriers, scheduler, use_remainder, lead, queue), stations, background, (window, share, delay, unused))| {
            let ms = Span::from_millis;
            let aggregation = Aggregation { window: ms(window), share, delay: ms(delay), unused: Some(ms(unused)) };
            let queue = Bytes::new(queue);
            let (mut stations, truth) = (stations, true);
            stations.iter_mut().for_each(|station| station.primary %= carriers.len() as u8);
            Params { carriers, scheduler, use_remainder, lead, queue, stations, background, aggregation, truth }
        },
    )
}

/// Packets by their time in microseconds, their station and their length; every fifth comes from the station.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u16, u64)>> {
    vec((0u64..80_000, 1u16..=4, 1u64..2_000), 1..200).prop_map(|mut all| {
        all.sort_unstable();
        all
    })
}

fn run(mut cell: Cell<u32>, params: &Params, arrivals: &[(u64, u16, u64)], step: Option<u64>) -> (Log, Cell<u32>) {
    let mut log = Log { completions: true, ..Log::default() };
    let stations = params.stations.len() as u16;
    for (n, (us, station, len)) in arrivals.iter().enumerate() {
        let (now, station) = (Time::ZERO + Span::from_micros(*us), (*station - 1) % stations + 1);
        // A driver that comes at every event, or at these times only.
        while let Some(at) = cell.next_event().filter(|at| step.is_none() && *at < now) {
            cell.advance(at, &mut log);
        }
        let packet = if n % 5 == 4 { uplink(station, *len, n as u32) } else { packet(station, *len, n as u32) };
        cell.enqueue(now, packet, &mut log);
    }
    let end = 2_000_000;
    for us in (100_000..=end).step_by(step.unwrap_or(end) as usize) {
        cell.advance(Time::ZERO + Span::from_micros(us), &mut log);
    }
    cell.advance(Time::ZERO + Span::from_micros(end), &mut log);
    (log, cell)
}

/// By station and direction.
fn way(arrivals: &[(u64, u16, u64)], stations: u16, n: u32) -> (u16, bool) {
    ((arrivals[n as usize].1 - 1) % stations, n % 5 == 4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_arrives_once_in_order_or_is_dropped(params in params(), arrivals in arrivals(), seed in any::<u64>()) {
        let plan = params.clone().validate().expect("legal parameters");
        let (log, cell) = run(Cell::new(plan, Seed(seed)), &params, &arrivals, None);
        let stations = params.stations.len() as u16;
        let mut fates = vec![0; arrivals.len()];
        let mut last: BTreeMap<(u16, bool), u32> = BTreeMap::new();
        for (at, queued_at, n) in &log.delivered {
            fates[*n as usize] += 1;
            prop_assert!(at >= queued_at);
            if let Some(before) = last.insert(way(&arrivals, stations, *n), *n) {
                prop_assert!(before < *n, "{before} before {n}");
            }
        }
        for (_, n, _) in &log.dropped {
            fates[*n as usize] += 1;
        }
        // The background may leave a station little; then its packets still wait.
        let waiting: usize = (1..=stations).map(|n| cell.backlog(Node(n)).0).sum();
        let lost = fates.iter().filter(|times| **times == 0).count();
        prop_assert!(fates.iter().all(|times| *times <= 1));
        prop_assert!(lost == 0 || waiting > 0, "{lost} are nowhere");
        if params.background.is_empty() {
            prop_assert_eq!((lost, waiting), (0, 0));
        }
    }

    #[test]
    fn no_carrier_gives_more_than_it_has(params in params(), arrivals in arrivals(), seed in any::<u64>()) {
        let plan = params.clone().validate().expect("legal parameters");
        let (log, _) = run(Cell::new(plan, Seed(seed)), &params, &arrivals, None);
        for shown in log.seen_by(Node(0)) {
            let given: u32 = shown.dcis.iter().map(|dci| u32::from(dci.prb)).sum();
            prop_assert!(given <= u32::from(shown.prb));
            let mut rntis: Vec<_> = shown.dcis.iter().map(|dci| dci.rnti).collect();
            rntis.sort_unstable();
            rntis.dedup();
            prop_assert_eq!(rntis.len(), shown.dcis.len(), "two assignments in a subframe");
            prop_assert!(shown.dcis.iter().all(|dci| dci.prb > 0 && dci.blocks.iter().any(Option::is_some)));
        }
    }

    #[test]
    fn what_happens_does_not_depend_on_when_one_looks(params in params(), arrivals in arrivals(), seed in any::<u64>()) {
        let plan = params.clone().validate().expect("legal parameters");
        let cell: Cell<u32> = Cell::new(plan, Seed(seed));
        let (often, _) = run(cell.clone(), &params, &arrivals, None);
        let (rarely, _) = run(cell, &params, &arrivals, Some(377_000));
        // A driver that is late gets what two directions have brought in another order.
        let sorted = |log: &Log| {
            let mut all = log.delivered.clone();
            all.sort_unstable();
            all
        };
        prop_assert_eq!(sorted(&often), sorted(&rarely));
        prop_assert_eq!(&often.reports, &rarely.reports);
        prop_assert_eq!(often.dropped, rarely.dropped);
    }
    #[test]
    fn what_decoders_get_wrong_changes_nothing_of_the_radio(params in params(), arrivals in arrivals(), seed in any::<u64>()) {
        let mut right = params.clone();
        right.stations.iter_mut().for_each(|station| station.decoder = DecoderErrors::default());
        let log = |params: &Params| run(Cell::new(params.clone().validate().expect("legal parameters"), Seed(seed)), params, &arrivals, None).0;
        let (wrong, right) = (log(&params), log(&right));
        prop_assert_eq!(&wrong.delivered, &right.delivered);
        prop_assert_eq!(&wrong.dropped, &right.dropped);
        prop_assert!(wrong.seen_by(Node(0)).eq(right.seen_by(Node(0))));
        prop_assert_eq!(wrong.reports.len(), right.reports.len());
        // A decoder that errs in nothing sees what was sent.
        for station in (1..=params.stations.len() as u16).filter(|n| params.stations[usize::from(*n) - 1].decodes) {
            for seen in right.seen_by(Node(station)) {
                let sent = right.seen_by(Node(0)).find(|sent| (sent.number, sent.carrier) == (seen.number, seen.carrier));
                prop_assert_eq!(sent.map(|sent| &sent.dcis), Some(&seen.dcis));
            }
        }
    }

    #[test]
    fn a_handover_loses_nothing(params in params(), arrivals in arrivals(), seed in any::<u64>()) {
        let mut kind = params.clone();
        // Nobody else, no block that is given up, and room for all.
        (kind.background, kind.queue) = (Vec::new(), Bytes::new(1_000_000));
        for station in &mut kind.stations {
            station.channel.iter_mut().for_each(|step| step.errors = BlockError::Fixed { first: 0.3, repeat: 0.0 });
            station.uplink.queue_packets = 1000;
        }
        let plan = kind.clone().validate().expect("legal parameters");
        let (log, _) = run(Cell::new(plan, Seed(seed)), &kind, &arrivals, None);
        prop_assert_eq!(log.delivered.len(), arrivals.len());
        prop_assert!(log.dropped.is_empty());
    }
}
