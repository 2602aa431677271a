//! Cgroups of version 2, and programs for the connections of a cgroup's programs.

use libbpf_rs::{Link, ProgramMut};
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::Path;

/// Opens the directory of a cgroup, or says what would be right.
pub(crate) fn open(cgroup: &Path) -> Result<File, String> {
    let directory = File::open(cgroup).map_err(|error| format!("cgroup {}: {error}", cgroup.display()))?;
    if !cgroup.join("cgroup.procs").exists() {
        let wanted = "give a directory of a cgroup2 file system, such as /sys/fs/cgroup";
        return Err(format!("{} is no cgroup: {wanted}", cgroup.display()));
    }
    Ok(directory)
}

/// Attaches a program to it, for as long as the link lives.
pub(crate) fn attach(program: &ProgramMut<'_>, directory: &File, cgroup: &Path) -> Result<Link, String> {
    let attached = program.attach_cgroup(directory.as_raw_fd());
    attached.map_err(|error| format!("cgroup {}: {error:#} (it must be of version 2)", cgroup.display()))
}
