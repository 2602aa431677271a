//! What end-to-end tests share: the built binary, the lab for themselves, and an eye for what a run leaves behind.

// Tests of a program wait for it by the wall clock.
#![allow(clippy::disallowed_methods)]

pub mod bpf;
pub mod decoder;
pub mod machine;
pub mod stream;

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the workspace").to_path_buf()
}

/// A shipped scenario, such as `wired/bottleneck-50mbit`.
pub fn scenario(name: &str) -> PathBuf {
    root().join("scenarios").join(name).with_extension("toml")
}

/// A scenario of the tests' own.
pub fn own_scenario(name: &str) -> PathBuf {
    root().join("tests/scenarios").join(name).with_extension("toml")
}

/// The `lasthop` program: `LASTHOP_BIN` if that is set, else built once with what this machine has, as the tests are.
pub fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| match std::env::var_os("LASTHOP_BIN") {
        Some(path) => PathBuf::from(path),
        None => build(),
    })
}

/// Copies the `lasthop` program by a process of its own: what this one has open for writing would be open in whatever another test forks
/// meanwhile, and a program that is open for writing does not start.
pub fn copy_program(to: &Path) {
    let done = Command::new("cp").arg(program()).arg(to).status().expect("cp starts");
    assert!(done.success(), "the program was not copied to {}", to.display());
}

/// `cargo test` of this package alone does not build a program of another one. A test of the command's crate names the command; all packages
/// are asked for, so that the libraries which the tests were linked with serve again. The message names the place that cargo chose.
fn build() -> PathBuf {
    let features = Command::new(root().join("scripts/bpf-features")).output().expect("scripts/bpf-features runs");
    let features = String::from_utf8_lossy(&features.stdout).into_owned();
    let built = Command::new(env!("CARGO"))
        .current_dir(root())
        .args(["test", "--quiet", "--workspace", "--no-run", "--test", "command"])
        .args(["--message-format", "json-render-diagnostics"])
        .args(features.split_whitespace())
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo runs");
    assert!(built.status.success(), "cargo could not build lasthop");
    let messages = String::from_utf8_lossy(&built.stdout).into_owned();
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut executables = artifacts.filter_map(|message| message["executable"].as_str().map(PathBuf::from));
    let path = executables.rfind(|path| path.file_name() == Some(OsStr::new("lasthop")));
    path.expect("cargo names the program that it built")
}

/// `lasthop` with arguments, in a directory that is not the workspace, and without a terminal.
pub fn lasthop<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(program());
    without_terminal(command.args(arguments));
    command
}

/// In a directory that is not the workspace, and without a terminal.
fn without_terminal(command: &mut Command) -> &mut Command {
    command.current_dir(std::env::temp_dir()).stdin(Stdio::null()).env_remove("COLUMNS").env("NO_COLOR", "1")
}

/// How a program ended, with all that it said.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status, or 128 and the signal that ended it.
    pub status: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// Runs a program to its end. A panic of ours is never right, whatever the test is about.
pub fn run(command: &mut Command) -> Ended {
    let ended = told(command.output().expect("the program starts"));
    assert!(!ended.err.contains("panicked at") && ended.status != 101, "{command:?} panicked:\n{}", ended.err);
    ended
}

fn told(output: Output) -> Ended {
    let status = output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or_default());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended { status, out: text(&output.stdout), err: text(&output.stderr) }
}

