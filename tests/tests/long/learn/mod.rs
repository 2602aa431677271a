//! `lasthop learn` beside `lasthop ap`, as processes: stopped, killed, started again, and something else in its place that sends nonsense.
//!
//! Only the tree ever makes windows tight here: the threshold is out of reach of the queue, and the driver counts no drops.

// Programs are waited for by the wall clock.
#![allow(clippy::disallowed_methods)]

use crate::support;
mod world;

use lasthop_tests::{Ended, PATIENCE, ends_within, eventually, inside, lab, lasthop, program};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, recv, send, socket};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::netns::available;
use world::{Eye, STATION, Seen, World};

/// The head of a tree: magic and format (4), features (8), version (8), classes (1), number of nodes (2).
const HEAD: usize = 23;
/// A node: what it looks at (2), threshold (4), its children (2 each).
const NODE: usize = 10;
/// From this age on the agent does not believe a tree.
const AGE_LIMIT_S: f64 = 8.0;
/// How long is looked at windows that are released: some cycles of the world.
const RELEASED: Duration = Duration::from_secs(6);
/// The hysteresis of the law, and the rounds in which windows open.
const OPENS: Duration = Duration::from_secs(2);
/// Timeouts double, and one retransmission in twenty is lost: four in a row would take longer.
const STALL: Duration = Duration::from_secs(6);

/// A program of ours with a file as standard error; killed when dropped.
struct Process {
    child: Option<Child>,
    said: PathBuf,
}

impl Process {
    fn start(mut command: Command, said: PathBuf) -> Process {
        command.stderr(File::create(&said).expect("a file")).stdin(Stdio::null()).stdout(Stdio::piped());
        Process { child: Some(command.spawn().expect("it starts")), said }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.as_ref().expect("runs").id() as i32), signal).expect("it runs");
    }

    /// Waits for its end, which is to be a good one.
    fn end(&mut self) -> Ended {
        ends_within(self.child.take().expect("it runs"), PATIENCE).succeeded()
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.said).expect("a file")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// All that runs.
struct Scene {
    folder: tempfile::TempDir,
    agent: Process,
    eye: Eye,
    world: World,
    learners: usize,
}

impl Scene {
    fn new() -> Scene {
        let folder = tempfile::tempdir().expect("a directory");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let world = World::new(&folder.path().join("driver"));
        let [driver, learn, log, record] = ["driver", "learn", "log", "record"].map(path);
        let limit = format!("{AGE_LIMIT_S} s");
        let arguments = [
            ["ap", "--iface"],
            ["wlan0", "--driver"],
            [&driver, "--station"],
            [STATION, "--learn"],
            [&learn, "--log"],
            [&log, "--predictor"],
            ["learned", "--slack"],
            ["20 ms", "--slack-max"],
            ["20 ms", "--trigger"],
            ["19 ms", "--repair"],
            ["800 ms", "--explore"],
            ["0.4", "--tree-age-limit"],
            [&limit, "--record"],
        ];
        let arguments = [arguments.as_flattened(), &[record.as_str()]].concat();
        let command = inside(world.ap.name(), program(), &arguments);
        let agent = Process::start(command, folder.path().join("agent-said"));
        assert!(eventually(PATIENCE, || asked(&world).is_some()), "no agent: {}", agent.said());
        let eye = Eye::on(world.flows());
        Scene { folder, agent, eye, world, learners: 0 }
    }

    fn learner(&mut self) -> Process {
        self.learners += 1;
        let (socket, out) = (self.folder.path().join("learn"), self.tree());
        let command =
            lasthop(["learn".as_ref(), "--socket".as_ref(), socket.as_os_str(), "--out".as_ref(), out.as_os_str()]);
        Process::start(command, self.folder.path().join(format!("learner-{}-said", self.learners)))
    }

