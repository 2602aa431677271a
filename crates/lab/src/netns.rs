//! Network namespaces: made, entered, configured and removed.
//!
//! A namespace is kept by a file under `/run/netns`, as `ip netns` does it, so `ip netns exec` and
//! `nsenter --net=` find it while a run lasts.

use crate::error::{Doing, LabError, Result};
use crate::netlink::Netlink;
use crate::processes;
use crate::run_dir::{self, PREFIX, RunDir};
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

const NAMED: &str = "/run/netns";

/// The number of the loopback interface in every namespace.
const LOOPBACK: u32 = 1;

/// A network namespace that lives as long as this value.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    path: PathBuf,
    file: File,
}

impl Namespace {
    /// Makes the namespace of `role` (`server`, `ap`, `sta1`…) for `run`, with its loopback up and the settings
    /// that every host of the lab shares.
    pub fn create(run: &RunDir, role: &str) -> Result<Namespace> {
        let name = format!("{PREFIX}{}-{role}", run.id());
        let path = Path::new(NAMED).join(&name);
        prepare_directory()?;
        File::create_new(&path).doing(|| format!("making {}", path.display()))?;
        let bound = in_new_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).doing(|| "making a network namespace".into())?;
            let own = Some("/proc/thread-self/ns/net");
            mount(own, &path, None::<&str>, MsFlags::MS_BIND, None::<&str>)
                .doing(|| format!("binding {}", path.display()))
        });
        let opened = bound.and_then(|()| File::open(&path).doing(|| format!("opening {}", path.display())));
        match opened {
            Ok(file) => {
                let namespace = Namespace { name, path, file };
                namespace.within(settle)?;
                Ok(namespace)
            }
            Err(error) => {
                remove(&path);
                Err(error)
            }
        }
    }

    /// The name under which `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file that keeps it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open namespace, for `setns` in a child process.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Runs `work` on a thread of its own inside the namespace. Sockets and devices made there stay there, and may
    /// be used from any thread afterwards.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        in_new_thread(|| {
            setns(&self.file, CloneFlags::CLONE_NEWNET).doing(|| format!("entering {}", self.name))?;
            work()
        })
    }

    /// Makes the namespace forward packets between its interfaces.
    pub fn make_router(&self) -> Result<()> {
        self.within(|| {
            sysctl("net/ipv4/ip_forward", "1")?;
            sysctl_if_present("net/ipv6/conf/all/forwarding", "1")
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes the namespaces of runs with a dead process, with the processes in them, and names them. Those of living
/// runs, and all that are not ours, stay.
pub(crate) fn clean() -> Result<Vec<String>> {
    let entries = match fs::read_dir(NAMED) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).doing(|| format!("reading {NAMED}")),
    };
    let ours = |name: &String| name.strip_prefix(PREFIX).and_then(run_of).is_some_and(|run| !run_dir::is_alive(&run));
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut removed: Vec<String> = names.filter(ours).collect();
    removed.sort();
    let path = |name: &String| Path::new(NAMED).join(name);
    // A namespace lives on without its name while a process is in it.
    let files: Vec<File> = removed.iter().filter_map(|name| File::open(path(name)).ok()).collect();
    processes::end_all(files.iter());
    removed.iter().for_each(|name| remove(&path(name)));
    Ok(removed)
}

/// The run in a namespace's name, `PID-NUMBER-ROLE` after the prefix; `None` if the name is not of that form and
/// hence not ours.
fn run_of(name: &str) -> Option<String> {
    let mut parts = name.splitn(3, '-');
    let (pid, number, _role) = (parts.next()?, parts.next()?, parts.next()?);
    let numeric = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (numeric(pid) && numeric(number)).then(|| format!("{pid}-{number}"))
}

/// Writes a kernel setting of the calling thread's namespace; `key` has slashes, as under `/proc/sys`.
pub(crate) fn sysctl(key: &str, value: &str) -> Result<()> {
    let path = Path::new("/proc/sys").join(key);
    fs::write(&path, value).doing(|| format!("setting {key} to {value}"))
}

/// As [`sysctl`], for settings of a protocol that the kernel may lack.
pub(crate) fn sysctl_if_present(key: &str, value: &str) -> Result<()> {
    if Path::new("/proc/sys").join(key).exists() { sysctl(key, value) } else { Ok(()) }
}

/// The settings that every host of the lab shares.
fn settle() -> Result<()> {
    Netlink::open()?.set_up(LOOPBACK)?;
    // One connection must not teach the next one: runs would depend on their order.
    sysctl("net/ipv4/tcp_no_metrics_save", "1")?;
    for scope in ["all", "default"] {
        sysctl(&format!("net/ipv4/conf/{scope}/rp_filter"), "0")?;
        // Stations reach each other through the access point, and nobody shall tell them of a shorter way.
        sysctl(&format!("net/ipv4/conf/{scope}/send_redirects"), "0")?;
        sysctl(&format!("net/ipv4/conf/{scope}/accept_redirects"), "0")?;
        sysctl_if_present(&format!("net/ipv6/conf/{scope}/accept_redirects"), "0")?;
        // No address of its own accord, no router search, no duplicate detection: nothing but traffic on the hop.
        sysctl_if_present(&format!("net/ipv6/conf/{scope}/accept_ra"), "0")?;
        sysctl_if_present(&format!("net/ipv6/conf/{scope}/accept_dad"), "0")?;
        sysctl_if_present(&format!("net/ipv6/conf/{scope}/router_solicitations"), "0")?;
    }
    sysctl_if_present("net/ipv6/conf/default/addr_gen_mode", "1")
}

/// `/run/netns` must be a shared mount, or namespaces removed here would stay busy in other mount namespaces.
fn prepare_directory() -> Result<()> {
    // Two runs that both find no mount would cover each other's namespaces.
    let _held = run_dir::hold()?;
    fs::create_dir_all(NAMED).doing(|| format!("making {NAMED}"))?;
    let share = || mount(None::<&str>, NAMED, None::<&str>, MsFlags::MS_SHARED | MsFlags::MS_REC, None::<&str>);
    match share() {
        Err(Errno::EINVAL) => {
            // Not a mount point yet.
            mount(Some(NAMED), NAMED, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)
                .doing(|| format!("binding {NAMED}"))?;
            share().doing(|| format!("sharing {NAMED}"))
        }
        Err(Errno::EPERM) => Err(LabError::NotRoot),
        other => other.doing(|| format!("sharing {NAMED}")),
    }
}

fn remove(path: &Path) {
    // Both fail harmlessly if another cleaner was faster.
    let _ = umount2(path, MntFlags::MNT_DETACH);
    let _ = fs::remove_file(path);
}

fn in_new_thread<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_our_form_are_ours() {
        assert_eq!(run_of("12-0-ap"), Some("12-0".into()));
        assert_eq!(run_of("12-0-sta-x"), Some("12-0".into()));
        for foreign in ["", "12", "12-0", "x-0-ap", "12--ap", "-1-ap"] {
            assert_eq!(run_of(foreign), None, "{foreign}");
        }
    }
}
