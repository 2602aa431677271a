//! The LTE cell against published and measured figures of others, and its rules one by one.
//!
//! ns-3's own tests: src/lte/test of ns-3-dev. S5 and S7: measured with ns-3.37 (reference data beside this repository).

use crate::common::cell;

use cell::{Log, cqi, packet, saturated, station, uniform};
use lasthop_radio::cell::mcs::Tables;
use lasthop_radio::cell::{
    Aggregation, Background, BlockError, Bursts, Cell, Params, Plan, Scheduler, StationParams, Step,
};
use lasthop_radio::{Drop, Hop, NextEvent};
use lasthop_signals::{Dci, Node, Rnti};
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use std::collections::BTreeMap;

fn ms(n: u64) -> Time {
    Time::ZERO + Span::from_millis(n)
}

/// As ns-3's schedulers do it: what does not divide evenly is not used.
fn as_ns3(prb: u8, scheduler: Scheduler, stations: Vec<StationParams>) -> Params {
    Params { scheduler, use_remainder: false, ..Params::new(vec![prb], stations) }
}

fn plan(params: Params) -> Plan {
    params.validate().expect("legal parameters")
}

/// Blocks of each station by their bits, of the subframes in which they were sent.
fn blocks(params: Params, subframes: std::ops::Range<u64>) -> BTreeMap<u16, Vec<u32>> {
    let log = saturated(params, subframes.end);
    let mut all: BTreeMap<u16, Vec<u32>> = BTreeMap::new();
    for shown in log.seen_by(Node(1)).filter(|shown| subframes.contains(&shown.number)) {
        for Dci { rnti, blocks, .. } in &shown.dcis {
            all.entry(rnti.0 - 0x3d).or_default().extend(blocks.iter().flatten().map(|block| block.bits));
        }
    }
    all
}

const PF: Scheduler = Scheduler::PROPORTIONAL_FAIR;
const RR: Scheduler = Scheduler::RoundRobin;

#[test]
fn blocks_are_those_of_ns3s_reference_runs() {
    // S5, s5_lte_dl.csv: scheduler, CQI, terminals; blocks of each in 5 s, and their bits.
    let rows = [
        (PF, 15, 1, 5000, 35_160),
        (PF, 15, 2, 2500, 35_160),
        (PF, 15, 4, 1250, 35_160),
        (PF, 7, 1, 5000, 9_528),
        (PF, 7, 2, 2500, 9_528),
        (PF, 7, 4, 1250, 9_528),
        (RR, 15, 1, 5000, 35_160),
        (RR, 15, 2, 5000, 17_568),
        (RR, 15, 4, 5000, 8_760),
        (RR, 7, 1, 5000, 9_528),
        (RR, 7, 2, 5000, 4_776),
        (RR, 7, 4, 5000, 2_408),
    ];
    for (scheduler, quality, count, number, bits) in rows {
        let got = blocks(as_ns3(50, scheduler, vec![station(quality); count]), 1000..6000);
        assert_eq!(got.len(), count, "{scheduler:?}, CQI {quality}");
        for (terminal, all) in got {
            assert_eq!(all.len(), number, "{scheduler:?}, CQI {quality}, terminal {terminal} of {count}");
            assert!(all.iter().all(|block| *block == bits), "{scheduler:?}, CQI {quality}: {:?}", &all[..4]);
        }
    }
}

/// Octets a second of each terminal over `milliseconds` after 300 ms.
fn rates(params: Params, milliseconds: u64) -> Vec<f64> {
    let got = blocks(params, 300..300 + milliseconds);
    got.values()
        .map(|all| all.iter().map(|bits| f64::from(bits / 8)).sum::<f64>() * 1000.0 / milliseconds as f64)
        .collect()
}

