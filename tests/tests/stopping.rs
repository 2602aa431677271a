//! A run of the lab that is interrupted at any moment, or killed, and what is left of it.

use lasthop_tests::{Ended, alone, children, ends_within, eventually, is_root, lasthop, leavings, own_scenario, run};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

/// A run that nobody waits for the end of, in a process group of its own, as a shell would start it.
fn long_run(law: &str, out: &Path) -> Child {
    let mut command = lasthop(["run", "--world", "lab", "--law", law, "--out"]);
    command.arg(out).arg(own_scenario("long")).process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("it starts")
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id() as i32)
}

/// It ended because it was told to, soon, and as if it had never been.
fn gone(child: Child, out: &Path) -> Ended {
    let (id, moment) = (child.id(), "the interrupted run");
    let ended = ends_within(child, Duration::from_secs(3));
    assert!(!ended.err.contains("panicked"), "{}", ended.err);
    assert!(!out.exists(), "{moment} left {}", out.display());
    assert_eq!(leavings(id), [""; 0], "{moment}: {}", ended.err);
    assert_eq!(children(id), [], "{moment}");
    ended
}

#[test]
fn ctrl_c_at_any_moment_ends_a_run_within_three_seconds_and_leaves_nothing() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("results");
    for (milliseconds, law) in
        [(1, "cubic+ap"), (30, "cubic"), (100, "cubic+ap"), (300, "cubic+ap"), (1000, "cubic+ap"), (3000, "cubic")]
    {
        let child = long_run(law, &out);
        std::thread::sleep(Duration::from_millis(milliseconds));
        // A terminal sends it to all programs of the run, and so to the agent too.
        killpg(pid(&child), Signal::SIGINT).expect("it runs");
        let ended = gone(child, &out);
        assert_eq!(ended.status, 130, "after {milliseconds} ms: {}", ended.err);
        if milliseconds >= 1000 {
            assert!(ended.err.contains("stopped before the end: nothing was written"), "{}", ended.err);
        }
    }
}

#[test]
fn a_polite_kill_and_a_lost_terminal_are_as_good() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("results");
    for signal in [Signal::SIGTERM, Signal::SIGHUP] {
        let child = long_run("cubic+ap", &out);
        assert!(eventually(Duration::from_secs(10), || leavings(child.id()).len() >= 5), "the run did not begin");
        std::thread::sleep(Duration::from_millis(500));
        kill(pid(&child), signal).expect("it runs");
        assert_eq!(gone(child, &out).status, 130);
    }
}

#[test]
fn the_simulator_stops_too() {
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("results");
    let mut command = lasthop(["run", "--world", "sim", "--seeds", "1000", "--out"]);
    command.arg(&out).arg(own_scenario("long")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    std::thread::sleep(Duration::from_millis(700));
    kill(pid(&child), Signal::SIGINT).expect("it runs");
    let ended = gone(child, &out);
    assert_eq!(ended.status, 130, "{}", ended.err);
    assert!(ended.err.contains("nothing was written"), "{}", ended.err);
}

#[test]
fn a_second_ctrl_c_ends_it_at_once_and_clean_removes_what_is_left() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a directory");
    let child = long_run("cubic+ap", &folder.path().join("results"));
    let id = child.id();
    assert!(eventually(Duration::from_secs(10), || leavings(id).len() >= 5), "the run did not begin");
    kill(pid(&child), Signal::SIGINT).expect("it runs");
    // The kernel may hand over two signals of a kind as one if they follow each other too fast.
    std::thread::sleep(Duration::from_millis(5));
    let _ = kill(pid(&child), Signal::SIGINT);
    assert_eq!(ends_within(child, Duration::from_secs(3)).status, 130);
    run(&mut lasthop(["lab", "--clean"])).succeeded();
    assert_eq!(leavings(id), [""; 0]);
}

/// A file in `/run/netns` that keeps no namespace; gone with the value.
struct Foreign(std::path::PathBuf);

impl Foreign {
    fn named(name: &str) -> Foreign {
        let path = Path::new("/run/netns").join(name);
        std::fs::create_dir_all("/run/netns").expect("root may");
        std::fs::File::create_new(&path).expect("no such name yet");
        Foreign(path)
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn clean_removes_what_a_killed_run_left_and_nothing_that_lives_or_is_not_ours() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a directory");
    let clean = || run(&mut lasthop(["lab", "--clean"])).succeeded().out;
    let foreign = ["somebody-elses", "lasthop", "lasthop-", "lasthop-lab", "lasthop-7-x-ap", "lasthopper-1-0-ap"];
    let foreign = foreign.map(Foreign::named);

    let child = long_run("cubic+ap", &folder.path().join("results"));
    let id = child.id();
    let began = || children(id).iter().any(|(_, line)| line.contains("driver.sock")) && leavings(id).len() >= 5;
    assert!(eventually(Duration::from_secs(10), began), "the run did not begin: {:?}", leavings(id));
    let before = leavings(id);
    assert!(!clean().contains(&format!("lasthop-{id}-")), "a living run's namespace was removed");
    assert_eq!(leavings(id), before);

    let agents: Vec<u32> = children(id).into_iter().map(|(agent, _)| agent).collect();
    kill(pid(&child), Signal::SIGKILL).expect("it runs");
    assert_eq!(ends_within(child, Duration::from_secs(1)).status, 137);
    assert_eq!(leavings(id), before, "a killed run cannot have cleaned up");
    // Of the dead, some wait for somebody to ask for their status; these have no command line any more.
    let line = |agent: &u32| std::fs::read(format!("/proc/{agent}/cmdline")).unwrap_or_default();
    let dead = || agents.iter().all(|agent| line(agent).is_empty());
    assert!(eventually(Duration::from_secs(1), dead), "its agent lived on");

    let said = clean();
    assert!(said.contains(&format!("removed namespace lasthop-{id}-")), "{said}");
    assert_eq!(leavings(id), [""; 0]);
    let again = clean();
    assert!(!again.contains(&id.to_string()), "{again}");
    assert!(again.contains("nothing was left behind"), "{again}");
    for file in &foreign {
        assert!(file.0.exists(), "{} is not ours and was removed", file.0.display());
    }
}
