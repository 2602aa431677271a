//! The straight line T = c + w N through a group's points, as the reference draws it (s1_fit.csv): T is the interval
//! between data PPDUs, N the mean aggregation, each point one seed.

use super::Point;
use super::cases::{Row, Table, one_station_group};
use super::rule::Value;

/// A group's line and what goes with it.
#[derive(Clone, Copy, Debug)]
pub struct Fit {
    /// Microseconds.
    pub c: f64,
    /// Microseconds an MPDU.
    pub w: f64,
    /// Largest throughput, Mbit/s.
    pub capacity: f64,
    /// Delay to the Ack in units of T: mean and 95th percentile.
    pub acked: f64,
    pub acked_p95: f64,
}

/// The line through the points of `group`.
pub fn of_group(points: &[Point], group: &str) -> Fit {
    let of_group = || points.iter().filter(|point| point.group == group);
    let largest = of_group().map(|point| point.ours().mpdus).fold(0.0, f64::max).round();
    let capacity = of_group().map(|point| point.ours().throughput).fold(0.0, f64::max);
    let mut sums = [0.0; 7];
    for point in of_group().filter(|point| point.case.load <= 0.951) {
        let x = point.case.classes[0].rate;
        for run in point.runs.iter().filter(|run| run.mpdus > 1.5 && run.mpdus < 0.93 * largest) {
            let (n, t) = (run.mpdus, run.mpdus / x * 1e6);
            let terms = [1.0, n, t, n * n, n * t, run.acked * 1e3 / t, run.acked_p95 * 1e3 / t];
            sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
        }
    }
    let [count, n, t, nn, nt, acked, acked_p95] = sums;
    let w = (count * nt - n * t) / (count * nn - n * n);
    Fit { c: (t - w * n) / count, w, capacity, acked: acked / count, acked_p95: acked_p95 / count }
}

/// Compares every line of the reference with ours: 3 % in what follows from aggregation, 5 % in delay.
pub fn compare(table: &Table, points: &[Point]) -> Vec<(String, Fit, Vec<Value>)> {
    table.rows().map(|row| compare_row(row, points)).collect()
}

fn compare_row(row: Row, points: &[Point]) -> (String, Fit, Vec<Value>) {
    let group = one_station_group(row.index("nss"), row.index("mcs"), row.text("sgi") == "1");
    let fit = of_group(points, &group);
    let value = |(figure, column, share, ours): (&'static str, &str, f64, f64)| {
        let theirs = row.number(column);
        Value { place: group.clone(), figure, ours, theirs, allowed: share * theirs, without_step: share * theirs }
    };
    let values = [
        ("c", "c_fit_us", 0.03, fit.c),
        ("w", "w_fit_us", 0.03, fit.w),
        ("capacity", "capacity_measured_mbps_ip", 0.03, fit.capacity),
        ("delay to Ack over T, mean", "mean_delay_ack_over_T", 0.05, fit.acked),
        ("delay to Ack over T, p95", "p95_delay_ack_over_T", 0.05, fit.acked_p95),
    ]
    .map(value);
    (group, fit, values.to_vec())
}
