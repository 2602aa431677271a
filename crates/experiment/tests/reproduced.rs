//! What the page of reproductions says of the aggregation regulator's figures, with one seed and fewer points: a law that is changed
//! may not lose what was reproduced before.

use lasthop_experiment::reproduce::{Runner, aggregation};
use lasthop_lab::Stop;

/// The paper's figures and what goes with them, and the requirements that are not met with five seeds either, or hardly.
const FIGURES: [(&str, &[&str]); 13] = [
    ("1b", &[]),
    ("2", &["time constant"]),
    ("4", &[]),
    ("5", &[]),
    ("7", &[]),
    ("8", &[]),
    ("10", &[]),
    ("11", &[]),
    ("12", &[]),
    ("13", &[]),
    ("predecessor", &[]),
    (
        "losses",
        &[
            "4 stations, Rician fading at 28 dB, two streams, rates by a sampler: throughput and p95 delay, as multiples of those of CUBIC over FIFO",
            "4 stations, Rician fading at 28 dB, two streams, rates by a sampler: throughput and p95 delay, as multiples of those of CUBIC over the modern queue",
        ],
    ),
    // When the neighbour has gone, the first slots are as long as their worst run.
    (
        "tracking",
        &[
            "a neighbour from 20 to 40 s, the hop comes back: longest half-second mean delay",
            "a neighbour of 6 Mbit/s from 20 to 40 s, the hop comes back: longest half-second mean delay",
        ],
    ),
];

#[test]
fn what_was_reproduced_still_is() {
    let (figures, _) = aggregation();
    let stop = Stop::default();
    let runner = Runner { quick: true, stop: &stop, tell: &|what| eprintln!("{what}") };
    let mut lost = Vec::new();
    for (id, unmet) in FIGURES {
        let figure = figures.iter().find(|figure| figure.id == id).expect("a figure of the paper");
        let section = figure.reproduce(&runner).unwrap_or_else(|error| panic!("{id}: {error}"));
        let required: Vec<_> = section.checks.iter().filter(|check| check.met.is_some()).collect();
        assert!(!required.is_empty(), "{id}: nothing is required");
        for name in unmet {
            assert!(required.iter().any(|check| check.what == *name), "{id}: nothing is called {name}");
        }
        let missed = required.iter().filter(|check| check.met == Some(false) && !unmet.contains(&check.what.as_str()));
        lost.extend(missed.map(|check| format!("{id}: {}: {} ({})", check.what, check.ours, check.paper)));
    }
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}
