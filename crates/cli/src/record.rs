//! `lasthop record`.

use crate::flag::Wrong;
use crate::progress::Bar;
use crate::{Shown, check, say};
use anyhow::{Context as _, bail};
use lasthop_dataset::{DataSetError, PseudonymKey, Recorder, Recording, Row, Writer, Written};
use lasthop_experiment::campus::{CHANNELS, Day, PART, Part};
use lasthop_experiment::{ExperimentError, Names, ObserveError, Observed, Progress as _, observe, recording};
use lasthop_lab::Stop;
use lasthop_scenario::LastHop;
use lasthop_scenario::{Scenario, SetUp};
use lasthop_units::{Span, count};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// Its command line.
#[derive(clap::Args)]
pub struct Args {
    /// The scenario file (TOML), with a Wi-Fi hop; or --campus
    #[arg(required_unless_present = "campus", conflicts_with = "campus")]
    scenario: Option<PathBuf>,
    /// In place of a scenario: a day of a campus library from the seed, with twelve access points on channels 1, 6 and 11
    #[arg(long)]
    campus: bool,
    /// Where: in virtual time, which is the only world that records
    #[arg(long, value_enum, default_value = "sim")]
    world: World,
    /// --campus: only these hours of the day, as FROM-TO
    #[arg(long, value_name = "FROM-TO", requires = "campus", value_parser = hours, default_value = "0-24")]
    hours: Range<u32>,
    /// The set-up that runs; without an agent the access points are watched in shadow [default: the first]
    #[arg(long, value_name = "NAME")]
    law: Option<String>,
    /// The seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the data set into this file
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// Make pseudonyms with the key in this file (64 hexadecimal digits), so that devices can be known again in another data set
    /// [default: a fresh one that nobody keeps]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum World {
    Sim,
}

fn hours(text: &str) -> Result<Range<u32>, String> {
    let both = text.split_once('-').and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    both.filter(|hours: &Range<u32>| hours.start < hours.end && hours.end <= 24)
        .ok_or_else(|| "two hours from 0 to 24, the earlier first: `9-12`".to_owned())
}

/// A world that is recorded, and when it begins in the recording.
struct Job {
    name: String,
    scenario: Scenario,
    names: Names,
    shift: Span,
}

/// Records and says what it recorded.
pub fn record(args: &Args) -> anyhow::Result<ExitCode> {
    let World::Sim = args.world;
    Stop::on_signals().context("cannot watch for Ctrl-C")?;
    let key = PseudonymKey::of(args.key.as_deref())?;
    let began = Instant::now();
    let (written, covered) = match &args.scenario {
        Some(path) => one(args, path, &key)?,
        None => campus(args, &key)?,
    };
    let (wall, covered) = (began.elapsed().as_secs_f64(), covered.as_secs_f64());
    say!(
        "{}: {} of {covered:.0} s, {} ({:.2} an item); {:.1} simulated seconds a second",
        args.out.display(),
        count(usize::try_from(written.rows)?, "item"),
        count(usize::try_from(written.bytes)?, "byte"),
        written.bytes as f64 / written.rows.max(1) as f64,
        covered / wall.max(1e-9)
    )?;
    Ok(ExitCode::SUCCESS)
}

fn law(scenario: &Scenario, args: &Args) -> anyhow::Result<SetUp> {
    match &args.law {
        None => Ok(scenario.laws()[0].clone()),
        Some(name) => Ok(scenario.law(name).map_err(|error| Shown(miette::Report::new(error)))?),
    }
}

fn one(args: &Args, path: &Path, key: &PseudonymKey) -> anyhow::Result<(Written, Span)> {
    let scenario = check::load(path)?;
    if !matches!(scenario.hop(), LastHop::Wifi(_)) {
        bail!(
            "{}: its last hop is no Wi-Fi, and only access points record: use a scenario with [hop.wifi]",
            path.display()
        );
    }
    let (names, duration) = (Names::of(&scenario), scenario.duration());
    let job = Job { name: scenario.name().to_owned(), scenario, names, shift: Span::ZERO };
    let law = law(&job.scenario, args)?;
    let of =
        Observed { scenario: &job.scenario, law: &law, seed: args.seed, names: &job.names, timing: Recorder::TIMING };
    let writer = Writer::create(&args.out, vec![recording(&of, key)])?;
    Ok((run(args, vec![job], key, writer)?, duration))
}

