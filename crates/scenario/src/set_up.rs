//! A set-up: which laws run where. One row of a report.

use lasthop_laws::aggregation::{FRAMES, StationParams};
use lasthop_laws::{Choice, Parameters, Place, Transport};
use lasthop_radio::queue::HopQueue;
use lasthop_signals::FrameSource;

/// What the senders run, and what runs beside them.
#[derive(Clone, Debug, PartialEq)]
pub struct SetUp {
    /// The row's name in reports.
    pub name: String,
    /// The access point's queue in place of the hop's.
    pub queue: Option<HopQueue>,
    /// The laws. There is one for all senders; of several that a host could have, the one that names it counts.
    pub parts: Vec<Part>,
}

/// A law at a place.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Where it runs.
    pub place: Place,
    /// On which hosts.
    pub hosts: Hosts,
    /// The law, with what was set of it.
    pub law: Choice,
}

/// The hosts that a law runs on.
#[derive(Clone, Debug, PartialEq)]
pub enum Hosts {
    /// All that its place has, but for those that other parts name.
    All,
    /// These, by name, groups spelled out.
    Named(Vec<String>),
}

impl Hosts {
    fn name(&self, host: &str) -> bool {
        matches!(self, Hosts::Named(names) if names.iter().any(|name| name == host))
    }
}

impl SetUp {
    /// The server's name among hosts.
    pub const SERVER: &str = "server";
    /// The name of the hop's own access point.
    pub const AP: &str = "ap";

    /// One law for all senders, and nothing beside.
    pub fn bare(name: &str, sender: Choice) -> SetUp {
        let part = Part { place: Place::Sender, hosts: Hosts::All, law: sender };
        SetUp { name: name.to_owned(), queue: None, parts: vec![part] }
    }

    /// What runs at `place` on `host`: the part that names the host, or else that of all.
    pub fn part(&self, place: Place, host: &str) -> Option<&Part> {
        let own = || self.parts.iter().filter(move |part| part.place == place);
        own().find(|part| part.hosts.name(host)).or_else(|| own().find(|part| part.hosts == Hosts::All))
    }

    /// The congestion control of `host`'s TCP senders.
    ///
    /// # Panics
    /// Without a part for all senders, which every set-up of a scenario has.
    pub fn sender(&self, host: &str) -> &Choice {
        &self.part(Place::Sender, host).expect("a set-up says what all senders run").law
    }

    /// Every congestion control that any sender runs.
    pub fn senders(&self) -> impl Iterator<Item = &Choice> {
        self.parts.iter().filter(|part| part.place == Place::Sender).map(|part| &part.law)
    }

    /// The law of the agent on the hop's own access point, if it has one.
    pub fn agent(&self) -> Option<&Choice> {
        self.part(Place::AccessPoint, SetUp::AP).map(|part| &part.law)
    }

    /// True if the lab needs an agent with eBPF programs for it: on the access point, on stations that bound their own windows, on the
    /// nodes between senders of ATP, or at both ends of senders that are told a capacity.
    pub fn needs_programs(&self) -> bool {
        let needs = |sender: &Choice| matches!(sender.transport(), Transport::Atp | Transport::ReceiverFeedback);
        self.senders().any(needs)
            || self.agent().is_some()
            || self.parts.iter().any(|part| part.place == Place::Terminal)
    }

    /// The law of the edge proxy, if there is one.
    pub fn regulator(&self) -> Option<&Choice> {
        self.part(Place::Proxy, SetUp::SERVER).map(|part| &part.law)
    }

    /// What the agent on the station called `host` tells by: the proxy's law hears it.
    pub fn receiver(&self, host: &str) -> Choice {
        self.part(Place::Station, host).map_or_else(|| Choice::of(&FRAMES), |part| part.law.clone())
    }

    /// What the stations measure their frames by, for the proxy's law.
    pub fn frames(&self) -> FrameSource {
        let own = self.parts.iter().find(|part| part.place == Place::Station && part.law.name() == FRAMES.name);
        let params = own.and_then(|part| StationParams::with(part.law.settings()).ok());
        params.map_or_else(FrameSource::default, |params| params.measure)
    }
}
