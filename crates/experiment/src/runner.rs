//! Runs a plan.

use crate::programs::{PROGRAMS, Wanted};
use crate::{ExperimentError, Place, Plan, host, regulated};
use lasthop_lab::{LabError, Spec, Stop};
use lasthop_report::{Incomplete, Lateness, Run, RunInfo, RunRecord, RunStatus, Summary};
use lasthop_scenario::{Scenario, SetUp};
use lasthop_sim::SimError;
use lasthop_units::Span;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Is told how far an experiment is.
pub trait Progress: Sync {
    /// Run number `run` of the plan has begun.
    fn begun(&self, run: usize, law: &str, seed: u64);
    /// `done` of its `total` time has passed in it.
    fn advanced(&self, run: usize, done: Span, total: Span);
    /// It has ended.
    fn ended(&self, run: usize);
}

/// Tells nobody.
pub struct Silent;

impl Progress for Silent {
    fn begun(&self, _run: usize, _law: &str, _seed: u64) {}
    fn advanced(&self, _run: usize, _done: Span, _total: Span) {}
    fn ended(&self, _run: usize) {}
}

/// What an experiment brought.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Every run that was done, in the plan's order.
    pub runs: Vec<Run>,
    /// Figures over seeds; `incomplete` if somebody asked to stop before all of them were done.
    pub summary: Summary,
    /// The circumstances. The caller fills in what it knows: revision, command line, start, duration, versions.
    pub info: RunInfo,
}

/// The doubt about a run of the lab with an emulator that had to share its processor.
const NOT_REAL_TIME: &str = "the emulator was not allowed real-time scheduling (SCHED_FIFO)";

/// One finished run and how it went.
type Finished = (Run, RunStatus);

/// Simulates one run: a set-up of the plan under a seed. Is given a function that is told how much time has passed, and
/// answers whether to go on.
pub type Simulate<'s> =
    dyn Fn(&SetUp, u64, &mut dyn FnMut(Span) -> bool) -> Result<Option<RunRecord>, SimError> + Sync + 's;

/// Runs every law under every seed. If `stop` is raised, what is done by then is the outcome.
///
/// # Errors
/// The first run that failed, or [`ExperimentError::Stopped`] if nothing was done yet.
pub fn run(plan: &Plan<'_>, progress: &dyn Progress, stop: &Stop) -> Result<Outcome, ExperimentError> {
    let by_the_book = |law: &SetUp, seed: u64, on: &mut dyn FnMut(Span) -> bool| {
        lasthop_sim::run(plan.scenario, law, seed, plan.keep_packets, on)
    };
    match plan.place {
        Place::Sim => simulated(plan, &by_the_book, progress, stop),
        Place::Lab => outcome(plan, one_by_one(plan, progress, stop)),
    }
}

/// The same in the simulator, with worlds of one's own.
///
/// # Errors
/// Those of [`run`].
pub fn simulated(
    plan: &Plan<'_>,
    simulate: &Simulate<'_>,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Outcome, ExperimentError> {
    outcome(plan, side_by_side(plan, simulate, progress, stop))
}

fn outcome(plan: &Plan<'_>, finished: Vec<Result<Finished, ExperimentError>>) -> Result<Outcome, ExperimentError> {
    let stopped = |result: &Result<Finished, ExperimentError>| matches!(result, Err(ExperimentError::Stopped));
    let planned = plan.runs().len();
    let finished: Vec<Finished> = finished.into_iter().filter(|result| !stopped(result)).collect::<Result<_, _>>()?;
    if finished.is_empty() {
        return Err(ExperimentError::Stopped);
    }
    let (runs, statuses): (Vec<Run>, Vec<RunStatus>) = finished.into_iter().unzip();
    let laws: Vec<String> = plan.laws.iter().map(|law| law.name.clone()).collect();
    let mut summary = Summary::of(plan.place.world(), plan.scenario.name(), &laws, &runs);
    summary.incomplete = (runs.len() < planned).then_some(Incomplete { runs: runs.len(), planned });
    Ok(Outcome { runs, summary, info: info(plan, statuses) })
}

