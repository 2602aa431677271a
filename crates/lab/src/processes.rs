//! Ends the processes that run in a world's network namespaces.
//!
//! A namespace lives as long as a process in it: removing its name is not enough.

use lasthop_units::Span;
use std::fs::{self, File};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

/// How long a process may take to end after SIGTERM, and how long after SIGKILL.
const PATIENCE: [(libc::c_int, Span); 2] =
    [(libc::SIGTERM, Span::from_millis(500)), (libc::SIGKILL, Span::from_secs(2))];

/// Asks every process in `namespaces`, which are open files of network namespaces, to end
/// (SIGTERM), and kills those that do not. This process and its own namespace are spared.
pub(crate) fn end_all<'a>(namespaces: impl Iterator<Item = &'a File>) {
    let own = fs::metadata("/proc/self/ns/net").ok().map(identity);
    let spaces = namespaces.filter_map(|space| space.metadata().ok()).map(identity);
    let spaces: Vec<Identity> = spaces.filter(|space| Some(*space) != own).collect();
    if spaces.is_empty() {
        return;
    }
    let step = Span::from_millis(10);
    for (signal, patience) in PATIENCE {
        let mut waited = Span::ZERO;
        let mut told: Vec<i32> = Vec::new();
        loop {
            let mut found = false;
            for pid in numbers().filter(|pid| *pid != std::process::id() as i32) {
                let Some(process) = Process::inside(pid, &spaces) else { continue };
                found = true;
                // One that a process has started since is told, too.
                if !told.contains(&pid) {
                    process.send(signal);
                    told.push(pid);
                }
            }
            if !found {
                return;
            }
            if waited >= patience {
                break;
            }
            std::thread::sleep(step.into());
            waited += step;
        }
    }
}

/// What tells one namespace from another: device and inode of its file.
type Identity = (u64, u64);

fn identity(file: fs::Metadata) -> Identity {
    (file.dev(), file.ino())
}

/// The numbers of all processes.
fn numbers() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A process that cannot be taken for another one that gets its number later (pidfd_open(2), Linux
/// 5.3).
struct Process(OwnedFd);

impl Process {
    /// The process `pid` if it runs in one of `spaces`.
    fn inside(pid: i32, spaces: &[Identity]) -> Option<Process> {
        // SAFETY: the call takes two integers.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0)?;
        // SAFETY: a fresh descriptor that nobody else owns.
        let process = Process(unsafe { OwnedFd::from_raw_fd(fd) });
        // Looked at after the descriptor was opened. If the number has passed to another process
        // meanwhile, the descriptor still means the first one, which is dead and gets no signal. A
        // process that has ended has no namespace.
        let space = fs::metadata(format!("/proc/{pid}/ns/net")).ok()?;
        spaces.contains(&identity(space)).then_some(process)
    }

    fn send(&self, signal: libc::c_int) {
        // SAFETY: a null description makes the kernel fill one in, as kill(2) does. It fails only
        // if the process has ended.
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.0.as_raw_fd(),
                signal,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            )
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_by_its_namespace_only() {
        let own = std::process::id() as i32;
        let space = identity(fs::metadata("/proc/self/ns/net").expect("namespaces"));
        assert!(Process::inside(own, &[(0, 0), space]).is_some());
        assert!(Process::inside(own, &[(0, 0)]).is_none());
        assert!(Process::inside(i32::MAX, &[space]).is_none());
        assert!(numbers().any(|pid| pid == own));
    }
}
