//! `lasthop trace record`.

use super::Made;
use crate::flag::{Wrong, quantity};
use crate::progress::Bar;
use crate::{check, note};
use anyhow::{Context as _, bail};
use clap::ValueEnum;
use lasthop_experiment::{ExperimentError, Place, Recorded, Recording};
use lasthop_lab::Stop;
use lasthop_units::{Rate, Time};
use lasthop_wire::delivery::DeliveryTrace;
use std::path::PathBuf;
use std::process::ExitCode;

/// Its command line.
#[derive(clap::Args)]
pub struct Args {
    /// Scenario file (TOML): its hop is recorded for its duration, without its traffic
    scenario: PathBuf,
    /// The station at the end of the link [default: the first]
    #[arg(long, value_name = "NAME")]
    station: Option<String>,
    /// Towards the station, or from it
    #[arg(long, value_enum, default_value = "down")]
    direction: Direction,
    /// The law that sets the hop's queue [default: the scenario's first]
    #[arg(long, value_name = "NAME")]
    law: Option<String>,
    /// The seed of the hop's draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Where: in virtual time, or over the lab's emulated hop by the wall clock
    #[arg(long, value_enum, default_value = "sim")]
    world: World,
    /// Lab: rate of the packets, above what the hop carries
    #[arg(long, value_name = "RATE", default_value = "200 Mbit/s", value_parser = quantity::<Rate>)]
    rate: Rate,
    #[command(flatten)]
    made: Made,
}

#[derive(Clone, Copy, ValueEnum)]
enum Direction {
    Down,
    Up,
}

#[derive(Clone, Copy, ValueEnum)]
enum World {
    Sim,
    Lab,
}

/// Records and writes.
pub fn record(args: &Args) -> anyhow::Result<ExitCode> {
    Stop::on_signals().context("cannot watch for Ctrl-C")?;
    let stop = Stop::default();
    let scenario = check::load(&args.scenario)?;
    let station = match &args.station {
        None => 0,
        Some(name) => scenario.stations().iter().position(|known| known == name).ok_or_else(|| {
            Wrong::line(format!("--station {name}: the stations are {}", scenario.stations().join(", ")))
        })?,
    };
    let law = match &args.law {
        None => scenario.laws()[0].clone(),
        Some(name) => scenario.law(name).map_err(|error| crate::Shown(miette::Report::new(error)))?,
    };
    let place = match args.world {
        World::Sim => Place::Sim,
        World::Lab => Place::Lab,
    };
    let up = matches!(args.direction, Direction::Up);
    let of = Recorded { scenario: &scenario, law: &law, seed: args.seed, station, up };
    let bar = Bar::new(1);
    let ran = lasthop_experiment::record(of, place, args.rate, &bar, &stop);
    bar.finish();
    let Recording { times, doubts } = ran?;
    if stop.is_raised() {
        return Err(ExperimentError::Stopped.into());
    }
    let stamp = |at: &Time| u32::try_from(at.as_nanos() / 1_000_000).ok();
    let stamps: Vec<u32> = times.iter().filter_map(stamp).collect();
    let Ok(trace) = DeliveryTrace::new(stamps) else {
        bail!("{} delivers nothing to record there", args.scenario.display());
    };
    if place == Place::Lab && trace.mean_rate() > args.rate.scale(0.9) {
        note!(
            "the link carried {:.1} Mbit/s of the {:.1} that were offered: it may carry more, so offer more with --rate",
            trace.mean_rate().as_mbit_f64(),
            args.rate.as_mbit_f64()
        );
    }
    args.made.write(&trace)?;
    // Standard output may be the trace itself.
    if !doubts.is_empty() {
        note!("\nUNRELIABLE: do not rely on this trace.");
        doubts.iter().for_each(|doubt| note!("  {doubt}"));
    }
    Ok(ExitCode::SUCCESS)
}
