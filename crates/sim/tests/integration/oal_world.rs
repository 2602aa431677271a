//! Whether OAL's world loses as the paper's access points did, under CUBIC alone.

use crate::oal;

use lasthop_units::{Span, Time};
use oal::{World, run};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bounds around what the paper prints (mean 6.8 %; p50 3.5, p90 33, p99 77 %).
const BOUNDS: [(&str, Range<f64>); 4] =
    [("mean", 5.8..7.8), ("p50", 2.5..4.5), ("p90", 25.0..40.0), ("p99", 65.0..85.0)];
/// What entered within half a second before the end may be lost later.
const UNSURE: Span = Span::from_millis(500);

/// Of each second of each station that was sent data, the percentage of first copies that queues lost, smallest first; and how
/// many first copies were lost on the air, for each that a queue lost.
fn losses(world: &World, seed: u64) -> (Vec<f64>, f64) {
    let run = run(world, seed);
    let begin = Time::ZERO + world.scenario().warm_up();
    let measured = run.copies.iter().filter(|copy| copy.at >= begin && copy.at + UNSURE <= run.end);
    let mut seconds: BTreeMap<(u16, u64), (u64, u64)> = BTreeMap::new();
    let (mut in_queues, mut on_air) = (0, 0);
    for copy in measured {
        let (copies, lost) = seconds.entry((copy.station.0, copy.at.as_nanos() / 1_000_000_000)).or_default();
        *copies += 1;
        *lost += u64::from(copy.lost == Some(false));
        in_queues += u64::from(copy.lost == Some(false));
        on_air += u64::from(copy.lost == Some(true));
    }
    let mut shares: Vec<f64> = seconds.values().map(|(copies, lost)| 100.0 * *lost as f64 / *copies as f64).collect();
    shares.sort_by(f64::total_cmp);
    (shares, on_air as f64 / in_queues as f64)
}

#[test]
fn cubic_loses_what_the_paper_counted() {
    const SEEDS: u64 = 5;
    let world = World::library();
    let (mut means, mut on_air) = ([0.0; 4], 0.0);
    for seed in 1..=SEEDS {
        let (shares, air) = losses(&world, seed);
        let at = |share: f64| shares[((shares.len() - 1) as f64 * share) as usize];
        let figures = [shares.iter().sum::<f64>() / shares.len() as f64, at(0.5), at(0.9), at(0.99)];
        eprintln!("seed {seed}, {} seconds of stations: mean, p50, p90, p99: {figures:.1?} %", shares.len());
        means.iter_mut().zip(figures).for_each(|(mean, figure)| *mean += figure / SEEDS as f64);
        on_air += air / SEEDS as f64;
    }
    eprintln!("means over {SEEDS} seeds: {means:.2?} %; lost on the air for each that a queue lost: {on_air:.4}");
    for ((name, bounds), figure) in BOUNDS.into_iter().zip(means) {
        assert!(bounds.contains(&figure), "{name}: {figure:.2} %, of {bounds:?}");
    }
    // The paper: far fewer than those of congestion.
    assert!(on_air < 1.0 / 3.0, "{on_air}");
}
