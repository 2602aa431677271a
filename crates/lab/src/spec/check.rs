//! What can be found wrong with a run before anything is built, and what of a scenario only the simulator has.

use super::Spec;
use crate::address::{Family, MAX_NODES};
use crate::congestion;
use crate::error::{LabError, Result};
use crate::tap::MTU;
use crate::traffic::iperf3;
use lasthop_laws::pbe::OF_SENDERS;
use lasthop_laws::{Choice, Place, Transport};
use lasthop_radio::LastHop;
use lasthop_scenario::graph::Medium;
use lasthop_scenario::{MeshRouting, Program, Scenario, SetUp, Stream, StreamKind};
use lasthop_units::{Bytes, Rate, Span, Time};
use std::collections::BTreeSet;

/// As many ports as a relay looks at.
const MOST_CARRIED: usize = 8;
/// A link's number is one octet of its addresses.
const MOST_LINKS: usize = 250;

/// What the lab does not have of a scenario under a law.
pub(super) fn beyond(scenario: &Scenario, law: &SetUp) -> Option<String> {
    if law.regulator().is_some() && (scenario.backhaul().is_some() || scenario.access_points().len() > 1) {
        return Some("the lab's edge proxy stands at the one access point".to_owned());
    }
    if scenario.mesh_routing() != MeshRouting::Static {
        return Some("the lab's meshes have static routes".to_owned());
    }
    let terminals = law.parts.iter().any(|part| part.place == Place::Terminal);
    if terminals && scenario.is_mesh() {
        return Some("the lab's mesh stations run no law that bounds the windows of their own connections".to_owned());
    }
    if law.senders().any(|sender| sender.transport() == Transport::Atp) && !scenario.is_mesh() {
        return Some("the lab has relays of ATP in meshes only".to_owned());
    }
    if let Some(beyond) = beyond_telling(scenario, law) {
        return Some(beyond.to_owned());
    }
    // The kernel's congestion control has parameters of its own, or none; of ATP's, the variant is what a program can be told; PBE-CC's agents take all.
    let told = |law: &Choice, key: &str| match law.transport() {
        Transport::ReceiverFeedback => true,
        Transport::Atp => key == "variant",
        Transport::Tcp(_) => false,
    };
    let adjusted = law.senders().find(|law| law.settings().iter().any(|(key, _)| !told(law, key)))?;
    Some(match adjusted.transport() {
        Transport::TCP if !adjusted.is_ours_alone() => {
            format!("senders are the kernel's, whose {} takes no parameters from a scenario", adjusted.name())
        }
        _ => format!("the lab's senders by {} take no parameters from a scenario but ATP's variant", adjusted.name()),
    })
}

/// What the lab does not have where senders are told a capacity: the agents of stations read the control channels of a cell, know one number of
/// their station, and have one law for all of its connections.
fn beyond_telling(scenario: &Scenario, law: &SetUp) -> Option<&'static str> {
    let mut told = law.senders().filter(|sender| sender.transport() == Transport::ReceiverFeedback).peekable();
    let first = *told.peek()?;
    let LastHop::Cell(plan) = scenario.hop() else {
        return Some("the lab has receivers that tell capacity in cells only");
    };
    let changes_cell = plan.params().stations.iter().any(|station| station.decodes && !station.handovers.at.is_empty());
    if changes_cell {
        return Some("the lab's receivers that tell capacity do not follow their number through handovers");
    }
    let receivers = |sender: &Choice| -> Vec<_> {
        let values = sender.values().into_iter();
        values.filter(|(param, _)| !OF_SENDERS.contains(&param.key)).map(|(_, value)| value).collect()
    };
    let differ = told.any(|sender| receivers(sender) != receivers(first));
    differ.then_some("a receiver that tells capacity has one set of parameters in the lab, whoever sends")
}

