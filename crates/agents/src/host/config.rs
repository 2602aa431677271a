//! What an operator may choose, and what there is to say at the end.

use super::neighbours::{Destination, NOTICE_PORT, Refused};
use crate::service::{Error, Say};
use lasthop_signals::MacAddress;
use serde::Serialize;
use std::path::PathBuf;

/// How windows are bounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// By a congestion control that is the kernel's CUBIC within bounds (struct_ops): exact, upper and lower.
    Within,
    /// By a clamp that is set once a round trip: upper bounds only.
    Clamp,
}

/// A host agent's configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The agent bounds uploads that leave by this interface.
    pub iface: String,
    /// Connections of programs in this cgroup (version 2) are adopted.
    pub cgroup: PathBuf,
    /// How windows are bounded; `None`: by the better way that the kernel has.
    pub way: Option<Way>,
    /// The file of the network's key; without one nobody is told and nobody heard.
    pub key: Option<PathBuf>,
    /// The network's BSSID; `None`: what the driver says.
    pub bssid: Option<MacAddress>,
    /// Where notices go.
    pub destination: Destination,
    /// The port of notices.
    pub port: u16,
    /// Where the log goes.
    pub log: Option<PathBuf>,
    /// Give up all privileges once everything is open.
    pub drop_privileges: bool,
    /// The user, by name or number, that the process becomes then; `None` to keep its own. Only with `drop_privileges`.
    pub user: Option<String>,
    /// Receives messages about what happens meanwhile.
    pub say: Say,
}

impl Config {
    /// An agent for the uploads of a cgroup's programs through an interface, with defaults for the rest.
    pub fn new(iface: impl Into<String>, cgroup: impl Into<PathBuf>) -> Config {
        Config {
            iface: iface.into(),
            cgroup: cgroup.into(),
            way: None,
            key: None,
            bssid: None,
            destination: Destination::default(),
            port: NOTICE_PORT,
            log: None,
            drop_privileges: true,
            user: None,
            say: |_| {},
        }
    }

    pub(super) fn validate(&self) -> Result<(), Error> {
        let refuse = |key, got: String, bound| Err(Error::Config { key, got, bound });
        if self.port == 0 {
            return refuse("port", "0".into(), "from 1 to 65535");
        }
        match self.bssid {
            Some(MacAddress(octets)) if octets[0] & 1 == 1 || octets == [0; 6] => refuse(
                "bss",
                MacAddress(octets).to_string(),
                "the address of an access point: neither zero nor a group's",
            ),
            _ => Ok(()),
        }
    }
}

/// What a host's agent did: its account of itself, as serialised.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// How windows were bounded.
    pub way: Way,
    /// Times that it looked at its connections.
    pub looks: u64,
    /// Connections that were adopted.
    pub adopted: u64,
    /// Connections that had bounds at some time.
    pub bounded: u64,
    /// Most terminals that sent at once, this one included.
    #[serde(rename = "most_terminals")]
    pub terminals: u32,
    /// Notices sent.
    pub told: u64,
    /// Notices of others that counted.
    pub heard: u64,
    /// Datagrams without influence.
    #[serde(serialize_with = "Refused::as_total")]
    pub refused: Refused,
    /// Times that the network changed.
    pub moves: u64,
    /// The log is incomplete for this reason.
    #[serde(skip)]
    pub log_error: Option<Error>,
}

impl Summary {
    pub(crate) fn new(way: Way) -> Summary {
        Summary {
            way,
            looks: 0,
            adopted: 0,
            bounded: 0,
            terminals: 1,
            told: 0,
            heard: 0,
            refused: Refused::default(),
            moves: 0,
            log_error: None,
        }
    }
}
