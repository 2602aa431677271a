//! Logs of assignments: the readers and the order of slots, over any octets, over written logs and over recorded ones.

use lasthop_signals::{Block, Dci, Rnti};
use lasthop_units::{Span, Time};
use lasthop_wire::dci::{Counts, Direction, Format, Item, Order, Record, Slot, detect};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

const FORMATS: [Format; 3] = [Format::NgScope, Format::NgScopeJson, Format::NrScope];
const WINDOW: Span = Span::from_secs(1);

/// A log that was read.
#[derive(Default, PartialEq, Debug)]
struct Log {
    records: Vec<Record>,
    headers: usize,
    unread: Vec<String>,
}

impl Log {
    fn take(&mut self, item: Item) {
        match item {
            Item::Record(record) => self.records.push(record),
            Item::Header => self.headers += 1,
            Item::Unread(unread) => self.unread.push(unread.to_string()),
        }
    }

    /// What a log holds that comes in these pieces.
    fn of<'a>(format: Format, pieces: impl IntoIterator<Item = &'a [u8]>) -> Log {
        let (mut log, mut reader) = (Log::default(), format.reader(None));
        pieces.into_iter().for_each(|piece| reader.push(piece, &mut |item| log.take(item)));
        reader.finish(&mut |item| log.take(item));
        log
    }

    fn read(path: &Path) -> Option<Log> {
        let bytes = std::fs::read(path).ok()?;
        let format = detect(&bytes, true).expect("a log").expect("a format");
        Some(Log::of(format, [&bytes[..]]))
    }

    /// The small log of this name.
    fn written(name: &str) -> Log {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/dci").join(name);
        Log::read(&path).unwrap_or_else(|| panic!("{} cannot be read", path.display()))
    }

    /// The recorded log of this name; says so if it is not there.
    fn recorded(name: &str) -> Option<Log> {
        let root = std::env::var_os("LASTHOP_REFERENCE");
        let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference");
        let path = root.map_or_else(beside, PathBuf::from).join("captures").join(name);
        let log = Log::read(&path);
        if log.is_none() {
            // Past the capture of test output.
            let _ = writeln!(std::io::stderr(), "SKIPPED: {} is not there", path.display());
        }
        log
    }

    fn of_direction(&self, direction: Direction) -> Vec<Record> {
        self.records.iter().copied().filter(|record| record.direction == direction).collect()
    }
}

fn ordered(records: &[Record]) -> (Vec<Slot>, Counts) {
    let (mut order, mut slots) = (Order::new(10, WINDOW), Vec::new());
    records.iter().for_each(|record| order.push(record, &mut |slot| slots.push(slot)));
    order.finish(&mut |slot| slots.push(slot));
    (slots, order.counts())
}

fn blocks(records: &[Record]) -> impl Iterator<Item = Block> + '_ {
    records.iter().filter_map(|record| record.dci).filter_map(|dci| dci.blocks[0])
}

#[test]
fn text_and_json_say_the_same() {
    let (text, json) = (Log::written("ngscope_dl.dciLog"), Log::written("ngscope_dl.json"));
    assert_eq!((text.records.len(), json.records.len()), (76, 64));
    assert_eq!((text.unread.len(), json.unread.len()), (0, 0));
    let ((slots, counts), (same, _)) = (ordered(&text.records), ordered(&json.records));
    assert_eq!(slots, same);
    assert_eq!((slots.len(), counts.duplicates), (60, 12));
    // Two rows that changed places, and those that were written again but for the first, which is the newest then.
    assert_eq!((counts.out_of_order, counts.late, counts.misplaced, counts.strays), (13, 0, 0, 0));
    assert_eq!(slots.iter().map(|slot| slot.number).collect::<Vec<_>>(), (0..60).collect::<Vec<_>>());
    let impossible = slots.iter().flat_map(|slot| &slot.dcis).filter(|dci| !dci.is_possible()).count();
    assert_eq!(impossible, 1);
    let two = slots[20].dcis.iter().map(|dci| (dci.rnti.0, dci.prb, dci.blocks[1].is_some())).collect::<Vec<_>>();
    assert_eq!(two, [(20001, 20, true), (20002, 8, false)]);
}

