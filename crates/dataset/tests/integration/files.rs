//! What is written is read again; what is no data set is refused, whatever its bytes are.

use crate::support;

use bytes::Bytes;
use lasthop_dataset::{DataSet, DataSetError, Row, Writer, part_of};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use support::{recording, row, rows};

fn write(path: &Path, rows: &[Row]) -> lasthop_dataset::Written {
    let mut writer = Writer::create(path, vec![recording("one", 1)]).expect("writable");
    rows.iter().for_each(|row| writer.push(*row).expect("room on the disk"));
    writer.finish().expect("room on the disk")
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("x.parquet");
    (folder, path)
}

#[test]
fn rows_come_back_as_they_were() {
    let (_folder, path) = folder();
    let rows = rows(0, 9000, 4);
    let written = write(&path, &rows);
    assert_eq!(written.rows, rows.len() as u64);
    assert!(!part_of(&path).exists());
    let set = DataSet::open(&path).expect("a data set");
    assert_eq!((set.rows(), set.bytes()), (written.rows, written.bytes));
    assert_eq!(set.meta().recordings, [recording("one", 1)]);
    let read = set.load().expect("valid rows");
    assert_eq!(read.len(), rows.len());
    for (one, other) in rows.iter().zip(&read) {
        assert!(one.same(other), "{one:?} and {other:?}");
    }
}

#[test]
fn what_does_not_change_costs_next_to_nothing() {
    let still: Vec<Row> = (0..20_000).map(|moment| Row { at: row(0, moment, 1).at, ..row(0, 3, 1) }).collect();
    let (_folder, path) = folder();
    let written = write(&path, &still);
    // Without its footer: less than an octet a row.
    assert!(written.bytes < 20_000 / 2, "{} octets", written.bytes);
}

#[test]
fn equal_rows_make_equal_files() {
    let (_folder, path) = folder();
    let other = path.with_file_name("y.parquet");
    let rows = rows(0, 100, 3);
    write(&path, &rows);
    write(&other, &rows);
    assert_eq!(std::fs::read(path).expect("there"), std::fs::read(other).expect("there"));
}

#[test]
fn a_writer_that_is_killed_leaves_what_it_flushed() {
    let (_folder, path) = folder();
    let rows = rows(0, 100, 3);
    let mut writer = Writer::create(&path, vec![recording("one", 1)]).expect("writable");
    rows[..200].iter().for_each(|row| writer.push(*row).expect("room"));
    writer.flush().expect("room");
    writer.set_duration(7);
    rows[200..250].iter().for_each(|row| writer.push(*row).expect("room"));
    writer.flush().expect("room");
    rows[250..].iter().for_each(|row| writer.push(*row).expect("room"));
    // As a killed process would: nothing is run down.
    std::mem::forget(writer);
    assert!(!path.exists());
    let part = part_of(&path);
    let set = DataSet::open(&part).expect("readable");
    assert!(set.unfinished() && set.cut() == 0);
    assert_eq!(set.meta().recordings[0].duration_us, 7);
    let read = set.load().expect("valid");
    assert_eq!(read.len(), 250);
    assert!(read.iter().zip(&rows).all(|(one, other)| one.same(other)));
    // Killed in the middle of a write.
    let whole = std::fs::read(&part).expect("there");
    std::fs::write(&part, &whole[..whole.len() - 1]).expect("writes");
    let set = DataSet::open(&part).expect("readable");
    assert_eq!(set.load().expect("valid").len(), 200);
    assert!(set.cut() > 0);
    // Another recording does not overwrite it.
    let error = Writer::create(&path, Vec::new()).err().expect("refused").to_string();
    assert!(error.contains("x.parquet.part is left of a recording") && error.contains("dataset merge"), "{error}");
}

