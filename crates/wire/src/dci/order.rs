//! Records in the order of slots.
//! Source:     own.
//! Equations:  a slot's place: n = c + R round((t - p - c s) / (R s))
//! Symbols:    c, what the cell counts: frame and slot; R, slots until it begins again -> `round`; s -> `slot`; t, the record's
//!             time; p -> `phase`, what the decoder's clock and its delay add
//! Deviations: rows come late and out of order, since decoders work on several slots at once, and twice, since NG-Scope writes
//!             parts of its buffer again. So the cell's own count is believed, and times only say in which round of it a row is.
//! Validity:   times are right to a quarter of a round (2.56 s).     Checked by: tests::*, tests/integration/dci.rs
//!
//! A slot is given when a window's time has passed behind it. What comes later still is late, and dropped. A single row that is
//! far ahead of all others is a wrong one; if others follow it, the log has a gap there.

use super::{FRAMES, Record};
use lasthop_signals::Dci;
use lasthop_units::{Span, Time};
use std::collections::BTreeMap;

/// The longest window.
pub const LONGEST_WINDOW: Span = Span::from_secs(60);
/// A row that is so far ahead of the others is believed only if the next one is, too.
const LEAP: Span = Span::from_secs(10);
/// After so many rows in a row that cannot be placed, or are too late by a leap, the decoder was started again.
const RUN: u32 = 20;
/// DCIs that a slot has at most: a control region of 100 MHz does not hold more. What is beyond is dropped.
const CROWD: usize = 256;
/// The phase follows the slots' times with this weight.
const WEIGHT: i128 = 64;

/// A slot, with all that was found in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slot {
    /// Counts slots from the first one on. What has no rows is left out.
    pub number: u64,
    /// The decoder's time of its first row.
    pub at: Time,
    /// Nothing connects it with the one before: it is the first, or the decoder was started again.
    pub fresh: bool,
    /// What was found, sorted; each once.
    pub dcis: Vec<Dci>,
}

/// What has become of records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// All that have come.
    pub records: u64,
    /// Came after one of a later slot.
    pub out_of_order: u64,
    /// Were there already.
    pub duplicates: u64,
    /// Came when their slot had been given.
    pub late: u64,
    /// The time and the cell's count do not agree, or there is no such slot.
    pub misplaced: u64,
    /// Were alone far ahead of all others.
    pub strays: u64,
    /// Were more than a slot can have.
    pub crowded: u64,
    /// How often the decoder was started again.
    pub restarts: u64,
}

/// Brings records of one direction of one carrier into the order of slots.
#[derive(Clone, Debug)]
pub struct Order {
    /// Nanoseconds.
    slot: i128,
    per_frame: u8,
    /// Slots.
    round: i128,
    window: i128,
    leap: i128,
    state: Option<State>,
    counts: Counts,
    /// The number of the next first slot.
    next: u64,
}

/// What holds until the decoder is started again.
#[derive(Clone, Debug)]
struct State {
    /// Nanoseconds.
    phase: i128,
    held: BTreeMap<i128, Held>,
    newest: i128,
    /// The place of slot number `base`, and the last one that was given.
    given: Option<(i128, i128)>,
    base: u64,
    stray: Option<(i128, Record)>,
    run: u32,
}

#[derive(Clone, Debug)]
struct Held {
    at: Time,
    /// There was a row that says so.
    idle: bool,
    dcis: Vec<Dci>,
}

impl Order {
    /// For a carrier with `slots` slots in a frame of 10 ms: 10 in LTE, and 10 to 80 in NR. A slot is held until a
    /// later one by `window`, at most [`LONGEST_WINDOW`], has come.
    ///
    /// # Panics
    /// If a frame has no slot.
    pub fn new(slots: u8, window: Span) -> Order {
        assert!(slots > 0, "a frame has slots");
        let slot = 10_000_000 / i128::from(slots);
        let in_slots = |span: Span| i128::from(span.as_nanos()) / slot;
        Order {
            slot,
            per_frame: slots,
            round: i128::from(FRAMES) * i128::from(slots),
            window: in_slots(window.min(LONGEST_WINDOW)).max(1),
            leap: in_slots(LEAP),
            state: None,
            counts: Counts::default(),
            next: 0,
        }
    }

    /// How long a slot is.
    pub fn slot(&self) -> Span {
        Span::from_nanos(self.slot as u64)
    }