#[test]
fn the_uplink_is_told_apart() {
    let log = Log::written("ngscope_ul.dciLog");
    assert_eq!((log.records.len(), log.of_direction(Direction::Up).len()), (30, 30));
    assert_eq!(log.records.iter().filter(|record| record.dci.is_some()).count(), 4);
}

#[test]
fn rows_and_names_of_columns_are_told_apart() {
    let log = Log::written("nrscope.csv");
    assert_eq!((log.records.len(), log.headers), (29, 2));
    assert_eq!(log.unread, ["line 33: 2 columns; the names above have another number"]);
    let (slots, counts) = ordered(&log.of_direction(Direction::Down));
    assert_eq!((counts.records, counts.out_of_order, counts.duplicates), (27, 1, 0));
    assert_eq!(slots.last().map(|slot| slot.number), Some(72));
    assert_eq!(log.of_direction(Direction::Up).len(), 2);
}

/// The numbers in the README of the reference data.
#[test]
fn recorded_logs_of_nr_have_the_numbers_that_are_known() {
    for (name, rows, rntis, [down, down_bits, none, repeats], [up, up_bits], headers) in [
        ("t_mobile1_ueactivity_afternoon_1", 11853, 137, [11853, 109_058_512, 4219, 509], [0, 0], 0),
        ("t_mobile1_ueactivity_morning_2_128", 10258, 128, [10258, 109_361_784, 3636, 344], [0, 0], 2),
        ("t_mobile2_ueactivity_morning_1", 744, 25, [675, 6_541_720, 210, 98], [69, 41736], 0),
        ("ue_activity_133", 7336, 115, [4752, 13_339_192, 1931, 124], [2584, 3_603_080], 5),
    ] {
        let Some(log) = Log::recorded(&format!("dci_nrscope_nr/{name}.csv")) else { continue };
        assert_eq!((log.records.len(), log.headers, log.unread.len()), (rows, headers, 0), "{name}");
        let seen: BTreeSet<Rnti> = log.records.iter().filter_map(|record| record.dci).map(|dci| dci.rnti).collect();
        assert_eq!(seen.len(), rntis, "{name}");
        let bits = |records: &[Record]| blocks(records).map(|block| u64::from(block.bits)).sum::<u64>();
        let (downs, ups) = (log.of_direction(Direction::Down), log.of_direction(Direction::Up));
        let zero = blocks(&downs).filter(|block| block.bits == 0).count() as u64;
        let again = blocks(&downs).filter(|block| block.redundancy != 0).count() as u64;
        assert_eq!([downs.len() as u64, bits(&downs), zero, again], [down, down_bits, none, repeats], "{name}");
        assert_eq!([ups.len() as u64, bits(&ups)], [up, up_bits], "{name}");
        for records in [downs, ups] {
            let (_, counts) = ordered(&records);
            assert_eq!((counts.records, counts.late, counts.restarts), (records.len() as u64, 0, 0), "{name}");
            assert_eq!((counts.misplaced, counts.strays, counts.crowded), (0, 0, 0), "{name}: {counts:?}");
        }
    }
}

#[test]
fn recorded_logs_of_lte_have_the_numbers_that_are_known() {
    if let Some(log) = Log::recorded("dci_ngscope_lte/dci_raw_log_dl_freq_2127500000.dciLog") {
        assert_eq!((log.records.len(), log.unread.len()), (12429, 0));
        let found: Vec<Dci> = log.records.iter().filter_map(|record| record.dci).collect();
        let of = |rnti: u16| found.iter().filter(|dci| dci.rnti.0 == rnti).count();
        assert_eq!((found.len(), of(0xffff), of(0xfffe)), (923, 826, 89));
        let others: Vec<&Dci> = found.iter().filter(|dci| dci.rnti.0 < 0xfff4).collect();
        let rntis: BTreeSet<Rnti> = others.iter().map(|dci| dci.rnti).collect();
        assert_eq!((others.len(), rntis.len()), (8, 5));
        assert_eq!(blocks(&log.records).map(|block| u64::from(block.bits)).sum::<u64>(), 255_312);
        let (slots, counts) = ordered(&log.records);
        assert_eq!((counts.duplicates, counts.late, counts.misplaced, counts.restarts), (332, 0, 0, 0));
        // Eleven subframes of 12.1 s have no row.
        assert_eq!((slots.len(), slots.last().map(|slot| slot.number)), (12096, Some(12106)));
    }
    if let Some(log) = Log::recorded("dci_ngscope_lte/dci_raw_log_ul_freq_2127500000.dciLog") {
        let up = log.of_direction(Direction::Up);
        assert_eq!((up.len(), log.records.len(), log.unread.len()), (12427, 12427, 0));
        let found: Vec<Dci> = up.iter().filter_map(|record| record.dci).collect();
        assert!(found.len() == 6 && found.iter().all(|dci| dci.rnti.0 == 20555));
        let marks: Vec<&Dci> = found.iter().filter(|dci| !dci.is_possible()).collect();
        assert!(matches!(marks[..], [Dci { blocks: [Some(Block { mcs: 29, bits: 65536, .. }), None], .. }]));
    }
}

