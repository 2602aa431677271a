//! A program that is attacked: what it says and when, what it costs, how it ends.

use crate::scene::Scene;
use crate::support::netns::Netns;
use lasthop_tests::{inside, program};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, SysconfVar, getpid, getppid, sysconf};
use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A program that we have started. It is killed when this is dropped, and dies with us.
pub struct Program {
    child: Child,
    said: Arc<Mutex<Vec<String>>>,
    readers: Vec<JoinHandle<()>>,
}

impl Program {
    /// `lasthop` in a namespace.
    pub fn lasthop(at: &Netns, arguments: &[&str]) -> Program {
        let mut command = inside(at.name(), program(), arguments);
        let us = getpid();
        // SAFETY: the closure makes system calls only.
        unsafe {
            command.pre_exec(move || {
                nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
                // We may have died before the request.
                if getppid() == us { Ok(()) } else { Err(std::io::ErrorKind::BrokenPipe.into()) }
            });
        }
        Program::start(command)
    }

    /// Any program with at least its standard error piped.
    pub fn start(mut command: Command) -> Program {
        // Ctrl-C of the terminal is for us alone.
        command.process_group(0).env("NO_COLOR", "1").current_dir(std::env::temp_dir());
        let mut child = command.spawn().expect("the program starts");
        let said = Arc::default();
        let out = child.stdout.take().map(|pipe| listen(pipe, &said));
        let err = child.stderr.take().map(|pipe| listen(pipe, &said));
        Program { child, said, readers: out.into_iter().chain(err).collect() }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has said so far, on both streams.
    pub fn said(&self) -> Vec<String> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True if a line holds `part`.
    pub fn has_said(&self, part: &str) -> bool {
        self.said().iter().any(|line| line.contains(part))
    }

    /// Waits until it has said `part`.
    pub fn says(&mut self, scene: &Scene, part: &str) {
        let mut ended = false;
        scene.await_that(part, || {
            ended = self.has_ended();
            ended || self.has_said(part)
        });
        assert!(!ended || self.has_said(part), "it ended without `{part}`: {}", self.said().join(" | "));
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.id() as i32), signal).expect("our child");
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("our child").is_some()
    }

    /// What it is to be told at its standard input ends.
    pub fn close_input(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits for it to end: how long that took, its status, and all that it said.
    pub fn ends(mut self, scene: &Scene) -> (Duration, ExitStatus, Vec<String>) {
        let took = scene.await_that("it ends", || self.has_ended());
        let status = self.child.wait().expect("our child");
        self.readers.drain(..).for_each(|reader| reader.join().expect("no panic"));
        (took, status, self.said())
    }

    /// Asks it to end (SIGTERM), as [`Program::ends`].
    pub fn stops(self, scene: &Scene) -> (Duration, ExitStatus, Vec<String>) {
        self.signal(Signal::SIGTERM);
        self.ends(scene)
    }

    /// Processor time that it has used (proc(5), stat fields 14 and 15).
    pub fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).expect("it runs");
        let fields = stat.rsplit_once(')').expect("a name").1.split_whitespace();
        let ticks: u64 = fields.skip(11).take(2).map(|field| field.parse::<u64>().expect("a number")).sum();
        let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten().expect("a known tick");
        Duration::from_millis(ticks * 1000 / per_second as u64)
    }

    /// Share of a processor that it uses over `span`, in per cent.
    pub fn share(&self, scene: &Scene, span: Duration) -> f64 {
        let (before, began) = (self.processor_time(), std::time::Instant::now());
        scene.rest(span);
        100.0 * (self.processor_time() - before).as_secs_f64() / began.elapsed().as_secs_f64()
    }

    /// Memory that it has in use, MiB (proc(5), `VmRSS`).
    pub fn memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
        line.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).expect("a number") / 1024.0
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Does nothing to one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An agent's account of itself among what it has said.
pub fn account(said: &[String]) -> serde_json::Value {
    let parsed = said.iter().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let account = parsed.filter_map(|line| line.get("agent").cloned()).next();
    account.unwrap_or_else(|| panic!("no account: {}", said.join(" | ")))
}

/// Runs `lasthop` in a namespace to its end: whether it succeeded, and all that it said.
pub fn run(scene: &Scene, at: &Netns, arguments: &[&str]) -> (bool, String) {
    let (_, status, said) = Program::lasthop(at, arguments).ends(scene);
    (status.success(), said.join("\n"))
}

/// Lines of a pipe, to its end.
fn listen(pipe: impl Read + Send + 'static, said: &Arc<Mutex<Vec<String>>>) -> JoinHandle<()> {
    let said = Arc::clone(said);
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            said.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    })
}
