//! How losses are spread: the paper's Figure 3.
//! Source:     Lin and Jiang 2020, Figure 3: mean 6.7677 %, median 3.5 %, 90th percentile 33 %, 99th 77 %. Of what the percentages are, it does not say.
//! Equations:  of each second of each station that was sent data: 100 lost / copies;  p-quantile: the value at place floor(p (n - 1)), sorted
//! Symbols:    lost, copies -> sums over the items of the second
//! Deviations: none known.     Validity: with items that tile time each first copy counts once.
//! Checked by: tests::*

use crate::row::Row;
use serde::Serialize;
use std::collections::BTreeMap;

/// A distribution, in percent.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// Seconds of stations that were sent data.
    pub seconds: usize,
    /// Their mean.
    pub mean: f64,
    /// Their median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Percentage of all first copies.
    pub of_all: f64,
}

/// What the paper prints: mean, median, 90th and 99th percentile.
pub const PAPER: [f64; 4] = [6.7677, 3.5, 33.0, 77.0];

/// The distribution; `None` without items.
pub fn spread(rows: &[&Row]) -> Option<Spread> {
    let mut seconds: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for row in rows {
        let key = (row.recording, row.access_point, row.station, row.at.as_nanos() / 1_000_000_000);
        let (copies, lost) = seconds.entry(key).or_default();
        *copies += u64::from(row.copies);
        *lost += u64::from(row.lost);
    }
    let percent = |(copies, lost): (u64, u64)| 100.0 * lost as f64 / copies as f64;
    let all = seconds.values().fold((0, 0), |sum, second| (sum.0 + second.0, sum.1 + second.1));
    let mut shares: Vec<f64> = seconds.into_values().map(percent).collect();
    shares.sort_by(f64::total_cmp);
    let at = |share: f64| shares.get((shares.len().saturating_sub(1) as f64 * share) as usize).copied();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    Some(Spread { seconds: shares.len(), mean, p50: at(0.5)?, p90: at(0.9)?, p99: at(0.99)?, of_all: percent(all) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pseudonym;
    use crate::metrics::METRICS;
    use lasthop_laws::oal::features::FEATURES;
    use lasthop_units::{Span, Time};

    fn row(ms: u64, station: u64, copies: u32, lost: u32) -> Row {
        Row {
            recording: 0,
            at: Time::from_nanos(ms * 1_000_000),
            horizon: Span::from_millis(100),
            access_point: Pseudonym(1),
            station: Pseudonym(station),
            features: [0.0; FEATURES.len()],
            metrics: [0.0; METRICS.len()],
            copies,
            lost,
            acted: false,
        }
    }

    #[test]
    fn seconds_of_stations_are_hand_worked() {
        // The first second of one station: 3 of 30. The second: 5 of 10. The other's first: none of 60.
        let rows = [row(100, 1, 10, 3), row(900, 1, 20, 0), row(1000, 1, 10, 5), row(200, 2, 60, 0)];
        let of = spread(&rows.iter().collect::<Vec<_>>()).expect("items");
        assert_eq!((of.seconds, of.p50, of.p90, of.p99), (3, 10.0, 10.0, 10.0));
        assert!((of.mean - 20.0).abs() < 1e-9 && (of.of_all - 8.0).abs() < 1e-9, "{of:?}");
        assert_eq!(spread(&[]), None);
    }
}
