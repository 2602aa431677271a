//! Agents of stations that bound the windows of the station's own uploads, while a run lasts.
//!
//! All sockets of a run are in the cgroup of this process; each agent looks after those of its own network namespace.

use crate::address::mac;
use crate::cgroup;
use crate::child::Child;
use crate::error::{Doing, LabError, Result};
use crate::run_dir::RunDir;
use crate::spec::Spec;
use crate::stop::Stop;
use crate::topology::{Hosts, LAST};
use lasthop_report::TerminalAccount;
use lasthop_scenario::Scenario;
use lasthop_signals::MacAddress;
use lasthop_units::Span;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A running agent.
#[derive(Debug)]
pub(crate) struct Terminal {
    child: Child,
    name: String,
    log: PathBuf,
}

/// What an agent leaves.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// Its account of itself, if it gave one.
    pub account: Option<TerminalAccount>,
    /// What it printed to standard error, with its name.
    pub said: String,
}

/// How long one may take to be ready.
const PATIENCE: Span = Span::from_secs(10);
/// How long one may take to end.
const FAREWELL: Span = Span::from_secs(2);

impl Terminal {
    /// Starts the agents of `spec`, and waits until all of them look after connections.
    pub(crate) fn start_all(spec: &Spec, hosts: &Hosts, run: &RunDir, stop: &Stop) -> Result<Vec<Terminal>> {
        if spec.terminals.is_empty() {
            return Ok(Vec::new());
        }
        let (key, cgroup) = (run.file("network.key"), cgroup::own()?);
        write_key(&key)?;
        // Nobody changes access points: they are one network.
        let bssid = MacAddress(mac(LAST, spec.access_points()[0]));
        let mut terminals = Vec::new();
        for terminal in &spec.terminals {
            let host = Scenario::station_host(terminal.station);
            let log = run.file(&format!("terminal-{}.log", Scenario::station_node(terminal.station).0));
            let fill = |argument: &String| {
                argument
                    .replace("{iface}", hosts.interface(host))
                    .replace("{cgroup}", &cgroup.to_string_lossy())
                    .replace("{key}", &key.to_string_lossy())
                    .replace("{bss}", &bssid.to_string())
                    .replace("{log}", &log.to_string_lossy())
            };
            let arguments: Vec<String> = terminal.arguments.iter().map(fill).collect();
            let namespace = &hosts.stations[terminal.station];
            let name = format!("the terminal's agent on {}", spec.host_name(host));
            let child = Child::start(namespace, terminal.program.as_os_str(), &arguments)?;
            terminals.push(Terminal { child, name, log });
        }
        for place in 0..terminals.len() {
            let looked = terminals[place].await_first_look(stop);
            if looked.is_err() && terminals[place].has_ended() && !stop.is_raised() {
                return Err(terminals.swap_remove(place).explain());
            }
            looked?;
        }
        Ok(terminals)
    }

    /// It writes of its first look once everything is open.
    fn await_first_look(&mut self, stop: &Stop) -> Result<()> {
        let (step, mut waited) = (Span::from_millis(10), Span::ZERO);
        while fs::metadata(&self.log).map_or(0, |found| found.len()) == 0 {
            if stop.is_raised() {
                return Err(LabError::Stopped);
            }
            if waited >= PATIENCE || self.has_ended() {
                let why = format!("it looks after no connection after {PATIENCE}");
                return Err(LabError::Program { program: self.name.clone(), why });
            }
            std::thread::sleep(step.into());
            waited += step;
        }
        Ok(())
    }

    /// True if it has ended, which it should not do by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.has_ended()
    }

    /// Why it ended too early.
    pub(crate) fn explain(self) -> LabError {
        LabError::Program { why: self.child.ended_early(), program: self.name }
    }

    /// Ends it without a farewell: nothing of it stays.
    pub(crate) fn kill(&mut self) {
        self.child.kill();
    }

    /// Asks it to end.
    pub(crate) fn ask(&self) {
        self.child.ask();
    }

    /// Asks it to end, and takes what it leaves. Its farewell lasts no longer than until `stop` is raised.
    pub(crate) fn stop(self, stop: &Stop) -> Result<Left> {
        let ended = self.child.stop(FAREWELL, stop)?;
        let said = ended.stderr.lines().map(|line| format!("{}: {line}\n", self.name)).collect();
        Ok(Left { account: TerminalAccount::find(&ended.stdout), said })
    }
}

/// A fresh key of the network, readable by root alone.
fn write_key(path: &Path) -> Result<()> {
    let mut octets = [0; 32];
    let mut text = "station 0 ".to_owned();
    File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut octets))
        .and_then(|()| OpenOptions::new().write(true).create_new(true).mode(0o600).open(path))
        .and_then(|mut file| {
            text.extend(octets.iter().map(|octet| format!("{octet:02x}")));
            writeln!(file, "{text}")
        })
        .doing(|| format!("writing {}", path.display()))
}
