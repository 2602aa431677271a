//! What a run is made of.

use crate::address::{Family, MAX_NODES};
use crate::error::{LabError, Result};
use lasthop_radio::wired;
use lasthop_units::{Bytes, Span};
use std::fs;
use std::path::PathBuf;

/// A run: hosts, hops, traffic.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The wire from server to access point.
    pub wire_down: wired::Params,
    /// The wire from access point to server.
    pub wire_up: wired::Params,
    /// The last hop.
    pub hop: LastHop,
    /// How many stations hang on it.
    pub stations: u16,
    /// IP version of all traffic.
    pub family: Family,
    /// Bulk downloads.
    pub bulk: Vec<BulkSpec>,
    /// Probes to every station.
    pub probes: Option<ProbeSpec>,
    /// Fetches by every station.
    pub fetches: Option<FetchSpec>,
    /// How long traffic lasts.
    pub duration: Span,
    /// How often connections are sampled.
    pub sample_every: Span,
    /// A program to run in the access point's namespace.
    pub agent: Option<AgentSpec>,
}

/// The last hop's model.
#[derive(Clone, Debug)]
pub enum LastHop {
    /// A cable to each station.
    Wired {
        /// From access point to station.
        down: wired::Params,
        /// From station to access point.
        up: wired::Params,
    },
}

/// One bulk download.
#[derive(Clone, Debug)]
pub struct BulkSpec {
    /// Which station downloads, counted from 0.
    pub station: u16,
    /// The kernel's name of the sender's congestion control.
    pub congestion: String,
    /// When it starts, after the run's beginning.
    pub start: Span,
    /// The program at both ends.
    pub program: Program,
}

/// What generates a bulk download.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Program {
    /// Our own sender and receiver.
    #[default]
    Own,
    /// `iperf3`.
    Iperf3,
}

/// Datagrams at a fixed interval.
#[derive(Clone, Copy, Debug)]
pub struct ProbeSpec {
    /// From one to the next.
    pub every: Span,
    /// UDP payload; at least 8 bytes are sent.
    pub payload: Bytes,
}

/// Small objects over new connections at a fixed interval.
#[derive(Clone, Debug)]
pub struct FetchSpec {
    /// From one to the next.
    pub every: Span,
    /// Size of the object.
    pub size: Bytes,
    /// The kernel's name of the server's congestion control.
    pub congestion: String,
}

/// A program that acts on the access point.
#[derive(Clone, Debug)]
pub struct AgentSpec {
    /// The program.
    pub program: PathBuf,
    /// Its arguments. `{driver}` becomes the path of the emulated driver's socket, `{iface}` the name of the wireless
    /// interface and `{wire}` that of the wired one. The program connects to the socket once it is ready.
    pub arguments: Vec<String>,
}

impl Spec {
    /// Everything that can be found wrong before anything is built.
    pub fn check(&self) -> Result<()> {
        let wrong = |why: String| Err(LabError::Spec(why));
        if self.stations == 0 || self.stations >= MAX_NODES {
            return wrong(format!("{} stations: the lab has room for 1 to {}", self.stations, MAX_NODES - 1));
        }
        if self.duration.is_zero() || self.sample_every.is_zero() {
            return wrong("duration and sampling interval must be longer than zero".into());
        }
        if self.family == Family::V6 && !std::path::Path::new("/proc/sys/net/ipv6").exists() {
            return wrong("the scenario wants IPv6, and this kernel has none".into());
        }
        let LastHop::Wired { down, up } = &self.hop;
        if [&self.wire_down, &self.wire_up, down, up].iter().any(|line| line.rate.is_zero()) {
            return wrong("a wire with a rate of zero carries nothing".into());
        }
        for flow in &self.bulk {
            if flow.station >= self.stations {
                return wrong(format!("a flow to station {} of {}, counted from 0", flow.station, self.stations));
            }
            if flow.start >= self.duration {
                return wrong(format!("a flow that starts at {} in a run of {}", flow.start, self.duration));
            }
        }
        if self.probes.is_some_and(|probes| probes.every.is_zero() || probes.payload > Bytes::new(1400)) {
            return wrong("probes need an interval longer than zero and a payload of at most 1400 B".into());
        }
        if self.fetches.as_ref().is_some_and(|fetches| fetches.every.is_zero()) {
            return wrong("fetches need an interval longer than zero".into());
        }
        self.check_congestion()
    }

    fn check_congestion(&self) -> Result<()> {
        let wanted = self.bulk.iter().map(|flow| &flow.congestion);
        for name in wanted.chain(self.fetches.iter().map(|fetches| &fetches.congestion)) {
            if !has_congestion_control(name) {
                return Err(LabError::Missing {
                    what: format!("the kernel's congestion control {name:?}"),
                    get: format!("load its module (modprobe tcp_{name}), or use a kernel that has it"),
                });
            }
        }
        Ok(())
    }
}

/// True if the running kernel offers congestion control `name`.
pub(crate) fn has_congestion_control(name: &str) -> bool {
    let offered = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    offered.split_whitespace().any(|offer| offer == name)
}
