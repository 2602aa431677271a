//! `lasthop doctor`.

use crate::say;
use clap::Args as ClapArgs;
use lasthop_agents::ap::{self, Found};
use lasthop_lab::doctor::{self, Need, State};
use std::process::ExitCode;

/// Examine this machine.
#[derive(ClapArgs)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One line of the examination.
struct Line {
    part: &'static str,
    name: String,
    /// `None` if only root can find out.
    ok: Option<bool>,
    required: bool,
    detail: String,
    remedy: String,
}

impl Line {
    fn hinders(&self) -> bool {
        self.required && self.ok != Some(true)
    }
}

/// Prints what there is, what is missing and how to get it. The status says whether the lab and the agent can run.
pub fn doctor(args: &Args) -> anyhow::Result<ExitCode> {
    let lines: Vec<Line> = lab().into_iter().chain(agent()).collect();
    if args.json {
        say!("{}", json(&lines))?;
    } else {
        print(&lines)?;
    }
    let complete = !lines.iter().any(Line::hinders);
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn lab() -> Vec<Line> {
    let line = |finding: doctor::Finding| {
        let (ok, detail, remedy) = match finding.state {
            State::Present => (Some(true), String::new(), String::new()),
            State::Missing { why, get } => (Some(false), why, get),
            State::Unexamined => (None, String::new(), String::new()),
        };
        let required = finding.need == Need::Required;
        Line { part: "lab", name: finding.feature.to_string(), ok, required, detail, remedy }
    };
    doctor::examine().into_iter().map(line).collect()
}

fn agent() -> Vec<Line> {
    let line = |check: ap::Check| Line {
        part: "agent",
        name: check.name.to_owned(),
        ok: match check.found {
            Found::Yes => Some(true),
            Found::No => Some(false),
            Found::Unexamined => None,
        },
        required: check.required,
        detail: check.detail,
        remedy: check.remedy.to_owned(),
    };
    ap::probe().into_iter().chain([ap::probe_offload()]).map(line).collect()
}

fn print(lines: &[Line]) -> anyhow::Result<()> {
    say!("simulator   ok")?;
    for line in lines {
        let verdict = match (line.ok, line.required) {
            (Some(true), _) => "ok",
            (Some(false), true) => "MISSING",
            (Some(false), false) => "missing (works without)",
            (None, _) => "not examined: run this as root",
        };
        say!("{:<11} {}: {verdict}", line.part, line.name)?;
        if line.ok == Some(false) {
            say!("            {}", line.detail)?;
            say!("            to get it: {}", line.remedy)?;
        }
    }
    for part in ["lab", "agent"] {
        let can = !lines.iter().any(|line| line.part == part && line.hinders());
        say!("The {part} {} run here.", if can { "can" } else { "cannot" })?;
    }
    Ok(())
}

fn json(lines: &[Line]) -> String {
    let line = |line: &Line| {
        serde_json::json!({
            "part": line.part, "name": line.name, "ok": line.ok, "required": line.required,
            "detail": line.detail, "remedy": line.remedy,
        })
    };
    serde_json::Value::Array(lines.iter().map(line).collect()).to_string()
}