impl Spec {
    /// Everything that can be found wrong before anything is built.
    ///
    /// # Errors
    /// [`LabError::Spec`], or [`LabError::Missing`] for what the machine lacks.
    pub fn check(&self) -> Result<()> {
        let wrong = |why: String| Err(LabError::Spec(why));
        if self.stations().is_empty() || self.stations().len() >= usize::from(MAX_NODES) {
            return wrong(format!("{} stations: the lab has room for 1 to {}", self.stations().len(), MAX_NODES - 1));
        }
        if self.duration.is_zero() || self.warm_up >= self.duration {
            return wrong(format!("a warm-up of {} in a run of {}", self.warm_up, self.duration));
        }
        if self.family == Family::V6 && !std::path::Path::new("/proc/sys/net/ipv6").exists() {
            return wrong("IPv6 is wanted, and this kernel has none".into());
        }
        if let Some(what) = &self.beyond {
            return wrong(format!("{what}: use the simulator (--world sim)"));
        }
        if self.congestion.len() < self.hosts() {
            return wrong(format!("congestion controls for {} of {} hosts", self.congestion.len(), self.hosts()));
        }
        if let Some(place) = self.monitors.iter().find(|place| **place >= self.stations().len()) {
            return wrong(format!("a monitor interface for station {place} of {}", self.stations().len()));
        }
        if !matches!(self.hop, LastHop::Wifi(_)) && !self.monitors.is_empty() {
            return wrong("a monitor interface on a hop that has no radio".into());
        }
        let nodes = self.hop.plan().nodes(self.stations().len());
        if nodes <= self.stations().len() {
            return wrong(format!("{} stations on a hop with {nodes} nodes", self.stations().len()));
        }
        let cables = self.graph.links.iter().filter_map(|link| match &link.medium {
            Medium::Cable(cable) => Some(cable.lines[0].rate.min(cable.lines[1].rate)),
            Medium::LastHop => None,
        });
        if cables.chain([self.hop.plan().least_rate()]).any(Rate::is_zero) {
            return wrong("a wire with a rate of zero carries nothing".into());
        }
        let ends = self.graph.links.iter().flat_map(|link| link.ends.iter().rposition(Option::is_some));
        if let Some(node) = ends.max().filter(|node| *node >= usize::from(MAX_NODES)) {
            return wrong(format!("node {node} of a hop: the lab has room for {MAX_NODES}"));
        }
        if self.graph.links.len() > MOST_LINKS {
            return wrong(format!("{} links: the lab has room for {MOST_LINKS}", self.graph.links.len()));
        }
        self.streams.iter().try_for_each(|stream| self.check_stream(stream))?;
        if self.carried_ports().count() > MOST_CARRIED {
            return wrong(format!("more than {MOST_CARRIED} transfers to one host over UDP"));
        }
        let over_tcp = |kind| matches!(kind, StreamKind::Bulk { .. } | StreamKind::Fetch { .. });
        let over_kernel = |stream: &&Stream| over_tcp(stream.kind) && self.carrier(stream).is_none();
        let senders = self.streams.iter().filter(over_kernel).map(|stream| stream.from.index());
        senders.collect::<BTreeSet<usize>>().into_iter().try_for_each(|host| self.check_congestion(host))
    }

    /// As [`Spec::check`], for a world in which every host may open connections of any kind.
    ///
    /// # Errors
    /// As [`Spec::check`].
    pub fn check_for_programs(&self) -> Result<()> {
        self.check()?;
        (0..self.hosts()).try_for_each(|host| self.check_congestion(host))
    }

    fn check_congestion(&self, host: usize) -> Result<()> {
        let name = &self.congestion[host];
        if self.programs.iter().any(|program| program.brings.as_ref() == Some(name)) || congestion::exists(name) {
            return Ok(());
        }
        Err(congestion::absent(name))
    }

    fn check_stream(&self, stream: &Stream) -> Result<()> {
        let wrong = |why: String| Err(LabError::Spec(why));
        if let Some(host) = [stream.from, stream.to].into_iter().find(|host| host.index() >= self.hosts()) {
            return wrong(format!("a stream of host {} of {}", host.0, self.hosts()));
        }
        if stream.from == stream.to {
            return wrong(format!("a stream from {} to itself", self.host_name(stream.from)));
        }
        if stream.stop <= stream.start || stream.stop > Time::ZERO + self.duration {
            return wrong(format!(
                "a stream from {:?} to {:?} in a run of {}",
                stream.start, stream.stop, self.duration
            ));
        }
        let carried = self.carriers.get(stream.from.index()).is_some_and(Option::is_some);
        match stream.kind {
            StreamKind::Bulk { program: Program::Iperf3, .. } if carried => {
                wrong("iperf3 sends over the kernel's TCP: let the traffic have program = \"own\"".into())
            }
            StreamKind::Bulk { send_buffer: Some(_), .. } if carried => {
                wrong("a send buffer is one of the kernel's TCP: leave it out".into())
            }
            StreamKind::Fetch { .. } if carried => {
                wrong("fetches from a host whose transport is not the kernel's: use the simulator (--world sim)".into())
            }
            StreamKind::Bulk { program: Program::Iperf3, .. } if !iperf3::is_installed() => Err(LabError::Missing {
                what: "the program iperf3".into(),
                get: "install it (on Debian: apt-get install iperf3), or let the traffic have program = \"own\"".into(),
            }),
            StreamKind::Probe { size, .. } | StreamKind::Udp { size, .. } if size > self.largest_datagram() => {
                let most = self.largest_datagram();
                wrong(format!("datagrams of {size}: the lab sends at most {most}, which fits one packet"))
            }
            StreamKind::Probe { every, .. } | StreamKind::Fetch { every, .. } if every.is_zero() => {
                wrong("an interval of zero".into())
            }
            StreamKind::Udp { rate: None, .. } => {
                let why =
                    "in the lab UDP traffic needs a rate of its own: give it one, or use the simulator (--world sim)";
                wrong(why.into())
            }
            StreamKind::Udp { .. } if stream.every().is_none_or(Span::is_zero) => {
                wrong("UDP traffic with a rate of zero, or without end".into())
            }
            _ => Ok(()),
        }
    }

    /// UDP payload that fits one packet.
    fn largest_datagram(&self) -> Bytes {
        let headers = match self.family {
            Family::V4 => 28,
            Family::V6 => 48,
        };
        Bytes::new(u64::from(MTU) - headers)
    }
}
