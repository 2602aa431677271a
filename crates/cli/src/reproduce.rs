//! `lasthop reproduce`.

use crate::{note, say};
use anyhow::{Context, bail};
use clap::ValueEnum;
use lasthop_experiment::reproduce::{self, Figure, Page, Runner};
use lasthop_lab::Stop;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// A system whose published results can be run again.
#[derive(Clone, Copy, ValueEnum)]
enum System {
    /// The aggregation regulator (Gringoli and Leith)
    Aggregation,
}

/// `lasthop reproduce`
#[derive(clap::Args)]
pub struct Args {
    /// Whose results
    #[arg(value_enum)]
    system: System,
    /// One seed and fewer points: to see whether it works
    #[arg(long)]
    quick: bool,
    /// Only this figure; may be repeated [default: all]
    #[arg(long = "figure", value_name = "N")]
    figures: Vec<String>,
    /// Write the page and its pictures into this directory
    #[arg(long, value_name = "DIR", default_value = "out/reproduction")]
    out: PathBuf,
}

/// Runs the scenarios, writes the page and says what is not met.
pub fn reproduce(args: &Args) -> anyhow::Result<ExitCode> {
    Stop::on_signals().context("cannot watch for Ctrl-C")?;
    let System::Aggregation = args.system;
    let (all, preface) = reproduce::aggregation();
    let chosen: Vec<&Figure> = match args.figures.as_slice() {
        [] => all.iter().collect(),
        wanted => wanted.iter().map(|id| find(all, id)).collect::<anyhow::Result<_>>()?,
    };
    std::fs::create_dir_all(&args.out).with_context(|| format!("cannot write into {}", args.out.display()))?;
    let (began, stop) = (Instant::now(), Stop::default());
    let runner = Runner { quick: args.quick, stop: &stop, tell: &|what| note!("{what}") };
    let mut page = Page { preface: preface.to_owned(), sections: Vec::new() };
    for figure in chosen {
        let section = figure.reproduce(&runner)?;
        say!("\n{}", section.title)?;
        for check in &section.checks {
            let verdict = match check.met {
                Some(true) => "met",
                Some(false) => "NOT MET",
                None => "",
            };
            say!("  {}\n    paper or requirement: {}\n    ours: {}  {verdict}", check.what, check.paper, check.ours)?;
        }
        page.sections.push(section);
    }
    if args.quick {
        page.preface.push_str("\n**A quick run: one seed, fewer points. Not to be quoted.**\n");
    }
    let written = page.write(&args.out, "aggregation")?;
    let (count, unmet) =
        (page.sections.iter().map(|section| section.checks.len()).sum::<usize>(), page.unmet().count());
    say!(
        "\n{count} statements, {unmet} not met, {:.0} s. Written: {} and {} pictures.",
        began.elapsed().as_secs_f64(),
        written[0].display(),
        written.len() - 1
    )?;
    Ok(ExitCode::SUCCESS)
}

fn find<'f>(all: &'f [Figure], id: &str) -> anyhow::Result<&'f Figure> {
    match all.iter().find(|figure| figure.id == id) {
        Some(figure) => Ok(figure),
        None => {
            let known: Vec<&str> = all.iter().map(|figure| figure.id).collect();
            bail!("there is no figure {id:?} here; there are {}", known.join(", "))
        }
    }
}
