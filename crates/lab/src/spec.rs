//! What a run is made of.

use crate::address::{self, Family, MAX_NODES};
use crate::error::{LabError, Result};
use crate::topology;
use crate::traffic::iperf3;
use lasthop_radio::wifi::Role;
use lasthop_radio::wired;
use lasthop_scenario::{Hop, Program, Scenario, SetUp, Stream, StreamKind};
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use socket2::{Domain, Socket, Type};
use std::fs;
use std::path::PathBuf;

/// A run: hosts, hops, traffic.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The wire from server to access point, equal in both directions.
    pub wire: wired::Params,
    /// The last hop: a BSS, or a cable to each station.
    pub hop: Hop,
    /// The stations' names; nodes 1, 2… of the last hop.
    pub stations: Vec<String>,
    /// IP version of all traffic.
    pub family: Family,
    /// What the server sends.
    pub streams: Vec<Stream>,
    /// The kernel's name of the congestion control of the server's TCP senders.
    pub congestion: String,
    /// How long the run lasts.
    pub duration: Span,
    /// The first part of it, which no figure covers.
    pub warm_up: Span,
    /// Seed of the hop's random draws.
    pub seed: Seed,
    /// A program to run in the access point's namespace.
    pub agent: Option<AgentSpec>,
    /// Programs that carry the TCP streams over the hop; without them TCP goes from end to end.
    pub tunnel: Option<TunnelSpec>,
    /// The wire ends at a link of its own to the access point, which the lab does not have.
    pub backhaul: bool,
    /// Stations with a monitor interface, by their place in `stations`: on a Wi-Fi hop only.
    pub monitors: Vec<usize>,
}

/// An edge proxy and the agents of the stations.
///
/// In their arguments `{keys}` becomes the proxy's file of keys, `{key}` that of the station's own key, `{station}` the station's
/// number, `{proxy}` the address at which stations reach the proxy, `{door}` that at which a station's agent takes requests
/// (HTTP CONNECT), `{monitor}` the station's monitor interface, `{log}` a file for the proxy's log, and `{station_log}` one for
/// the station's.
#[derive(Clone, Debug)]
pub struct TunnelSpec {
    /// The program.
    pub program: PathBuf,
    /// Makes a station's key; run once for each station before the others start.
    pub pair: Vec<String>,
    /// The proxy, in the access point's namespace.
    pub proxy: Vec<String>,
    /// A station's agent, in its namespace. It listens at `{door}` as soon as it runs.
    pub station: Vec<String>,
    /// Further arguments of a station's agent for each port `{local}` of its own that is to lead to `{target}`: for programs
    /// that cannot ask for a connection.
    pub forward: Vec<String>,
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
    /// One run of `scenario` under `law`, without an agent. The wire, the hop and what crosses them are the
    /// scenario's.
    pub fn of(scenario: &Scenario, law: &SetUp, seed: u64) -> Spec {
        Spec {
            wire: scenario.wire(),
            hop: scenario.hop_under(law),
            stations: scenario.stations().to_vec(),
            family: Family::V4,
            streams: scenario.streams_for(Seed(seed)),
            congestion: law.sender(SetUp::SERVER).congestion().to_owned(),
            duration: scenario.duration(),
            warm_up: scenario.warm_up(),
            seed: Seed(seed),
            agent: None,
            tunnel: None,
            backhaul: scenario.backhaul().is_some(),
            monitors: scenario.monitors().to_vec(),
        }
    }