#[test]
fn proportional_fair_rates_are_those_of_ns3s_tests() {
    // lte-test-pf-ff-mac-scheduler, case 1: 25 PRBs; the scheme of each distance and its octets a second, shared by all.
    for (quality, mcs, total) in
        [(15, 28, 2_196_000.0), (12, 22, 1_383_000.0), (11, 20, 1_191_000.0), (8, 14, 775_000.0), (5, 8, 421_000.0)]
    {
        for count in [1, 3, 6, 12, 15] {
            let want = total / count as f64;
            for got in rates(as_ns3(25, PF, vec![station(quality); count]), 600) {
                assert!((got / want - 1.0).abs() <= 0.1, "MCS {mcs}, {count} terminals: {got}, ns-3 expects {want}");
            }
        }
    }
}

#[test]
fn unequal_terminals_have_equal_times() {
    // Case 2 of the same test: shares by the rates that ns-3 expects, which it holds to 0.1.
    let expected = [90_000.0, 37_000.0, 37_000.0, 17_400.0, 17_400.0];
    let got = rates(as_ns3(25, PF, [15, 12, 11, 8, 5].map(station).to_vec()), 400);
    let (all, every) = (got.iter().sum::<f64>(), expected.iter().sum::<f64>());
    for (got, want) in got.iter().zip(expected) {
        assert!((got / all - want / every).abs() <= 0.1, "{got} of {all}, ns-3 expects {want} of {every}");
    }
    // Proportional fairness with constant channels: a fifth of the time for each.
    for (got, alone) in got.iter().zip([2_196_000.0, 1_383_000.0, 1_191_000.0, 775_000.0, 421_000.0]) {
        assert!((got * 5.0 / alone - 1.0).abs() < 0.06, "{got} of {alone}");
    }
}

#[test]
fn round_robin_rates_are_those_of_ns3s_tests() {
    // lte-test-rr-ff-mac-scheduler: 1, 3, 6, 9, 12 and 15 terminals on 25 PRBs, octets a second of each.
    let rows = [
        (15, [2_196_000.0, 749_000.0, 373_000.0, 185_000.0, 185_000.0, 148_000.0]),
        (12, [1_383_000.0, 469_000.0, 233_000.0, 113_000.0, 113_000.0, 90_400.0]),
        (11, [1_191_000.0, 389_000.0, 193_000.0, 97_000.0, 97_000.0, 77_600.0]),
        (5, [421_000.0, 137_000.0, 67_000.0, 32_000.0, 32_000.0, 25_600.0]),
    ];
    for (quality, expected) in rows {
        for (count, want) in [1, 3, 6, 9, 12, 15].into_iter().zip(expected) {
            for got in rates(as_ns3(25, RR, vec![station(quality); count]), 400) {
                assert!((got / want - 1.0).abs() <= 0.1, "CQI {quality}, {count}: {got}, ns-3 expects {want}");
            }
        }
    }
}

#[test]
fn repeats_cost_what_ns3s_harq_tests_expect() {
    // lte-test-harq: every first transmission fails, and this share of the second. Octets a second for blocks of so many octets, here by octet.
    for (count, quality, repeat, expected) in [(2, 1, 0.074, 31_822.0 / 66.0), (1, 6, 0.248, 209_964.0 / 472.0)] {
        let mut one = station(quality);
        one.channel[0].errors = BlockError::Fixed { first: 1.0, repeat };
        let params = as_ns3(25, RR, vec![one; count]);
        let new = |blocks: &BTreeMap<u16, Vec<u32>>| {
            let all = blocks.values().map(|all| {
                let sizes: Vec<u32> = all.iter().copied().filter(|bits| *bits > 0).collect();
                assert!(sizes.iter().all(|bits| *bits == sizes[0]));
                sizes.len() as f64
            });
            all.collect::<Vec<_>>()
        };
        // A block's size tells nothing here: blocks that arrive a second, for each octet of them.
        for blocks in new(&blocks(params, 100..20_100)) {
            let got = blocks / 20.0;
            assert!((got / expected - 1.0).abs() <= 0.1, "{count} terminals: {got}, ns-3 expects {expected}");
        }
    }
}