    /// Where learners keep their newest tree.
    fn tree(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    /// That tree; empty before there is one.
    fn newest(&self) -> Vec<u8> {
        std::fs::read(self.tree()).unwrap_or_default()
    }

    /// The agent's status once it is so.
    fn until(&self, what: &str, so: impl Fn(&Value) -> bool) -> Value {
        let (mut last, began) = (Value::Null, Instant::now());
        let is = eventually(2 * PATIENCE, || {
            last = asked(&self.world).unwrap_or_default();
            consistent(&last);
            so(&last)
        });
        assert!(is, "{what}: {last}\n{}", self.agent.said());
        println!("{what}: after {:.1} s: {} {}", began.elapsed().as_secs_f64(), last["model"], last["flows"]);
        last
    }

    /// A tree decides that is newer than this and tells moments apart, and makes windows tight.
    fn learns(&self, after: u64) -> u64 {
        let newer = |status: &Value| decides(status) && version(status) > after && splits(&self.newest());
        let status = self.until("a newer tree decides", newer);
        self.until("windows are tight", |status| decides(status) && status["flows"]["tight"].as_u64() > Some(0));
        version(&status)
    }

    /// The tree ages out with nothing to replace it: what it ordered is released and stays so.
    fn releases(&self, version_before: u64) -> Released {
        let status = self.until("the tree is too old", |status| !decides(status));
        assert!(version(&status) >= version_before, "{status}");
        let began = world::now().as_nanos();
        std::thread::sleep(OPENS);
        let end = Instant::now() + RELEASED;
        while Instant::now() < end {
            let status = asked(&self.world).expect("the agent lives");
            assert!(!decides(&status) && status["flows"]["tight"] == 0, "{status}");
            std::thread::sleep(Duration::from_millis(200));
        }
        let windows: Vec<u32> = self.eye.flows().iter().map(|flow| flow.window).collect();
        println!("released: senders see windows of {windows:?}");
        Released { from: began, until: world::now().as_nanos(), windows }
    }
}

/// A time in which no tree decided, by the agent's clock, and the windows that senders saw at its end.
struct Released {
    from: u64,
    until: u64,
    windows: Vec<u32>,
}

/// What `lasthop status` tells of the agent, if there is one.
fn asked(world: &World) -> Option<Value> {
    let output =
        inside(world.ap.name(), program(), &["status", "--iface", "wlan0", "--json"]).output().expect("it starts");
    serde_json::from_slice(&output.stdout).ok()
}

/// A tree, as it is kept, tells moments apart.
fn splits(tree: &[u8]) -> bool {
    tree.len() >= HEAD + 3 * NODE && tree[HEAD] != 0xff
}

fn decides(status: &Value) -> bool {
    status["model"]["decider"] == "learned"
}

fn version(status: &Value) -> u64 {
    status["model"]["version"].as_u64().unwrap_or(0)
}

/// A tree decides as long as it is young enough, and no longer.
fn consistent(status: &Value) {
    if let Some(age) = status["model"]["age_s"].as_f64() {
        assert_eq!(decides(status), age <= AGE_LIMIT_S, "{status}");
    }
}

/// Something else than a learner at the agent's socket, once the agent has let it in: it is handed a lesson.
fn stranger(path: &Path) -> OwnedFd {
    let mut admitted = None;
    let tried = || {
        let fd = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
        connect(fd.as_raw_fd(), &UnixAddr::new(path).expect("a short path")).expect("the agent listens");
        let end = Instant::now() + Duration::from_secs(10);
        while Instant::now() < end {
            match recv(fd.as_raw_fd(), &mut [0; 1_000], MsgFlags::MSG_DONTWAIT) {
                Ok(0) => return None,
                Ok(_) => return Some(fd),
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
        None
    };
    assert!(eventually(PATIENCE, || {
        admitted = tried();
        admitted.is_some()
    }));
    admitted.expect("just seen")
}

/// What is no tree to be taken, from one that is: `tree` was in force already.
fn nonsense(tree: &[u8]) -> Vec<Vec<u8>> {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut random = |len: usize| -> Vec<u8> {
        let octet = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        (0..len).map(octet).collect()
    };
    let with = |newest: u64, tree: &[u8]| [&newest.to_be_bytes()[..], tree].concat();
    let changed = |at: usize, octets: &[u8]| {
        let mut tree = tree.to_vec();
        tree[at..at + octets.len()].copy_from_slice(octets);
        with(u64::MAX, &tree)
    };
    assert!(splits(tree), "{tree:?}");
    let mut all: Vec<Vec<u8>> = [1, 7, 8, 9, 64, 1_000, 65_535, 65_536, 65_537, 150_000].map(&mut random).into();
    all.extend([
        // Half a message; one that says it has more nodes than there are; one with octets behind its end.
        with(u64::MAX, &tree[..tree.len() / 2]),
        changed(21, &[0xff, 0xff]),
        with(u64::MAX, &[tree, &[0; 5]].concat()),
        // Another format, other features.
        changed(3, &[9]),
        changed(4, &[!tree[4]]),
        // A way that leads back to where it began, one that leads nowhere, a class that there is not.
        changed(HEAD + 6, &[0, 0]),
        changed(HEAD + 6, &[0xff, 0xfe]),
        with(u64::MAX, &[&tree[..21], &[0, 1, 0xff, 7, 0, 0, 0, 0, 0, 0, 0, 0]].concat()),
        // The one that was in force, and one of the future; neither knows anything of today. Had the first one news, it could be taken once it is too old.
        with(0, tree),
        {
            let mut message = changed(12, &u64::MAX.to_be_bytes());
            message[..8].fill(0);
            message
        },
    ]);
    all
}

/// How many trees the agent says it has refused.
fn refused(said: &str) -> usize {
    let lines = said.lines().filter(|line| line.contains("more of the learner refused"));
    let number = |line: &str| line.split_whitespace().find_map(|word| word.parse::<usize>().ok());
    lines.filter_map(number).sum()
}

/// What the log says of intervals: when, and whether a window was tight; and the median of the tight ones.
fn logged(path: &Path) -> (Vec<(u64, bool)>, u64) {
    let text = std::fs::read_to_string(path).expect("a log");
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let (mut intervals, mut all) = (Vec::new(), Vec::new());
    for line in lines.filter(|line| line["flows"].is_array()) {
        let tight = line["flows"].as_array().into_iter().flatten().filter(|flow| flow["why"] == "Tight");
        let targets: Vec<u64> = tight.filter_map(|flow| flow["target"].as_u64()).collect();
        intervals.push((line["t_ns"].as_u64().expect("a time"), !targets.is_empty()));
        all.extend(targets);
    }
    all.sort_unstable();
    (intervals, *all.get(all.len() / 2).expect("some were tight"))
}

#[test]
fn the_agent_survives_any_learner_failure_and_learns_again() {
    if !available("a learner beside the agent") {
        return;
    }
    let Some(_lab) = lab() else { return };
    if !lasthop_tests::run(&mut lasthop(["doctor"])).out.contains("The agent can run here.") {
        // Past the capture of test output.
        let _ = writeln!(std::io::stderr(), "SKIPPED: the agent cannot run here");
        return;
    }
    let mut scene = Scene::new();
    let mut released = Vec::new();

    // It learns.
    let learner = scene.learner();
    let first = scene.learns(0);

    // It stands still, and goes on.
    learner.signal(Signal::SIGSTOP);
    released.push(scene.releases(first));
    learner.signal(Signal::SIGCONT);
    let second = scene.learns(first);

    // It is killed, and another one comes.
    learner.signal(Signal::SIGKILL);
    drop(learner);
    released.push(scene.releases(second));
    let learner = scene.learner();
    let third = scene.learns(second);

    // Something else takes its place, and sends nonsense made of a tree that was in force. Those of a calm moment are one leaf.
    let mut tree = Vec::new();
    let found = eventually(2 * PATIENCE, || {
        tree = scene.newest();
        splits(&tree)
    });
    assert!(found, "no tree splits: {}", scene.agent.said());
    drop(learner);
    let other = stranger(&scene.folder.path().join("learn"));
    let before = scene.until("it still runs", |status| !status.is_null());
    let messages = nonsense(&tree);
    for message in &messages {
        send(other.as_raw_fd(), message, MsgFlags::MSG_NOSIGNAL).expect("it is read");
    }
    let said = || refused(&scene.agent.said());
    assert!(
        eventually(PATIENCE, || said() == messages.len()),
        "{} of {}:\n{}",
        said(),
        messages.len(),
        scene.agent.said()
    );
    let after = scene.until("all is refused", |_| true);
    assert_eq!(version(&after), version(&before), "the last good tree is kept: {before} {after}");
    released.push(scene.releases(third));
    drop(other);
    let mut learner = scene.learner();
    scene.learns(third);
    learner.signal(Signal::SIGINT);
    let ended = learner.end();
    assert!(ended.out.contains("trees from"), "{ended:?}");

    // Its end, and what it all came to.
    let seen = scene.eye.flows();
    scene.agent.signal(Signal::SIGTERM);
    let ended = scene.agent.end();
    let account: Value = serde_json::from_str(ended.out.lines().last().expect("an account")).expect("JSON");
    println!("{account}");
    assert!(account["agent"]["rewritten"].as_u64() > Some(0), "{account}");
    let record = scene.folder.path().join("record");
    let info = lasthop(["dataset".as_ref(), "info".as_ref(), record.as_os_str(), "--json".as_ref()])
        .output()
        .expect("it starts");
    let recorded: Value = serde_json::from_slice(&info.stdout).expect("JSON");
    println!("{recorded}");
    let number = |field: &str| recorded["recordings"][0][field].as_u64().unwrap_or(0);
    assert!(recorded["unfinished"] == false && number("lost") > 0, "{recorded}");
    assert!((1..recorded["items"].as_u64().unwrap_or(0)).contains(&number("acted")), "{recorded}");
    let (intervals, tight) = logged(&scene.folder.path().join("log"));
    for Released { from, until, windows } in &released {
        // From the moment on at which the agent had said so, and its hysteresis was over.
        let within = intervals.iter().filter(|(at, _)| (from + 100_000_000..*until).contains(at));
        let (all, limited) = within.fold((0, 0), |(all, limited), (_, tight)| (all + 1, limited + usize::from(*tight)));
        assert!(all > 0 && limited == 0, "{limited} of {all} intervals");
        assert!(windows.iter().all(|window| u64::from(*window) > 2 * tight), "{windows:?}, and {tight} when tight");
    }
    println!("tight windows have {tight} octets in the median; {seen:?}");
    // The rewriter rounds a target up to what a window field can say.
    let tight_for = |flow: &Seen| tight.next_multiple_of(flow.unit.into());
    assert!(
        seen.iter().any(|flow| u64::from(flow.least_window) <= tight_for(flow)),
        "no sender saw a tight window: {seen:?}"
    );
    assert!(seen.iter().all(|flow| flow.longest_silence < STALL && flow.least_window >= 1_448), "{seen:?}");
}
