//! The agent of a lab run ends before its time: the run fails and says so, and nothing stays in the kernel.

use lasthop_tests::{PATIENCE, bpf, children, ends_within, eventually, lab, lab_run, lasthop, leavings};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

/// A run with an agent, once that is ready; its process and its programs. `None`, said loudly, without eBPF.
fn with_agent(out: &Path) -> Option<(Child, u32, BTreeSet<u32>)> {
    let doctor = lasthop_tests::run(&mut lasthop(["doctor"]));
    if !doctor.out.contains("The agent can run here.") {
        // Past the capture of test output.
        let _ = writeln!(std::io::stderr(), "SKIPPED: the agent cannot run here:\n{}", doctor.out);
        return None;
    }
    let child = lab_run("cubic+ap", "long", out).spawn().expect("it starts");
    let agent = || children(child.id()).into_iter().find(|(_, line)| line.contains("driver.sock")).map(|(pid, _)| pid);
    let loaded = || agent().is_some_and(|agent| bpf::programs_of(agent).len() >= 2);
    assert!(eventually(PATIENCE, loaded), "no agent with two programs");
    std::thread::sleep(Duration::from_millis(800));
    let agent = agent().expect("it was there");
    let programs = bpf::programs_of(agent);
    assert!(programs.iter().all(|program| bpf::is_loaded(*program)), "{programs:?}");
    Some((child, agent, programs))
}

fn all_gone(programs: &BTreeSet<u32>) -> bool {
    !programs.iter().any(|program| bpf::is_loaded(*program))
}

#[test]
fn a_killed_agent_fails_the_run_and_leaves_no_bpf_program() {
    let Some(_lab) = lab() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("results");
    let Some((child, agent, programs)) = with_agent(&out) else { return };
    let id = child.id();
    kill(Pid::from_raw(agent as i32), Signal::SIGKILL).expect("it runs");
    assert!(eventually(PATIENCE, || all_gone(&programs)), "a program outlived its agent");
    let ended = ends_within(child, PATIENCE);
    let ended = ended.failed_saying(&["cubic+ap", "the agent ", "ended early: signal: 9"]);
    assert!(!ended.err.contains("panicked") && !out.exists(), "{}", ended.err);
    assert_eq!(leavings(id), [""; 0]);
}

#[test]
fn a_killed_or_stopped_run_takes_its_agent_and_programs_along() {
    let Some(_lab) = lab() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    for signal in [Signal::SIGKILL, Signal::SIGINT] {
        let Some((child, _, programs)) = with_agent(&folder.path().join("results")) else { return };
        let id = child.id();
        kill(Pid::from_raw(id as i32), signal).expect("it runs");
        assert!(eventually(PATIENCE, || all_gone(&programs)), "a program outlived the run");
        ends_within(child, PATIENCE);
        lasthop_tests::run(&mut lasthop(["lab", "--clean"])).succeeded();
        assert_eq!(leavings(id), [""; 0]);
    }
}
