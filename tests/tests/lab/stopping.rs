//! A run of the lab that is interrupted at any moment, or killed, and what is left of it.

use lasthop_tests::{
    Ended, PATIENCE, bpf, catches, children, ends_within, eventually, lab, lab_run, lasthop, leavings, own_scenario,
    run,
};
use nix::sys::signal::{SigHandler, Signal, kill, killpg};
use nix::unistd::Pid;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

/// A run that nobody waits for the end of, in a process group of its own, as a shell would start it.
fn long_run(law: &str, out: &Path) -> Child {
    let mut command = lab_run(law, "long", out);
    command.process_group(0);
    // SAFETY: the closure makes system calls only.
    unsafe { command.pre_exec(|| heed(&[Signal::SIGINT, Signal::SIGHUP])) };
    command.spawn().expect("it starts")
}

/// A shell without job control starts what it puts into the background with SIGINT ignored, and `nohup` does so with SIGHUP:
/// these tests may run there, and a program would never see what comes before it asks for signals.
fn heed(signals: &[Signal]) -> std::io::Result<()> {
    for signal in signals {
        // SAFETY: the default action is no handler.
        unsafe { nix::sys::signal::signal(*signal, SigHandler::SigDfl) }?;
    }
    Ok(())
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id() as i32)
}

/// How soon an interrupted run must have ended, on a machine that others use, too; by itself it lasts a minute.
const SOON: Duration = Duration::from_secs(15);

/// It ended because it was told to, soon, and as if it had never been.
fn gone(child: Child, out: &Path) -> Ended {
    let (id, moment) = (child.id(), "the interrupted run");
    let ended = ends_within(child, SOON);
    assert!(!ended.err.contains("panicked"), "{}", ended.err);
    assert!(!out.exists(), "{moment} left {}", out.display());
    assert_eq!(leavings(id), [""; 0], "{moment}: {}", ended.err);
    assert_eq!(children(id), [], "{moment}");
    ended
}

#[test]
fn ctrl_c_at_any_moment_ends_a_run_soon_and_leaves_nothing() {
    let Some(_lab) = lab() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("results");
    for (milliseconds, law) in
        [(1, "cubic+ap"), (30, "cubic"), (100, "cubic+ap"), (300, "cubic+ap"), (1000, "cubic+ap"), (3000, "cubic")]
    {
        let child = long_run(law, &out);
        let begins = milliseconds >= 1000;
        if begins {
            assert!(eventually(PATIENCE, || leavings(child.id()).len() >= 5), "the run did not begin");
        }
        std::thread::sleep(Duration::from_millis(milliseconds));
        // A terminal sends it to all programs of the run, and so to the agent too.
        killpg(pid(&child), Signal::SIGINT).expect("it runs");
        let ended = gone(child, &out);
        assert_eq!(ended.status, 130, "after {milliseconds} ms: {}", ended.err);
        if begins {
            assert!(ended.err.contains("stopped before the first run was done: nothing was written"), "{}", ended.err);
        }
    }
}

#[test]
fn a_polite_kill_and_a_lost_terminal_are_as_good() {
    let Some(_lab) = lab() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("results");
    for signal in [Signal::SIGTERM, Signal::SIGHUP] {
        let child = long_run("cubic+ap", &out);
        assert!(eventually(PATIENCE, || leavings(child.id()).len() >= 5), "the run did not begin");
        std::thread::sleep(Duration::from_millis(500));
        kill(pid(&child), signal).expect("it runs");
        assert_eq!(gone(child, &out).status, 130);
    }
}

#[test]
fn a_hanging_agent_does_not_delay_an_interrupted_run() {
    let Some(_lab) = lab() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("results");
    let child = long_run("cubic+ap", &out);
    let agent = || children(child.id()).into_iter().find(|(_, line)| line.contains("driver.sock")).map(|(pid, _)| pid);
    // Without eBPF there is no run with an agent, which other tests say.
    let begun = eventually(PATIENCE, || agent().is_some_and(|pid| bpf::programs_of(pid).len() >= 2));
    if !begun {
        let ended = ends_within(child, SOON);
        assert!(ended.err.contains("needs the agent, which cannot run here"), "no agent: {}", ended.err);
        return;
    }
    std::thread::sleep(Duration::from_millis(800));
    let hung = Pid::from_raw(agent().expect("it was there") as i32);
    kill(hung, Signal::SIGSTOP).expect("it runs");
    kill(pid(&child), Signal::SIGINT).expect("it runs");
    // It would wait for good: a stopped process never answers.
    let ended = gone(child, &out);
    assert_eq!(ended.status, 130, "{}", ended.err);
    assert!(kill(hung, None).is_err(), "the agent lives on");
}

/// A run that takes the simulator a while, too, so that none is done when it is told to stop.
fn an_hour(folder: &Path) -> PathBuf {
    let text = std::fs::read_to_string(own_scenario("long")).expect("a scenario");
    let path = folder.join("hour.toml");
    std::fs::write(&path, text.replace("duration = \"60 s\"", "duration = \"3600 s\"")).expect("written");
    path
}

