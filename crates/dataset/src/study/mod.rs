//! What a data set says: how metrics and losses hang together, how losses are spread, and what trees are worth that learn from it.

pub mod information;
pub mod kendall;
pub mod spread;
pub mod trees;

use crate::Meta;
use crate::row::Row;
use crate::schema::{COLUMNS, Column, Origin};
use lasthop_laws::oal::predictor::LossClass;
use serde::Serialize;

/// Two figures that the paper prints of a metric: Kendall's tau and the information gain.
type Printed = (&'static str, f64, f64);

/// Rows of the paper's Table 2, by the column here that is nearest to each. Its queue 3 holds nearly all of an access point's data: the
/// hop's queues.
const TABLE_2: [(&str, Printed); 10] = [
    ("hop_backlog", ("backlog, queue 3", 0.3307, 0.1405)),
    ("busy_100ms", ("channel utilisation", 0.5413, 0.1694)),
    ("hop_drops_100ms", ("drops, all queues", 0.3109, 0.1838)),
    ("drops_100ms", ("drops, queue 3", 0.3057, 0.182)),
    ("hop_entered_100ms", ("bytes received, queue 3", 0.4082, 0.1504)),
    ("retries_100ms", ("link retries", -0.02, 0.0157)),
    ("sent_100ms", ("link bytes sent", 0.2898, 0.0091)),
    ("received_100ms", ("link bytes received", 0.2557, 0.0058)),
    ("failed_100ms", ("link failures", -0.007, 0.0032)),
    ("hop_forwarded_20ms", ("data rate, Open vSwitch", 0.8, 0.0)),
];

/// Rows of Table 2 for which no driver of today has a counter.
pub const ABSENT: [&str; 3] = ["packets received, queue 5", "requeues, queue 3", "noise"];

/// The paper's Table 4: precision, recall and F of Good, Acceptable, Poor and Bad, of its decision tree and of its random forest. Two of the
/// F are not what precision and recall next to them give.
pub const TABLE_4: [(&str, [[f64; 3]; 4]); 2] = [
    ("tree", [[0.680, 0.677, 0.679], [0.431, 0.432, 0.432], [0.485, 0.485, 0.485], [0.612, 0.626, 0.622]]),
    ("forest", [[0.680, 0.829, 0.747], [0.504, 0.446, 0.423], [0.627, 0.489, 0.549], [0.795, 0.594, 0.680]]),
];

/// A metric or feature beside the class of what was lost after it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Metric {
    /// The column.
    pub column: String,
    /// Items that have a value.
    pub items: usize,
    /// Kendall's tau-b with the class.
    pub tau: Option<f64>,
    /// Information gain about the class, in bits.
    pub gain: f64,
    /// The row of the paper's Table 2 that is nearest to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper: Option<Printed>,
}

/// All that is said.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Study {
    /// Items, and those of moments when windows were tight, which are left out of all that follows.
    pub items: usize,
    /// See there.
    pub acted: usize,
    /// Items by class.
    pub classes: [u64; 4],
    /// Bits of a class.
    pub entropy: f64,
    /// By information gain, the greatest first.
    pub metrics: Vec<Metric>,
    /// Of each second of each station.
    pub spread: Option<spread::Spread>,
    /// What trees are worth.
    pub splits: Vec<trees::Split>,
}

/// Studies items.
pub fn study(meta: &Meta, rows: &[Row]) -> Study {
    let calm: Vec<Row> = rows.iter().filter(|row| !row.acted).copied().collect();
    let mut classes = [0; LossClass::ALL.len()];
    calm.iter().for_each(|row| classes[row.class() as usize] += 1);
    let mut metrics: Vec<Metric> = COLUMNS.iter().filter_map(|column| metric(column, &calm)).collect();
    metrics.sort_by(|one, other| other.gain.total_cmp(&one.gain));
    let entropy = if calm.is_empty() { 0.0 } else { information::entropy(&classes) };
    Study {
        items: rows.len(),
        acted: rows.len() - calm.len(),
        classes,
        entropy,
        metrics,
        spread: spread::spread(&calm.iter().collect::<Vec<_>>()),
        splits: trees::splits(meta, &calm),
    }
}

/// `None` for a column that is neither a metric nor a feature.
fn metric(column: &Column, rows: &[Row]) -> Option<Metric> {
    let value: Box<dyn Fn(&Row) -> f32> = match column.origin {
        Origin::Feature(at) => Box::new(move |row| row.features[at]),
        Origin::Metric(at) => Box::new(move |row| row.metrics[at]),
        Origin::Key | Origin::Label => return None,
    };
    let known: Vec<(f32, usize)> =
        rows.iter().map(|row| (value(row), row.class() as usize)).filter(|(value, _)| value.is_finite()).collect();
    let tau = kendall::tau_b(known.iter().map(|(value, class)| (*value, *class as f32)).collect());
    let paper = TABLE_2.iter().find(|(name, _)| *name == column.name).map(|(_, printed)| *printed);
    Some(Metric { column: column.name.clone(), items: known.len(), tau, gain: information::gain(known), paper })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_rows_stand_beside_columns_that_there_are() {
        for (name, _) in TABLE_2 {
            let column = COLUMNS.iter().find(|column| column.name == name).unwrap_or_else(|| panic!("{name}"));
            assert!(matches!(column.origin, Origin::Feature(_) | Origin::Metric(_)));
        }
    }
}
