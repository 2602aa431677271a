//! What agents, crashes and kills do to a run, and what is left behind.
//!
//! Needs root; skips loudly without. Programs that the tests need are this very binary, started again with the name of
//! one of the "tests" below that do nothing otherwise.

use crate::machine;
use lasthop_lab::address::Family;
use lasthop_lab::{AccountSpec, Cause, Clock, LabError, PREFIX, ProgramSpec, Ready, Spec, Stop, clean, run};
use lasthop_radio::AccessClass;
use lasthop_radio::wired::{Impairments, Params};
use lasthop_radio::{LastHop, cables};
use lasthop_scenario::graph::{Cable, Graph};
use lasthop_scenario::{Program, Scenario, Stream, StreamKind};
use lasthop_signals::Node;
use lasthop_units::{Rate, Seed, Span, Time};
use lasthop_wire::driver;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use socket2::{Domain, SockAddr, Socket, Type};
use std::io::Read;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

fn is_root() -> bool {
    let root = nix::unistd::Uid::effective().is_root();
    if !root {
        // Past the capture of test output.
        let _ = writeln!(std::io::stderr(), "SKIPPED: the lab needs root to make namespaces and interfaces");
    }
    root
}

fn spec(duration: Span) -> Spec {
    let line = Params { rate: Rate::from_mbit(20), delay: Span::from_millis(2), queue_packets: 100 };
    let kind = StreamKind::Bulk { size: None, program: Program::Own, send_buffer: None };
    Spec {
        graph: Graph::street(&Cable::plain(Params { rate: Rate::from_mbit(1000), ..line }), &["sta1".into()]),
        hop: LastHop::from(cables::Plan { down: line, up: line, impairments: Impairments::default() }),
        family: Family::V4,
        streams: vec![Stream {
            number: 0,
            from: Scenario::SERVER,
            to: Scenario::station_host(0),
            start: Time::ZERO,
            stop: Time::ZERO + duration,
            class: AccessClass::BestEffort,
            kind,
        }],
        infos: Vec::new(),
        congestion: vec!["cubic".into(); 4],
        duration,
        warm_up: Span::ZERO,
        seed: Seed(1),
        programs: Vec::new(),
        carriers: Vec::new(),
        beyond: None,
        monitors: Vec::new(),
    }
}

/// This binary as a program on the access point that runs the "test" `role`.
fn myself(role: &str, more: &[&str]) -> Vec<ProgramSpec> {
    let program = std::env::current_exe().expect("a test binary");
    let arguments = [role, "--exact", "--nocapture"].iter().chain(more).map(|word| (*word).to_owned()).collect();
    vec![agent(program, arguments)]
}

/// A program on the access point, ready once it is connected to its driver.
fn agent(program: PathBuf, arguments: Vec<String>) -> ProgramSpec {
    let doubts = &[(Cause::Silent, "{n} agents gave no account")];
    let account = AccountSpec { line: "agent", name: "agent", by_host: false, expected: 0, doubts };
    ProgramSpec {
        node: Some(Node(0)),
        ready: Ready::Connected,
        account: Some(account),
        ..ProgramSpec::new("the agent".to_owned(), Scenario::AP_HOST, program, arguments)
    }
}

/// Set in the environment of programs that are this binary.
const ROLE: &str = "LASTHOP_TEST_ROLE";

/// Not a test by itself: an agent that reads driver reports until the driver goes, or for half a second if it is told
/// to be a deserter.
#[test]
fn play_agent() {
    let Some(path) = std::env::args().find(|argument| argument.ends_with("/driver.sock")) else { return };
    let deserter = std::env::args().any(|argument| argument == "deserter");
    let mut socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None).expect("Unix sockets");
    socket.connect(&SockAddr::unix(path).expect("a short path")).expect("a listening driver");
    let (mut record, mut reports, clock) = (vec![0; driver::MAX_LEN], 0, Clock::start());
    while let Ok(len @ 1..) = socket.read(&mut record) {
        let record = driver::decode(&record[..len]).expect("a whole record");
        assert_eq!((record.report.stations.len(), record.addresses.len()), (1, 1));
        reports += 1;
        if reports % 50 == 0 {
            eprintln!("{reports} reports");
        }
        if deserter && clock.now() > Time::ZERO + Span::from_millis(500) {
            eprintln!("I am leaving");
            std::process::exit(3);
        }
    }
}