#[test]
fn what_is_done_when_an_experiment_is_ended_is_kept_and_marked() {
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("results");
    let mut command = lasthop(["run", "--world", "sim", "--seeds", "1000", "--law", "cubic", "--out"]);
    let child = command.arg(&out).arg(own_scenario("short")).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("it starts");
    let mut told = BufReader::new(child.stderr.take().expect("piped")).lines();
    // Runs are told as they begin, and the tenth begins when some are done.
    assert!(
        told.any(|line| line.is_ok_and(|line| line.starts_with("run 10 of 1000"))),
        "it does not get to the tenth run"
    );
    kill(pid(&child), Signal::SIGINT).expect("it runs");
    let rest = std::thread::spawn(move || told.map_while(Result::ok).collect::<Vec<_>>().join("\n"));
    let ended = ends_within(child, SOON);
    assert_eq!(ended.status, 130, "{}", rest.join().expect("no panic"));
    assert!(ended.out.contains("INCOMPLETE: it was ended early, with"), "{}", ended.out);
    let result: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(out.join("result.json")).expect("a result")).expect("JSON");
    let done = result["incomplete"]["runs"].as_u64().expect("how many");
    assert!((8..1000).contains(&done) && result["incomplete"]["planned"] == 1000, "{done} runs");
    assert_eq!(result["seeds"]["cubic"].as_array().map(Vec::len), Some(done as usize));
    assert!(std::fs::read_to_string(out.join("report.html")).expect("a page").contains("<h2>Incomplete</h2>"));
}

#[test]
fn the_simulator_stops_too() {
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("results");
    let mut command = lasthop(["run", "--world", "sim", "--seeds", "1000", "--out"]);
    command.arg(&out).arg(an_hour(folder.path())).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    assert!(eventually(PATIENCE, || catches(child.id(), Signal::SIGINT)), "it does not ask for signals");
    kill(pid(&child), Signal::SIGINT).expect("it runs");
    let ended = gone(child, &out);
    assert_eq!(ended.status, 130, "{}", ended.err);
    assert!(ended.err.contains("nothing was written"), "{}", ended.err);
}

#[test]
fn it_stops_in_a_background_script_and_survives_nohup() {
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("results");
    let hour = an_hour(folder.path());
    let start = |ignored: Signal| {
        let mut command = lasthop(["run", "--world", "sim", "--seeds", "1000", "--out"]);
        command.arg(&out).arg(&hour).stdout(Stdio::piped()).stderr(Stdio::piped());
        // SAFETY: the closure makes system calls only.
        unsafe {
            command.pre_exec(move || Ok(nix::sys::signal::signal(ignored, SigHandler::SigIgn).map(drop)?));
        }
        let child = command.spawn().expect("it starts");
        assert!(eventually(PATIENCE, || catches(child.id(), Signal::SIGTERM)), "it does not ask for signals");
        child
    };
    let child = start(Signal::SIGINT);
    kill(pid(&child), Signal::SIGINT).expect("it runs");
    assert_eq!(gone(child, &out).status, 130);
    let mut child = start(Signal::SIGHUP);
    kill(pid(&child), Signal::SIGHUP).expect("it runs");
    std::thread::sleep(Duration::from_millis(500));
    assert!(child.try_wait().expect("our child").is_none(), "it hung up");
    kill(pid(&child), Signal::SIGTERM).expect("it runs");
    assert_eq!(gone(child, &out).status, 130);
}

#[test]
fn a_second_ctrl_c_ends_at_once_and_clean_removes_leftovers() {
    let Some(_lab) = lab() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let child = long_run("cubic+ap", &folder.path().join("results"));
    let id = child.id();
    assert!(eventually(PATIENCE, || leavings(id).len() >= 5), "the run did not begin");
    kill(pid(&child), Signal::SIGINT).expect("it runs");
    // The kernel may hand over two signals of a kind as one if they follow each other too fast.
    std::thread::sleep(Duration::from_millis(5));
    let _ = kill(pid(&child), Signal::SIGINT);
    assert_eq!(ends_within(child, SOON).status, 130);
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
fn clean_removes_only_leftovers_of_killed_runs() {
    let Some(_lab) = lab() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let clean = || run(&mut lasthop(["lab", "--clean"])).succeeded().out;
    let foreign = ["somebody-elses", "lasthop", "lasthop-", "lasthop-lab", "lasthop-7-x-ap", "lasthopper-1-0-ap"];
    let foreign = foreign.map(Foreign::named);

    let child = long_run("cubic+ap", &folder.path().join("results"));
    let id = child.id();
    let began = || children(id).iter().any(|(_, line)| line.contains("driver.sock")) && leavings(id).len() >= 5;
    assert!(eventually(PATIENCE, began), "the run did not begin: {:?}", leavings(id));
    let before = leavings(id);
    assert!(!clean().contains(&format!("lasthop-{id}-")), "a living run's namespace was removed");
    assert_eq!(leavings(id), before);

    let agents: Vec<u32> = children(id).into_iter().map(|(agent, _)| agent).collect();
    kill(pid(&child), Signal::SIGKILL).expect("it runs");
    assert_eq!(ends_within(child, PATIENCE).status, 137);
    assert_eq!(leavings(id), before, "a killed run cannot have cleaned up");
    // Of the dead, some wait for somebody to ask for their status; these have no command line any more.
    let line = |agent: &u32| std::fs::read(format!("/proc/{agent}/cmdline")).unwrap_or_default();
    let dead = || agents.iter().all(|agent| line(agent).is_empty());
    assert!(eventually(PATIENCE, dead), "its agent lived on");

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
