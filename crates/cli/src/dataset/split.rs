//! `lasthop dataset split`.

use super::wrote;
use crate::flag::Wrong;
use clap::ValueEnum;
use lasthop_dataset::split::{self, By, Fold};
use lasthop_dataset::{DataSet, Written};
use std::path::PathBuf;
use std::process::ExitCode;

/// Its command line.
#[derive(clap::Args)]
pub struct Args {
    /// The data set
    file: PathBuf,
    /// What is held out: the last fifth of time, with a gap before it; an access point; a seed; or a fifth at random:
    /// its items are neighbours of what is learned
    #[arg(long, value_enum, default_value = "time")]
    by: ByArg,
    /// Which access point (its pseudonym) or seed is held out [default: the last]
    #[arg(long, value_name = "WHICH")]
    hold_out: Option<String>,
    /// Write what is to be learned from into this file
    #[arg(long, value_name = "FILE")]
    learn: PathBuf,
    /// Write what is to be asked for into this file
    #[arg(long, value_name = "FILE")]
    ask: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum ByArg {
    Time,
    AccessPoint,
    Seed,
    Random,
}

/// Parts and writes.
pub fn split(args: &Args) -> anyhow::Result<ExitCode> {
    let by = match args.by {
        ByArg::Time => By::Time,
        ByArg::AccessPoint => By::AccessPoint,
        ByArg::Seed => By::Seed,
        ByArg::Random => By::Random,
    };
    let set = DataSet::open(&args.file)?;
    let rows = set.load()?;
    let mut folds = split::folds(set.meta(), &rows, by);
    let fold = match &args.hold_out {
        None => folds.pop(),
        Some(name) => {
            let held = folds.iter().position(|fold| fold.held_out == *name);
            let known = || folds.iter().map(|fold| fold.held_out.as_str()).collect::<Vec<_>>().join(", ");
            match held {
                Some(place) => Some(folds.swap_remove(place)),
                None => return Err(Wrong::line(format!("--hold-out {name}: there are {}", known()))),
            }
        }
    };
    let Some(Fold { learn, ask, .. }) = fold else {
        let what =
            format!("--by {}: {} cannot be parted so that both sides have items", by.name(), args.file.display());
        return Err(Wrong::line(what));
    };
    for (path, places) in [(&args.learn, learn), (&args.ask, ask)] {
        let bytes =
            lasthop_dataset::write_file(path, set.meta(), |take| places.iter().try_for_each(|at| take(rows[*at])))?;
        wrote(path, Written { rows: places.len() as u64, bytes })?;
    }
    Ok(ExitCode::SUCCESS)
}
