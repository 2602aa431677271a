//! Runs of the lab at the same time: slower than alone, as their lateness tells, but neither harms the other.

use lasthop_tests::{alone, ends_within, is_root, json, lasthop, leavings, own_scenario};
use std::process::{Child, Stdio};
use std::time::Duration;

#[test]
fn runs_that_begin_together_all_end_well() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a directory");
    let out = |number: usize| folder.path().join(number.to_string());
    let begin = |number| {
        let mut command = lasthop(["run", "--world", "lab", "--law", "cubic", "--out"]);
        command.arg(out(number)).arg(own_scenario("short")).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it starts")
    };
    let runs: Vec<Child> = (0..3).map(begin).collect();
    for (number, child) in runs.into_iter().enumerate() {
        let id = child.id();
        ends_within(child, Duration::from_secs(10)).succeeded();
        assert_eq!(leavings(id), [""; 0]);
        assert_eq!(json(&out(number).join("result.json"))["world"], "lab");
    }
}

#[test]
fn cleaning_over_and_over_does_not_disturb_a_run_that_begins() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a directory");
    let mut command = lasthop(["run", "--world", "lab", "--law", "cubic", "--out"]);
    command.arg(folder.path()).arg(own_scenario("short")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    while child.try_wait().expect("our child").is_none() {
        lasthop_tests::run(&mut lasthop(["lab", "--clean"])).succeeded();
    }
    ends_within(child, Duration::from_secs(1)).succeeded();
}
