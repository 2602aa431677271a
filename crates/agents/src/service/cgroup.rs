//! Cgroups of version 2, and programs for the connections of a cgroup's programs.

use libbpf_rs::{Link, ProgramMut};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

/// Why programs are not attached to a cgroup.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CgroupError {
    /// It cannot be opened.
    #[error("cgroup {path}: {source}")]
    Open {
        /// Its directory.
        path: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// It is something else.
    #[error("{path} is no cgroup: give a directory of a cgroup2 file system, such as /sys/fs/cgroup")]
    Other {
        /// What was named.
        path: PathBuf,
    },
    /// The kernel does not attach to it.
    #[error("cgroup {path}: {source:#} (it must be of version 2)")]
    Attach {
        /// Its directory.
        path: PathBuf,
        /// What failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Opens the directory of a cgroup.
pub(crate) fn open(cgroup: &Path) -> Result<File, CgroupError> {
    let path = cgroup.to_owned();
    match File::open(cgroup) {
        Ok(directory) if cgroup.join("cgroup.procs").exists() => Ok(directory),
        Ok(_) => Err(CgroupError::Other { path }),
        Err(source) => Err(CgroupError::Open { path, source }),
    }
}

/// Attaches a program to it, for as long as the link lives.
pub(crate) fn attach(program: &ProgramMut<'_>, directory: &File, cgroup: &Path) -> Result<Link, CgroupError> {
    let attached = program.attach_cgroup(directory.as_raw_fd());
    attached.map_err(|error| CgroupError::Attach { path: cgroup.to_owned(), source: error.into() })
}
