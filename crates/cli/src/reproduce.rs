//! `lasthop reproduce`.

use crate::{INTERRUPTED, note, say};
use anyhow::Context;
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser};
use lasthop_experiment::ExperimentError;
use lasthop_experiment::reproduce::{self, Draft, Figure, Runner};
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

/// What the flags' own help has no place for.
const NOTES: &str = "\
Everything is simulated. All figures of the aggregation regulator take some five minutes on two processors.

The page is DIR/aggregation.md, written when it is whole. Until then, and for good if the run fails or is stopped, what is done is in \
DIR/aggregation-incomplete.md. A run with --figure or --quick has a page of its own, such as DIR/aggregation-2-quick.md, and \
leaves the whole one alone.

The exit status is 0 if the page was written, whatever is not met (1 with --strict if anything is not), 1 if the run failed, 2 for a \
wrong command line and 130 for a run that was told to stop.";

/// `lasthop reproduce`
#[derive(clap::Args)]
#[command(after_long_help = NOTES)]
pub struct Args {
    /// Whose results
    #[arg(value_enum)]
    system: System,
    /// One seed and fewer points: to see whether it works
    #[arg(long)]
    quick: bool,
    /// Only this figure; may be repeated [default: all]
    #[arg(long = "figure", value_name = "N", value_parser = figure())]
    figures: Vec<String>,
    /// Write the page and its pictures into this directory
    #[arg(long, value_name = "DIR", default_value = "out/reproduction")]
    out: PathBuf,
    /// Exit with status 1 if a statement is not met
    #[arg(long)]
    strict: bool,
}

/// Knows the figures by their numbers.
fn figure() -> PossibleValuesParser {
    let (all, _) = reproduce::aggregation();
    PossibleValuesParser::new(all.iter().map(|figure| PossibleValue::new(figure.id).help(figure.title)))
}

/// Runs the scenarios, writes the page and says what is not met.
pub fn reproduce(args: &Args) -> anyhow::Result<ExitCode> {
    Stop::on_signals().context("cannot watch for Ctrl-C")?;
    let System::Aggregation = args.system;
    let (all, preface) = reproduce::aggregation();
    let chosen = args.chosen(all);
    std::fs::create_dir_all(&args.out).with_context(|| format!("cannot write into {}", args.out.display()))?;
    let (began, stop) = (Instant::now(), Stop::default());
    let runner = Runner::new(args.quick, &stop, &|what| note!("{what}"));
    let quick = if args.quick { QUICK } else { "" };
    let mut draft = Draft::new(&args.out, &args.page_name(&chosen), &format!("{preface}{quick}"), chosen.len());
    for figure in &chosen {
        let section = match (figure.reproduce(&runner), draft.path()) {
            (Ok(section), _) => section,
            (Err(error), None) => return Err(error.into()),
            (Err(error), Some(path)) => {
                note!("{} of {} figures are done: {}", draft.page().sections.len(), chosen.len(), path.display());
                return match error {
                    // That nothing was written, which the error says, would not be true.
                    ExperimentError::Stopped => Ok(ExitCode::from(INTERRUPTED)),
                    error => Err(error.into()),
                };
            }
        };
        say!("\n{}", section.title)?;
        for check in &section.checks {
            let verdict = match check.met {
                Some(true) => "met",
                Some(false) => "NOT MET",
                None => "",
            };
            say!("  {}\n    paper or requirement: {}\n    ours: {}  {verdict}", check.what, check.paper, check.ours)?;
        }
        draft.add(section).with_context(|| format!("cannot write into {}", args.out.display()))?;
    }
    let (page, written) = draft.finish().with_context(|| format!("cannot write into {}", args.out.display()))?;
    let (count, unmet) = (page.required(), page.unmet().count());
    say!(
        "\n{count} statements with a requirement, {unmet} not met, {:.0} s. Written: {} and {} pictures.",
        began.elapsed().as_secs_f64(),
        written[0].display(),
        written.len() - 1
    )?;
    Ok(if args.strict && unmet > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What the page says of a quick run.
const QUICK: &str = "\n**A quick run: one seed, fewer points. Not to be quoted.**\n";

impl Args {
    /// The figures to be run, in the page's order, each once.
    fn chosen<'f>(&self, all: &'f [Figure]) -> Vec<&'f Figure> {
        let wanted = |figure: &&Figure| self.figures.is_empty() || self.figures.iter().any(|id| *id == figure.id);
        all.iter().filter(wanted).collect()
    }

    /// What the page is called: what is not all of it does not take the whole one's place.
    fn page_name(&self, chosen: &[&Figure]) -> String {
        let mut parts = vec!["aggregation"];
        if !self.figures.is_empty() {
            parts.extend(chosen.iter().map(|figure| figure.id));
        }
        parts.extend(self.quick.then_some("quick"));
        parts.join("-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn a_part_of_the_page_has_a_name_of_its_own() {
        let name = |line: &str| {
            let args = Line::parse_from(["reproduce", "aggregation"].into_iter().chain(line.split_whitespace())).args;
            args.page_name(&args.chosen(reproduce::aggregation().0))
        };
        assert_eq!(name(""), "aggregation");
        assert_eq!(name("--quick"), "aggregation-quick");
        assert_eq!(name("--figure 7 --figure 1b --figure 7"), "aggregation-1b-7");
        assert_eq!(name("--figure two-aps --quick"), "aggregation-two-aps-quick");
    }

    #[test]
    fn help_lists_the_figures_and_others_are_refused() {
        let mut program = crate::Cli::command();
        let help = program.find_subcommand_mut("reproduce").expect("a command").render_long_help().to_string();
        for said in ["five minutes", "aggregation-incomplete.md", "The exit status is 0 if"] {
            assert!(help.contains(said), "{said} in {help}");
        }
        for figure in reproduce::aggregation().0 {
            assert!(help.contains(&format!("- {}:", figure.id)), "{} in {help}", figure.id);
        }
        assert!(Line::try_parse_from(["reproduce", "aggregation", "--figure", "3"]).is_err());
    }
}