/// How long a test waits for what must happen, however busy the machine: passing takes no longer for it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits at most `patience` for `child` (with piped output); kills it and fails if that is not enough.
pub fn ends_within(mut child: Child, patience: Duration) -> Ended {
    let began = Instant::now();
    while child.try_wait().expect("our child").is_none() {
        if began.elapsed() > patience {
            child.kill().expect("our child");
            panic!("it had not ended after {patience:?}: {:?}", told(child.wait_with_output().expect("our child")));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    told(child.wait_with_output().expect("our child"))
}

impl Ended {
    /// Fails the test unless the program succeeded.
    pub fn succeeded(self) -> Ended {
        assert_eq!(self.status, 0, "{}\n{}", self.err, self.out);
        self
    }

    /// Fails the test unless the program failed with status 1 and standard error holds all `parts`.
    pub fn failed_saying(self, parts: &[&str]) -> Ended {
        assert_eq!(self.status, 1, "{}\n{}", self.err, self.out);
        for part in parts {
            assert!(self.err.contains(part), "`{part}` is missing in\n{}", self.err);
        }
        self
    }
}

/// True if the tests may use the lab; says loudly if not.
pub fn is_root() -> bool {
    let root = nix::unistd::Uid::effective().is_root();
    if !root {
        // Past the capture of test output.
        let _ = writeln!(std::io::stderr(), "SKIPPED: not root: the lab needs root to make namespaces and interfaces");
    }
    root
}

/// The lab for one test at a time; `None`, said loudly, where it cannot be had: runs beside each other would disturb each other's clocks.
pub fn lab() -> Option<machine::Held> {
    is_root().then(|| {
        // Not while others wait.
        program();
        machine::alone()
    })
}

/// A run of one law of a scenario of the tests' own in the lab, which writes into `out`; what it says is kept to be read.
pub fn lab_run(law: &str, scenario: &str, out: &Path) -> Command {
    let mut command = lasthop(["run", "--world", "lab", "--law", law, "--out"]);
    command.arg(out).arg(own_scenario(scenario)).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What the lab run of process `pid` has put up: namespaces and directories. The rest lives inside these.
pub fn leavings(pid: u32) -> Vec<String> {
    let of = |folder: &str, prefix: String| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(move |name| name.starts_with(&prefix)).collect::<Vec<_>>()
    };
    [of("/run/netns", format!("lasthop-{pid}-")), of("/run/lasthop", format!("{pid}-"))].concat()
}

/// True once `condition` holds, which is looked at for up to `patience`.
pub fn eventually(patience: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    loop {
        if condition() {
            return true;
        }
        if began.elapsed() > patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Processes with `pid` as parent, with the command line of each.
pub fn children(pid: u32) -> Vec<(u32, String)> {
    let own = |process: &u32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // After the command in parentheses: state, then the parent (proc(5)).
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let numbers = fs::read_dir("/proc").expect("/proc").flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let line = |process: u32| fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
    numbers.filter(|process| own(process) == Some(pid)).map(|process| (process, line(process))).collect()
}

/// True if process `pid` has a handler for a signal: one that came earlier would not have been seen by it (proc(5), `SigCgt`).
pub fn catches(pid: u32, signal: nix::sys::signal::Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    caught & (1 << (signal as i32 - 1)) != 0
}

/// Most tries at a run that the machine disturbs: it says nothing of the program.
const TRIES: usize = 3;

/// Makes a run of the lab by `attempt`, which gives the directory of its results, until the lab itself calls it reliable; gives its
/// `run.json`. After `TRIES` of them the answer is `None`, said loudly. Several runs: [`figures`].
pub fn reliable(mut attempt: impl FnMut(usize) -> PathBuf) -> Option<serde_json::Value> {
    let mut info = serde_json::Value::Null;
    for number in 0..TRIES {
        info = json(&attempt(number).join("run.json"));
        if info["verdict"]["reliable"] == true {
            break;
        }
    }
    reliable_info(info)
}

/// Runs a scenario in a world under each of these laws and the seeds 1 to `seeds`, into `out`; gives `run.json`. A run of the lab that the
/// machine disturbed is made again, that one alone; where one was disturbed each time, the answer is `None`, said loudly.
pub fn figures(world: &str, path: &Path, laws: &[&str], seeds: usize, out: &Path) -> Option<serde_json::Value> {
    let mut command = Command::new("nice");
    // What is simulated gives way to what is measured.
    command.args(["-n", if world == "sim" { "10" } else { "0" }]).arg(program()).args(["run", "--world", world]);
    command.args(["--seeds", &seeds.to_string(), "--tries", &TRIES.to_string()]);
    without_terminal(&mut command).arg("--out").arg(out).arg(path).args(laws.iter().flat_map(|law| ["--law", law]));
    run(&mut command).succeeded();
    reliable_info(json(&out.join("run.json")))
}

/// `run.json` of runs that the lab calls reliable.
fn reliable_info(info: serde_json::Value) -> Option<serde_json::Value> {
    if info["verdict"]["reliable"] == true {
        return Some(info);
    }
    // Past the capture of test output.
    let _ = writeln!(
        std::io::stderr(),
        "SKIPPED: the machine was too busy for a run of the lab: {}",
        info["verdict"]["reasons"]
    );
    None
}

/// The figures of one law in a `result.json`: key to mean.
pub fn mean(result: &serde_json::Value, law: &str, key: &str) -> f64 {
    result["laws"][law][key]["mean"].as_f64().unwrap_or_else(|| panic!("{law} has no mean of {key} in {result}"))
}

/// Reads a JSON file that a run wrote.
pub fn json(path: &Path) -> serde_json::Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A program in a network namespace, its output to be read.
pub fn inside(namespace: &str, program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{namespace}")).arg(program).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}
