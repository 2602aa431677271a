//! `lasthop dataset`.

mod info;
mod split;
mod study;

use crate::say;
use clap::{Args as ClapArgs, Subcommand};
use lasthop_dataset::{DataSet, Written, schema};
use lasthop_units::count;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Its command line.
#[derive(ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Say what a data set holds, and check every row of it
    Info(info::Args),
    /// Make one data set of several, or of what is left of a recording that was killed
    Merge(Merge),
    /// Part a data set into one to learn from and one to be asked for
    Split(split::Args),
    /// Say what metrics tell of losses, how losses are spread, and what trees are worth, beside the paper's figures
    Study(study::Args),
    /// Print the columns of data sets, as a table in Markdown
    Columns,
}

#[derive(ClapArgs)]
struct Merge {
    /// The data sets
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Write all of them into this file
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
}

/// Does what is asked.
pub fn dataset(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Info(args) => info::info(args),
        Command::Merge(args) => merge(args),
        Command::Split(args) => split::split(args),
        Command::Study(args) => study::study(args),
        Command::Columns => {
            say!("{}", schema::table().trim_end())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn merge(args: &Merge) -> anyhow::Result<ExitCode> {
    let sets = args.files.iter().map(|path| DataSet::open(path)).collect::<Result<Vec<_>, _>>()?;
    let written = lasthop_dataset::merge(&sets, &args.out)?;
    wrote(&args.out, written)?;
    Ok(ExitCode::SUCCESS)
}

/// Says what a file holds that was written.
fn wrote(path: &Path, written: Written) -> anyhow::Result<()> {
    let (items, bytes) = (usize::try_from(written.rows)?, usize::try_from(written.bytes)?);
    say!("{}: {}, {}", path.display(), count(items, "item"), count(bytes, "byte"))
}
