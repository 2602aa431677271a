//! Progress on a terminal: one bar for the experiment, with what runs now and when it will be done.

use crate::note;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lasthop_experiment::Progress;
use lasthop_units::Span;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Mutex;

/// Steps that a run counts for.
const STEPS: u64 = 1000;

/// A bar on standard error; without a terminal, a line a run.
pub struct Bar {
    bar: ProgressBar,
    runs: usize,
    terminal: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    done: u64,
    now: BTreeMap<usize, (String, u64)>,
}

impl Bar {
    /// A bar for `runs` runs.
    pub fn new(runs: usize) -> Bar {
        let terminal = std::io::stderr().is_terminal();
        let target = if terminal { ProgressDrawTarget::stderr_with_hz(8) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(runs as u64 * STEPS), target);
        let style = ProgressStyle::with_template("{bar:32} {percent:>3} %  {eta:>4} left  {msg}");
        bar.set_style(style.expect("a constant template that parses"));
        Bar { bar, runs, terminal, state: Mutex::default() }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn draw(&self, state: &State) {
        self.bar.set_position(state.done + state.now.values().map(|(_, steps)| steps).sum::<u64>());
        let now: Vec<&str> = state.now.values().map(|(name, _)| name.as_str()).collect();
        self.bar.set_message(now.join(", "));
    }

    fn with(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().expect("no holder of this lock panics");
        change(&mut state);
        self.draw(&state);
    }
}

impl Progress for Bar {
    fn begun(&self, run: usize, law: &str, seed: u64) {
        if !self.terminal {
            note!("run {} of {}: {law}, seed {seed}", run + 1, self.runs);
        }
        self.with(|state| {
            state.now.insert(run, (format!("{law} (seed {seed})"), 0));
        });
    }

    fn advanced(&self, run: usize, done: Span, total: Span) {
        let steps = (done.as_secs_f64() / total.as_secs_f64().max(f64::MIN_POSITIVE) * STEPS as f64) as u64;
        self.with(|state| {
            if let Some((_, shown)) = state.now.get_mut(&run) {
                *shown = steps.min(STEPS);
            }
        });
    }

    fn ended(&self, run: usize) {
        self.with(|state| {
            state.now.remove(&run);
            state.done += STEPS;
        });
    }
}
