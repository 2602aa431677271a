//! How the agents stand when things go wrong: killed, lied to, flooded, detached.
//!
//! `scripts/attack` runs every case at length. `cargo test` runs the same cases briefly, and there the clock decides nothing that a
//! busy machine could turn: what is measured is printed, and judged by wide bounds.
//!
//! The program is its own harness, since its cases share a hop, one table is all it prints, and Ctrl-C must take everything down.
//! Words among its arguments choose the cases with one of them in their name, as with cargo's harness.

// Programs are waited for by the wall clock.
#![allow(clippy::disallowed_methods)]

mod attach;
mod case;
mod flood;
mod kill;
mod liar;
mod lie;
mod pair;
mod program;
mod radio;
mod scene;
mod tunnel;
#[path = "../../../crates/agents/tests/support"]
#[allow(dead_code, reason = "part of what the agents' own tests use")]
mod support {
    pub mod driver;
    pub use lasthop_tests::machine;
    pub mod netns;
    pub mod pump;
    pub mod tcp;
}

use case::{Case, Report};
use lasthop_lab::Stop;
use lasthop_tests::{lab, lasthop};
use scene::Scene;
use std::io::Write as _;
use std::process::ExitCode;

/// Asks for the long form.
const WHOLE: &str = "--whole";
/// Status of a wrong command line.
const WRONG_LINE: u8 = 2;
/// Status of a run that Ctrl-C has ended, as a shell has it.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let whole = arguments.iter().any(|argument| argument == WHOLE);
    let words: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let all = || [kill::CASES, lie::CASES, flood::CASES, attach::CASES, pair::CASES].into_iter().flatten();
    let names = |case: &Case, word: &str| case.name.contains(word);
    // With cargo's harness a word that names nothing here may name a test elsewhere.
    if let Some(word) = words.iter().find(|word| whole && !all().any(|case| names(case, word))) {
        let known: Vec<&str> = all().map(|case| case.name).collect();
        eprintln!("no case has `{word}` in its name; the cases are\n  {}", known.join("\n  "));
        return ExitCode::from(WRONG_LINE);
    }
    let wanted = |case: &&Case| words.is_empty() || words.iter().any(|word| names(case, word));
    let cases: Vec<&Case> = all().filter(wanted).collect();
    if cases.is_empty() {
        return ExitCode::SUCCESS;
    }
    if whole {
        eprintln!("waiting until no test uses the lab ...");
    }
    let Some(_lab) = lab() else { return ExitCode::SUCCESS };
    Stop::on_signals().expect("handlers");
    let doctor = lasthop_tests::run(&mut lasthop(["doctor"]));
    if !doctor.out.contains("The agent can run here.") {
        let _ = writeln!(std::io::stderr(), "SKIPPED: the agent cannot run here:\n{}", doctor.out);
        return if whole { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    }

    let mut report = Report::new(cases.len());
    let mut scene = Scene::new(whole);
    for case in cases {
        if !report.judge(case, &mut scene) {
            drop(scene);
            let _ = writeln!(std::io::stderr(), "stopped; everything is taken down");
            return ExitCode::from(INTERRUPTED);
        }
    }
    drop(scene);
    report.print();
    if report.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
