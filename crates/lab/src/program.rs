//! The user's own program in the namespace of a host, at the user's terminal.
//!
//! Unlike the lab's own programs ([`Child`](crate::child::Child)) it keeps the process group, the
//! terminal and the standard streams of this process, so that interactive programs work.

use crate::error::{Doing, LabError, Result};
use crate::netns::Namespace;
use crate::run_dir::RunDir;
use crate::sched;
use crate::stop::SharedTerminal;
use lasthop_units::Span;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// A running program; killed when dropped.
#[derive(Debug)]
pub(crate) struct Program {
    process: Child,
    name: String,
    /// Its thread ends when this does. The kernel kills a program when its parent thread ends, so the thread outlives
    /// it.
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    _terminal: SharedTerminal,
}

/// How often somebody looks whether it has ended.
pub(crate) const STEP: Span = Span::from_millis(5);

/// How long it may take to end after SIGTERM.
const FAREWELL: Span = Span::from_secs(2);

impl Program {
    /// Starts `command` in `namespace`, where `names` is the content of `/etc/hosts` and no other
    /// name resolves.
    ///
    /// # Errors
    /// [`LabError::Command`] if there is no such program, or it may not be run;
    /// [`LabError::System`] for what the kernel refused.
    pub(crate) fn start(namespace: &Namespace, names: &str, run: &RunDir, command: &[OsString]) -> Result<Program> {
        let [program, arguments @ ..] = command else { return Err(LabError::Spec("no program to run".into())) };
        let name = program.to_string_lossy().into_owned();
        let space = namespace.file().try_clone().doing(|| "opening a namespace once more".into())?;
        let view = View::prepare(run, names)?;

        let mut prepared = Command::new(program);
        prepared.args(arguments);
        let parent = getpid();
        // SAFETY: between fork and exec the closure makes system calls only.
        unsafe { prepared.pre_exec(move || sched::die_with_parent(parent)) };
        let (started, starting) = channel();
        let (over, is_over) = channel::<()>();
        let of = name.clone();
        let body = move || {
            // The program inherits the namespaces of the thread that starts it.
            let process = view
                .enter(&space)
                .and_then(|()| prepared.spawn().map_err(|source| LabError::Command { program: of, source }));
            let lives = process.is_ok();
            if started.send(process).is_ok() && lives {
                let _ = is_over.recv();
            }
        };
        let terminal = SharedTerminal::begin();
        let thread = std::thread::Builder::new().name("lasthop-program".into()).spawn(body);
        let thread = thread.doing(|| "starting a thread".into())?;
        match starting.recv() {
            Ok(process) => {
                Ok(Program { process: process?, name, over: Some(over), thread: Some(thread), _terminal: terminal })
            }
            // The thread ends without a word only by a panic.
            Err(_) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => Err(LabError::Stopped),
            },
        }
    }

    /// How it ended, if it has.
    pub(crate) fn status(&mut self) -> Result<Option<ExitStatus>> {
        self.process.try_wait().doing(|| format!("waiting for {}", self.name))
    }

    /// Waits `grace` for it to end by itself, then asks it to (SIGTERM), then kills it.
    pub(crate) fn end(&mut self, grace: Span) -> Result<ExitStatus> {
        for (patience, signal) in [(grace, Signal::SIGTERM), (FAREWELL, Signal::SIGKILL)] {
            let mut waited = Span::ZERO;
            while waited < patience {
                if let Some(status) = self.status()? {
                    return Ok(status);
                }
                std::thread::sleep(STEP.into());
                waited += STEP;
            }
            // It has not been waited for, so the number is still its own.
            let _ = kill(Pid::from_raw(self.process.id() as i32), signal);
        }
        self.process.wait().doing(|| format!("waiting for {}", self.name))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Does nothing to one that has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What a program sees of the file system in place of the machine's own files.
struct View {
    /// For `/etc/hosts`.
    hosts: PathBuf,
    /// For `/etc/resolv.conf`.
    resolver: PathBuf,
    /// An empty directory.
    sys: PathBuf,
}

impl View {
    fn prepare(run: &RunDir, names: &str) -> Result<View> {
        let view = View { hosts: run.file("hosts"), resolver: run.file("resolv.conf"), sys: run.file("sys") };
        let write = |path: &Path, text: &str| fs::write(path, text).doing(|| format!("writing {}", path.display()));
        write(&view.hosts, names)?;
        // No name server can be reached, and programs would wait for one: nobody listens here, and
        // the kernel says so at once.
        write(&view.resolver, "nameserver 127.0.0.1\n")?;
        fs::create_dir_all(&view.sys).doing(|| format!("making {}", view.sys.display()))?;
        Ok(view)
    }

    /// Puts the calling thread into the network namespace `space`, and into a mount namespace of
    /// its own that has this view.
    fn enter(&self, space: &File) -> Result<()> {
        setns(space, CloneFlags::CLONE_NEWNET).doing(|| "entering a network namespace".into())?;
        unshare(CloneFlags::CLONE_NEWNS).doing(|| "making a mount namespace".into())?;
        // Mounts made here do not spread. Those that others remove, as the lab does in the end,
        // vanish here too.
        let receive_only = MsFlags::MS_SLAVE | MsFlags::MS_REC;
        mount(None::<&str>, "/", None::<&str>, receive_only, None::<&str>)
            .doing(|| "keeping the mounts of a program to itself".into())?;
        bind(&self.hosts, Path::new("/etc/hosts"))
            .doing(|| "putting the names of the hosts in place of /etc/hosts".into())?;
        // Conveniences, which a container may not have.
        let _ = bind(&self.resolver, Path::new("/etc/resolv.conf"));
        let _ = self.show_interfaces();
        Ok(())
    }

    /// The interfaces of the calling thread's network namespace in /sys: a fresh sysfs shows them.
    /// Only these two directories depend on the namespace. The rest of /sys, cgroups above all,
    /// stays what it is.
    fn show_interfaces(&self) -> nix::Result<()> {
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        mount(Some("sysfs"), &self.sys, Some("sysfs"), flags, None::<&str>)?;
        let shown = ["devices/virtual/net", "class/net"];
        let bound = shown.iter().try_for_each(|part| bind(&self.sys.join(part), &Path::new("/sys").join(part)));
        umount2(&self.sys, MntFlags::MNT_DETACH)?;
        bound
    }
}

fn bind(from: &Path, to: &Path) -> nix::Result<()> {
    mount(Some(from), to, None::<&str>, MsFlags::MS_BIND, None::<&str>)
}
