//! `lasthop lab`.

use crate::say;
use clap::Args as ClapArgs;
use std::process::ExitCode;

/// Look after the lab.
#[derive(ClapArgs)]
#[command(arg_required_else_help = true)]
pub struct Args {
    /// Remove the namespaces and interfaces that a killed run left behind; only what Lasthop made
    #[arg(long)]
    clean: bool,
}

/// Cleans up.
pub fn lab(args: &Args) -> anyhow::Result<ExitCode> {
    if args.clean {
        let cleaned = lasthop_lab::clean()?;
        cleaned.namespaces.iter().try_for_each(|name| say!("removed namespace {name}"))?;
        cleaned.directories.iter().try_for_each(|path| say!("removed {}", path.display()))?;
        if cleaned.namespaces.is_empty() && cleaned.directories.is_empty() {
            say!("nothing was left behind")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
