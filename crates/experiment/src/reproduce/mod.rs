//! Published results, run again: every figure of a paper as scenarios, with the paper's number beside ours.

mod aggregation;
mod chart;
mod combined;
mod draft;
mod page;
mod ran;
mod runner;

pub use chart::{Chart, Curve};
pub use draft::Draft;
pub use page::{Check, Page, Section, Table};
pub use ran::Ran;
pub use runner::Runner;

use crate::ExperimentError;

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
    /// Those of [`crate::run`].
    pub fn reproduce(&self, runner: &Runner<'_>) -> Result<Section, ExperimentError> {
        runner.take_ran();
        let section = (self.make)(runner)?;
        Ok(Section { ran: runner.take_ran(), ..section })
    }
}

/// The figures of the aggregation regulator's paper, and what the page says before them.
pub fn aggregation() -> (&'static [Figure], &'static str) {
    (&aggregation::FIGURES, aggregation::PREFACE)
}
