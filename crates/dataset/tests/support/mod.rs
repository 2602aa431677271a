//! Rows of a made-up data set.
#![allow(dead_code, reason = "each user of this module uses part of it")]

use lasthop_dataset::metrics::METRICS;
use lasthop_dataset::{Pseudonym, Recording, Row, World};
use lasthop_laws::oal::features::FEATURES;
use lasthop_units::{Span, Time};

pub fn recording(id: &str, seed: u64) -> Recording {
    Recording {
        id: id.to_owned(),
        world: World::Sim,
        scenario: "made-up".to_owned(),
        law: "cubic".to_owned(),
        seed: Some(seed),
        begun: None,
        duration_us: 60_000_000,
        every_us: 100_000,
        horizon_us: 100_000,
        repair_us: 1_500_000,
        key: "00000000".to_owned(),
    }
}

/// The item of a station at the `moment`-th 100 ms: its first feature tells what it loses, some others are missing.
pub fn row(recording: u32, moment: u64, station: u64) -> Row {
    let mut features = [f32::NAN; FEATURES.len()];
    features[0] = (moment % 50 / 10) as f32;
    features[2] = -0.0;
    features[3] = f32::INFINITY;
    features[5] = (moment * 7919 % 10_007) as f32 / 3.0;
    let mut metrics = [0.5; METRICS.len()];
    metrics[2] = f32::NAN;
    Row {
        recording,
        at: Time::from_nanos(moment * 100_000_000),
        horizon: Span::from_millis(100),
        access_point: Pseudonym(7 + station % 2),
        station: Pseudonym(station << 40),
        features,
        metrics,
        copies: 20,
        lost: (moment % 50 / 10) as u32,
        acted: moment.is_multiple_of(9),
    }
}

/// So many rows of `stations` stations.
pub fn rows(recording: u32, moments: u64, stations: u64) -> Vec<Row> {
    (0..moments).flat_map(|moment| (0..stations).map(move |station| row(recording, moment, station))).collect()
}
