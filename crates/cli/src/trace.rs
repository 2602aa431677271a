//! `lasthop trace`.

mod convert;
mod info;
mod record;

use crate::say;
use anyhow::Context as _;
use clap::{Args as ClapArgs, Subcommand};
use lasthop_report::page::{Chart, Curve};
use lasthop_units::Span;
use lasthop_wire::delivery::DeliveryTrace;
use std::io::Write as _;
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
    /// Say what a trace carries: rates, gaps, and a picture
    Info(info::Args),
    /// Record a trace of a scenario's last hop by a run in which packets never run out
    Record(record::Args),
    /// Make a trace of a CSV file of rates
    Convert(convert::Args),
}

/// Does what is asked.
pub fn trace(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Info(args) => info::info(args),
        Command::Record(args) => record::record(args),
        Command::Convert(args) => convert::convert(args),
    }
}

/// Where a trace that was made goes.
#[derive(ClapArgs)]
struct Made {
    /// Write the trace into this file; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
}

impl Made {
    /// Writes it, whole or not at all, and says what it is.
    fn write(&self, trace: &DeliveryTrace) -> anyhow::Result<()> {
        let text = trace.to_text();
        if self.out == Path::new("-") {
            return Ok(std::io::stdout().write_all(text.as_bytes())?);
        }
        lasthop_report::write_whole(&self.out, |file| file.write_all(text.as_bytes()))?;
        say!("{}: {}", self.out.display(), line(trace))?;
        Ok(())
    }
}

/// A trace in a line.
fn line(trace: &DeliveryTrace) -> String {
    let (opportunities, seconds) = (trace.len(), trace.period().as_secs_f64());
    format!("{opportunities} opportunities in {seconds} s, {:.3} Mbit/s on the mean", trace.mean_rate().as_mbit_f64())
}

/// The trace in a file.
fn read(path: &Path) -> anyhow::Result<DeliveryTrace> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    DeliveryTrace::parse(&bytes).with_context(|| format!("{} is no packet-delivery trace", path.display()))
}

/// Its rate over time, in spans that make some hundreds of points.
fn chart(trace: &DeliveryTrace, name: &str) -> Chart {
    const POINTS: u64 = 400;
    let spans = [100, 200, 500, 1_000, 2_000, 5_000, 10_000, 60_000].map(Span::from_millis);
    let long = |every: &&Span| trace.period().as_nanos() / every.as_nanos() <= POINTS;
    let every = *spans.iter().find(long).unwrap_or(&spans[spans.len() - 1]);
    let at = |place: usize| (place as f64 + 0.5) * every.as_secs_f64();
    let rates = trace.rates(every).into_iter().enumerate().map(|(place, rate)| (at(place), rate.as_mbit_f64()));
    let mean = trace.mean_rate().as_mbit_f64();
    let ends = vec![(0.0, mean), (trace.period().as_secs_f64(), mean)];
    Chart {
        file: name.to_owned(),
        title: name.to_owned(),
        x: "time (s)".into(),
        y: "rate (Mbit/s)".into(),
        curves: vec![
            Curve::measured(format!("over {} s each", every.as_secs_f64()), rates.collect()),
            Curve::reference("mean", ends),
        ],
        ..Chart::default()
    }
}