/// A channel on which every block fails that is first sent in these subframes, and no repeat.
fn failing(subframes: std::ops::Range<u64>) -> StationParams {
    let mut one = station(15);
    let step = |at, first| Step { at: ms(at), cqi: cqi(15), errors: BlockError::Fixed { first, repeat: 0.0 } };
    one.channel = vec![step(0, 0.0), step(subframes.start, 1.0), step(subframes.end, 0.0)];
    one
}

/// When each block's packets came later than without an error, in milliseconds, by the subframe of its first transmission.
fn delays(one: StationParams, until: u64) -> Vec<(u64, u64)> {
    let mut cell = Cell::new(plan(Params::new(vec![50], vec![one])), Seed(1));
    let mut log = Log::default();
    // One packet a subframe, in a block of its own, queued half a millisecond before the decision.
    for n in 0..until {
        cell.enqueue(ms(n) + Span::from_micros(500), packet(1, 1000, n as u32), &mut log);
    }
    cell.advance(ms(until + 100), &mut log);
    // Decided at n + 1, on the air in n + 3, here at n + 4.
    log.delivered
        .iter()
        .map(|(at, _, n)| (u64::from(*n) + 3, at.since(ms(u64::from(*n) + 4)).as_nanos() / 1_000_000))
        .collect()
}

#[test]
fn one_repeat_delays_by_eight_and_the_next_by_seven_to_nought() {
    // The PBE paper's figure 3.
    let all = delays(failing(20..21), 40);
    let late: Vec<_> = all.iter().filter(|(_, late)| *late > 0).copied().collect();
    // In the subframe of the repeat, 28, nothing new is sent: the packet of then shares the next block, which gains nothing.
    assert_eq!(late, [(20, 8), (21, 7), (22, 6), (23, 5), (24, 4), (25, 3), (26, 2), (27, 1), (28, 1)]);
    assert_eq!(all.len(), 40);
    assert!(all.is_sorted());
}

#[test]
fn three_harq_repeats_take_24_ms_and_a_fourth_failure_loses() {
    let all_fail = |until| {
        let mut one = failing(20..21);
        one.channel[1].errors = BlockError::Fixed { first: 1.0, repeat: 1.0 };
        one.channel[2] = Step { at: ms(21), errors: BlockError::Fixed { first: 0.0, repeat: 1.0 }, ..one.channel[2] };
        one.channel.push(Step { at: ms(until), errors: BlockError::NONE, ..one.channel[2] });
        one
    };
    // Repeats in 28, 36 and 44: the last one arrives.
    let all = delays(all_fail(44), 60);
    assert_eq!(all.iter().find(|(subframe, _)| *subframe == 20), Some(&(20, 24)));
    assert_eq!(all.len(), 60);
    // It fails as well.
    let all = delays(all_fail(45), 60);
    assert!(all.iter().all(|(subframe, _)| *subframe != 20));
    assert_eq!((all.len(), all.iter().find(|(subframe, _)| *subframe == 21)), (59, Some(&(21, 23))));
}

#[test]
fn what_is_given_up_is_dropped_once() {
    let mut one = station(15);
    one.channel[0].errors = BlockError::Fixed { first: 1.0, repeat: 1.0 };
    let log = saturated(Params::new(vec![50], vec![one]), 200);
    let lost = log.dropped.iter().filter(|(_, _, why)| *why == Drop::RetryLimit).count();
    assert!(lost > 100 && log.delivered.is_empty(), "{lost} lost");
    // Four transmissions a block.
    let blocks = log.seen_by(Node(1)).take(199).flat_map(|shown| shown.dcis.clone());
    let versions = blocks.filter_map(|dci| dci.blocks[0]).map(|block| block.redundancy).collect::<Vec<_>>();
    assert_eq!(versions[..32], [[0; 8], [2; 8], [3; 8], [1; 8]].concat());
}

