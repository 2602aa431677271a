use super::*;
use crate::{Recorder, Window};
use lasthop_signals::{FlowId, Node};
use lasthop_units::{Bytes, Time};
use proptest::prelude::*;

fn ms(n: u64) -> Time {
    Time::from_nanos(n * 1_000_000)
}

/// A run with one bulk flow of `megabytes` and one packet that took `delay_ms`.
fn run(law: &str, seed: u64, megabytes: u64, delay_ms: u64) -> Run {
    let mut r = Recorder::new(Window { warm_up: ms(0), end: ms(1000) }, [(Node(0), "sta".to_string())]);
    r.goodput(ms(500), FlowId(0), Node(0), Bytes::new(megabytes * 1_000_000));
    r.hop_delivery(ms(500), ms(500 - delay_ms), Node(0), Bytes::new(1500));
    Run { law: law.to_string(), seed, record: r.finish() }
}

fn summary(runs: &[Run]) -> Summary {
    Summary::of(World::Sim, "test", &["b".to_string(), "a".to_string()], runs)
}

#[test]
fn the_file_has_the_documented_shape() {
    let s = summary(&[run("a", 1, 1, 10), run("a", 2, 3, 20)]);
    let json: serde_json::Value = serde_json::from_str(&s.to_json()).expect("valid JSON");
    assert_eq!(json["world"], "sim");
    let throughput = &json["laws"]["a"]["throughput_mbit_s"];
    assert_eq!((&throughput["unit"], &throughput["mean"]), (&"Mbit/s".into(), &16.0.into()));
    assert_eq!(throughput["ci95"].as_array().map(Vec::len), Some(2));
    // Nothing was probed: the key is there, without a number, with a reason.
    let probes = &json["laws"]["a"]["probe_delay_p95_ms"];
    assert!(probes["mean"].is_null() && probes["sd"].is_null() && probes["ci95"].is_null());
    assert_eq!(probes["absent"][0], "there were no probes in the measuring window");
    assert_eq!(json["stations"]["a"]["sta"]["throughput_mbit_s"]["mean"], 16.0);
}

#[test]
fn the_order_of_running_leaves_no_trace() {
    let mut runs = vec![run("a", 1, 1, 10), run("a", 2, 3, 20), run("b", 1, 7, 5), run("b", 2, 1, 15)];
    let first = summary(&runs).to_json();
    runs.reverse();
    assert_eq!(summary(&runs).to_json(), first);
}

#[test]
fn tables_keep_the_users_order() {
    assert_eq!(summary(&[run("a", 1, 1, 1), run("c", 1, 1, 1), run("b", 1, 1, 1)]).laws_in_order(), ["b", "a", "c"]);
}

#[test]
fn a_leader_is_best_or_within_the_best_ones_interval() {
    let s = summary(&[
        run("a", 1, 100, 10),
        run("a", 2, 101, 12),
        run("b", 1, 101, 100),
        run("b", 2, 102, 101),
        run("c", 1, 1, 11),
        run("c", 2, 1, 12),
    ]);
    assert_eq!(s.leaders(Key::HopDelayMean), ["a", "c"]);
    assert_eq!(s.leaders(Key::Throughput), ["b", "a"]);
    // Nobody leads where nobody was measured, or everybody is equal.
    assert!(s.leaders(Key::FetchP50).is_empty());
    assert!(summary(&[run("a", 1, 1, 1), run("b", 1, 1, 1)]).leaders(Key::Throughput).is_empty());
}

proptest! {
    #[test]
    fn any_figures_survive_a_round_trip(
        values in prop::collection::vec((any::<f64>(), 0u8..3), 1..12),
        law in any::<String>(),
    ) {
        let mut runs = Vec::new();
        for (i, (value, kind)) in values.iter().enumerate() {
            let mut run = run(&law, i as u64, 1, 1);
            let figure = match kind {
                0 => Figure::Exact(*value),
                1 => Figure::AtLeast(*value),
                _ => Figure::absent(law.clone()),
            };
            run.record.figures.insert(Key::Jitter, figure);
            runs.push(run);
        }
        let s = Summary::of(World::Lab, &law, &[], &runs);
        let back: Summary = serde_json::from_str(&s.to_json()).expect("parses");
        prop_assert_eq!(back, s);
    }
}
