//! What an operator may choose, and what there is to say at the end.

use crate::pbe::Logs;
use crate::service::{Error, Say};
use crate::tunnel::path::Unsent;
use lasthop_laws::aggregation::SLOT;
use lasthop_units::Span;
use lasthop_wire::proxy::Target;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A port of this machine that leads through the tunnel to one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// Where programs connect to.
    pub listen: SocketAddr,
    /// Where that leads.
    pub target: Target,
}

/// A station's configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the proxy is (UDP).
    pub proxy: SocketAddr,
    /// Where else it may be: tried in turn with `proxy`, until one has answered.
    pub more: Vec<SocketAddr>,
    /// The file of the station's key.
    pub key: PathBuf,
    /// Where local programs find SOCKS5 and HTTP CONNECT.
    pub listen: Option<SocketAddr>,
    /// Ports that lead to one target each.
    pub forwards: Vec<Forward>,
    /// Transparent mode: connections of the processes in this cgroup (version 2) are led through the tunnel.
    pub transparent: Option<PathBuf>,
    /// Ports of this machine to which the proxy may bring connections that others make to this station.
    pub serve: Vec<u16>,
    /// Monitor interface that shows the frames received.
    pub monitor: Option<String>,
    /// What decoders write of the cell that this station is in: then it tells of that, and of no slots.
    pub cell: Option<Logs>,
    /// Length of a slot; the law at the proxy must have the same.
    pub slot: Span,
    /// Keys are renewed when they are as old as this.
    pub renew: Span,
    /// Where the log goes.
    pub log: Option<PathBuf>,
    /// Ask for real-time scheduling.
    pub realtime: bool,
    /// Give up all privileges once the sockets are open.
    pub drop_privileges: bool,
    /// The user, by name or number, that the process becomes then; `None` to keep its own. Only with `drop_privileges`.
    pub user: Option<String>,
    /// Receives messages about what happens meanwhile.
    pub say: Say,
}

impl Config {
    /// A configuration with the defaults.
    pub fn new(proxy: SocketAddr, key: PathBuf) -> Config {
        Config {
            proxy,
            more: Vec::new(),
            key,
            listen: None,
            forwards: Vec::new(),
            transparent: None,
            serve: Vec::new(),
            monitor: None,
            cell: None,
            slot: SLOT,
            renew: crate::tunnel::keyring::RENEW_AFTER,
            log: None,
            realtime: false,
            drop_privileges: true,
            user: None,
            say: |_| {},
        }
    }

    /// All addresses that the proxy may have.
    pub(super) fn proxies(&self) -> impl Iterator<Item = SocketAddr> {
        std::iter::once(self.proxy).chain(self.more.iter().copied())
    }

    pub(super) fn validate(&self) -> Result<(), Error> {
        if let Some(nowhere) = self.proxies().find(|proxy| proxy.port() == 0) {
            let (key, got) = ("proxy", nowhere.to_string());
            return Err(Error::Config { key, got, bound: "an address with a port other than 0" });
        }
        if !(Span::from_millis(10)..=Span::from_secs(60)).contains(&self.slot) {
            let (key, got) = ("slot", self.slot.to_string());
            return Err(Error::Config { key, got, bound: "from 10 ms to 60 s" });
        }
        self.cell.iter().try_for_each(Logs::validate)?;
        if self.cell.is_some()
            && let Some(got) = &self.monitor
        {
            let bound = "left out with --dci: a station tells either of a cell or of frames";
            return Err(Error::Config { key: "monitor", got: got.clone(), bound });
        }
        if !(Span::from_secs(1)..=crate::tunnel::keyring::RENEW_AFTER).contains(&self.renew) {
            let (key, got) = ("renew", self.renew.to_string());
            return Err(Error::Config { key, got, bound: "from 1 s to 120 s" });
        }
        Ok(())
    }
}

/// What a station did.
#[derive(Debug, Default)]
pub struct Summary {
    /// Sessions with the proxy.
    pub sessions: u64,
    /// Sessions that went on with other keys, counted as often as they did.
    pub renewals: u64,
    /// Connections of local programs that came through.
    pub connections: u64,
    /// Packets received.
    pub packets: u64,
    /// Datagrams that were refused: wrong key, repeated, or no datagram of ours.
    pub refused: u64,
    /// Datagrams that the kernel did not take.
    pub unsent: Unsent,
    /// Subframes of the cell, and rows of its logs that make no sense; `None` for a station that does not tell of a cell.
    pub cell: Option<(u64, u64)>,
    /// From the proxy to here: median and 95th percentile.
    pub hop_delay: Option<(Span, Span)>,
    /// From the server to the local program: median and 95th percentile.
    pub data_delay: Option<(Span, Span)>,
    /// The log is incomplete for this reason.
    pub log_error: Option<Error>,
}
