//! Tables of what each law makes of a hop.

use crate::study::Results;
use lasthop_report::Key;
use lasthop_report::page::{Table, shown};

/// The columns that all of them have, after the hop and the law.
const COLUMNS: [(&str, Key); 5] = [
    ("Mbit/s", Key::Throughput),
    ("packets a frame", Key::Aggregation),
    ("interval (ms)", Key::FrameInterval),
    ("hop delay mean (ms)", Key::HopDelayMean),
    ("p95 (ms)", Key::HopDelayP95),
];

/// An empty one, with these columns behind the others.
pub(super) fn by_law(more: &[(&str, Key)]) -> Table {
    let names = COLUMNS.iter().chain(more).map(|(name, _)| *name);
    Table::new(&["hop", "law"].into_iter().chain(names).collect::<Vec<_>>())
}

/// A law's row.
pub(super) fn row(hop: &str, run: &Results, law: &str, more: &[(&str, Key)]) -> Vec<String> {
    let values = COLUMNS.iter().chain(more).map(|(_, key)| shown(&run.of(law, *key)));
    [hop.to_owned(), law.to_owned()].into_iter().chain(values).collect()
}
