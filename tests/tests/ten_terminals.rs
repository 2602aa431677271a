//! Ten uploads in the collapsing world, over kernel TCP with the real agents: laws stand in the order in which the simulator has
//! them.
//!
//! Measured by the wall clock: a run that the lab itself marks unreliable is made again, and says nothing in the end.

use lasthop_tests::{json, lab, lasthop, mean, reliable, run, scenario};
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;

const LAWS: [&str; 3] = ["cubic", "tables", "model"];
const KEYS: [&str; 3] = ["throughput_mbit_s", "hop_delay_mean_ms", "jain"];

/// What stands this far apart in the simulator has an order.
const APART: f64 = 1.25;

fn figures(world: &str, path: &Path) -> Option<(Value, Value)> {
    let folder = tempfile::tempdir().expect("a directory");
    let info = reliable(|_| {
        let mut command = lasthop(["run", "--seeds", "1", "--world", world, "--out"]);
        command.arg(folder.path()).arg(path).args(LAWS.iter().flat_map(|law| ["--law", law]));
        run(&mut command).succeeded();
        folder.path().to_path_buf()
    })?;
    Some((json(&folder.path().join("result.json")), info))
}

fn same_order(delay: &str) {
    let Some(_lab) = lab() else { return };
    let doctor = run(&mut lasthop(["doctor"]));
    if !doctor.out.contains("The agent can run here.") {
        let _ = writeln!(std::io::stderr(), "SKIPPED: ten terminals in the lab: {}", doctor.out);
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("ten.toml");
    let text = std::fs::read_to_string(scenario("terminal/ten-uploads")).expect("a shipped scenario");
    assert!(text.contains("delay = \"128 ms\""), "the scenario's delay");
    std::fs::write(&path, text.replace("delay = \"128 ms\"", &format!("delay = \"{delay}\""))).expect("written");
    let [Some((sim, _)), Some((lab, info))] = ["sim", "lab"].map(|world| figures(world, &path)) else { return };
    for law in LAWS {
        let of = |result: &Value| KEYS.map(|key| mean(result, law, key));
        println!("{delay}: {law}: {KEYS:?}: simulator {:.2?}, lab {:.2?}", of(&sim), of(&lab));
    }
    let runs = info["runs"].as_array().expect("runs");
    for status in runs.iter().filter(|status| status["law"] != "cubic") {
        let account = &status["terminals"];
        let all = ["adopted", "bounded", "terminals"].map(|field| account[field].as_u64());
        assert_eq!(all, [Some(10); 3], "{status}");
    }
    let rate = |result: &Value, law: &str| mean(result, law, "throughput_mbit_s");
    for (place, one) in LAWS.iter().enumerate() {
        for other in &LAWS[place + 1..] {
            let simulated = rate(&sim, one) / rate(&sim, other);
            let measured = rate(&lab, one) / rate(&lab, other);
            if !(1.0 / APART..=APART).contains(&simulated) {
                assert!(
                    (simulated > 1.0) == (measured > 1.0),
                    "{delay}: {one} over {other}: {simulated} and {measured}"
                );
            }
        }
    }
}

#[test]
fn ten_terminals_far_from_the_server_stand_as_in_the_simulator() {
    same_order("128 ms");
}

#[test]
fn ten_terminals_near_the_server_stand_as_in_the_simulator() {
    same_order("2 ms");
}
