//! Both worlds let the same traffic begin at the same moments.

use lasthop_lab::Spec;
use lasthop_scenario::{Scenario, StreamKind};
use lasthop_units::{Seed, Time};
use std::path::Path;

fn scenario() -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/first-light.toml");
    Scenario::load(&path).unwrap_or_else(|error| panic!("{error:?}"))
}

fn in_the_lab(scenario: &Scenario, seed: u64) -> Vec<Time> {
    let spec = Spec::of(scenario, &scenario.laws()[0], seed);
    spec.streams.iter().map(|stream| stream.start).collect()
}

#[test]
fn streams_start_at_the_same_times_in_lab_and_simulator() {
    let scenario = scenario();
    for seed in 1..=5 {
        let world = lasthop_sim::build(&scenario, &scenario.laws()[0], Seed(seed), false).expect("valid parameters");
        let simulated: Vec<Option<Time>> = world.next_starts().collect();
        let emulated: Vec<Option<Time>> = in_the_lab(&scenario, seed).into_iter().map(Some).collect();
        assert_eq!(simulated, emulated, "seed {seed}");
    }
}

#[test]
fn repeating_streams_start_by_seed_and_bulk_ones_as_given() {
    let scenario = scenario();
    let (first, second) = (scenario.streams_for(Seed(1)), scenario.streams_for(Seed(2)));
    assert_eq!(first.len(), scenario.streams().len());
    for ((stream, other), told) in first.iter().zip(&second).zip(scenario.streams()) {
        match stream.kind {
            StreamKind::Bulk { .. } | StreamKind::Udp { .. } => {
                assert_eq!((stream.start, other.start), (told.start, told.start))
            }
            StreamKind::Probe { every, .. } | StreamKind::Fetch { every, .. } => {
                assert_ne!(stream.start, other.start);
                assert!(stream.start >= told.start && stream.start < told.start + every);
            }
        }
    }
    assert!(first.iter().any(|stream| stream.every().is_some()), "nothing repeats");
}
