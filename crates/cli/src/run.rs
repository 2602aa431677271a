//! `lasthop run` and `lasthop compare`.

use crate::progress::Bar;
use crate::{INTERRUPTED, Shown, check, console, note, place, ready, say};
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use lasthop_experiment::{ExperimentError, Outcome, Place, Plan};
use lasthop_lab::Stop;
use lasthop_report::{Key, Report, Summary};
use lasthop_scenario::{Program, Scenario, SetUp, Stream, StreamKind, World};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Instant, SystemTime};

/// Where to run.
#[derive(Clone, Copy, ValueEnum)]
enum WorldArg {
    /// Virtual time, own TCP: anywhere, faster than the clock
    Sim,
    /// Wall-clock time, kernel TCP over an emulated hop: needs root
    Lab,
}

/// What both commands take.
#[derive(Args)]
struct Common {
    /// The scenario file (TOML)
    scenario: PathBuf,
    /// Where to run [default: what the scenario says; if it leaves it open, the lab as root and the simulator otherwise]
    #[arg(long, value_enum)]
    world: Option<WorldArg>,
    /// Run this seed only
    #[arg(long, value_name = "N", conflicts_with = "seeds", allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Run seeds 1 to K [default: the scenario's]
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: Option<u64>,
    /// Write results into this directory [default: out/SCENARIO]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Keep the delay of every packet (packets.parquet)
    #[arg(long)]
    packets: bool,
    /// Make a run of the lab again that the machine disturbed, N times in all at most
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    tries: u64,
}

/// `lasthop run`
#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    common: Common,
    /// Run this law; may be repeated [default: all of the scenario's]
    #[arg(long = "law", value_name = "NAME", value_delimiter = ',')]
    laws: Vec<String>,
}

/// `lasthop compare`
#[derive(Args)]
pub struct CompareArgs {
    #[command(flatten)]
    common: Common,
    /// The laws to compare; the first is what the others are set against [default: all of the scenario's]
    #[arg(long, value_name = "NAME,NAME…", value_delimiter = ',')]
    laws: Vec<String>,
}

/// Runs and reports.
pub fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    execute(&args.common, &args.laws, 1).map(|(summary, _)| status(&summary))
}

/// Runs, reports, and prints each law as ratios to the first.
pub fn compare(args: CompareArgs) -> anyhow::Result<ExitCode> {
    let (summary, laws) = execute(&args.common, &args.laws, 2)?;
    let Some((base, others)) = laws.split_first() else { return Ok(status(&summary)) };
    say!("\nAs multiples of {base}:\n{}", summary.ratio_table(base, others, &Key::usual(), console::width()))?;
    Ok(status(&summary))
}

/// What the shell is told.
fn status(summary: &Summary) -> ExitCode {
    if summary.incomplete.is_some() { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS }
}

/// `fewest`: how many laws there must be.
fn execute(args: &Common, names: &[String], fewest: usize) -> anyhow::Result<(Summary, Vec<String>)> {
    // First of all: whoever started this from a script in the background had SIGINT ignored, and it would be lost until here.
    Stop::on_signals().context("cannot watch for Ctrl-C")?;
    let stop = Stop::default();
    let scenario = check::load(&args.scenario)?;
    let plan = plan(args, &scenario, names)?;
    if plan.laws.len() < fewest {
        bail!("a comparison needs two laws, and here is one, {}: name more with --laws", plan.laws[0].name);
    }
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from("out").join(scenario.name()));
    let ready = ready::check(&plan, &out);
    if stop.is_raised() {
        // Whatever else was found out meanwhile.
        return Err(ExperimentError::Stopped.into());
    }
    ready?;
    let (began, started) = (Instant::now(), SystemTime::now());
    let bar = Bar::new(plan.runs().len());
    let ran = lasthop_experiment::run(&plan, &bar, &stop);
    bar.finish();
    let mut outcome = ran?;
    outcome.info.command = std::env::args().collect();
    outcome.info.scenario = args.scenario.display().to_string();
    outcome.info.started = humantime::format_rfc3339_seconds(started).to_string();
    outcome.info.duration_s = began.elapsed().as_secs_f64();
    outcome.info.git_revision = option_env!("LASTHOP_GIT_REVISION").map(str::to_owned);
    outcome.info.versions.extend(versions(&plan));
    let expected = expected(&scenario);
    let report = Report {
        title: scenario.title(),
        description: scenario.description(),
        summary: &outcome.summary,
        expected: &expected,
        runs: &outcome.runs,
        info: &outcome.info,
    };
    print(&plan, &outcome, &expected)?;
    let written = report.write(&out)?;
    let list: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
    say!("\nWritten: {}", list.join(", "))?;
    Ok((outcome.summary, plan.laws.iter().map(|law| law.name.clone()).collect()))
}