#[test]
fn a_lone_packet_takes_three_to_four_milliseconds() {
    // S7's last row: a terminal with 3 Mbit/s of UDP beside one with nothing: mean 3.5 ms, at most 4.
    let mut cell = Cell::new(plan(Params::new(vec![50], vec![station(15)])), Seed(1));
    let mut log = Log::default();
    let gap = Rate::from_mbit(3).time_for(Bytes::new(1400)).expect("a rate");
    for n in 0..2000 {
        let within_a_millisecond = Span::from_nanos(uniform(n) % 1_000_000);
        cell.enqueue(Time::ZERO + gap * n + within_a_millisecond, packet(1, 1400, n as u32), &mut log);
    }
    cell.advance(ms(9_000), &mut log);
    let delays: Vec<f64> = log.delivered.iter().map(|(at, queued, _)| at.since(*queued).as_millis_f64()).collect();
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    let most = delays.iter().copied().fold(0.0, f64::max);
    assert_eq!(delays.len(), 2000);
    assert!((mean - 3.5).abs() < 0.02 && most <= 4.0 && most > 3.95, "mean {mean}, most {most}");
}

#[test]
fn headers_take_what_they_take_in_ns3() {
    // S7: 33.7994 of 35.16 Mbit/s with segments of 1400 octets in packets of 1452. MAC's header, which ns-3 leaves out, is 0.02 % more.
    let log = saturated(as_ns3(50, PF, vec![StationParams { decodes: false, ..station(15) }]), 5000);
    let payload = log.delivered.iter().filter(|(at, ..)| *at > ms(1000)).count() as f64 * 1400.0 * 8.0;
    let goodput = payload / 4.0 / 1e6;
    assert!((goodput / 33.7994 - 1.0).abs() < 0.001, "{goodput} Mbit/s");
}

#[test]
fn saturated_terminals_have_equal_shares() {
    for scheduler in [PF, RR] {
        let got = blocks(Params { scheduler, ..Params::new(vec![50], vec![station(15); 2]) }, 1000..3000);
        let bits: Vec<f64> = got.values().map(|all| all.iter().map(|bits| f64::from(*bits)).sum()).collect();
        assert!((bits[0] / bits[1] - 1.0).abs() < 0.001, "{scheduler:?}: {bits:?}");
        // Nothing is left over: 36696 bits at best.
        assert!(bits.iter().sum::<f64>() > 0.985 * 36_696.0 * 2000.0, "{scheduler:?}: {bits:?}");
    }
}

/// PRBs by terminal in each subframe.
fn prbs(log: &Log) -> Vec<BTreeMap<u16, u16>> {
    log.seen_by(Node(1)).map(|shown| shown.dcis.iter().map(|dci| (dci.rnti.0 - 0x3d, dci.prb)).collect()).collect()
}

#[test]
fn one_that_ends_leaves_its_prbs_to_the_other_at_once() {
    // The PBE paper's figure 5, as far as the cell goes.
    let params = Params { scheduler: RR, ..Params::new(vec![100], vec![station(15); 2]) };
    let mut cell = Cell::new(plan(params), Seed(1));
    let mut log = Log::default();
    for n in 0..500 {
        cell.enqueue(Time::ZERO, packet(1, 1452, n), &mut log);
    }
    for n in 0..100 {
        cell.enqueue(Time::ZERO, packet(2, 1452, n), &mut log);
    }
    cell.advance(ms(60), &mut log);
    let prbs = prbs(&log);
    let last = prbs.iter().rposition(|given| given.contains_key(&1)).expect("terminal 1 had its turn");
    assert!(prbs[last - 3..last].iter().all(|given| given[&0].abs_diff(given[&1]) <= 4));
    assert_eq!(prbs[last][&0] + prbs[last][&1], 100);
    assert_eq!(prbs[last + 1], BTreeMap::from([(0, 100)]));
}

/// A terminal that is sent packets evenly at a rate, for two seconds: its carriers then, and the mean wait in its queue.
fn paced(rate: Rate) -> (usize, Span, Log) {
    let aggregation = Aggregation { unused: None, ..Aggregation::default() };
    let params = Params { aggregation, ..Params::new(vec![50, 50], vec![station(15)]) };
    let mut cell = Cell::new(plan(params), Seed(1));
    let mut log = Log { completions: true, ..Log::default() };
    let gap = rate.time_for(Bytes::new(1452)).expect("a rate");
    let count = 2_000_000_000 / gap.as_nanos();
    for n in 0..count {
        cell.enqueue(Time::ZERO + gap * n, packet(1, 1452, n as u32), &mut log);
    }
    let waits: Span = log.completed.iter().map(|done| done.head_at.since(done.queued_at)).sum();
    let mean = waits / log.completed.len() as u64;
    (cell.active_carriers(Node(1)), mean, log)
}

