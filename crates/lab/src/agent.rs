//! Programs that act on the access point, or on the nodes of a mesh, while a run lasts.

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
use std::path::PathBuf;

/// A running agent.
#[derive(Debug)]
pub(crate) struct Agent {
    child: Child,
    program: String,
}

/// How long one may take to load its programs and connect.
const PATIENCE: Span = Span::from_secs(10);

/// How long it may take to open windows and to detach what it attached.
const FAREWELL: Span = Span::from_secs(2);

impl Agent {
    /// Starts the agent in a node's namespace, on an interface with its driver's socket, and waits until it has connected to
    /// `driver`, which it does once it is ready. `name`: what messages call it.
    pub(crate) fn start(
        spec: &AgentSpec,
        name: String,
        (host, interface, socket): (&Namespace, &str, PathBuf),
        driver: &mut DriverSocket,
        stop: &Stop,
    ) -> Result<Agent> {
        let replaced = |argument: &String| {
            argument
                .replace("{driver}", &socket.to_string_lossy())
                .replace("{iface}", interface)
                .replace("{wire}", "eth0")
        };
        let arguments: Vec<String> = spec.arguments.iter().map(replaced).collect();
        let others = driver.admit();
        let child = Child::start(host, spec.program.as_os_str(), &arguments)?;
        let mut agent = Agent { child, program: name };
        let step = Span::from_millis(5);
        let mut waited = Span::ZERO;
        while driver.admit() == others {
            if stop.is_raised() {
                return Err(LabError::Stopped);
            }
            if agent.has_ended() {
                return Err(agent.explain());
            }
            if waited >= PATIENCE {
                let why = format!("it did not connect to {} within {PATIENCE}", socket.display());
                return Err(LabError::Program { program: agent.program, why });
            }
            std::thread::sleep(step.into());
            waited += step;
        }
        Ok(agent)
    }

    /// True if it has ended, which it should not do by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.has_ended()
    }

    /// Why it ended too early.
    pub(crate) fn explain(self) -> LabError {
        LabError::Program { why: self.child.ended_early(), program: self.program }
    }

    /// Ends it without a farewell: what it attached goes with the access point's namespace.
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
}

/// Where the emulated driver of a node of the last hop listens.
pub(crate) fn driver_path(run: &RunDir, node: Node) -> PathBuf {
    match node {
        AP => run.file("driver.sock"),
        Node(number) => run.file(&format!("driver-{number}.sock")),
    }
}
