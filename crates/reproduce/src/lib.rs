//! Published results, run again: every figure of a paper as scenarios, with the paper's number beside ours.

mod aggregation;
mod atp;
mod oal;
mod pbe;
mod study;
mod terminal;

pub use pbe::{Place, places};
pub use study::Runner;

use lasthop_experiment::ExperimentError;
use lasthop_report::page::{Check, Section};

/// A figure that can be asked for by its number.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// The paper's number for it, or a word for what goes beyond the paper.
    pub id: &'static str,
    /// What it shows, in a line.
    pub title: &'static str,
    make: fn(&Runner<'_>) -> Result<Section, ExperimentError>,
}

impl Figure {
    /// Runs its scenarios and compares.
    ///
    /// # Errors
    /// Those of [`lasthop_experiment::run`].
    pub fn reproduce(&self, runner: &Runner<'_>) -> Result<Section, ExperimentError> {
        runner.take_ran();
        let section = (self.make)(runner)?;
        Ok(Section { ran: runner.take_ran(), ..section })
    }
}

/// A published system. Its results can be run again.
#[derive(Clone, Copy, Debug)]
pub struct System {
    /// By which name it is asked for; its page is called so.
    pub name: &'static str,
    /// What it is, and its authors.
    pub title: &'static str,
    /// Its figures.
    pub figures: &'static [Figure],
    /// What its page says before them.
    pub preface: &'static str,
    /// The figures that have its headlines.
    headlines: &'static [&'static str],
}

/// The systems: one line each.
pub const SYSTEMS: &[System] = &[aggregation::SYSTEM, terminal::SYSTEM, atp::SYSTEM, pbe::SYSTEM, oal::SYSTEM];

impl System {
    /// The system of that name.
    pub fn named(name: &str) -> Option<&'static System> {
        SYSTEMS.iter().find(|system| system.name == name)
    }

    /// What it is known for, run again.
    ///
    /// # Errors
    /// Those of [`lasthop_experiment::run`].
    pub fn headlines(&self, runner: &Runner<'_>) -> Result<Vec<Check>, ExperimentError> {
        let figures = self.figures.iter().filter(|figure| self.headlines.contains(&figure.id));
        let sections = figures.map(|figure| figure.reproduce(runner)).collect::<Result<Vec<_>, _>>()?;
        Ok(sections.into_iter().flat_map(|section| section.checks).filter(|check| check.headline).collect())
    }
}