#[test]
fn a_carrier_comes_by_use_without_a_queue() {
    // One carrier holds 36.7 Mbit/s.
    let (carriers, wait, log) = paced(Rate::from_mbit(33));
    assert_eq!(carriers, 2);
    assert!(wait < Span::from_millis(2), "{wait:?}");
    // It is told which carriers are its own: the first from the beginning, the second 24 ms after 100 ms of use.
    let first = log.seen_by(Node(1)).find(|shown| shown.carrier == 1 && shown.own.is_some());
    let first = first.expect("a second carrier").number;
    assert!((110..140).contains(&first), "{first}");
    assert!(log.seen_by(Node(1)).filter(|shown| shown.carrier == 0).all(|shown| shown.own == Some(Rnti(0x3d))));
    let (carriers, _, _) = paced(Rate::from_mbit(20));
    assert_eq!(carriers, 1);
}

/// Figure 2 of PBE-CC: 40 Mbit/s come to a terminal with a first carrier of C1 < 40; what waits when the second comes,
/// after `t`, is gone t (40 - C1) / (C1 + C2 - 40) later.
#[test]
fn a_backlog_drains_at_what_both_carriers_have_left() {
    let mut cell = Cell::new(plan(Params::new(vec![50, 50], vec![station(12)])), Seed(1));
    let (offered, mut log) = (40.0e6, Log::default());
    let gap = Rate::from_mbit(40).time_for(Bytes::new(1500)).expect("a rate");
    let (mut sent, mut came, mut drained) = (0, None, None);
    for at in 1..2_000 {
        while Time::ZERO + gap * sent < ms(at) {
            cell.enqueue(Time::ZERO + gap * sent, packet(1, 1500, sent as u32), &mut log);
            sent += 1;
        }
        cell.advance(ms(at), &mut log);
        if came.is_none() && log.seen_by(Node(1)).any(|shown| shown.carrier == 1 && shown.own.is_some()) {
            came = Some(at);
        }
        // A subframe or two of arrivals always wait.
        if came.is_some() && drained.is_none() && cell.backlog(Node(1)).0 <= 7 {
            drained = Some(at);
        }
    }
    let (came, drained) = (came.expect("a second carrier"), drained.expect("an empty queue"));
    let alone = log.delivered.iter().filter(|(at, ..)| (ms(20)..ms(100)).contains(at)).count() as f64;
    let one = alone * 1500.0 * 8.0 / 0.08;
    let expected = came as f64 * (offered - one) / (2.0 * one - offered);
    let took = (drained - came) as f64;
    assert!((took / expected - 1.0).abs() < 0.1, "{took} ms after {came} ms, not {expected}; one carrier has {one}");
}

#[test]
fn two_carriers_keep_one_order_and_add_up() {
    let mut one = station(15);
    one.channel[0].errors = BlockError::BitErrorRate { rate: 5e-6, combining: BlockError::COMBINING };
    let aggregation = Aggregation { unused: None, ..Aggregation::default() };
    let log = saturated(Params { aggregation, ..Params::new(vec![50, 100], vec![one]) }, 4000);
    let order: Vec<u32> = log.delivered.iter().map(|(_, _, n)| *n).collect();
    assert!(order.is_sorted());
    let rate = log.delivered.iter().filter(|(at, ..)| *at > ms(1000)).count() as f64 * 1452.0 * 8.0 / 3.0 / 1e6;
    // e is 0.167 and 0.314 for blocks of 36696 and 75376 bits, and a repeat fails a tenth as often: 36.7 / 1.17 + 75.4 / 1.32 = 88, less headers.
    assert!((83.0..89.0).contains(&rate), "{rate} Mbit/s");
}

