//! `lasthop reproduce`.

use crate::flag::Wrong;
use crate::{INTERRUPTED, console, note, say};
use anyhow::Context;
use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use lasthop_experiment::ExperimentError;
use lasthop_lab::Stop;
use lasthop_report::page::{Check, Figures};
use lasthop_reproduce::{Figure, Runner, SYSTEMS, System};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// What the flags' own help has no place for.
const NOTES: &str = "\
Everything is simulated. Without a system, one table has what each is known for, the paper's number beside ours, and no page is written. With one, all of its figures are \
run and its pages are written; those of the aggregation regulator take some ten minutes on two processors.

The overview is DIR/SYSTEM.md. Each figure has a page, DIR/SYSTEM/figure-ID.md, with its pictures (.svg) and its data (.csv) beside it. All are \
written when the run is whole. Until then, and for good if the run fails or is stopped, what is done is in DIR/SYSTEM-incomplete.md and the folder \
of that name. A run with --figure or --quick has an overview of its own, such as DIR/aggregation-4-quick.md, and leaves the whole one alone.

The exit status is 0 if the pages were written, whatever is not met (1 with --strict if anything is not), 1 if the run failed, 2 for a \
wrong command line and 130 for a run that was told to stop.";

/// `lasthop reproduce`
#[derive(clap::Args)]
#[command(after_long_help = NOTES)]
pub struct Args {
    /// The system to reproduce [default: what each system is known for, in one table]
    #[arg(value_parser = system())]
    system: Option<String>,
    /// One seed and fewer points: to see whether it works
    #[arg(long)]
    quick: bool,
    /// Only this figure; may be repeated [default: all]
    #[arg(long = "figure", value_name = "ID", value_parser = FigureId, requires = "system")]
    figures: Vec<String>,
    /// Write the overview and the figures' pages into this directory
    #[arg(long, value_name = "DIR", default_value = "out/reproduction")]
    out: PathBuf,
    /// Exit with status 1 if a statement is not met
    #[arg(long)]
    strict: bool,
}

/// Knows the systems by their names.
fn system() -> PossibleValuesParser {
    PossibleValuesParser::new(SYSTEMS.iter().map(|system| PossibleValue::new(system.name).help(system.title)))
}

/// Shows the figures of all systems in the help. Which of them there are is known with the system ([`Args::refuse_unknown`]).
#[derive(Clone)]
struct FigureId;

impl TypedValueParser for FigureId {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let figures = SYSTEMS.iter().flat_map(|system| system.figures.iter().map(move |figure| (system, figure)));
        let shown = |(system, figure): (&System, &Figure)| {
            PossibleValue::new(figure.id).help(format!("{} ({})", figure.title, system.name))
        };
        Some(Box::new(figures.map(shown)))
    }
}

