//! Ten uploads in the collapsing world, 256 ms from the server, over kernel TCP with the real agents: all hear each other, and the
//! model carries more than CUBIC, as in the simulator. What else the two worlds say is printed: docs/reproduction/terminal-lab.md.
//!
//! Measured by the wall clock: a run that the lab itself marks unreliable is made again, and says nothing in the end.

use lasthop_tests::{json, lab, lasthop, mean, reliable, run, scenario};
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;

const LAWS: [&str; 3] = ["cubic", "tables", "model"];
const KEYS: [&str; 3] = ["throughput_mbit_s", "hop_delay_mean_ms", "jain"];

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

#[test]
fn ten_terminals_that_hear_each_other_carry_more_by_the_model() {
    let Some(_lab) = lab() else { return };
    let doctor = run(&mut lasthop(["doctor"]));
    if !doctor.out.contains("The agent can run here.") {
        let _ = writeln!(std::io::stderr(), "SKIPPED: ten terminals in the lab: {}", doctor.out);
        return;
    }
    let path = scenario("terminal/ten-uploads");
    let [Some((sim, _)), Some((lab, info))] = ["sim", "lab"].map(|world| figures(world, &path)) else { return };
    for law in LAWS {
        let of = |result: &Value| KEYS.map(|key| mean(result, law, key));
        println!("{law}: {KEYS:?}: simulator {:.2?}, lab {:.2?}", of(&sim), of(&lab));
    }
    let runs = info["runs"].as_array().expect("runs");
    for status in runs.iter().filter(|status| status["law"] != "cubic") {
        let account = &status["terminals"];
        let all = ["adopted", "bounded", "terminals"].map(|field| account[field].as_u64());
        assert_eq!(all, [Some(10); 3], "{status}");
    }
    let rate = |result: &Value, law: &str| mean(result, law, "throughput_mbit_s");
    for result in [&sim, &lab] {
        assert!(rate(result, "model") > 1.5 * rate(result, "cubic"), "{result}");
    }
}
