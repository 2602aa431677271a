//! `lasthop check`.

use crate::{Shown, note, say};
use clap::Args as ClapArgs;
use lasthop_scenario::Scenario;
use lasthop_units::count;
use std::path::PathBuf;
use std::process::ExitCode;

/// What to check.
#[derive(ClapArgs)]
#[command(arg_required_else_help = true)]
pub struct Args {
    /// Scenario files (TOML)
    scenarios: Vec<PathBuf>,
    /// Print the JSON Schema of scenario files, for editors
    #[arg(long)]
    schema: bool,
}

/// Checks files; the status says whether all are right.
pub fn check(args: &Args) -> anyhow::Result<ExitCode> {
    if args.schema {
        say!("{:#}", lasthop_scenario::json_schema())?;
    }
    let mut wrong = 0;
    for path in &args.scenarios {
        match Scenario::load(path) {
            Ok(scenario) => say!(
                "{}: {} ({}, {}, laws {})",
                path.display(),
                scenario.title(),
                count(scenario.stations().len(), "station"),
                count(scenario.streams().len(), "stream"),
                scenario.laws().iter().map(|law| law.name.as_str()).collect::<Vec<_>>().join(", ")
            )?,
            Err(error) => {
                wrong += 1;
                note!("{:?}", miette::Report::new(error));
            }
        }
    }
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Loads a scenario; the error shows the place in the file.
pub fn load(path: &std::path::Path) -> anyhow::Result<Scenario> {
    Ok(Scenario::load(path).map_err(|error| Shown(miette::Report::new(error)))?)
}
