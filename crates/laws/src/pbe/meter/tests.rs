//! What the meter tells of small cells.

use super::*;
use crate::pbe::test_cell::{FULL, OWN, dci, repeat};

const MS: Span = Span::from_millis(1);
const LTE: Cell = Cell { slot: MS, prb: 100, lte: true, leaves_out_idle: false };

/// What is known at each slot, of those that `dcis` says.
fn run(meter: &mut Meter, slots: impl IntoIterator<Item = u64>, dcis: impl Fn(u64) -> Vec<Dci>) -> Vec<CellSnapshot> {
    let mut snapshots = Vec::new();
    for number in slots {
        meter.on_slot(number, number == 0, &dcis(number), &mut |snapshot| snapshots.push(*snapshot));
    }
    snapshots
}

fn last(snapshots: &[CellSnapshot]) -> CellSnapshot {
    *snapshots.last().expect("a slot")
}

fn class(meter: &Meter, rnti: u16) -> Class {
    let mut terminals = meter.terminals();
    terminals.find(|(seen, _, _)| seen.0 == rnti).map(|(_, class, _)| class).expect("it was seen")
}

#[test]
fn who_joins_shares_with_those_who_pass() {
    let mut meter = Meter::new(LTE);
    let two = |_| vec![dci(Rnti(200), 30, 18_000), dci(Rnti(201), 20, 12_000)];
    let snapshot = last(&run(&mut meter, 0..100, two));
    assert_eq!((snapshot.users, snapshot.sharing, snapshot.active), (2, 3, 2));
    assert_eq!((snapshot.given, snapshot.to_users, snapshot.idle, snapshot.coarse), (50, 50, 50.0, true));
    // 600 bits a PRB: a third of 60 Mbit/s, and a third of the half that is idle.
    assert_eq!((snapshot.fair, snapshot.available), (Rate::from_mbit(20), Rate::from_mbit(10)));
    assert_eq!(snapshot.fair_tcp.as_bps(), (20e6_f64 / 1.068) as u64);
    // The one that shares already has what it has beside.
    meter.set_own(Some(Rnti(200)));
    let snapshot = last(&run(&mut meter, 100..200, two));
    assert_eq!((snapshot.users, snapshot.sharing, snapshot.coarse), (2, 2, false));
    assert_eq!((snapshot.fair, snapshot.available), (Rate::from_mbit(30), Rate::from_mbit(33)));
}

#[test]
fn rntis_are_told_apart() {
    let mut meter = Meter::new(LTE);
    run(&mut meter, 0..2000, |n| match n {
        _ if n % 50 < 10 => vec![dci(OWN, 40, FULL / 4)],
        20 => vec![dci(Rnti(300), 4, 300), dci(Rnti(0xffff), 8, 300), dci(Rnti(60), 3, 56)],
        330 => vec![dci(Rnti(300), 4, 300), dci(Rnti(400), 44, 9000)],
        // Not within half a second; and never with what it could carry.
        931 => vec![dci(Rnti(400), 44, 9000), dci(Rnti(401), 2, 60_000), dci(Rnti(401), 0, 0)],
        932 => vec![dci(Rnti(401), 2, 60_000)],
        _ => vec![],
    });
    assert_eq!(class(&meter, OWN.0), Class::User);
    assert_eq!([300, 0xffff, 60].map(|rnti| class(&meter, rnti)), [Class::Control, Class::Shared, Class::Shared]);
    assert_eq!([400, 401].map(|rnti| class(&meter, rnti)), [Class::Ghost, Class::Ghost]);
    let totals = meter.totals();
    assert_eq!((totals.slots, totals.unseen, totals.empty, totals.impossible), (2000, 0, 1, 2));
    assert_eq!(totals.given, 400 * 40 + 4 + 8 + 3 + 4 + 44 + 44);
}

#[test]
fn slots_without_a_row_are_idle_or_not_decoded() {
    let one = |_| vec![dci(Rnti(200), 100, FULL)];
    let numbers = || (0..50).chain(1050..1100);
    let mut meter = Meter::new(LTE);
    let snapshots = run(&mut meter, numbers(), one);
    assert_eq!((snapshots.len(), meter.totals().slots, meter.totals().unseen), (100, 100, 1000));
    let mut meter = Meter::new(Cell { leaves_out_idle: true, ..LTE });
    let snapshots = run(&mut meter, numbers(), one);
    assert_eq!((snapshots.len(), meter.totals().slots, meter.totals().unseen), (1100, 1100, 0));
    assert!(snapshots.iter().map(|snapshot| snapshot.number).eq(0..1100));
    // One is there, then nobody, then the same again.
    assert_eq!([49, 60, 500, 1049, 1099].map(|n| snapshots[n].sharing), [2, 2, 1, 1, 2]);
    assert_eq!([49, 500].map(|n| snapshots[n].idle), [0.0, 100.0]);
    // The whole carrier at the rate that the only user had.
    assert_eq!(snapshots[500].fair.as_bps() / 1000, 75_376);
    assert!(!snapshots[500].guessed && snapshots[500].coarse);
    let nobody = run(&mut Meter::new(LTE), 0..50, |_| vec![dci(Rnti(0xffff), 4, 60)]);
    assert!(last(&nobody).guessed, "system information is for everybody");
    assert_eq!(snapshots[500].available, snapshots[500].fair);
}

#[test]
fn slots_of_half_a_millisecond_have_twice_the_rate() {
    let mut meter = Meter::new(Cell { slot: Span::from_micros(500), lte: false, ..LTE });
    let snapshot = last(&run(&mut meter, 0..200, |_| vec![dci(Rnti(20), 100, 60_000)]));
    assert_eq!((snapshot.sharing, snapshot.fair), (2, Rate::from_mbit(60)));
    assert_eq!(class(&meter, 20), Class::User, "NR has no such numbers for random access");
}

#[test]
fn repeats_carry_nothing_new() {
    let mut meter = Meter::new(LTE);
    run(&mut meter, 0..100, |n| vec![if n % 10 == 9 { repeat(OWN, 50) } else { dci(OWN, 50, 1000) }]);
    let (_, _, terminal) = meter.terminals().next().expect("it was seen");
    assert_eq!((terminal.blocks, terminal.repeats, terminal.bits), (100, 10, 90_000));
}
