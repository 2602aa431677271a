//! What can go wrong with an access point's agent.

use crate::service::remedy;
use std::io;
use std::path::PathBuf;

/// Why the agent could not start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This binary was built without the eBPF programs.
    #[error(
        "this build has no eBPF programs: rebuild with feature `bpf` (needs clang, libelf-dev, zlib1g-dev and pkg-config)"
    )]
    NotBuilt,
    /// No such interface in this network namespace.
    #[error("no interface {name} in this network namespace: `ip link` lists those there are")]
    NoInterface {
        /// The name asked for.
        name: String,
    },
    /// The interface's packets do not begin with Ethernet or IP.
    #[error(
        "{name} is of ARPHRD type {arphrd}: only Ethernet-like interfaces (1) and those without link header (65534) will do"
    )]
    LinkType {
        /// The interface.
        name: String,
        /// Its type.
        arphrd: u16,
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
    /// The process may not do what is needed.
    #[error("not allowed to use {what}: run as root, or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN")]
    Permission {
        /// What was refused.
        what: &'static str,
    },
    /// The kernel did not take the programs.
    #[error("the kernel did not load the eBPF programs: {source}\n{said}")]
    Load {
        /// What failed.
        source: Box<dyn std::error::Error + Send + Sync>,
        /// What libbpf and the verifier said.
        said: String,
    },
    /// The programs could not be attached.
    #[error("the eBPF programs could not be attached by {method}: {source} {said}")]
    Attach {
        /// TCX or clsact.
        method: &'static str,
        /// What failed.
        source: io::Error,
        /// What libbpf said.
        said: String,
    },
    /// The interface has an agent already.
    #[error(
        "another agent is attached to this interface: stop that one first (`ss -xp` shows who reads the driver's socket)"
    )]
    Busy,
    /// The programs are not attached any more.
    #[error(
        "the programs are not attached to {iface} any more: {why}. No window is lowered; start the agent again (as a service, \
         with a restart on failure)"
    )]
    Detached {
        /// The interface.
        iface: String,
        /// What has become of it.
        why: &'static str,
    },
    /// Packets may go past the programs, and no window would be lowered.
    #[error(
        "flows may be carried past the agent: {found}. Switch that off (nftables: no `flags offload;` in the flowtable; \
         OpenWrt: `uci set firewall.@defaults[0].flow_offloading_hw=0`, commit, restart the firewall), attach to the wireless \
         interface itself instead of a bridge, or use --allow-offload if it does not concern this interface"
    )]
    Offloaded {
        /// What does it, and where it is to be found.
        found: String,
    },
    /// A map could not be read or written.
    #[error("eBPF map: {source}")]
    Map {
        /// What failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The driver's socket.
    #[error("driver socket {path}: {source}{}", remedy::of_driver(source))]
    Driver {
        /// Where it is.
        path: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// A wireless interface that is no access point's.
    #[error(
        "{iface} is a wireless interface, but no access point's: `lasthop ap` runs where stations associate (`iw dev` shows `type AP`)"
    )]
    NotAccessPoint {
        /// The interface.
        iface: String,
    },
    /// An interface in which packets never wait.
    #[error(
        "{iface} has no queue of its own (`tc qdisc show dev {iface}`: noqueue), so its hop cannot be known: name the interface \
         where packets wait, give it a qdisc, or name a driver's socket with --driver"
    )]
    NoQueue {
        /// The interface.
        iface: String,
    },
    /// The decision log.
    #[error("decision log {path}: {source}{}", remedy::of_output(source))]
    Log {
        /// Where it is.
        path: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// Privileges could not be dropped.
    #[error("privileges could not be dropped: {0}")]
    Privileges(io::Error),
    /// No such user.
    #[error("there is no user {name} on this machine: `getent passwd` lists those there are")]
    NoUser {
        /// The name or number asked for.
        name: String,
    },
    /// The process may not become another user.
    #[error("cannot become user {name}: {source}; start as root, or as that user and without --user")]
    Become {
        /// The name or number asked for.
        name: String,
        /// What failed.
        source: io::Error,
    },
    /// A kernel interface that always works did not.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What failed.
        source: io::Error,
    },
}

#[cfg(feature = "bpf")]
impl Error {
    pub(crate) fn map(source: libbpf_rs::Error) -> Error {
        match source.kind() {
            libbpf_rs::ErrorKind::PermissionDenied => Error::Permission { what: "eBPF maps" },
            _ => Error::Map { source: source.into() },
        }
    }
}
