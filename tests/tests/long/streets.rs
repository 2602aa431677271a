//! Meshes, several access points and chains of cables are in the lab what they are in the simulator.
//!
//! Measured by the wall clock: a run that the lab itself marks unreliable is made again, and says nothing in the end.

use lasthop_tests::{is_root, json, lab, mean, own_scenario};
use serde_json::Value;

/// Runs of the simulator, which can afford many, and of the lab. The chain's delays have a long tail: in one run of seven p95 is above one and
/// a half times the median, and a dozen runs may hold none of these.
const SIMULATED: usize = 60;
const MEASURED: usize = 2;

fn figures(world: &str, name: &str, seeds: usize) -> Option<Value> {
    let folder = tempfile::tempdir().expect("a directory");
    lasthop_tests::figures(world, &own_scenario(name), &[], seeds, folder.path())?;
    Some(json(&folder.path().join("result.json")))
}

/// Mean and standard deviation of a figure over the runs.
fn spread(result: &Value, key: &str) -> (f64, f64) {
    let values = result["laws"]["cubic"][key]["values"].as_array().unwrap_or_else(|| panic!("there is no {key}"));
    let values: Vec<f64> = values.iter().filter_map(Value::as_f64).collect();
    let mean = mean(result, "cubic", key);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (values.len() - 1) as f64).sqrt())
}

/// Throughput within 10 %, delays within 20 % or 2 ms, beside what few runs can be off by.
fn agree(name: &str, delays: &[&str]) {
    if !is_root() {
        return;
    }
    // Simulated while others have the lab.
    let sim = figures("sim", name, SIMULATED);
    let Some(_lab) = lab() else { return };
    let (Some(sim), Some(lab)) = (sim, figures("lab", name, MEASURED)) else { return };
    let few = (1.0 / SIMULATED as f64 + 1.0 / MEASURED as f64).sqrt();
    for key in ["throughput_mbit_s"].iter().chain(delays) {
        let ((simulated, scatter), measured) = (spread(&sim, key), mean(&lab, "cubic", key));
        let error = scatter * few;
        println!("{name}: {key} {simulated:.3} / {measured:.3} (sim / lab), standard error {error:.3}");
        let allowed = if *key == "throughput_mbit_s" { 0.10 * measured } else { (0.20 * measured).max(2.0) };
        let apart = (simulated - measured).abs();
        assert!(apart <= allowed + 2.0 * error, "{name}: {key} {simulated} and {measured}");
    }
}

#[test]
fn a_chain_of_four_nodes_agrees_with_the_simulator() {
    agree("chain", &["hop_delay_mean_ms", "hop_delay_p95_ms", "probe_delay_p95_ms"]);
}

#[test]
fn two_access_points_behind_routers_agree_with_the_simulator() {
    agree("street", &["hop_delay_mean_ms", "hop_delay_p95_ms", "probe_delay_p95_ms"]);
}
