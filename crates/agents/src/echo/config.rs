//! What an operator may choose, and what is counted.

use crate::service::counters::counters;
use crate::service::status::Viewer;
use lasthop_laws::Choice;
use lasthop_laws::echo::LAW;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Where probes go: unassigned, and below those that the kernel gives out.
pub const PORT: u16 = 19_529;

/// How an agent runs.
#[derive(Clone, Debug)]
pub struct Config {
    /// The interface at which probes are answered.
    pub iface: String,
    /// The UDP port of probes.
    pub port: u16,
    /// A neighbour that is asked ten times a second.
    pub ask: Option<Ipv4Addr>,
    /// The law of the answers.
    pub law: Choice,
    /// Shown the status, twice a second.
    pub viewers: Vec<Arc<dyn Viewer<()>>>,
    /// Give up all privileges once everything is open.
    pub drop_privileges: bool,
    /// The user, by name or number, that the process becomes then; `None` to keep its own. Only with `drop_privileges`.
    pub user: Option<String>,
}

impl Config {
    /// An agent at an interface, with defaults for the rest.
    pub fn new(iface: &str) -> Config {
        Config {
            iface: iface.to_owned(),
            port: PORT,
            ask: None,
            law: Choice::of(&LAW),
            viewers: Vec::new(),
            drop_privileges: true,
            user: None,
        }
    }
}

counters! {
    /// What an agent did: its account of itself, as serialised.
    pub struct Tally {
        /// Probes that were answered.
        pub answered: u64,
        /// Probes that came sooner than the law allows an answer.
        pub spared: u64,
        /// Datagrams without influence: no probes, no answers to ours, or from beyond the interface's networks.
        pub refused: u64,
        /// Probes that were sent.
        pub asked: u64,
        /// Answers to them.
        pub heard: u64,
        /// The longest that an answer took, microseconds.
        pub longest_round_trip_us: u64,
    }
}
