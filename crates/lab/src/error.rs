//! What can go wrong in the lab.

use std::io;

/// Why the lab could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The kernel refused something.
    #[error("{doing}: {source}")]
    System {
        /// What was being done.
        doing: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The lab makes namespaces and interfaces, which only root may.
    #[error("the lab needs root (CAP_NET_ADMIN and CAP_SYS_ADMIN); run it with sudo, or use the simulator")]
    NotRoot,
    /// A program or kernel feature is not there.
    #[error("{what} is missing: {get}")]
    Missing {
        /// What is missing.
        what: String,
        /// How to get it.
        get: String,
    },
    /// The specification cannot be built.
    #[error("{0}")]
    Spec(String),
    /// A program that the run depends on ended early or said something unintelligible.
    #[error("{program} failed: {why}")]
    Program {
        /// Which program.
        program: String,
        /// How it failed.
        why: String,
    },
    /// The user's own program could not be started.
    #[error("cannot start {program}: {source}")]
    Command {
        /// The program, as the user named it.
        program: String,
        /// Why. [`io::ErrorKind::NotFound`] if there is no such program.
        source: io::Error,
    },
    /// The user asked to stop.
    #[error("stopped before the end")]
    Stopped,
}

/// The lab's result.
pub type Result<T> = std::result::Result<T, LabError>;

/// Says what was being done when a system call failed.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> Doing<T> for std::result::Result<T, E> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| LabError::System { doing: what(), source: error.into() })
    }
}