fn campus(args: &Args, key: &PseudonymKey) -> anyhow::Result<(Written, Span)> {
    let day = Day::new(args.seed);
    let quarters = args.hours.start * 4..args.hours.end * 4;
    let mut jobs = Vec::new();
    for part in Day::parts().filter(|part| quarters.contains(&part.quarter)) {
        let Some(world) = day.world(part) else { continue };
        let Part { quarter, channel, floor } = part;
        let channel = CHANNELS[channel as usize];
        let name = format!("campus {:02}:{:02}, channel {channel}, floor {floor}", quarter / 4, quarter % 4 * 15);
        let parsed = Scenario::parse("campus", &world.text, Path::new("/"));
        let scenario = parsed.map_err(|error| Shown(miette::Report::new(error)))?;
        let shift = PART * u64::from(quarter - quarters.start);
        jobs.push(Job { name, scenario, names: world.names, shift });
    }
    let covered = PART * u64::from(quarters.end - quarters.start);
    let Some(first) = jobs.first() else {
        return Err(Wrong::line("--hours: nobody is there then: the library is open from 7 to 23 o'clock".to_owned()));
    };
    let law = law(&first.scenario, args)?;
    let of = Observed {
        scenario: &first.scenario,
        law: &law,
        seed: args.seed,
        names: &first.names,
        timing: Recorder::TIMING,
    };
    // One recording of all worlds: its name follows from the first, which has the seed in it, and the hours.
    let one = recording(&of, key);
    let id = format!("{}-{}-{}", one.id, args.hours.start, args.hours.end);
    let whole = Recording { id, scenario: "campus".to_owned(), duration_us: covered.as_micros(), ..one };
    let writer = Writer::create(&args.out, vec![whole])?;
    Ok((run(args, jobs, key, writer)?, covered))
}

/// What a world has brought by now, and whether that is all.
#[derive(Default)]
struct Brought {
    rows: Vec<Row>,
    done: bool,
}

/// Runs worlds side by side; their rows are written in the worlds' order, so that the file does not depend on which
/// world was faster.
fn run(args: &Args, jobs: Vec<Job>, key: &PseudonymKey, writer: Writer) -> anyhow::Result<Written> {
    let stop = Stop::default();
    let bar = Bar::new(jobs.len());
    let brought: Vec<Mutex<Brought>> = jobs.iter().map(|_| Mutex::default()).collect();
    let writing = Mutex::new((writer, 0_usize));
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || -> anyhow::Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(number).filter(|_| !failed.load(Ordering::Relaxed)) else { return Ok(()) };
            let done = simulate(args, number, job, key, (&bar, &stop), &brought[number]);
            if let Err(error) = done.and_then(|()| hand_on(&brought, &writing)) {
                failed.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    let results: Vec<anyhow::Result<()>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let joined = |worker: std::thread::ScopedJoinHandle<'_, _>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().map(joined).collect()
    });
    bar.finish();
    let (mut writer, _) = writing.into_inner().expect("no holder of this lock panics");
    if let Some(error) = results.into_iter().find_map(Result::err) {
        // What there is stays in FILE.part.
        writer.flush()?;
        return Err(error);
    }
    Ok(writer.finish()?)
}

fn simulate(
    args: &Args,
    number: usize,
    job: &Job,
    key: &PseudonymKey,
    (bar, stop): (&Bar, &Stop),
    brought: &Mutex<Brought>,
) -> anyhow::Result<()> {
    let Job { name, scenario, names, shift } = job;
    let law = law(scenario, args)?;
    let of = Observed { scenario, law: &law, seed: args.seed, names, timing: Recorder::TIMING };
    bar.begun(number, name, args.seed);
    let total = scenario.duration();
    let mut on = |done: Span| {
        bar.advanced(number, done, total);
        !stop.is_raised()
    };
    let mut rows = Vec::new();
    let ran = observe(&of, key, (0, *shift), &mut on, &mut |row| {
        rows.push(row);
        Ok::<(), DataSetError>(())
    });
    let whole = match ran {
        Ok(whole) => whole,
        Err(ObserveError::Taker(error)) => return Err(error.into()),
        Err(ObserveError::Sim(source)) => {
            return Err(ExperimentError::Sim { law: law.name, seed: args.seed, source }.into());
        }
        Err(other) => bail!("{other}"),
    };
    *brought.lock().expect("no holder of this lock panics") = Brought { rows, done: true };
    bar.ended(number);
    if whole { Ok(()) } else { Err(ExperimentError::Stopped.into()) }
}

/// Writes what is next in order and has been brought.
fn hand_on(brought: &[Mutex<Brought>], writing: &Mutex<(Writer, usize)>) -> anyhow::Result<()> {
    let mut writing = writing.lock().expect("no holder of this lock panics");
    let (writer, next) = &mut *writing;
    while let Some(brought) = brought.get(*next) {
        let mut brought = brought.lock().expect("no holder of this lock panics");
        if !brought.done {
            break;
        }
        for row in std::mem::take(&mut brought.rows) {
            writer.push(row)?;
        }
        *next += 1;
    }
    Ok(())
}