/// What else the figures depend on.
fn versions(plan: &Plan<'_>) -> Vec<(String, String)> {
    let iperf3 = || {
        let output = Command::new("iperf3").arg("--version").output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).lines().next()?.to_owned())
    };
    let by_iperf3 = |stream: &Stream| matches!(stream.kind, StreamKind::Bulk { program: Program::Iperf3, .. });
    let starts_iperf3 = plan.place == Place::Lab && plan.scenario.streams().iter().any(by_iperf3);
    let found =
        [("rustc", option_env!("LASTHOP_RUSTC").map(str::to_owned)), ("iperf3", starts_iperf3.then(iperf3).flatten())];
    found.into_iter().filter_map(|(name, version)| Some((name.to_owned(), version?))).collect()
}

fn plan<'a>(args: &Common, scenario: &'a Scenario, names: &[String]) -> anyhow::Result<Plan<'a>> {
    let laws: Vec<SetUp> = match names {
        [] => scenario.laws().to_vec(),
        names => names.iter().map(|name| law(scenario, name)).collect::<anyhow::Result<_>>()?,
    };
    // Each run is one sample: the same one twice would make intervals look narrower than they are.
    if let Some((_, law)) = laws.iter().enumerate().find(|(place, law)| laws[..*place].contains(law)) {
        bail!("the law {} is named twice", law.name);
    }
    let wanted = match args.world {
        Some(WorldArg::Sim) => World::Sim,
        Some(WorldArg::Lab) => World::Lab,
        None => scenario.world(),
    };
    let (place, obstacle) = place::choose(wanted, scenario, &laws);
    if let Some(obstacle) = obstacle {
        note!("note: this runs in the simulator, since it cannot run in the lab here: {obstacle}");
    }
    let seeds = match (args.seed, args.seeds) {
        (Some(seed), _) => vec![seed],
        (None, Some(count)) => (1..=count).collect(),
        (None, None) => scenario.seeds().to_vec(),
    };
    Ok(Plan { scenario, place, laws, seeds, keep_packets: args.packets, tries: args.tries as usize })
}

fn law(scenario: &Scenario, name: &str) -> anyhow::Result<SetUp> {
    Ok(scenario.law(name).map_err(|error| Shown(miette::Report::new(error)))?)
}

/// The figures that a scenario's traffic should yield.
fn expected(scenario: &Scenario) -> Vec<Key> {
    let mut keys = scenario.measures().to_vec();
    keys.sort_unstable();
    keys
}

fn print(plan: &Plan<'_>, outcome: &Outcome, expected: &[Key]) -> anyhow::Result<()> {
    let (world, seeds) = (plan.place.world(), plan.seeds.len());
    let width = console::width();
    let fold = |text: &str| lasthop_report::folded(text, width);
    say!("{}\n{}", fold(plan.scenario.title()), fold(world.statement()))?;
    let (duration, warm_up) = (plan.scenario.duration(), plan.scenario.warm_up());
    match seeds {
        1 => say!("1 run a law of {duration}, the first {warm_up} not counted.\n")?,
        _ => {
            let text = format!(
                "{seeds} runs a law of {duration} each, the first {warm_up} not counted; mean over seeds with 95 % \
                 confidence interval."
            );
            say!("{}\n", fold(&text))?;
        }
    }
    let columns = outcome.summary.columns(expected);
    say!("{}", outcome.summary.text_table(&columns, width))?;
    if let Some(incomplete) = outcome.summary.incomplete {
        say!("\nINCOMPLETE: {}", fold(&incomplete.to_string()))?;
    }
    let verdict = outcome.info.verdict();
    if !verdict.reliable {
        say!("\nUNRELIABLE: do not quote these figures.")?;
        verdict.reasons.iter().try_for_each(|reason| say!("{}", fold(&format!("  {reason}"))))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_report::Needs;
    use std::path::Path;

    #[test]
    fn figures_of_traffic_that_is_not_there_are_not_expected() {
        let of = |path: &str| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(path);
            expected(&Scenario::load(path).unwrap_or_else(|error| panic!("{}", error.plain())))
        };
        // All but what only uploads and UDP yield.
        let yielded = |key: &Key| !matches!(key.column().needs, Needs::Uploads | Needs::Udp);
        assert_eq!(of("first-light.toml"), Key::ALL.into_iter().filter(yielded).collect::<Vec<_>>());
        let one = of("aggregation/one-station.toml");
        assert!(one.contains(&Key::Throughput) && one.contains(&Key::HopDelayP95), "{one:?}");
        for absent in [Key::ProbeDelayP95, Key::FetchP50, Key::FetchP95, Key::Jitter, Key::Jain] {
            assert!(!one.contains(&absent), "{absent}");
        }
    }
}
