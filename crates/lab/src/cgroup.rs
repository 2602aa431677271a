//! The cgroup by which agents find connections: all sockets of a run are in that of this process, and each agent looks after those of its own
//! network namespace.

use crate::error::{Doing, LabError, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// The directory of the cgroup (version 2) that this process is in.
pub(crate) fn own() -> Result<PathBuf> {
    let read = |path: &str| fs::read_to_string(path).doing(|| format!("reading {path}"));
    let (own, mounts) = (read("/proc/self/cgroup")?, read("/proc/self/mounts")?);
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"));
    let mount = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (at, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then_some(at)
    });
    match (mount, path) {
        (Some(mount), Some(path)) => Ok(Path::new(mount).join(path)),
        _ => Err(LabError::Missing {
            what: "a cgroup of version 2, by which agents find their connections".into(),
            get: "mount -t cgroup2 none /sys/fs/cgroup/unified".into(),
        }),
    }
}
