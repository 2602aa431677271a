//! `lasthop pair`.

use crate::say;
use clap::Args as ClapArgs;
use lasthop_agents::tunnel::keys;
use lasthop_signals::Node;
use std::path::PathBuf;
use std::process::ExitCode;

/// Its command line.
#[derive(ClapArgs)]
pub struct Args {
    /// The proxy's file of keys; it is made if it is not there
    #[arg(long, value_name = "FILE")]
    proxy: PathBuf,
    /// Number of the station (0 to 65535)
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    station: u16,
    /// The station's file, to be made
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Give a station that has a key another one
    #[arg(long)]
    replace: bool,
}

/// Makes the key.
pub fn pair(args: &Args) -> anyhow::Result<ExitCode> {
    keys::pair(&args.proxy, Node(args.station), &args.out, args.replace)?;
    say!("station {}: key added to {} and written to {}", args.station, args.proxy.display(), args.out.display())?;
    Ok(ExitCode::SUCCESS)
}