/// Runs the scenarios, writes the pages and says what is not met.
pub fn reproduce(args: &Args) -> anyhow::Result<ExitCode> {
    Stop::on_signals().context("cannot watch for Ctrl-C")?;
    let Some(system) = args.system.as_deref().and_then(System::named) else { return headlines(args) };
    let System { figures: all, preface, .. } = system;
    args.refuse_unknown(system)?;
    let chosen = args.chosen(all);
    std::fs::create_dir_all(&args.out).with_context(|| format!("cannot write into {}", args.out.display()))?;
    let (began, stop) = (Instant::now(), Stop::default());
    let runner = Runner::new(args.quick, &stop, &|what| note!("{what}"));
    let quick = if args.quick { QUICK } else { "" };
    let name = args.page_name(system, &chosen);
    let mut pages = Figures::new(&args.out, &name, &format!("{preface}{quick}"), chosen.len());
    for figure in &chosen {
        let section = match (figure.reproduce(&runner), pages.path()) {
            (Ok(section), _) => section,
            (Err(error), None) => return Err(error.into()),
            (Err(error), Some(path)) => {
                note!("{} of {} figures are done: {}", pages.done(), chosen.len(), path.display());
                return match error {
                    // That nothing was written, which the error says, would not be true.
                    ExperimentError::Stopped => Ok(ExitCode::from(INTERRUPTED)),
                    error => Err(error.into()),
                };
            }
        };
        say!("\n{}", section.title)?;
        for check in &section.checks {
            let verdict = verdict(check);
            say!("  {}\n    paper or requirement: {}\n    ours: {}  {verdict}", check.what, check.paper, check.ours)?;
        }
        pages.add(figure.id, section).with_context(|| format!("cannot write into {}", args.out.display()))?;
    }
    let written = pages.finish().with_context(|| format!("cannot write into {}", args.out.display()))?;
    let (count, met) = pages.counts();
    let unmet = count - met;
    say!(
        "\n{count} statements with a requirement, {unmet} not met, {:.0} s. Written: {} and {} files in {}.",
        began.elapsed().as_secs_f64(),
        written[0].display(),
        written.len() - 1,
        args.out.join(&name).display()
    )?;
    Ok(if args.strict && unmet > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Runs what each system is known for, and prints one table.
fn headlines(args: &Args) -> anyhow::Result<ExitCode> {
    let stop = Stop::default();
    let runner = Runner::new(args.quick, &stop, &|what| note!("{what}"));
    let mut table = console::ruled();
    table.set_header(["system", "what", "paper or requirement", "ours", ""]);
    let mut unmet = 0;
    for system in SYSTEMS {
        for check in system.headlines(&runner)? {
            unmet += usize::from(check.met == Some(false));
            table.add_row([system.name, &check.what, &check.paper, &check.ours, verdict(&check)]);
        }
    }
    say!("{}", table.trim_fmt())?;
    if args.quick {
        say!("A quick run: one seed, fewer points. Not to be quoted.")?;
    }
    Ok(if args.strict && unmet > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn verdict(check: &Check) -> &'static str {
    match check.met {
        Some(true) => "met",
        Some(false) => "NOT MET",
        None => "",
    }
}

/// What the overview says of a quick run.
const QUICK: &str = "\n**A quick run: one seed, fewer points. Not to be quoted.**\n";

impl Args {
    /// Refuses figures that the system has not.
    fn refuse_unknown(&self, system: &System) -> anyhow::Result<()> {
        let known = |id: &&String| system.figures.iter().any(|figure| figure.id == **id);
        let Some(other) = self.figures.iter().find(|id| !known(id)) else { return Ok(()) };
        let own: Vec<&str> = system.figures.iter().map(|figure| figure.id).collect();
        Err(Wrong::line(format!("{} has no figure `{other}`; it has {}", system.name, own.join(", "))))
    }

    /// The figures to be run, in the overview's order, each once.
    fn chosen<'f>(&self, all: &'f [Figure]) -> Vec<&'f Figure> {
        let wanted = |figure: &&Figure| self.figures.is_empty() || self.figures.iter().any(|id| *id == figure.id);
        all.iter().filter(wanted).collect()
    }

    /// What the overview is called: what is not all of it does not take the whole one's place.
    fn page_name(&self, system: &System, chosen: &[&Figure]) -> String {
        let mut parts = vec![system.name];
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
    use crate::test_line::Line;
    use clap::{CommandFactory, Parser};

    #[test]
    fn a_part_of_the_page_has_a_name_of_its_own() {
        let name = |line: &str| {
            let args =
                Line::<Args>::parse_from(["reproduce", "aggregation"].into_iter().chain(line.split_whitespace())).args;
            let system = System::named("aggregation").expect("a system");
            args.page_name(system, &args.chosen(system.figures))
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
        for said in ["ten minutes", "SYSTEM/figure-ID.md", "SYSTEM-incomplete.md", "The exit status is 0 if"] {
            assert!(help.contains(said), "{said} in {help}");
        }
        for figure in SYSTEMS.iter().flat_map(|system| system.figures) {
            assert!(help.contains(&format!("- {}:", figure.id)), "{} in {help}", figure.id);
        }
        for system in SYSTEMS {
            let refused = |figure: &str| {
                let args = Line::<Args>::parse_from(["reproduce", system.name, "--figure", figure]).args;
                args.refuse_unknown(system).map_err(|error| error.to_string())
            };
            let own: Vec<&str> = system.figures.iter().map(|figure| figure.id).collect();
            assert!(own.iter().all(|figure| refused(figure).is_ok()));
            let told = format!("{} has no figure `nosuch`; it has {}", system.name, own.join(", "));
            assert_eq!(refused("nosuch"), Err(told));
        }
        let args = Line::<Args>::parse_from(["reproduce", "aggregation", "--figure", "3"]).args;
        assert!(args.refuse_unknown(System::named("aggregation").expect("a system")).is_err());
    }
}
