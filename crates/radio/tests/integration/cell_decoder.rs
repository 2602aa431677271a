//! What stations see of the control channel when their decoders err.

use crate::common::cell;

use cell::{Log, packet, saturated, station};
use lasthop_radio::Hop;
use lasthop_radio::cell::{Background, Cell, DecoderErrors, Params, StationParams};
use lasthop_signals::{CellSubframe, Node};
use lasthop_units::{Seed, Span, Time};
use std::collections::BTreeMap;

/// A cell with a saturated station, one that has little, and some forty control messages in 100 ms, for so many seconds.
fn run(decoder: DecoderErrors, seconds: u64) -> Log {
    let background = vec![Background::Control { carrier: 0, cqi: cell::cqi(7), rate: 400.0 }];
    let stations = vec![StationParams { decoder, ..station(12) }, station(9)];
    let params = Params { background, truth: true, ..Params::new(vec![50, 25], stations) };
    saturated(params, 1000 * seconds)
}

/// What was sent and what station 1 saw, by subframe and carrier.
fn pairs(log: &Log) -> impl Iterator<Item = (&CellSubframe, &CellSubframe)> {
    let key = |shown: &CellSubframe| (shown.number, shown.carrier);
    let sent: BTreeMap<_, _> = log.seen_by(Node(0)).map(|shown| (key(shown), shown)).collect();
    log.seen_by(Node(1)).map(move |seen| (sent[&key(seen)], seen))
}

#[test]
fn dcis_are_missed_at_the_rate_that_is_asked_for() {
    let log = run(DecoderErrors { missed: 0.05, spurious: 0.0 }, 20);
    let (mut sent, mut seen) = (0usize, 0);
    for (truth, shown) in pairs(&log) {
        sent += truth.dcis.len();
        seen += shown.dcis.len();
        assert!(shown.dcis.iter().all(|dci| truth.dcis.contains(dci)));
    }
    let (rate, deviation) = (1.0 - seen as f64 / sent as f64, (0.05 * 0.95 / sent as f64).sqrt());
    assert!(sent > 20_000 && (rate - 0.05).abs() < 4.0 * deviation, "{rate} of {sent}");
}

#[test]
fn false_dcis_come_at_the_requested_rate_and_may_not_fit() {
    let log = run(DecoderErrors { missed: 0.0, spurious: 0.02 }, 20);
    let (mut subframes, mut noise, mut beyond) = (0usize, 0, 0);
    for (truth, shown) in pairs(&log) {
        subframes += 1;
        noise += shown.dcis.len() - truth.dcis.len();
        assert!(truth.dcis.iter().all(|dci| shown.dcis.contains(dci)));
        beyond += usize::from(shown.dcis.iter().map(|dci| dci.prb).sum::<u16>() > shown.prb);
    }
    let (rate, deviation) = (noise as f64 / subframes as f64, (0.02 * 0.98 / subframes as f64).sqrt());
    assert!((rate - 0.02).abs() < 4.0 * deviation, "{rate} of {subframes}");
    // The first carrier is full: all that is false there is beyond it.
    assert!(beyond > noise / 3, "{beyond} of {noise}");
}

#[test]
fn the_base_station_tells_the_truth_to_nobody_who_did_not_ask() {
    let cell = |truth| {
        let silent = StationParams { decodes: false, ..station(15) };
        let plan = Params { truth, ..Params::new(vec![50], vec![silent]) }.validate().expect("legal parameters");
        let (mut cell, mut log) = (Cell::new(plan, Seed(1)), Log::default());
        cell.enqueue(Time::ZERO, packet(1, 1000, 1), &mut log);
        cell.advance(Time::ZERO + Span::from_millis(20), &mut log);
        log
    };
    assert!(cell(false).reports.is_empty());
    let told = cell(true);
    assert_eq!(told.seen_by(Node(0)).map(|shown| shown.number).collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
    assert!(told.seen_by(Node(0)).all(|shown| shown.own.is_none()));
    assert_eq!(told.seen_by(Node(0)).map(|shown| shown.dcis.len()).sum::<usize>(), 1);
}
