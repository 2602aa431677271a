//! Agents that run while a run of the lab lasts: on the access point, on nodes of a mesh, on stations and on hosts that send.

use crate::child::{Child, Ended};
use crate::driver::DriverSocket;
use crate::error::{LabError, Result};
use crate::netns::Namespace;
use crate::run_dir::RunDir;
use crate::spec::AgentSpec;
use crate::stop::Stop;
use crate::topology::AP;
use lasthop_signals::Node;
use lasthop_units::Span;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A running agent.
#[derive(Debug)]
pub(crate) struct Agent {
    child: Child,
    name: String,
}

/// What an agent leaves.
#[derive(Debug)]
pub(crate) struct Left<A> {
    /// Its account of itself, if it gave one.
    pub account: Option<A>,
    /// What it printed to standard error, with its name.
    pub said: String,
}

/// How long one may take to be ready: to load its programs and to connect.
const PATIENCE: Span = Span::from_secs(10);
/// How often it is looked whether it is.
const STEP: Span = Span::from_millis(5);
/// How long it may take to end: to open windows and to detach what it attached.
const FAREWELL: Span = Span::from_secs(2);

impl Agent {
    /// Starts an agent in a namespace. `name`: what messages call it.
    pub(crate) fn start(host: &Namespace, program: &OsStr, arguments: &[String], name: String) -> Result<Agent> {
        Ok(Agent { child: Child::start(host, program, arguments)?, name })
    }

    /// Starts an agent in a node's namespace, on an interface with its driver's socket.
    pub(crate) fn on_driver(
        spec: &AgentSpec,
        name: String,
        (host, interface, socket): (&Namespace, &str, &Path),
    ) -> Result<Agent> {
        let replaced = |argument: &String| {
            argument
                .replace("{driver}", &socket.to_string_lossy())
                .replace("{iface}", interface)
                .replace("{wire}", "eth0")
        };
        let arguments: Vec<String> = spec.arguments.iter().map(replaced).collect();
        Agent::start(host, spec.program.as_os_str(), &arguments, name)
    }

    /// The agent once it has connected to `driver`, which had as many readers before: it is ready then.
    pub(crate) fn once_on(self, driver: &mut DriverSocket, others: usize, stop: &Stop) -> Result<Agent> {
        let unready = format!("it did not connect to its driver's socket within {PATIENCE}");
        self.once(stop, &unready, |_| driver.admit() != others)
    }

    /// The agent once it has printed something, as agents do when everything is open.
    pub(crate) fn once_it_has_spoken(self, stop: &Stop) -> Result<Agent> {
        self.once(stop, &format!("it was not ready after {PATIENCE}"), Child::has_spoken)
    }

    /// The agent once it is `ready`; `unready`: what to say of one that never is.
    pub(crate) fn once(mut self, stop: &Stop, unready: &str, mut ready: impl FnMut(&Child) -> bool) -> Result<Agent> {
        let mut waited = Span::ZERO;
        while !ready(&self.child) {
            if stop.is_raised() {
                return Err(LabError::Stopped);
            }
            if self.has_ended() {
                return Err(self.explain());
            }
            if waited >= PATIENCE {
                return Err(LabError::Program { program: self.name, why: unready.to_owned() });
            }
            std::thread::sleep(STEP.into());
            waited += STEP;
        }
        Ok(self)
    }

    /// True if it has ended, which it should not do by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.has_ended()
    }

    /// Why it ended too early.
    pub(crate) fn explain(self) -> LabError {
        LabError::Program { why: self.child.ended_early(), program: self.name }
    }

    /// Ends it without a farewell: what it attached goes with its namespace.
    pub(crate) fn kill(&mut self) {
        self.child.kill();
    }

    /// Asks it to end.
    pub(crate) fn ask(&self) {
        self.child.ask();
    }

    /// Asks it to end, and takes what it printed. Its farewell lasts no longer than until `stop` is raised.
    pub(crate) fn stop(self, stop: &Stop) -> Result<Ended> {
        self.child.stop(FAREWELL, stop)
    }

    /// The same of one that gives an account of itself, which `find` finds in what it printed.
    pub(crate) fn leave<A>(self, stop: &Stop, find: impl Fn(&str) -> Option<A>) -> Result<Left<A>> {
        let ended = self.child.stop(FAREWELL, stop)?;
        let said = ended.stderr.lines().map(|line| format!("{}: {line}\n", self.name)).collect();
        Ok(Left { account: find(&ended.stdout), said })
    }
}

/// Where the emulated driver of a node of the last hop listens.
pub(crate) fn driver_path(run: &RunDir, node: Node) -> PathBuf {
    match node {
        AP => run.file("driver.sock"),
        Node(number) => run.file(&format!("driver-{number}.sock")),
    }
}
