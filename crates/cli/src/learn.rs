//! `lasthop learn`.

use crate::{flag, note, say};
use clap::Args as ClapArgs;
use lasthop_agents::learn::{self, Config};
use lasthop_agents::service;
use lasthop_laws::oal::Params;
use lasthop_units::count;
use std::path::PathBuf;
use std::process::ExitCode;

/// Its command line.
#[derive(ClapArgs)]
pub struct Args {
    /// Socket of the access point's agent (its `--learn`)
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// Keep the newest tree in this file, for `lasthop ap --tree`
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Splits on the longest way through a tree, from 1 to 32
    #[arg(long, value_name = "N", default_value_t = Params::default().depth, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=32))]
    depth: u32,
}

/// Learns until it is told to stop.
pub fn learn(args: Args) -> anyhow::Result<ExitCode> {
    let stop = service::stop_on_signals().map_err(flag::of_ap)?;
    let config = Config { socket: args.socket, out: args.out, depth: args.depth, say: |line| note!("{line}") };
    let summary = learn::run(&config, stop)?;
    say!(
        "{} from {}; longest training {}",
        count(summary.trees, "tree"),
        count(summary.lessons, "lesson"),
        summary.longest_training
    )?;
    if summary.refused > 0 {
        note!("{} of the agent refused: no lessons of this version", count(summary.refused, "message"));
    }
    Ok(ExitCode::SUCCESS)
}