#[test]
fn what_is_no_data_set_is_said() {
    let refused = |octets: Vec<u8>| DataSet::parse(Path::new("x.parquet"), octets.into()).expect_err("refused");
    let said = |octets: Vec<u8>| refused(octets).to_string();
    assert!(matches!(refused(Vec::new()), DataSetError::Parquet { .. }));
    assert!(said(b"law,seed\n".repeat(9)).starts_with("x.parquet: not a Parquet file"));
    let (_folder, path) = folder();
    write(&path, &rows(0, 10, 1));
    let octets = std::fs::read(&path).expect("there");
    // The same length, so that nothing else moves.
    let with = |from: &str, to: &str| {
        let at = octets.windows(from.len()).position(|window| window == from.as_bytes()).expect("it is in the footer");
        let mut changed = octets.clone();
        changed[at..at + to.len()].copy_from_slice(to.as_bytes());
        changed
    };
    assert!(said(with("lasthop.dataset", "lasthop.another")).contains("no data set"));
    let version = said(with("\"schema\":1", "\"schema\":9"));
    assert!(version.contains("schema 9, and this is for schema 1"), "{version}");
    let features = said(with("\"features\":\"", "\"features\":\"x"));
    assert!(features.contains("features x") && features.contains("record it again"), "{features}");
    assert!(said(with("\"schema\":1", "\"schema\":x")).contains("its metadata are wrong: expected value"));
    let column = said(with("horizon_us", "horizon_ms"));
    assert!(
        column.contains("column 3 is `horizon_ms`") && column.contains("must be `horizon_us` (required INT32)"),
        "{column}"
    );
    let empty = DataSet::open(Path::new("/nowhere/x")).expect_err("not there").to_string();
    assert!(empty.starts_with("cannot read /nowhere/x: "), "{empty}");
}

#[test]
fn rows_that_cannot_be_are_refused_by_place_and_value() {
    let said = |wrong: Row| {
        let (_folder, path) = folder();
        let mut all = rows(0, 10, 1);
        all[3] = wrong;
        write_raw(&path, &all).to_string()
    };
    let good = row(0, 3, 0);
    assert!(said(Row { recording: 1, ..good }).contains("row 4: recording is 1, and must be the place of a recording"));
    assert!(said(Row { copies: 0, ..good }).contains("row 4: copies is 0, and must be at least 1"));
    assert!(said(Row { copies: 3, lost: 4, ..good }).contains("row 4: lost is 4, and must be at most copies"));
}

/// Writes what the writer is not asked to check, and reads it again.
fn write_raw(path: &Path, rows: &[Row]) -> DataSetError {
    let mut writer = Writer::create(path, vec![recording("one", 1)]).expect("writable");
    rows.iter().for_each(|row| writer.push(*row).expect("room"));
    writer.flush().expect("room");
    std::mem::forget(writer);
    DataSet::open(&part_of(path)).expect("its frame is well").load().expect_err("refused")
}

/// A data set, finished and not.
fn samples() -> [Vec<u8>; 2] {
    let (_folder, path) = folder();
    let rows = rows(0, 40, 3);
    write(&path, &rows);
    let finished = std::fs::read(&path).expect("there");
    let mut writer = Writer::create(&path, vec![recording("one", 1)]).expect("writable");
    rows.iter().for_each(|row| writer.push(*row).expect("room"));
    writer.flush().expect("room");
    std::mem::forget(writer);
    [finished, std::fs::read(part_of(&path)).expect("there")]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_bytes_make_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let journal = [&b"LHITEMS\x01"[..], &(bytes.len() as u32).to_le_bytes(), &bytes].concat();
        let parquet = [&b"PAR1"[..], &bytes, &8u32.to_le_bytes(), b"PAR1"].concat();
        for octets in [bytes.clone(), journal, parquet] {
            let _ = DataSet::parse(Path::new("x"), Bytes::from(octets)).and_then(|set| set.load());
        }
    }

    #[test]
    fn a_damaged_file_is_read_or_refused(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        static SAMPLES: std::sync::LazyLock<[Vec<u8>; 2]> = std::sync::LazyLock::new(samples);
        for octets in SAMPLES.iter() {
            let mut octets = octets.clone();
            for (at, value) in &changes {
                let at = at.index(octets.len());
                octets[at] = *value;
            }
            let read = DataSet::parse(Path::new("x"), Bytes::from(octets)).and_then(|set| set.load());
            for row in read.into_iter().flatten() {
                prop_assert!(row.recording == 0 && row.lost <= row.copies && row.copies > 0);
            }
        }
    }
}
