//! Runs of the lab at the same time: slower than alone, as their lateness tells, but neither harms the other.

use lasthop_tests::{PATIENCE, ends_within, json, lab, lab_run, lasthop, leavings};
use std::process::Child;

#[test]
fn runs_that_begin_together_all_end_well() {
    let Some(_lab) = lab() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let out = |number: usize| folder.path().join(number.to_string());
    let begin = |number| lab_run("cubic", "short", &out(number)).spawn().expect("it starts");
    let runs: Vec<Child> = (0..3).map(begin).collect();
    for (number, child) in runs.into_iter().enumerate() {
        let id = child.id();
        ends_within(child, PATIENCE).succeeded();
        assert_eq!(leavings(id), [""; 0]);
        assert_eq!(json(&out(number).join("result.json"))["world"], "lab");
    }
}

#[test]
fn cleaning_over_and_over_does_not_disturb_a_run_that_begins() {
    let Some(_lab) = lab() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let mut child = lab_run("cubic", "short", folder.path()).spawn().expect("it starts");
    while child.try_wait().expect("our child").is_none() {
        lasthop_tests::run(&mut lasthop(["lab", "--clean"])).succeeded();
    }
    ends_within(child, PATIENCE).succeeded();
}
