//! Merging, parting and studying made-up data sets.

use crate::support;

use lasthop_dataset::split::{self, By};
use lasthop_dataset::study::study;
use lasthop_dataset::study::trees::Who;
use lasthop_dataset::{DataSet, DataSetError, Meta, Row, Writer, merge};
use lasthop_units::Span;
use std::collections::BTreeSet;
use std::path::Path;
use support::{recording, row, rows};

fn write(path: &Path, id: &str, seed: u64, rows: &[Row]) -> DataSet {
    let mut writer = Writer::create(path, vec![recording(id, seed)]).expect("writable");
    rows.iter().for_each(|row| writer.push(*row).expect("room on the disk"));
    writer.finish().expect("room on the disk");
    DataSet::open(path).expect("a data set")
}

#[test]
fn merging_keeps_every_item_of_its_recording() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = |name: &str| folder.path().join(name);
    let sets = [write(&path("a"), "one", 1, &rows(0, 50, 2)), write(&path("b"), "two", 2, &rows(0, 30, 3))];
    let written = merge(&sets, &path("c")).expect("room on the disk");
    let merged = DataSet::open(&path("c")).expect("a data set");
    assert_eq!((written.rows, merged.rows()), (190, 190));
    assert_eq!(merged.meta().recordings, [recording("one", 1), recording("two", 2)]);
    let all = merged.load().expect("valid");
    let wanted: Vec<Row> = rows(0, 50, 2).into_iter().chain(rows(1, 30, 3)).collect();
    assert!(all.len() == wanted.len() && all.iter().zip(&wanted).all(|(one, other)| one.same(other)));
    let error = merge(&[sets.into_iter().next().expect("two"), merged], &path("d")).expect_err("one is in both");
    assert!(matches!(error, DataSetError::Apart { .. }));
    assert!(error.to_string().contains("both hold the recording one: leave one of them out"), "{error}");
    assert!(!path("d").exists());
}

fn two_seeds() -> (Meta, Vec<Row>) {
    let meta = Meta::new(vec![recording("one", 1), recording("two", 2)]);
    (meta, rows(0, 3000, 4).into_iter().chain(rows(1, 3000, 4)).collect())
}

#[test]
fn what_is_held_out_is_not_learned_from() {
    let (meta, rows) = two_seeds();
    let gap = split::gap(&meta, &rows);
    assert_eq!(gap, Span::from_millis(100 + 100 + 1500), "window, horizon and time for repairs");
    for by in By::ALL {
        let folds = split::folds(&meta, &rows, by);
        assert_eq!(
            folds.len(),
            match by {
                By::Time => 4,
                By::AccessPoint => 2,
                By::Seed => 2,
                By::Random => 5,
            },
            "{by:?}"
        );
        for fold in &folds {
            let (learn, ask): (BTreeSet<_>, BTreeSet<_>) = (fold.learn.iter().collect(), fold.ask.iter().collect());
            assert!(learn.is_disjoint(&ask) && !learn.is_empty() && !ask.is_empty(), "{by:?}");
            let (of_learn, of_ask) =
                (|| fold.learn.iter().map(|at| &rows[*at]), || fold.ask.iter().map(|at| &rows[*at]));
            match by {
                By::Time => {
                    let last = of_learn().map(|row| row.at).max().expect("some");
                    let first = of_ask().map(|row| row.at).min().expect("some");
                    assert!(last + gap <= first, "{last:?} and {first:?}");
                }
                By::AccessPoint => {
                    let of = |row: &Row| row.access_point;
                    let held: BTreeSet<_> = of_ask().map(of).collect();
                    assert!(held.len() == 1 && of_learn().all(|row| !held.contains(&of(row))));
                }
                By::Seed => {
                    let held: BTreeSet<_> = of_ask().map(|row| row.recording).collect();
                    assert!(held.len() == 1 && of_learn().all(|row| !held.contains(&row.recording)));
                }
                By::Random => assert_eq!(learn.len() + ask.len(), rows.len()),
            }
        }
    }
    let asked: usize = split::folds(&meta, &rows, By::Random).iter().map(|fold| fold.ask.len()).sum();
    assert_eq!(asked, rows.len(), "each is asked for once");
}

#[test]
fn a_feature_that_tells_the_class_is_found_and_learned() {
    // The first feature is how many of 20 are lost, 0 to 4.
    let (meta, rows) = two_seeds();
    let study = study(&meta, &rows);
    assert_eq!(study.items, rows.len());
    assert_eq!(study.acted, rows.iter().filter(|row| row.acted).count());
    let best = &study.metrics[0];
    assert_eq!(best.column, "backlog");
    // Shares 0, 5, 10, 15 and 20 %: a fifth Good, two fifths Poor, two fifths Bad.
    assert!((study.entropy - (0.2 * 5f64.log2() + 0.8 * 2.5f64.log2())).abs() < 0.01, "{}", study.entropy);
    assert!((best.gain - study.entropy).abs() < 0.01 && best.tau.is_some_and(|tau| tau > 0.8), "{best:?}");
    let spread = study.spread.expect("items");
    assert!((spread.mean - 10.0).abs() < 0.5 && (spread.p50 - 10.0).abs() < 0.6, "{spread:?}");
    for split in &study.splits {
        let of = |who: Who| split.macro_f[&who].mean;
        assert!(of(Who::Tree) > 0.99 && of(Who::TreeWithoutDrops) > 0.99, "{split:?}");
        assert!(of(Who::Majority) < 0.5 && of(Who::Persistence) < 0.99, "{split:?}");
        assert!(split.margin.mean > 0.05, "{split:?}");
    }
    assert_eq!(study.splits.len(), 4);
}

#[test]
fn what_is_nothing_is_studied_too() {
    let meta = Meta::new(vec![recording("one", 1)]);
    let of_none = study(&meta, &[]);
    assert!(of_none.splits.is_empty() && of_none.spread.is_none());
    let of_one = study(&meta, &[row(0, 1, 1)]);
    assert_eq!((of_one.items, of_one.splits.len()), (1, 0));
}
