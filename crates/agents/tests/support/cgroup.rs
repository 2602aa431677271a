//! The cgroup that this process is in.

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Its directory; `None`, said loudly, where there are no cgroups of version 2.
pub fn own(what: &str) -> Option<PathBuf> {
    let read = |path: &str| std::fs::read_to_string(path).expect("Linux has it");
    let (mounts, own) = (read("/proc/self/mounts"), read("/proc/self/cgroup"));
    let mount = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|f| f.get(2) == Some(&"cgroup2"));
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"));
    let found = mount.zip(path).map(|(mount, path)| Path::new(mount[1]).join(path));
    if found.is_none() {
        // Past the capture of test output.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {what}: needs a cgroup2 file system");
    }
    found
}