    /// What has become of records so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Takes a record, and gives the slots that are whole with it.
    pub fn push(&mut self, record: &Record, each: &mut dyn FnMut(Slot)) {
        self.counts.records += 1;
        if record.slot >= self.per_frame || record.frame >= FRAMES {
            self.counts.misplaced += 1;
            return;
        }
        let count = i128::from(record.frame) * i128::from(self.per_frame) + i128::from(record.slot);
        let phase = i128::from(record.at.as_nanos()) - count * self.slot;
        let Some(state) = &mut self.state else {
            self.begin(phase, count, record);
            return;
        };
        let length = self.round * self.slot;
        let rounds = (phase - state.phase + length / 2).div_euclid(length);
        let off = phase - state.phase - rounds * length;
        let place = count + rounds * self.round;
        let leap = self.leap + self.window;
        if off.abs() > length / 4 {
            self.counts.misplaced += 1;
            self.lost(true, phase, count, record, each);
            return;
        }
        if let Some((ahead, stray)) = state.stray.take() {
            if place > ahead - self.window {
                state.newest = ahead;
                insert(state, &mut self.counts, ahead, &stray);
            } else {
                self.counts.strays += 1;
            }
        }
        if place > state.newest + leap {
            state.stray = Some((place, *record));
        } else if state.given.is_some_and(|(_, last)| place <= last) {
            self.counts.late += 1;
            let far = place < state.newest - leap;
            self.lost(far, phase, count, record, each);
            return;
        } else {
            state.run = 0;
            self.counts.out_of_order += u64::from(place < state.newest);
            state.newest = state.newest.max(place);
            insert(state, &mut self.counts, place, record);
        }
        let until = state.newest - self.window;
        self.give(until, each);
    }

    /// Gives all slots that are held: nothing more will come.
    pub fn finish(&mut self, each: &mut dyn FnMut(Slot)) {
        if let Some(state) = &mut self.state
            && let Some((place, stray)) = state.stray.take()
        {
            // Nothing says that it is wrong.
            insert(state, &mut self.counts, place, &stray);
        }
        self.give(i128::MAX, each);
    }

    fn begin(&mut self, phase: i128, place: i128, record: &Record) {
        let (held, given, stray) = (BTreeMap::new(), None, None);
        let mut state = State { phase, held, newest: place, given, base: self.next, stray, run: 0 };
        insert(&mut state, &mut self.counts, place, record);
        self.state = Some(state);
    }

    /// A record could not be placed. Where nothing else comes any more, everything begins anew with it.
    fn lost(&mut self, far: bool, phase: i128, count: i128, record: &Record, each: &mut dyn FnMut(Slot)) {
        let Some(state) = &mut self.state else { return };
        state.run = if far { state.run + 1 } else { 0 };
        if state.run >= RUN {
            self.finish(each);
            self.counts.restarts += 1;
            self.begin(phase, count, record);
        }
    }

    /// Gives what is held of slots before `until`.
    fn give(&mut self, until: i128, each: &mut dyn FnMut(Slot)) {
        let Some(state) = &mut self.state else { return };
        while let Some(first) = state.held.first_entry().filter(|first| *first.key() < until) {
            let (place, Held { at, mut dcis, .. }) = first.remove_entry();
            let fresh = state.given.is_none();
            let (origin, _) = *state.given.insert((state.given.map_or(place, |(origin, _)| origin), place));
            let off = i128::from(at.as_nanos()) - place * self.slot - state.phase;
            state.phase += off / WEIGHT;
            let number = state.base + u64::try_from(place - origin).unwrap_or(0);
            self.next = number + 1;
            dcis.sort_unstable();
            each(Slot { number, at, fresh, dcis });
        }
    }
}

