//! Agents of stations that bound the windows of the station's own uploads, while a run lasts.
//!
//! All sockets of a run are in the cgroup of this process; each agent looks after those of its own network namespace.

use crate::address::mac;
use crate::agent::Agent;
use crate::cgroup;
use crate::error::{Doing, Result};
use crate::run_dir::RunDir;
use crate::spec::Spec;
use crate::stop::Stop;
use crate::topology::{Hosts, LAST};
use lasthop_scenario::Scenario;
use lasthop_signals::MacAddress;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Starts the agents of `spec`, and waits until all of them look after connections.
pub(crate) fn start_all(spec: &Spec, hosts: &Hosts, run: &RunDir, stop: &Stop) -> Result<Vec<Agent>> {
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
        terminals.push((Agent::start(namespace, terminal.program.as_os_str(), &arguments, name)?, log));
    }
    // It writes of its first look once everything is open.
    let unready = "it looks after no connection after 10 s";
    let once_it_looks = |(agent, log): (Agent, PathBuf)| {
        agent.once(stop, unready, |_| fs::metadata(&log).is_ok_and(|found| found.len() > 0))
    };
    terminals.into_iter().map(once_it_looks).collect()
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
