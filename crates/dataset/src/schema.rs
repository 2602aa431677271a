//! The columns of a data set, each declared once: name, unit, meaning, and what holds it.
//!
//! The features are those of [`lasthop_laws::oal::features`], the metrics those of [`crate::metrics`]; what identifies an item and what
//! became of it stands here. Files, the check of a file, and the reference page follow from this list.

use crate::metrics::METRICS;
use lasthop_laws::oal::features::{FEATURES, Feature};
use std::sync::LazyLock;

/// The number of this schema: the files of another number are refused.
pub const VERSION: u32 = 1;

/// What a column holds, and how the file stores it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A whole number from 0 that few rows differ in: by dictionary.
    Count,
    /// A moment: by differences.
    Moment,
    /// 16 hexadecimal digits: by dictionary.
    Pseudonym,
    /// True or false, in runs.
    Flag,
    /// A number of 32 bits, or null where it is not known: by dictionary where values repeat.
    Number,
}

/// Where the value of a column comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// It says of what the item is.
    Key,
    /// The feature with this place in [`FEATURES`].
    Feature(usize),
    /// The metric with this place in [`METRICS`].
    Metric(usize),
    /// What became known after the moment.
    Label,
}

/// A column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its name in files: letters, digits and underscores.
    pub name: String,
    /// Its unit; `1` for a share, empty where there is none.
    pub unit: &'static str,
    /// What it is.
    pub meaning: &'static str,
    /// How it is held.
    pub kind: Kind,
    /// Where it comes from.
    pub origin: Origin,
}

const fn key(name: &'static str, unit: &'static str, meaning: &'static str, kind: Kind) -> Plain {
    Plain { name, unit, meaning, kind }
}

/// A column that is neither a feature nor a metric.
struct Plain {
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
    kind: Kind,
}

const KEYS: [Plain; 5] = [
    key("recording", "", "The item's recording: its place in the file's list.", Kind::Count),
    key("time_us", "us", "The moment, since the recording began.", Kind::Moment),
    key("horizon_us", "us", "How far the label looks ahead.", Kind::Count),
    key("access_point", "", "Pseudonym of the access point.", Kind::Pseudonym),
    key("station", "", "Pseudonym of the station.", Kind::Pseudonym),
];

const LABELS: [Plain; 3] = [
    key(
        "copies",
        "segments",
        "First copies for the station that entered within the horizon; at least one.",
        Kind::Count,
    ),
    key("lost", "segments", "Those of them that queues lost.", Kind::Count),
    key(
        "acted",
        "",
        "Windows were tight within the horizon or 500 ms before: what would have been lost otherwise is unknown.",
        Kind::Flag,
    ),
];

/// Every column, in the order of the file.
pub static COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let plain = |column: &Plain, origin| Column {
        name: column.name.to_owned(),
        unit: column.unit,
        meaning: column.meaning,
        kind: column.kind,
        origin,
    };
    let number = |feature: &Feature, origin| Column {
        name: feature.name.replace('-', "_"),
        unit: feature.unit,
        meaning: feature.meaning,
        kind: Kind::Number,
        origin,
    };
    let keys = KEYS.iter().map(|column| plain(column, Origin::Key));
    let features = FEATURES.iter().enumerate().map(|(at, feature)| number(feature, Origin::Feature(at)));
    let metrics = METRICS.iter().enumerate().map(|(at, metric)| number(metric, Origin::Metric(at)));
    let labels = LABELS.iter().map(|column| plain(column, Origin::Label));
    keys.chain(features).chain(metrics).chain(labels).collect()
});

/// The list as a table in Markdown, for the reference page.
pub fn table() -> String {
    let mut text = String::from("| column | unit | from | meaning |\n|---|---|---|---|\n");
    for column in COLUMNS.iter() {
        let from = match column.origin {
            Origin::Key => "key",
            Origin::Feature(_) => "feature",
            Origin::Metric(_) => "metric",
            Origin::Label => "label",
        };
        text += &format!("| `{}` | {} | {from} | {} |\n", column.name, column.unit, column.meaning);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_plain_and_each_is_there_once() {
        let names: BTreeSet<&str> = COLUMNS.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names.len(), COLUMNS.len());
        let plain =
            |name: &&str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        assert!(names.iter().all(plain), "{names:?}");
        assert!(COLUMNS.iter().all(|column| column.meaning.ends_with('.')));
    }

    #[test]
    fn the_reference_page_lists_the_columns() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/data-set.md");
        let page = std::fs::read_to_string(path).expect("the page is there");
        assert!(page.contains(&table()), "docs/reference/data-set.md must hold this table:\n{}", table());
    }
}