#[test]
fn two_layers_are_two_blocks_each_with_its_own_repeats() {
    let mut one = StationParams { layers: 2, ..station(15) };
    one.channel[0].errors = BlockError::Fixed { first: 0.3, repeat: 0.0 };
    let log = saturated(Params::new(vec![100], vec![one]), 1000);
    let dcis: Vec<Dci> = log.seen_by(Node(1)).skip(10).flat_map(|shown| shown.dcis.clone()).collect();
    assert!(dcis.iter().all(|dci| dci.blocks.iter().all(Option::is_some)), "no layer is idle");
    let mixed = dcis.iter().filter(|dci| {
        let [Some(a), Some(b)] = dci.blocks else { return false };
        a.is_repeat() != b.is_repeat()
    });
    let mixed = mixed.count() as f64 / dcis.len() as f64;
    // Of blocks, 0.3 / 1.3 are repeats: mixed are twice 0.23 * 0.77.
    assert!((mixed - 0.355).abs() < 0.05, "{mixed}");
    let order: Vec<u32> = log.delivered.iter().map(|(_, _, n)| *n).collect();
    assert!(order.is_sorted());
}

#[test]
fn three_and_four_layers_are_two_blocks_one_of_them_on_two() {
    // 36.213 tables 7.1.7.2.1-1 and 7.1.7.2.2-1 at MCS 28 and 100 PRB pairs.
    for (layers, want) in [(3, [75_376, 149_776]), (4, [149_776, 149_776])] {
        let mut params = Params::new(vec![100], vec![StationParams { layers, ..station(15) }]);
        params.lead = 0;
        let log = saturated(params, 200);
        for shown in log.seen_by(Node(1)).skip(1) {
            let bits: Vec<u32> =
                shown.dcis.iter().flat_map(|dci| dci.blocks.iter().flatten()).map(|block| block.bits).collect();
            assert_eq!(bits, want, "subframe {}", shown.number);
        }
        // 1452 octets of packets in what headers leave.
        let rate = log.delivered.iter().filter(|(at, ..)| *at > ms(100)).count() as f64 * 1452.0 * 8.0 / 0.1;
        let blocks = f64::from(want[0] + want[1]) * 1000.0;
        assert!((0.99..0.9985).contains(&(rate / blocks)), "{rate} of {blocks}");
    }
}

#[test]
fn the_control_channel_tells_new_blocks_from_repeats() {
    let mut one = station(15);
    one.channel[0].errors = BlockError::Fixed { first: 0.2, repeat: 0.5 };
    let log = saturated(Params::new(vec![50], vec![one]), 2000);
    let mut last: BTreeMap<u8, (u64, bool)> = BTreeMap::new();
    let mut repeats = 0;
    for shown in log.seen_by(Node(1)) {
        for dci in &shown.dcis {
            let block = dci.blocks[0].expect("one layer");
            if let Some((subframe, new_data)) = last.insert(dci.process, (shown.number, block.new_data)) {
                assert_eq!(shown.number, subframe + 8);
                assert_eq!(block.new_data == new_data, block.is_repeat());
            }
            repeats += u32::from(block.is_repeat());
            assert_eq!(block.is_repeat(), block.mcs == 31);
        }
    }
    assert!(repeats > 300, "{repeats}");
}

#[test]
fn an_idle_cell_costs_nothing() {
    let silent = StationParams { decodes: false, ..station(15) };
    let mut cell = Cell::new(plan(Params::new(vec![50], vec![silent])), Seed(1));
    let mut log = Log::default();
    assert_eq!(cell.next_event(), None);
    cell.advance(ms(100_000), &mut log);
    cell.enqueue(ms(100_000) + Span::from_micros(300), packet(1, 1000, 7), &mut log);
    assert_eq!(cell.next_event(), Some(ms(100_001)));
    cell.advance(ms(100_003), &mut log);
    assert_eq!((log.delivered.len(), cell.next_event()), (0, Some(ms(100_004))));
    cell.advance(ms(100_004), &mut log);
    assert_eq!((log.delivered.len(), log.reports.len(), cell.next_event()), (1, 0, None));
}

