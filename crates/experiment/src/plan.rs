//! What is to be done: which laws, which seeds, in which world.

use crate::ExperimentError;
use lasthop_lab::{LabError, Spec};
use lasthop_scenario::{Scenario, SetUp};

/// Where a scenario runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The simulator.
    Sim,
    /// The lab.
    Lab,
}

impl Place {
    /// The kind of world, for reports.
    pub fn world(self) -> lasthop_report::World {
        match self {
            Place::Sim => lasthop_report::World::Sim,
            Place::Lab => lasthop_report::World::Lab,
        }
    }
}

/// An experiment: every law under every seed.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// What is run.
    pub scenario: &'a Scenario,
    /// Where.
    pub place: Place,
    /// The rows of the report.
    pub laws: Vec<SetUp>,
    /// One run each a law.
    pub seeds: Vec<u64>,
    /// Keep every packet's delay.
    pub keep_packets: bool,
    /// How often a run of the lab is made at most: one that the machine disturbed is made again. 0 is taken for 1.
    pub tries: usize,
}

impl Plan<'_> {
    /// Everything that can be found wrong with any of the runs before the first is made.
    ///
    /// # Errors
    /// [`ExperimentError::Lab`]: what this machine lacks, or what the lab cannot build.
    pub fn check(&self) -> Result<(), ExperimentError> {
        if self.place == Place::Sim {
            return Ok(());
        }
        let check = |(law, seed): (&SetUp, u64)| {
            let root = if nix::unistd::geteuid().is_root() { Ok(()) } else { Err(LabError::NotRoot) };
            root.and_then(|()| Spec::of(self.scenario, law, seed).check()).map_err(|source| ExperimentError::Lab {
                law: law.name.clone(),
                seed,
                source,
            })
        };
        self.runs().into_iter().try_for_each(check)
    }

    /// The runs in their order: laws take turns, so that a machine that slows down slows them all.
    pub fn runs(&self) -> Vec<(&SetUp, u64)> {
        self.seeds.iter().flat_map(|seed| self.laws.iter().map(move |law| (law, *seed))).collect()
    }
}
