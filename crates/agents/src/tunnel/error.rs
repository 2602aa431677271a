//! What can go wrong with a proxy, a station, a host or a node of a mesh.

use super::keys::KeyError;
use crate::service::remedy;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a proxy, a station, a host or a node could not start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Keys.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// An address that cannot be had.
    #[error("{what} {address}: {source}{}", remedy::of_address(source))]
    Address {
        /// What it was to be.
        what: &'static str,
        /// The address.
        address: SocketAddr,
        /// What failed.
        source: io::Error,
    },
    /// A value of the configuration that cannot be.
    #[error("{key} = {got} must be {bound}")]
    Config {
        /// Which value.
        key: &'static str,
        /// What it is.
        got: String,
        /// What it may be.
        bound: &'static str,
    },
    /// The law's parameters.
    #[error("these parameters make no law: {0}")]
    Law(#[from] lasthop_laws::ParamError),
    /// The law itself.
    #[error("the law cannot be built: {0}")]
    Build(#[from] lasthop_laws::BuildError),
    /// The log.
    #[error("log {path}: {source}{}", remedy::of_output(source))]
    Log {
        /// Where it is.
        path: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// The transparent mode.
    #[error("transparent mode: {0}")]
    Transparent(String),
    /// Bounds on the windows of this machine's uploads.
    #[error("bounds on windows: {0}")]
    Bounds(String),
    /// Routes of this machine, or the interface that they lead through.
    #[error("routes: {0}")]
    Routes(String),
    /// A relay, or the interfaces that it is at.
    #[error("relay: {0}")]
    Relay(String),
    /// PBE-CC on kernel TCP, or the log of a cell that it needs.
    #[error("PBE: {0}")]
    Pbe(String),
    /// Privileges, or the eBPF programs that take them.
    #[error(transparent)]
    Kernel(#[from] crate::ap::Error),
    /// The kernel's list of sockets.
    #[error(transparent)]
    Sockets(#[from] crate::host::HostError),
    /// The monitor interface.
    #[error("monitor interface: {0}")]
    Monitor(Box<dyn std::error::Error + Send + Sync>),
    /// The monitor interface, which an ordinary user may not open.
    #[error(
        "monitor interface: {0} (`--user NAME` gives all rights up once it is open); or leave it out: without a monitor \
         interface, frames are told from the arrival times of packets, which needs no right"
    )]
    MonitorRight(Box<dyn std::error::Error + Send + Sync>),
    /// A kernel interface that always works did not.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What failed.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: what was tried when a system call failed.
    pub fn system(what: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::System { what, source }
    }
}
