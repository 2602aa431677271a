//! The programs that the lab starts for a set-up: one file and one line of [`PROGRAMS`] a kind.

pub mod agent;
mod carrier;
mod pbe;
mod terminal;
pub(crate) mod tunnel;

use lasthop_lab::Spec;
use lasthop_scenario::{Scenario, SetUp};
use std::path::Path;

/// What the programs of a run are made for.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// The running program, which is started again.
    pub program: &'a Path,
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The laws that run in it.
    pub law: &'a SetUp,
}

/// Each adds to a run what its kind of program has to do there, in the order of their start.
pub(crate) const PROGRAMS: &[fn(Wanted<'_>, &mut Spec)] =
    &[agent::add, carrier::add, tunnel::add, terminal::add, pbe::add];