    /// The address of each station on the last hop, node 1 first.
    pub fn station_addresses(&self) -> impl Iterator<Item = std::net::IpAddr> + '_ {
        (0..self.stations.len()).map(|place| address::ip(self.family, topology::LAST, Scenario::station_node(place)))
    }

    /// Everything that can be found wrong before anything is built.
    ///
    /// # Errors
    /// [`LabError::Spec`], or [`LabError::Missing`] for what the machine lacks.
    pub fn check(&self) -> Result<()> {
        let wrong = |why: String| Err(LabError::Spec(why));
        if self.stations.is_empty() || self.stations.len() >= usize::from(MAX_NODES) {
            return wrong(format!("{} stations: the lab has room for 1 to {}", self.stations.len(), MAX_NODES - 1));
        }
        if self.duration.is_zero() || self.warm_up >= self.duration {
            return wrong(format!("a warm-up of {} in a run of {}", self.warm_up, self.duration));
        }
        if self.family == Family::V6 && !std::path::Path::new("/proc/sys/net/ipv6").exists() {
            return wrong("IPv6 is wanted, and this kernel has none".into());
        }
        if self.backhaul {
            return wrong("the lab has no backhaul of its own: use the simulator (--world sim)".into());
        }
        if let Some(place) = self.monitors.iter().find(|place| **place >= self.stations.len()) {
            return wrong(format!("a monitor interface for station {place} of {}", self.stations.len()));
        }
        if matches!(self.hop, Hop::Wired(_)) && !self.monitors.is_empty() {
            return wrong("a monitor interface on a hop of cables, which has no radio".into());
        }
        let last = match &self.hop {
            Hop::Wired(hop) => hop.down.rate.min(hop.up.rate),
            Hop::Wifi(plan) if plan.params().nodes.len() <= self.stations.len() => {
                return wrong(format!(
                    "{} stations on a hop with {} nodes",
                    self.stations.len(),
                    plan.params().nodes.len()
                ));
            }
            Hop::Wifi(plan) if plan.params().nodes.iter().filter(|node| node.role == Role::Ap).count() > 1 => {
                return wrong("several access points on the hop, and the lab has one: use the simulator".into());
            }
            Hop::Wifi(_) => Rate::MAX,
        };
        if self.wire.rate.min(last).is_zero() {
            return wrong("a wire with a rate of zero carries nothing".into());
        }
        self.streams.iter().try_for_each(|stream| self.check_stream(stream))?;
        let tcp = |stream: &Stream| !matches!(stream.kind, StreamKind::Probe { .. });
        if self.streams.iter().any(tcp) && !has_congestion_control(&self.congestion) {
            return Err(LabError::Missing {
                what: format!("the kernel's congestion control {:?}", self.congestion),
                get: format!("load its module (modprobe tcp_{}), or use a kernel that has it", self.congestion),
            });
        }
        Ok(())
    }

    fn check_stream(&self, stream: &Stream) -> Result<()> {
        let wrong = |why: String| Err(LabError::Spec(why));
        if receiver(stream) >= self.stations.len() {
            return wrong(format!("a stream to station {} of {}", receiver(stream), self.stations.len()));
        }
        if stream.stop <= stream.start || stream.stop > Time::ZERO + self.duration {
            return wrong(format!(
                "a stream from {:?} to {:?} in a run of {}",
                stream.start, stream.stop, self.duration
            ));
        }
        match stream.kind {
            StreamKind::Bulk { program: Program::Iperf3, .. } if !iperf3::is_installed() => Err(LabError::Missing {
                what: "the program iperf3".into(),
                get: "install it (on Debian: apt-get install iperf3), or let the traffic have program = \"own\"".into(),
            }),
            StreamKind::Probe { size, .. } if size > LARGEST_PROBE => {
                wrong(format!("probes of {size}: the lab sends at most {LARGEST_PROBE}, which fits one packet"))
            }
            StreamKind::Probe { every, .. } | StreamKind::Fetch { every, .. } if every.is_zero() => {
                wrong("an interval of zero".into())
            }
            StreamKind::Udp { .. } => wrong("the lab has no UDP load: use the simulator, or bulk traffic".into()),
            _ => Ok(()),
        }
    }
}

/// The station that receives a stream, as its place among the stations.
pub(crate) fn receiver(stream: &Stream) -> usize {
    stream.to.index().wrapping_sub(Scenario::station_host(0).index())
}

/// UDP payload that fits one packet of either IP version.
const LARGEST_PROBE: Bytes = Bytes::new(1452);

/// True if the running kernel has congestion control `name`. The list holds those that are registered; one that is a module,
/// as BBR is in Debian's kernels, is loaded when root asks a socket for it (tcp_set_congestion_control).
pub(crate) fn has_congestion_control(name: &str) -> bool {
    let offered = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    let loads = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None);
        socket.and_then(|socket| socket.set_tcp_congestion(name.as_bytes())).is_ok()
    };
    offered.split_whitespace().any(|offer| offer == name) || loads()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_congestion_control_is_known_by_its_name_and_an_invented_one_is_not() {
        assert!(has_congestion_control("reno"), "every kernel has Reno built in");
        assert!(!has_congestion_control("lasthop-none"));
    }
}
