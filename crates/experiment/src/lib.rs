//! A scenario run: build the world, run the seeds, gather the figures.

// Runs take wall-clock time, and the report says how much.
#![allow(clippy::disallowed_methods)]

pub mod campus;
mod error;
mod host;
mod observe;
mod plan;
mod programs;
mod record;
mod regulated;
mod runner;

pub use error::ExperimentError;
pub use observe::{Names, ObserveError, Observed, observe, recording};
pub use plan::{Place, Plan};
pub use programs::agent;
pub use record::{Recorded, Recording, record};
pub use runner::{Outcome, Progress, Silent, Simulate, lab_spec, run, simulated};