fn insert(state: &mut State, counts: &mut Counts, place: i128, record: &Record) {
    let held = state.held.entry(place).or_insert(Held { at: record.at, idle: false, dcis: Vec::new() });
    held.at = held.at.min(record.at);
    match record.dci {
        None => counts.duplicates += u64::from(std::mem::replace(&mut held.idle, true)),
        Some(dci) if held.dcis.contains(&dci) => counts.duplicates += 1,
        Some(_) if held.dcis.len() >= CROWD => counts.crowded += 1,
        Some(dci) => held.dcis.push(dci),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Direction;
    use super::*;
    use lasthop_signals::Rnti;

    const WINDOW: Span = Span::from_millis(100);
    const BEGIN: u64 = 1_700_000_000_000;

    /// A record of subframe `n`, which is told `late` ms after it, and assigns to `rnti` unless that is 0.
    fn record(n: u64, late: u64, rnti: u16) -> Record {
        let tti = (n + 10_000) % 10_240;
        let dci = Dci { rnti: Rnti(rnti), prb: 4, process: 0, blocks: [None; 2] };
        Record {
            at: Time::from_nanos((BEGIN + n + late) * 1_000_000),
            frame: (tti / 10) as u16,
            slot: (tti % 10) as u8,
            direction: Direction::Down,
            carrier: 0,
            dci: (rnti > 0).then_some(dci),
            edge: 0,
        }
    }

    fn run(records: &[Record]) -> (Vec<Slot>, Counts) {
        let (mut order, mut slots) = (Order::new(10, WINDOW), Vec::new());
        records.iter().for_each(|record| order.push(record, &mut |slot| slots.push(slot)));
        order.finish(&mut |slot| slots.push(slot));
        (slots, order.counts())
    }

    fn numbers(slots: &[Slot]) -> Vec<u64> {
        slots.iter().map(|slot| slot.number).collect()
    }

    #[test]
    fn rows_within_the_window_are_ordered_across_the_wrap() {
        let mut records: Vec<Record> = (0..1000).map(|n| record(n, 2 + n % 7, 70)).collect();
        let (straight, counts) = run(&records);
        assert_eq!((numbers(&straight), counts.out_of_order), ((0..1000).collect(), 0));
        records.chunks_mut(90).for_each(<[Record]>::reverse);
        let (slots, counts) = run(&records);
        assert_eq!(slots, straight);
        assert!(counts.out_of_order > 900 && counts.late == 0, "{counts:?}");
    }

    #[test]
    fn what_is_there_twice_counts_once() {
        let rows =
            [record(0, 2, 70), record(0, 2, 71), record(0, 2, 70), record(1, 2, 0), record(1, 2, 0), record(2, 2, 9)];
        let (slots, counts) = run(&rows);
        assert_eq!(slots.iter().map(|slot| slot.dcis.len()).collect::<Vec<_>>(), [2, 0, 1]);
        assert_eq!(counts.duplicates, 2);
    }

    #[test]
    fn what_comes_after_its_slot_was_given_is_late() {
        let mut records: Vec<Record> = (0..300).map(|n| record(n, 2, 70)).collect();
        records.push(record(150, 2, 71));
        records.push(record(250, 2, 71));
        let (slots, counts) = run(&records);
        assert_eq!((slots.len(), counts.late), (300, 1));
        assert_eq!((slots[150].dcis.len(), slots[250].dcis.len()), (1, 2));
    }

    #[test]
    fn one_wrong_time_is_a_stray_and_a_gap_is_a_gap() {
        let mut records: Vec<Record> = (0..300).map(|n| record(n, 2, 70)).collect();
        records.insert(200, record(10_240 * 9_000, 2, 71));
        let (slots, counts) = run(&records);
        assert_eq!((slots.len(), counts.strays, counts.late), (300, 1, 0));
        // A silence of ten rounds, and a row that stands alone between two silences.
        let gap = 10_240 * 10;
        let mut records: Vec<Record> = (0..300).map(|n| record(n, 2, 70)).collect();
        records.push(record(gap / 2, 2, 70));
        records.extend((gap..gap + 300).map(|n| record(n, 2, 70)));
        let (slots, counts) = run(&records);
        let all: Vec<u64> = (0..300).chain([gap / 2]).chain(gap..gap + 300).collect();
        assert_eq!((numbers(&slots), counts.strays, counts.restarts), (all, 0, 0));
    }

    #[test]
    fn times_that_do_not_fit_the_count_are_misplaced() {
        let mut records: Vec<Record> = (0..300).map(|n| record(n, 2, 70)).collect();
        records[100].at += Span::from_secs(4);
        records[101].slot = 10;
        let (slots, counts) = run(&records);
        assert_eq!((slots.len(), counts.misplaced), (298, 2));
    }

    #[test]
    fn a_decoder_that_is_started_again_begins_anew() {
        let mut records: Vec<Record> = (0..300).map(|n| record(n, 2, 70)).collect();
        // Its clock was set back by a day, and it counts another cell's subframes.
        let later = |n: u64| {
            let shifted = record(n + 3777, 2, 70);
            Record { at: Time::from_nanos((BEGIN - 86_400_000 + n) * 1_000_000), ..shifted }
        };
        records.extend((0..300).map(later));
        let (slots, counts) = run(&records);
        assert_eq!((counts.restarts, slots.iter().filter(|slot| slot.fresh).count()), (1, 2));
        assert_eq!(slots.len(), 300 + 300 - RUN as usize + 1, "but for those that it took to be noticed");
        assert!(numbers(&slots).windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_clock_that_drifts_is_followed() {
        // 50 ppm for two hours are 360 ms; 2000 times as much are within a round only if it is followed.
        let records: Vec<Record> = (0..200_000u64).map(|n| record(n, n / 10, 70)).collect();
        let (slots, counts) = run(&records);
        assert_eq!((slots.len(), counts.misplaced), (200_000, 0));
    }
}
