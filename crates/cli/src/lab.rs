//! `lasthop lab`.

use crate::{Shown, check, note, ready, say};
use anyhow::Context;
use clap::Args as ClapArgs;
use lasthop_lab::{Exec, LabError, Setting, Spec, Stop};
use lasthop_scenario::{Scenario, SetUp};
use lasthop_signals::HostId;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};

/// What to run, and where.
#[derive(ClapArgs)]
#[command(arg_required_else_help = true)]
pub struct Args {
    /// The scenario file (TOML)
    #[arg(value_name = "FILE", required_unless_present = "clean")]
    scenario: Option<PathBuf>,
    /// The law [default: the first of the scenario's]
    #[arg(long, value_name = "NAME")]
    law: Option<String>,
    /// Seed of the hop's random draws [default: the first of the scenario's]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seed: Option<u64>,
    /// The host to run on: server, ap, or a station [default: the first station]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Let the scenario's traffic run beside the program
    #[arg(long)]
    with_traffic: bool,
    /// The program and its arguments, after `--`
    #[arg(value_name = "COMMAND", last = true, required_unless_present = "clean")]
    command: Vec<OsString>,
    /// Remove the namespaces and interfaces that a killed run left behind; only what Lasthop made
    #[arg(long, exclusive = true)]
    clean: bool,
}

/// Shown below the long help.
pub const EXAMPLES: &str = "\
Examples:
  lasthop lab my-home.toml -- iperf3 -c server
  lasthop lab my-home.toml --law cubic+ap --host tv --with-traffic -- bash
  lasthop lab --clean";

/// Status if the program is not there, as a shell has it.
const NOT_FOUND: u8 = 127;

/// Status if the program cannot be run.
const NOT_EXECUTABLE: u8 = 126;

/// Runs a program in the lab, or cleans up.
pub fn lab(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.scenario {
        Some(path) if !args.clean => exec(args, path),
        _ => clean(),
    }
}

fn clean() -> anyhow::Result<ExitCode> {
    let cleaned = lasthop_lab::clean()?;
    cleaned.namespaces.iter().try_for_each(|name| say!("removed namespace {name}"))?;
    cleaned.directories.iter().try_for_each(|path| say!("removed {}", path.display()))?;
    if cleaned.namespaces.is_empty() && cleaned.directories.is_empty() {
        say!("nothing was left behind")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn exec(args: &Args, path: &Path) -> anyhow::Result<ExitCode> {
    Stop::on_signals_beside_a_program().context("cannot watch for signals")?;
    let scenario = check::load(path)?;
    let law = match &args.law {
        Some(name) => scenario.law(name).map_err(|error| Shown(miette::Report::new(error)))?,
        None => scenario.laws()[0].clone(),
    };
    let host = match &args.host {
        Some(name) => scenario.host(name).map_err(|error| Shown(miette::Report::new(error)))?,
        None => Scenario::station_host(0),
    };
    if law.needs_programs() && nix::unistd::geteuid().is_root() {
        ready::agent(&law.name, "name another with --law")?;
    }
    let seed = args.seed.or(scenario.seeds().first().copied()).unwrap_or(1);
    let spec = lasthop_experiment::lab_spec(&scenario, &law, seed)?;
    let exec = Exec { spec: &spec, host, command: &args.command, with_traffic: args.with_traffic };
    let program = args.command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
    let begun = |setting: &Setting| note!("lasthop: {}", line(&program, &spec, host, &law, setting));
    let exited = match lasthop_lab::exec(&exec, begun, &Stop::default()) {
        Ok(exited) => exited,
        Err(error @ LabError::Command { .. }) => return Ok(not_started(&error)),
        Err(error @ LabError::Spec(_)) => {
            let what = format!("the lab cannot build {}, and programs run in the lab only", path.display());
            return Err(anyhow::Error::new(error).context(what));
        }
        Err(error) => return Err(error.into()),
    };
    if !exited.doubts.is_empty() {
        note!("lasthop: UNRELIABLE: do not quote what the program measured: {}", exited.doubts.join("; "));
    }
    Ok(status(exited.status))
}

/// Where the program runs and what it finds there, in one line.
fn line(program: &str, spec: &Spec, host: HostId, law: &SetUp, setting: &Setting) -> String {
    let (name, address) = (spec.host_name(host), setting.address);
    let mut line = format!("{program} runs on {name} ({address}), law {}", law.name);
    if setting.iperf3 {
        line.push_str("; iperf3 listens at server");
    }
    if let Some(proxy) = setting.proxy {
        line.push_str(&format!("; to the edge proxy: SOCKS5 or HTTP CONNECT at {proxy}"));
        if setting.iperf3 {
            line.push_str(", iperf3 -c 127.0.0.1");
        }
    }
    line
}

/// Says why the program did not start.
fn not_started(error: &LabError) -> ExitCode {
    let LabError::Command { source, .. } = error else { return ExitCode::FAILURE };
    let (code, remedy) = match source.kind() {
        ErrorKind::NotFound => (NOT_FOUND, "name a program of this machine, with its path if it is not in PATH"),
        _ => (NOT_EXECUTABLE, "name a program that root may run"),
    };
    note!("lasthop: {error}: {remedy}");
    ExitCode::from(code)
}

/// As a shell has it: 128 and the signal for a program that one ended.
fn status(status: ExitStatus) -> ExitCode {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_that_of_a_shell() {
        let of = |wait: i32| format!("{:?}", status(ExitStatus::from_raw(wait)));
        let code = |code: u8| format!("{:?}", ExitCode::from(code));
        assert_eq!([of(3 << 8), of(15), of(0)], [code(3), code(143), code(0)]);
    }
}
