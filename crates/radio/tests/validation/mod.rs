//! The Wi-Fi model beside ns-3 3.37: what is simulated, how it is compared, and how the comparison is shown.

pub mod cases;
pub mod figure;
pub mod fit;
pub mod meter;
pub mod page;
pub mod rule;

use cases::{Case, Row, Table, one_station_group};
use lasthop_radio::wifi::Profile;
use meter::Figures;
use rule::{Spread, Value};

/// Runs of each case. ns-3 had one to three.
pub const SEEDS: u64 = 12;

/// One point of the reference and what the model makes of it.
pub struct Point<'a> {
    pub case: Case,
    pub row: Row<'a>,
    /// Points of one group make up one curve.
    pub group: String,
    /// By seed.
    pub runs: Vec<Figures>,
    pub values: Vec<Value>,
}

impl Point<'_> {
    pub fn ours(&self) -> Figures {
        Figures::mean(self.runs.iter().copied())
    }
}

/// Every visible point of S1, with so many packets waiting for the station's address.
pub fn one_station(table: &Table, profile: Profile, seeds: u64, pending: usize) -> Vec<Point<'_>> {
    table
        .rows()
        .map(|row| {
            let case = Case::one_station(row, pending);
            let runs: Vec<Figures> = (0..seeds).map(|seed| meter::run(&case, profile, seed)[0]).collect();
            let ppdus = row.number("n_ampdu_avg");
            let spread = Spread { column: "seed_sd", samples: row.number("n_seeds"), ppdus };
            let values = rule::compare(&case, &case.name, row, Figures::mean(runs.iter().copied()), spread);
            let group = one_station_group(row.index("nss"), row.index("mcs"), row.text("sgi") == "1");
            Point { case, row, group, runs, values }
        })
        .collect()
}

/// Every visible point of S2.
pub fn several_stations(table: &Table, profile: Profile) -> Vec<Point<'_>> {
    let rows: Vec<Row> = table.rows().collect();
    fn key<'a>(row: &Row<'a>) -> [&'a str; 3] {
        ["tag", "n_sta", "nss"].map(|column| row.text(column))
    }
    let mut points = Vec::new();
    for (at, first) in rows.iter().enumerate() {
        if rows[..at].iter().any(|row| key(row) == key(first)) {
            continue;
        }
        // Rows that differ in the stations' class only belong to one run.
        let of_run: Vec<Row> = rows.iter().copied().filter(|row| key(row) == key(first)).collect();
        let case = Case::several_stations(&of_run);
        let runs: Vec<Vec<Figures>> = (0..SEEDS).map(|seed| meter::run(&case, profile, seed)).collect();
        for (class, &row) in of_run.iter().enumerate() {
            let runs: Vec<Figures> = runs.iter().map(|run| run[class]).collect();
            let mcs = row.text("sta_class(mcs)");
            let name = if of_run.len() > 1 { format!("{}, MCS {mcs}", case.name) } else { case.name.clone() };
            let ppdus = case.measured.as_secs_f64() * 1e6 / row.number("mean_interppdu_us_avg");
            // The column is the deviation over as many samples, one a station and run.
            let samples = row.number("n_samples(seeds*stas)");
            let spread = Spread { column: "sd", samples, ppdus };
            let values = rule::compare(&case, &name, row, Figures::mean(runs.iter().copied()), spread);
            let group = format!("{} stations, NSS {}", row.text("n_sta"), row.text("nss"));
            points.push(Point { case: case.clone(), row, group, runs, values });
        }
    }
    points
}

/// Names of groups in their order.
pub fn groups<'a>(points: &'a [Point]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for point in points {
        if !names.contains(&point.group.as_str()) {
            names.push(&point.group);
        }
    }
    names
}
