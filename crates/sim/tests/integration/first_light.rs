//! The demo scenario in virtual time: bounds that must hold whatever the details.

use crate::support;

use lasthop_report::{Key, Run, SeriesKind, Summary, World};
use lasthop_scenario::Scenario;
use support::{load, simulate};

fn summary(scenario: &Scenario, laws: &[&str], seeds: std::ops::RangeInclusive<u64>) -> Summary {
    let laws: Vec<String> = laws.iter().map(|law| law.to_string()).collect();
    let runs: Vec<Run> = seeds
        .flat_map(|seed| laws.iter().map(move |law| (law.clone(), seed)))
        .map(|(law, seed)| Run { record: simulate(scenario, &law, seed), law, seed })
        .collect();
    Summary::of(World::Sim, scenario.name(), &laws, &runs)
}

fn mean(summary: &Summary, law: &str, key: Key) -> f64 {
    summary.estimate(law, key).and_then(|e| e.mean).unwrap_or_else(|| panic!("{law} has no {}", key.name()))
}

#[test]
fn the_agent_keeps_the_queue_short_and_the_hop_full() {
    let summary = summary(&load("first-light.toml"), &["cubic", "cubic+ap", "cubic+modern-ap"], 1..=5);
    let ratio = |law, key| mean(&summary, law, key) / mean(&summary, "cubic", key);
    let delay = ratio("cubic+ap", Key::HopDelayP95);
    assert!(delay <= 0.2, "p95 hop delay is {delay:.2} of CUBIC's");
    let throughput = ratio("cubic+ap", Key::Throughput);
    assert!(throughput >= 0.9, "throughput is {throughput:.2} of CUBIC's");
    let fairness = ratio("cubic+ap", Key::Jain);
    assert!(fairness >= 1.0, "Jain's index is {fairness:.2} of CUBIC's");
    let stall = mean(&summary, "cubic+ap", Key::StallMax);
    assert!(stall < 500.0, "a flow stood still for {stall} ms");
    let modern = ratio("cubic+modern-ap", Key::HopDelayP95);
    assert!(modern < 0.6, "FQ-CoDel with airtime is {modern:.2} of a FIFO's delay");
}

#[test]
fn equal_seeds_give_equal_bytes_and_others_do_not() {
    let scenario = load("first-light.toml");
    let result = |seed| summary(&scenario, &["cubic+ap"], seed..=seed).to_json();
    assert_eq!(result(1), result(1));
    assert_ne!(result(1), result(2));
}

#[test]
fn nobody_gets_more_than_the_radio_carries() {
    // 802.11ac, 80 MHz, short guard interval: no station of the scenario has more than 390 Mbit/s of PHY rate.
    let summary = summary(&load("first-light.toml"), &["cubic", "bbr", "cubic+ap"], 1..=2);
    for law in ["cubic", "bbr", "cubic+ap"] {
        let throughput = mean(&summary, law, Key::Throughput);
        assert!((60.0..390.0).contains(&throughput), "{law}: {throughput} Mbit/s");
    }
}

#[test]
fn variants_run_in_the_world_of_first_light() {
    let original = load("first-light.toml");
    for name in ["oal/ablation.toml", "oal/modern-ap.toml"] {
        let variant = load(name);
        assert_eq!(variant.hop(), original.hop(), "{name}");
        assert_eq!(variant.wire(), original.wire(), "{name}");
        assert_eq!(variant.streams(), original.streams(), "{name}");
    }
}

#[test]
fn every_bin_has_a_window_and_only_paced_senders_a_rate() {
    let scenario = load("first-light.toml");
    for (law, paced) in [("cubic", false), ("bbr", true)] {
        let record = simulate(&scenario, law, 1);
        let of = |kind| record.tracks.iter().filter(move |track| track.kind == kind);
        for kind in [SeriesKind::Cwnd, SeriesKind::Window] {
            assert!(of(kind).count() > 0, "{law}: no {}", kind.name());
            for track in of(kind) {
                let first = track.values.iter().position(Option::is_some).expect("a value");
                assert!(track.values[first..].iter().all(Option::is_some), "{law}: {} has gaps", kind.name());
            }
        }
        assert_eq!(of(SeriesKind::Pacing).count() > 0, paced, "{law}");
        assert!(of(SeriesKind::Capacity).count() == 1, "{law}: a radio hop has an estimate of its capacity");
    }
}
