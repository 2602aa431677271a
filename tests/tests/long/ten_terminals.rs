//! Ten uploads in the collapsing world, 256 ms from the server, over kernel TCP with the real agents: all hear each other, and the
//! model carries more than CUBIC, as in the simulator. What else the two worlds say: docs/reproduction/terminal-lab.md.
//!
//! Measured by the wall clock: a run that the lab itself marks unreliable is made again, and says nothing in the end.

use lasthop_tests::{json, lab, lasthop, mean, run, scenario};
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;

const LAWS: [&str; 2] = ["cubic", "model"];
const KEYS: [&str; 3] = ["throughput_mbit_s", "hop_delay_mean_ms", "jain"];

fn figures(path: &Path) -> Option<(Value, Value)> {
    let folder = tempfile::tempdir().expect("a directory");
    let info = lasthop_tests::figures("lab", path, &LAWS, 1, folder.path())?;
    Some((json(&folder.path().join("result.json")), info))
}

#[test]
#[ignore = "a minute and a half: scripts/worlds"]
fn ten_terminals_that_hear_each_other_carry_more_by_the_model() {
    let Some(_lab) = lab() else { return };
    let doctor = run(&mut lasthop(["doctor"]));
    if !doctor.out.contains("The agent can run here.") {
        let _ = writeln!(std::io::stderr(), "SKIPPED: ten terminals in the lab: {}", doctor.out);
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("ten.toml");
    let text = std::fs::read_to_string(scenario("terminal/ten-uploads")).expect("a shipped scenario");
    let shorter = text.replace("duration = \"60 s\"", "duration = \"40 s\"");
    assert!(shorter != text, "the scenario's duration");
    std::fs::write(&path, shorter).expect("written");
    let Some((lab, info)) = figures(&path) else { return };
    for law in LAWS {
        println!("{law}: {KEYS:?}: {:.2?}", KEYS.map(|key| mean(&lab, law, key)));
    }
    let runs = info["runs"].as_array().expect("runs");
    for status in runs.iter().filter(|status| status["law"] != "cubic") {
        let account = &status["terminals"];
        let all = ["adopted", "bounded", "most_terminals"].map(|field| account[field].as_u64());
        assert_eq!(all, [Some(10); 3], "{status}");
    }
    let rate = |result: &Value, law: &str| mean(result, law, "throughput_mbit_s");
    assert!(rate(&lab, "model") > 1.5 * rate(&lab, "cubic"), "{lab}");
}
