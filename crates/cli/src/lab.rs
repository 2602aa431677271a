//! `lasthop lab`.

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
        cleaned.namespaces.iter().for_each(|name| println!("removed namespace {name}"));
        cleaned.directories.iter().for_each(|path| println!("removed {}", path.display()));
        if cleaned.namespaces.is_empty() && cleaned.directories.is_empty() {
            println!("nothing was left behind");
        }
    }
    Ok(ExitCode::SUCCESS)
}