/// Simulated runs share nothing, so each core takes the next one.
fn side_by_side(
    plan: &Plan<'_>,
    simulate: &Simulate<'_>,
    progress: &dyn Progress,
    stop: &Stop,
) -> Vec<Result<Finished, ExperimentError>> {
    let runs = plan.runs();
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Vec<Mutex<Option<Result<Finished, ExperimentError>>>> =
        runs.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while failed.load(Ordering::Relaxed) == 0 {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((law, seed)) = runs.get(number) else { break };
            let result = one(plan, number, (law, *seed), simulate, progress, stop);
            failed.fetch_add(usize::from(result.is_err()), Ordering::Relaxed);
            *results[number].lock().expect("no holder of this lock panics") = Some(result);
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(runs.len());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    // Where an error stopped the others, what they left out is missing; the error stands further on.
    results.into_iter().filter_map(|result| result.into_inner().expect("no holder of this lock panics")).collect()
}

fn one(
    plan: &Plan<'_>,
    number: usize,
    (law, seed): (&SetUp, u64),
    simulate: &Simulate<'_>,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Finished, ExperimentError> {
    let (began, total) = (Instant::now(), plan.scenario.duration());
    progress.begun(number, &law.name, seed);
    let mut on = |done: Span| {
        progress.advanced(number, done, total);
        !stop.is_raised()
    };
    let record = simulate(law, seed, &mut on)
        .map_err(|source| ExperimentError::Sim { law: law.name.clone(), seed, source })?
        .ok_or(ExperimentError::Stopped)?;
    progress.ended(number);
    let status =
        RunStatus { law: law.name.clone(), seed, duration_s: began.elapsed().as_secs_f64(), ..RunStatus::default() };
    Ok((Run { law: law.name.clone(), seed, record }, status))
}

/// Runs of the lab need the machine for themselves.
fn one_by_one(plan: &Plan<'_>, progress: &dyn Progress, stop: &Stop) -> Vec<Result<Finished, ExperimentError>> {
    let mut results = Vec::new();
    for (number, (law, seed)) in plan.runs().into_iter().enumerate() {
        results.push(undisturbed(plan.tries, || emulate(plan, number, law, seed, progress, stop)));
        if results.last().is_some_and(Result::is_err) {
            break;
        }
    }
    results
}

/// Runs until the machine disturbs no more, `tries` times at most: the last run, and how many it had disturbed before.
fn undisturbed<R, E>(tries: usize, mut run: impl FnMut() -> Result<(R, RunStatus), E>) -> Result<(R, RunStatus), E> {
    let mut repeated = 0;
    loop {
        let (made, status) = run()?;
        if status.doubts.is_empty() || repeated + 1 >= tries {
            return Ok((made, RunStatus { repeated, ..status }));
        }
        repeated += 1;
    }
}

/// One run of `scenario` under `law` as the lab makes it, with the programs that the law needs.
///
/// # Errors
/// [`ExperimentError::OwnProgram`] if the running program cannot find itself.
pub fn lab_spec(scenario: &Scenario, law: &SetUp, seed: u64) -> Result<Spec, ExperimentError> {
    let mut spec = Spec::of(scenario, law, seed);
    let program = std::env::current_exe().map_err(ExperimentError::OwnProgram)?;
    PROGRAMS.iter().for_each(|add| add(Wanted { program: &program, scenario, law }, &mut spec));
    Ok(spec)
}

fn emulate(
    plan: &Plan<'_>,
    number: usize,
    law: &SetUp,
    seed: u64,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Finished, ExperimentError> {
    let (began, total) = (Instant::now(), plan.scenario.duration());
    let failed = |source: LabError| match source {
        LabError::Stopped => ExperimentError::Stopped,
        source => ExperimentError::Lab { law: law.name.clone(), seed, source },
    };
    progress.begun(number, &law.name, seed);
    let spec = lab_spec(plan.scenario, law, seed)?;
    let mut outcome = lasthop_lab::run(&spec, |done| progress.advanced(number, done, total), stop).map_err(failed)?;
    progress.ended(number);
    let mut recorder = spec.recorder();
    if plan.keep_packets {
        recorder.keep_packets();
    }
    let regulated = regulated::of_run(&spec, &mut outcome, &mut recorder);
    let record = outcome.record_into(recorder, &spec);
    let status = RunStatus {
        law: law.name.clone(),
        seed,
        duration_s: began.elapsed().as_secs_f64(),
        lateness: outcome.lateness.iter().map(|(kind, late)| (kind.name().to_owned(), lateness(late))).collect(),
        doubts: doubts(&outcome),
        regulated,
        accounts: outcome.accounts,
        repeated: 0,
    };
    Ok((Run { law: law.name.clone(), seed, record }, status))
}

/// Why figures of a run of the lab should not be quoted.
pub(crate) fn doubts(outcome: &lasthop_lab::Outcome) -> Vec<String> {
    let shared = (!outcome.realtime).then(|| NOT_REAL_TIME.to_owned());
    outcome.doubts.iter().map(ToString::to_string).chain(shared).collect()
}

fn lateness(summary: &lasthop_lab::Summary) -> Lateness {
    let micros = |span: Span| span.as_nanos() as f64 / 1e3;
    Lateness {
        events: summary.count,
        p50_us: micros(summary.p50),
        p99_us: micros(summary.p99),
        max_us: micros(summary.max),
    }
}

fn info(plan: &Plan<'_>, runs: Vec<RunStatus>) -> RunInfo {
    let (host, kernel) = host::name_and_kernel();
    let shared = runs.iter().any(|run| run.doubts.iter().any(|doubt| doubt == NOT_REAL_TIME));
    RunInfo {
        lasthop: env!("CARGO_PKG_VERSION").to_owned(),
        git_revision: None,
        scenario: plan.scenario.name().to_owned(),
        scenario_text: plan.scenario.text().to_owned(),
        host,
        kernel,
        cpu: host::cpu(),
        clock: match plan.place {
            Place::Sim => "virtual".to_owned(),
            Place::Lab if shared => "CLOCK_MONOTONIC, SCHED_OTHER".to_owned(),
            Place::Lab => "CLOCK_MONOTONIC, SCHED_FIFO".to_owned(),
        },
        runs,
        ..RunInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of which the first `disturbed` have a doubt: how many were made, and how many the last one counts before it.
    fn runs(tries: usize, disturbed: usize) -> (usize, usize, bool) {
        let mut made = 0;
        let run = || {
            made += 1;
            let doubts = if made > disturbed { Vec::new() } else { vec!["late".to_owned()] };
            Ok::<_, ExperimentError>(((), RunStatus { doubts, ..RunStatus::default() }))
        };
        let ((), status) = undisturbed(tries, run).expect("no run fails");
        (made, status.repeated, status.doubts.is_empty())
    }

    #[test]
    fn a_disturbed_run_is_made_again_as_often_as_allowed() {
        assert_eq!(runs(3, 0), (1, 0, true));
        assert_eq!(runs(3, 1), (2, 1, true));
        assert_eq!(runs(3, 2), (3, 2, true));
        assert_eq!(runs(3, 9), (3, 2, false));
        // Without `--tries`.
        assert_eq!(runs(1, 9), (1, 0, false));
    }

    #[test]
    fn a_run_that_fails_is_not_made_again() {
        let mut made = 0;
        let failed = undisturbed(3, || {
            made += 1;
            Err::<((), RunStatus), _>(ExperimentError::Stopped)
        });
        assert!(failed.is_err() && made == 1);
    }
}
