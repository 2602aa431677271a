//! Removing what crashed runs left behind.

use crate::error::{LabError, Result};
use crate::{netns, run_dir};
use nix::unistd::Uid;
use std::path::PathBuf;

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Network namespaces, by name. Their interfaces, what was attached to these, and processes in
    /// them went with them.
    pub namespaces: Vec<String>,
    /// Directories of runs.
    pub directories: Vec<PathBuf>,
}

/// Removes what runs of dead processes left behind, by name prefix, and nothing else: what a living process owns, or
/// is not ours, stays. Doing it twice is harmless.
pub fn clean() -> Result<Cleaned> {
    if !Uid::effective().is_root() {
        return Err(LabError::NotRoot);
    }
    // Namespaces first: the directory holds the proof of which processes are alive.
    let namespaces = netns::clean()?;
    let directories = run_dir::clean()?;
    Ok(Cleaned { namespaces, directories })
}