/// Not a test by itself: a run that lasts until it is killed.
#[test]
fn play_long_run() {
    if std::env::var(ROLE).as_deref() == Ok("long run") {
        let ended = run(&spec(Span::from_secs(60)), |_| {}, &Stop::default());
        panic!("it was to be killed: {ended:?}");
    }
}

#[test]
fn an_agent_gets_two_hundred_and_fifty_reports_a_second() {
    if !is_root() {
        return;
    }
    let _alone = machine::alone();
    let spec = Spec { programs: myself("leavings::play_agent", &["{driver}"]), ..spec(Span::from_secs(1)) };
    let outcome = run(&spec, |_| {}, &Stop::default()).expect("a run of a second");
    // The model reports by its own time; how many of them the agent read in time depends on what else the machine does.
    assert!(outcome.said.contains("50 reports"), "{}", outcome.said);
    let doubts: Vec<String> = outcome.doubts.iter().map(ToString::to_string).collect();
    assert!(outcome.accounts.is_empty() && doubts.contains(&"1 agents gave no account".to_owned()), "{doubts:?}");
    assert!(outcome.hop.reports.len() >= 245, "{}", outcome.hop.reports.len());
}

#[test]
fn a_failed_or_missing_agent_fails_the_run_with_its_message() {
    if !is_root() {
        return;
    }
    let _alone = machine::alone();
    let fail = |programs| match run(&Spec { programs, ..spec(Span::from_secs(20)) }, |_| {}, &Stop::default()) {
        Err(error) => error,
        Ok(outcome) => panic!("it succeeded: {}", outcome.said),
    };
    match fail(myself("leavings::play_agent", &["{driver}", "deserter"])) {
        LabError::Program { why, .. } => assert!(why.contains("I am leaving"), "{why}"),
        other => panic!("{other}"),
    }
    match fail(vec![agent("lasthop-no-such-agent".into(), Vec::new())]) {
        LabError::Missing { what, .. } => assert!(what.contains("lasthop-no-such-agent"), "{what}"),
        other => panic!("{other}"),
    }
    assert_eq!(ours(std::process::id()), [""; 0]);
}

#[test]
fn leftovers_of_a_killed_run_are_removed_and_live_ones_kept() {
    if !is_root() {
        return;
    }
    let _alone = machine::alone();
    let mut victim = Command::new(std::env::current_exe().expect("a test binary"))
        .args(["leavings::play_long_run", "--exact", "--nocapture"])
        .env(ROLE, "long run")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("ourselves");
    let (clock, deadline) = (Clock::start(), Time::ZERO + Span::from_secs(60));
    while ours(victim.id()).len() < 3 && clock.now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    // It may be anywhere in its run; its hosts are up.
    clean().expect("root may clean");
    assert_eq!(ours(victim.id()).len(), 3, "a living run's hosts were removed");

    kill(Pid::from_raw(victim.id() as i32), Signal::SIGKILL).expect("our child");
    victim.wait().expect("our child");
    assert_eq!(ours(victim.id()).len(), 3, "a killed run cannot have cleaned up");
    let cleaned = clean().expect("root may clean");
    assert!(cleaned.namespaces.len() >= 3 && !cleaned.directories.is_empty(), "{cleaned:?}");
    assert_eq!(ours(victim.id()), [""; 0]);
    clean().expect("twice is harmless");
}

/// The namespaces of process `pid`.
fn ours(pid: u32) -> Vec<String> {
    let prefix = format!("{PREFIX}{pid}-");
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|n| n.starts_with(&prefix)).collect()
}
