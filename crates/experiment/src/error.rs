//! Why an experiment ended without figures.

/// What can go wrong once a scenario is valid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// The simulator refused the scenario.
    #[error("the simulator cannot run {law} with seed {seed}")]
    Sim {
        /// The law.
        law: String,
        /// The seed.
        seed: u64,
        /// Why.
        #[source]
        source: lasthop_sim::SimError,
    },
    /// The lab failed.
    #[error("the lab failed at {law} with seed {seed}")]
    Lab {
        /// The law.
        law: String,
        /// The seed.
        seed: u64,
        /// Why.
        #[source]
        source: lasthop_lab::LabError,
    },
    /// The agent is this very program, and it cannot find itself.
    #[error("cannot find the running program to start the agent with")]
    OwnProgram(#[source] std::io::Error),
    /// Somebody asked to stop before a run was done.
    #[error("stopped before the first run was done: nothing was written")]
    Stopped,
}
