//! Ownership: every run claims a directory that names its process, so that the leavings of a dead one can be told
//! from the property of a living one.

use crate::error::{Doing, LabError, Result};
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::{Uid, getpid};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Everything of ours in a shared name space begins like this.
pub const PREFIX: &str = "lasthop-";

/// Where runs keep their claims and sockets. Cleared by a reboot, as everything that the lab makes is.
const RUNS: &str = "/run/lasthop";

/// A claimed run: its directory exists as long as this value.
#[derive(Debug)]
pub struct RunDir {
    id: String,
    path: PathBuf,
}

impl RunDir {
    /// Claims a new run for this process. The claim is written before anything else is made, so that whatever is
    /// found without a living claim is known to be dead.
    pub fn claim() -> Result<RunDir> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if !Uid::effective().is_root() {
            return Err(LabError::NotRoot);
        }
        let pid = getpid().as_raw();
        let id = format!("{pid}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(RUNS).join(&id);
        let _held = hold()?;
        fs::create_dir_all(&path).doing(|| format!("making {}", path.display()))?;
        let run = RunDir { id, path };
        let started = started(pid).ok_or_else(|| io::Error::other("own /proc entry is unreadable"));
        let claim = format!("{pid} {}\n", started.doing(|| "reading /proc".into())?);
        fs::write(run.file("owner"), claim).doing(|| format!("claiming {}", run.path.display()))?;
        Ok(run)
    }

    /// The run's name: short, and unique among living runs.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The path of a file of this run.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        // Failing here only leaves a directory that the next start removes.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// True if the process that claimed run `id` still lives. A number that the kernel has given to another process since
/// is told apart by its start time.
pub(crate) fn is_alive(id: &str) -> bool {
    let Ok(claim) = fs::read_to_string(Path::new(RUNS).join(id).join("owner")) else { return false };
    let mut words = claim.split_whitespace();
    let pid = words.next().and_then(|word| word.parse().ok());
    let claimed = words.next().and_then(|word| word.parse::<u64>().ok());
    pid.and_then(started).is_some_and(|since| Some(since) == claimed)
}

/// Keeps other processes from claiming and cleaning while the value lives: a run that is about to write its claim looks
/// like a dead one. The kernel lets go of it with the process.
pub(crate) fn hold() -> Result<Flock<File>> {
    fs::create_dir_all(RUNS).doing(|| format!("making {RUNS}"))?;
    let directory = File::open(RUNS).doing(|| format!("opening {RUNS}"))?;
    Flock::lock(directory, FlockArg::LockExclusive).map_err(|(_, error)| error).doing(|| format!("locking {RUNS}"))
}

/// Removes the directories of dead runs and names them.
pub(crate) fn clean() -> Result<Vec<PathBuf>> {
    let _held = hold()?;
    let entries = match fs::read_dir(RUNS) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).doing(|| format!("reading {RUNS}")),
    };
    let mut removed = Vec::new();
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(|id| !is_alive(id)) {
            match fs::remove_dir_all(entry.path()) {
                Ok(()) => removed.push(entry.path()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).doing(|| format!("removing {}", entry.path().display())),
            }
        }
    }
    removed.sort();
    Ok(removed)
}

/// When process `pid` started, in clock ticks since boot (proc(5), stat field 22).
fn started(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Field 2 is the command in parentheses and may itself hold blanks and parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_start_time_and_an_impossible_one_has_none() {
        assert!(started(getpid().as_raw()).is_some());
        assert_eq!(started(i32::MAX), None);
    }

    #[test]
    fn a_run_that_nobody_claimed_is_dead() {
        assert!(!is_alive("0-0-no-such-run"));
    }
}