#[test]
fn nothing_is_sent_out_of_range_and_a_change_counts_at_once() {
    let step = |at, number| Step { at: ms(at), cqi: cqi(number), errors: BlockError::NONE };
    let one = StationParams { channel: vec![step(0, 0), step(100, 15), step(200, 7)], ..station(15) };
    let log = saturated(as_ns3(50, PF, vec![one]), 300);
    let bits = |from: u64, to: u64| {
        let of = log.seen_by(Node(1)).filter(move |shown| (from..to).contains(&shown.number));
        of.map(|shown| shown.dcis.iter().filter_map(|dci| dci.blocks[0]).map(|block| block.bits).sum::<u32>())
            .collect::<Vec<_>>()
    };
    assert_eq!(bits(0, 102), [0; 102]);
    assert_eq!(bits(102, 202), [35_160; 100]);
    assert_eq!(bits(202, 300), [9_528; 98]);
}

#[test]
fn the_background_takes_what_it_was_given() {
    let background = vec![
        Background::Data {
            carrier: 0,
            layers: 1,
            tables: Tables::Qam64,
            cqi: cqi(10),
            errors: BlockError::NONE,
            rate: 20.0,
            bursts: Bursts::Exponential(Bytes::new(50_000)),
        },
        Background::Control { carrier: 0, cqi: cqi(7), rate: 300.0 },
    ];
    let params = Params { background, ..Params::new(vec![50], vec![station(15)]) };
    let mut cell = Cell::new(plan(params), Seed(3));
    let mut log = Log::default();
    cell.advance(ms(20_000), &mut log);
    let (mut data, mut control) = (0u64, BTreeMap::new());
    for shown in log.seen_by(Node(1)) {
        assert!(shown.dcis.iter().map(|dci| u32::from(dci.prb)).sum::<u32>() <= 50);
        for dci in &shown.dcis {
            if dci.rnti == Rnti(0x3e) {
                data += u64::from(dci.blocks[0].expect("a block").bits) / 8;
            } else {
                assert_eq!(dci.prb, 4);
                *control.entry(dci.rnti).or_insert(0) += 1;
            }
        }
    }
    // 8 Mbit/s, with headers and padding; 6000 terminals, each once. Means of 400 bursts and of 6000 arrivals.
    let rate = data as f64 * 8.0 / 20.0 / 1e6;
    assert!((6.5..10.0).contains(&rate), "{rate} Mbit/s");
    assert!((5700..6300).contains(&control.len()), "{}", control.len());
    assert!(control.values().all(|times| *times == 1));
}

#[test]
fn a_full_queue_drops_the_newest_and_uplinks_are_lines() {
    let mut cell =
        Cell::new(plan(Params { queue: Bytes::new(10_000), ..Params::new(vec![50], vec![station(15); 2]) }), Seed(1));
    let mut log = Log::default();
    for n in 0..8 {
        cell.enqueue(Time::ZERO, packet(1, 1498, n), &mut log);
    }
    let dropped: Vec<_> = log.dropped.iter().map(|(_, n, why)| (*n, *why)).collect();
    assert_eq!(dropped, [(6, Drop::QueueFull), (7, Drop::QueueFull)]);
    assert_eq!(cell.backlog(Node(1)), (6, Bytes::new(9000)));
    assert_eq!((cell.backlog(Node(2)), cell.oldest(Node(1))), ((0, Bytes::ZERO), Some(Time::ZERO)));
    let up = cell::uplink(2, 1250, 9);
    cell.enqueue(ms(10), up, &mut log);
    cell.advance(ms(20), &mut log);
    // 0.2 ms at 50 Mbit/s, and 5 ms.
    let came = log.delivered.last().map(|(at, _, n)| (*at, *n));
    assert_eq!(came, Some((ms(15) + Span::from_micros(200), 9)));
    cell.enqueue(ms(20), packet(3, 100, 1), &mut log);
    assert_eq!(log.dropped.last().map(|(_, _, why)| *why), Some(Drop::Unreachable));
}
