//! What an agent is told, and what it tells in the end.

use super::abi::Counters;
use super::agent::Tally;
use super::status::State;
use crate::service::status::Viewer;
use crate::service::{self, Method, Say};
use lasthop_signals::Node;
use lasthop_units::Span;
use serde::Serialize;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// How an agent runs.
#[derive(Clone, Debug)]
pub struct Config {
    /// The wireless interface.
    pub iface: String,
    /// Path of a driver's socket (see [`lasthop_wire::driver`]); without one, the kernel's own counters of the interface: nl80211 and
    /// qdiscs.
    pub driver: Option<PathBuf>,
    /// Which address belongs to which station, where driver and neighbour table do not say so or are not to be believed.
    /// Flows of addresses that nobody knows are left alone.
    pub stations: Vec<(IpAddr, Node)>,
    /// Neither heartbeats nor driver reports older than this count: everything passes untouched then. 20 to 500 ms.
    pub age_limit: Span,
    /// Flows that are followed at once; the least recently used one makes room. 128 to 1048576.
    pub max_flows: u32,
    /// How to attach.
    pub method: Method,
    /// Act on nothing: observe, decide and log what would be done. No segment is changed.
    pub shadow: bool,
    /// Begin although something may carry packets past the programs ([`super::bypasses`]).
    pub allow_offload: bool,
    /// These are shown the agent's status as it runs.
    pub viewers: Vec<Arc<dyn Viewer<State>>>,
    /// Where to write the decision log (JSON lines), if anywhere.
    pub log: Option<PathBuf>,
    /// Receives messages about what happens while the agent runs.
    pub say: Say,
    /// Give up every capability that is not needed any more, once attached. It is the calling thread that loses them,
    /// for good.
    pub drop_privileges: bool,
}

impl Config {
    /// An agent on `iface` with the kernel's counters and defaults for everything else.
    pub fn new(iface: impl Into<String>) -> Config {
        Config {
            iface: iface.into(),
            driver: None,
            stations: Vec::new(),
            age_limit: Span::from_millis(500),
            max_flows: 4096,
            method: Method::Best,
            shadow: false,
            allow_offload: false,
            viewers: Vec::new(),
            log: None,
            say: |_| {},
            drop_privileges: true,
        }
    }

    /// Checks what can be checked without touching anything.
    ///
    /// # Errors
    /// [`service::Error::Config`].
    pub fn validate(&self) -> Result<(), service::Error> {
        let refuse = |key, got: String, bound| Err(service::Error::Config { key, got, bound });
        if !(Span::from_millis(20)..=Span::from_millis(500)).contains(&self.age_limit) {
            return refuse("age_limit", self.age_limit.to_string(), "20 ms to 500 ms");
        }
        if !(128..=1 << 20).contains(&self.max_flows) {
            return refuse("max_flows", self.max_flows.to_string(), "128 to 1048576");
        }
        Ok(())
    }
}

/// What an agent has done: its account of itself, as serialised.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// How it was attached.
    pub method: Method,
    /// It was in shadow mode: what it ordered was not done.
    pub shadow: bool,
    /// What its loop did.
    #[serde(flatten)]
    pub tally: Tally,
    /// What its eBPF program counted.
    #[serde(flatten)]
    pub counters: Counters,
    /// Why the decision log ended early, if it did.
    #[serde(skip)]
    pub log_error: Option<service::Error>,
}
