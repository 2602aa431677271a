//! Programs that run inside a namespace and do not outlive us.

use crate::error::{Doing, LabError, Result};
use crate::netns::Namespace;
use crate::sched;
use crate::stop::Stop;
use lasthop_units::Span;
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid};
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A running program; killed when dropped. It must be started from a thread that outlives it.
#[derive(Debug)]
pub struct Child {
    program: String,
    process: std::process::Child,
    spoke: Arc<AtomicBool>,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
}

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Child {
    /// Starts `program` inside `namespace`.
    pub fn start<A: AsRef<OsStr>>(namespace: &Namespace, program: &OsStr, arguments: &[A]) -> Result<Child> {
        let name = program.to_string_lossy().into_owned();
        let (file, parent) = (namespace.file().as_raw_fd(), getpid());
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C reaches every program of the terminal's process group: ours are told by us, in the right order.
        command.process_group(0);
        // SAFETY: between fork and exec the closure makes system calls only; the descriptor stays open in the child
        // until exec because `namespace` is borrowed for the whole call.
        unsafe {
            command.pre_exec(move || {
                sched::die_with_parent(parent)?;
                setns(BorrowedFd::borrow_raw(file), CloneFlags::CLONE_NEWNET)?;
                Ok(())
            });
        }
        let mut process = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => LabError::Missing {
                what: format!("the program {name}"),
                get: format!("install it (on Debian: apt-get install {name}), or leave it out of the scenario"),
            },
            _ => LabError::System { doing: format!("starting {name}"), source: error },
        })?;
        let spoke = Arc::new(AtomicBool::new(false));
        let stdout = process.stdout.take().map(|pipe| drain(pipe, Arc::clone(&spoke)));
        let stderr = process.stderr.take().map(|pipe| drain(pipe, Arc::default()));
        Ok(Child { program: name, process, spoke, stdout, stderr })
    }

    /// True if it has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    /// True once it has printed something to its standard output: agents do so when everything is open.
    pub(crate) fn has_spoken(&self) -> bool {
        self.spoke.load(Ordering::Relaxed)
    }

    /// Waits at most `patience`, and no longer than until `stop` is raised, for it to end by itself; then kills it.
    pub fn wait(mut self, patience: Span, stop: &Stop) -> Result<Ended> {
        self.wait_or_kill(patience, stop);
        self.take()
    }

    /// What one that has ended left; one that has not is killed.
    pub fn over(mut self) -> Result<Ended> {
        self.kill();
        self.take()
    }

    /// Why it ended though it should not have; one that has not is killed.
    pub(crate) fn ended_early(self) -> String {
        match self.over() {
            Ok(ended) => format!("it ended early: {}", ended.complaint()),
            Err(error) => error.to_string(),
        }
    }

    /// Asks it to end (SIGTERM), and waits for that as [`Child::wait`] does.
    pub fn stop(self, patience: Span, stop: &Stop) -> Result<Ended> {
        self.ask();
        self.wait(patience, stop)
    }

    /// Asks it to end (SIGTERM).
    pub fn ask(&self) {
        // Fails only if it has ended already.
        let _ = kill(Pid::from_raw(self.process.id() as i32), Signal::SIGTERM);
    }

    /// Ends it, whatever it is about. It may take a moment to be gone.
    pub fn kill(&mut self) {
        // Does nothing to one that has ended already.
        let _ = self.process.kill();
    }

    fn take(mut self) -> Result<Ended> {
        let status = self.process.wait().doing(|| format!("waiting for {}", self.program))?;
        let take = |drained: &mut Option<JoinHandle<String>>| {
            drained.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
        };
        Ok(Ended { status, stdout: take(&mut self.stdout), stderr: take(&mut self.stderr) })
    }

    fn wait_or_kill(&mut self, patience: Span, stop: &Stop) {
        let step = Span::from_millis(5);
        let mut waited = Span::ZERO;
        while waited < patience && !stop.is_raised() && !self.has_ended() {
            std::thread::sleep(Duration::from(step));
            waited += step;
        }
        if !self.has_ended() {
            self.kill();
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.has_ended() {
            self.kill();
            let _ = self.process.wait();
        }
    }
}

impl Ended {
    /// The end of what it complained about, or of what it printed, in one line for an error message.
    pub fn complaint(&self) -> String {
        let said = if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr };
        let tail: Vec<&str> = said.trim().lines().rev().take(3).collect();
        let tail = tail.into_iter().rev().collect::<Vec<_>>().join("; ");
        if tail.is_empty() { self.status.to_string() } else { format!("{} ({tail})", self.status) }
    }
}

/// Reads a pipe to its end on a thread of its own, so that the program never blocks on it. `spoke` is set once something was there.
fn drain(mut pipe: impl Read + Send + 'static, spoke: Arc<AtomicBool>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = vec![0];
        // A broken pipe ends the text where it broke.
        match pipe.read_exact(&mut bytes) {
            Ok(()) => {
                spoke.store(true, Ordering::Relaxed);
                let _ = pipe.read_to_end(&mut bytes);
            }
            Err(_) => bytes.clear(),
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
