//! What can go wrong with reading the host's connections, or with bounding its uploads.

#[cfg(feature = "bpf")]
use crate::service::cgroup::CgroupError;
use crate::service::{self, agent_error};
use crate::tunnel::keys::KeyError;
#[cfg(feature = "bpf")]
use std::path::PathBuf;

/// Why connections could not be read, or bounded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What any agent can meet.
    #[error(transparent)]
    Service(#[from] service::Error),
    /// Keys.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// This kernel lists no TCP sockets.
    #[error(
        "this kernel lists no TCP sockets: it needs CONFIG_INET_DIAG and CONFIG_INET_TCP_DIAG (`modprobe tcp_diag`)"
    )]
    NoDiag,
    /// The kernel's answer makes no sense.
    #[error("the kernel's list of TCP sockets cannot be read: {0}")]
    Answer(lasthop_wire::Error),
    /// Entries into states of congestion control are not counted.
    #[error("entries into states of congestion control are not counted: {why}")]
    NotCounting {
        /// The reason, and what to do about it.
        why: String,
    },
    /// The interface is of no access point, and none was named.
    #[error(
        "bounds on windows: {0} does not say to which access point it belongs: name that with --bss (its BSSID, which \
         `iw dev {0} link` shows)"
    )]
    NoBss(String),
    /// The cgroup of the programs that are to be bounded.
    #[cfg(feature = "bpf")]
    #[error("bounds on windows: {0}")]
    Cgroup(#[from] CgroupError),
    /// The kernel did not take the programs.
    #[cfg(feature = "bpf")]
    #[error("bounds on windows: the eBPF programs: {explained}")]
    Load {
        /// The kernel's reason, and what to do about it.
        explained: String,
    },
    /// A bound could not be set.
    #[cfg(feature = "bpf")]
    #[error("bounds on windows: eBPF map: {0:#}")]
    Map(libbpf_rs::Error),
    /// Bounds cannot be set any more.
    #[cfg(feature = "bpf")]
    #[error("{0}; without privileges that needs Linux 5.19")]
    Unprivileged(Box<Error>),
    /// The program is not attached to this cgroup any more.
    #[cfg(feature = "bpf")]
    #[error(
        "bounds on windows: the program is not attached to {} any more: somebody has removed it, or the cgroup", .0.display()
    )]
    Detached(PathBuf),
}

agent_error!(Error);
