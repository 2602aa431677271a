//! Stations that change their cell, and stations on carriers of their own.

use crate::common::cell;

use cell::{Log, packet, saturated, station, uplink};
use lasthop_radio::Hop;
use lasthop_radio::cell::{Aggregation, BlockError, Cell, Handovers, Params, StationParams};
use lasthop_signals::{CellSubframe, Node, Rnti};
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use std::collections::BTreeSet;

fn ms(n: u64) -> Time {
    Time::ZERO + Span::from_millis(n)
}

fn moving(at: &[u64]) -> StationParams {
    let handovers = Handovers { at: at.iter().map(|n| ms(*n)).collect(), ..Handovers::default() };
    StationParams { handovers, ..station(15) }
}

fn with_packets(params: Params, packets: u32, until: u64) -> Log {
    let mut cell = Cell::new(params.validate().expect("legal parameters"), Seed(2));
    let mut log = Log::default();
    for n in 0..packets {
        cell.enqueue(Time::ZERO, packet(1, 1452, n), &mut log);
    }
    cell.advance(ms(until), &mut log);
    log
}

#[test]
fn nothing_arrives_between_cells_and_nothing_is_lost() {
    let mut one = moving(&[30, 100]);
    one.channel[0].errors = BlockError::Fixed { first: 0.3, repeat: 0.0 };
    let log = with_packets(Params { queue: Bytes::new(10_000_000), ..Params::new(vec![50], vec![one]) }, 400, 400);
    let order: Vec<u32> = log.delivered.iter().map(|(_, _, n)| *n).collect();
    assert_eq!(order, (0..400).collect::<Vec<_>>());
    assert!(log.dropped.is_empty());
    // From a handover until its interruption is over, and a block has been decided upon (2 ms) and sent (1 ms).
    let came = |from, until| log.delivered.iter().filter(|(at, ..)| (ms(from)..ms(until)).contains(at)).count();
    assert_eq!([came(31, 83), came(101, 153)], [0, 0]);
    assert!(came(20, 31) > 10 && came(83, 101) > 10 && came(153, 175) > 10);
}

#[test]
fn a_station_has_an_rnti_per_cell_and_hears_nothing_between() {
    let log = saturated(Params::new(vec![50], vec![moving(&[30, 100]), moving(&[60])]), 200);
    let own = |from: u64, until: u64| {
        let shown = log.seen_by(Node(1)).filter(|shown| (from..until).contains(&shown.number));
        shown.map(|shown| shown.own).collect::<BTreeSet<_>>()
    };
    let number = |n: u16| BTreeSet::from([Some(Rnti(n))]);
    assert_eq!([own(0, 30), own(80, 100), own(150, 200)], [number(0x3d), number(0x3f), number(0x40)]);
    assert!(own(30, 80).is_empty() && own(100, 150).is_empty());
    // What is sent to it goes to the number of then; the other station's is 0x3e, and 0x41 after its handover.
    let told = |from: u64, until: u64| -> BTreeSet<u16> {
        let shown = log.seen_by(Node(1)).filter(|shown| (from..until).contains(&shown.number));
        shown.flat_map(|shown| &shown.dcis).map(|dci| dci.rnti.0).collect()
    };
    assert_eq!(told(2, 30), BTreeSet::from([0x3d, 0x3e]));
    assert_eq!(told(82, 100), BTreeSet::from([0x3f]));
    assert_eq!(told(112, 150), BTreeSet::new());
    assert_eq!(told(152, 200), BTreeSet::from([0x40, 0x41]));
}

#[test]
fn a_handover_leaves_the_first_carrier_only() {
    let aggregation = Aggregation { unused: None, ..Aggregation::default() };
    let params = Params { aggregation, ..Params::new(vec![50, 50], vec![moving(&[400])]) };
    let log = saturated(params, 700);
    let second = |number: u64| {
        log.seen_by(Node(1)).any(|shown| (shown.number, shown.carrier) == (number, 1) && shown.own.is_some())
    };
    // Four fifths of 100 ms of use, and 24 ms more, in each cell.
    assert_eq!([100, 110, 399, 451, 548, 560].map(second), [false, true, true, false, false, true]);
}

#[test]
fn nothing_leaves_a_station_between_cells() {
    let up =
        lasthop_radio::wired::Params { rate: Rate::from_mbit(10), delay: Span::from_millis(5), queue_packets: 100 };
    let one = StationParams { uplink: up, ..moving(&[30]) };
    let mut cell = Cell::new(Params::new(vec![50], vec![one]).validate().expect("legal parameters"), Seed(1));
    let mut log = Log::default();
    // 1 ms each.
    for n in 0..60 {
        cell.enqueue(ms(n), uplink(1, 1250, n as u32), &mut log);
    }
    cell.advance(ms(300), &mut log);
    let came: Vec<_> = log.delivered.iter().map(|(at, _, n)| (at.as_nanos() / 1_000_000, *n)).collect();
    let want: Vec<_> = (0..60).map(|n| (if n < 30 { n + 6 } else { n + 6 + 50 }, n as u32)).collect();
    assert_eq!(came, want);
}

#[test]
fn stations_sit_on_primary_carriers_of_their_own() {
    let on = |primary, carriers| StationParams { primary, carriers, ..station(15) };
    let params = Params { truth: true, ..Params::new(vec![50, 100, 25], vec![on(0, 1), on(1, 1), on(2, 2)]) };
    let log = saturated(params, 400);
    let on_carrier = |carrier: u8, from: u64, until: u64| -> BTreeSet<u16> {
        let shown = |shown: &&CellSubframe| shown.carrier == carrier && (from..until).contains(&shown.number);
        log.seen_by(Node(0)).filter(shown).flat_map(|shown| &shown.dcis).map(|dci| dci.rnti.0 - 0x3d).collect()
    };
    assert_eq!([0, 1, 2].map(|n| on_carrier(n, 0, 100)), [[0], [1], [2]].map(BTreeSet::from));
    // The third station's second carrier is the first one: it follows in the circle.
    assert_eq!(
        [0, 1, 2].map(|n| on_carrier(n, 150, 400)),
        [BTreeSet::from([0, 2]), BTreeSet::from([1]), BTreeSet::from([2])]
    );
}