/// Pieces of logs, in some order, with some octets that do not belong there.
fn nearly_a_log() -> impl Strategy<Value = Vec<u8>> {
    let names = ["ngscope_dl.dciLog", "ngscope_ul.dciLog", "ngscope_dl.json", "nrscope.csv"];
    let texts: Vec<Vec<u8>> = names
        .map(|name| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/dci").join(name))
        .map(|path| std::fs::read(path).expect("a log"))
        .into();
    let piece = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0usize..400).prop_map(
        move |(which, at, length)| {
            let text = which.get(&texts);
            let at = at.index(text.len());
            text[at..(at + length).min(text.len())].to_vec()
        },
    );
    let piece = prop_oneof![6 => piece, 1 => prop::collection::vec(any::<u8>(), 0..12)];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Records of a cell, each told a while after its slot, and some numbers to shuffle them by.
fn records() -> impl Strategy<Value = Vec<(Record, u16)>> {
    let row = (0u64..3, 0u64..300, any::<u16>(), prop::option::weighted(0.7, (1u16..6, 1u16..30, 0u8..8)));
    prop::collection::vec(row, 1..150).prop_map(|rows| {
        let mut n = 10_200;
        rows.into_iter()
            .map(|(step, late, key, dci)| {
                n += step;
                let dci = dci.map(|(rnti, prb, process)| Dci { rnti: Rnti(rnti), prb, process, blocks: [None; 2] });
                let at = Time::from_nanos((1_700_000_000_000 + n + late) * 1_000_000);
                let (frame, slot) = ((n / 10 % 1024) as u16, (n % 10) as u8);
                let direction = Direction::Down;
                (Record { at, frame, slot, direction, carrier: 0, dci, edge: 0 }, key)
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_octets_are_rows_or_told(bytes in prop_oneof![nearly_a_log(), prop::collection::vec(any::<u8>(), 0..2000)], cut: prop::sample::Index) {
        for whole in [false, true] {
            let _ = detect(&bytes, whole);
        }
        for format in FORMATS {
            let log = Log::of(format, [&bytes[..]]);
            let at = cut.index(bytes.len() + 1);
            prop_assert_eq!(&Log::of(format, [&bytes[..at], &bytes[at..]]), &log, "cut at {}", at);
            let (slots, counts) = ordered(&log.records);
            prop_assert!(slots.windows(2).all(|pair| pair[0].number < pair[1].number));
            let kept: u64 = slots.iter().map(|slot| slot.dcis.len() as u64).sum();
            let dropped = counts.duplicates + counts.late + counts.misplaced + counts.strays + counts.crowded;
            prop_assert!(kept <= counts.records - dropped.min(counts.records) && counts.records == log.records.len() as u64);
        }
    }

    #[test]
    fn order_and_duplicates_within_the_window_change_nothing(records in records(), again in prop::collection::vec(any::<prop::sample::Index>(), 0..40)) {
        let straight: Vec<Record> = records.iter().map(|(record, _)| *record).collect();
        // None of them is further from its place than the window.
        let mut shuffled = records.clone();
        shuffled.extend(again.iter().map(|index| *index.get(&records)));
        shuffled.sort_by_key(|(_, key)| *key);
        let shuffled: Vec<Record> = shuffled.into_iter().map(|(record, _)| record).collect();
        let ((slots, before), (same, after)) = (ordered(&straight), ordered(&shuffled));
        prop_assert_eq!(slots, same);
        prop_assert_eq!(after.duplicates, before.duplicates + again.len() as u64);
        prop_assert_eq!((after.late, after.misplaced, after.strays, after.restarts), (0, 0, 0, 0));
    }
}
