//! What can go wrong with PBE-CC on kernel TCP, or with the log of a cell.

#[cfg(feature = "bpf")]
use crate::service::cgroup::CgroupError;
use crate::service::{self, agent_error};
use std::io;

/// Why a sender, a receiver or the reading of a log could not start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What any agent can meet.
    #[error(transparent)]
    Service(#[from] service::Error),
    /// The cgroup of the programs that may use it.
    #[cfg(feature = "bpf")]
    #[error("PBE: {0}")]
    Cgroup(#[from] CgroupError),
    /// The kernel did not take the programs.
    #[error("PBE: the eBPF programs: {explained}")]
    Load {
        /// The kernel's reason, and what to do about it.
        explained: String,
    },
    /// The congestion control's name is taken.
    #[error(
        "PBE: there is a congestion control {0} already, of another agent: names are the whole kernel's, so choose another \
         one with --name"
    )]
    Taken(String),
    /// The sender's program is not attached any more.
    #[error("PBE: the program is not attached to the cgroup any more: somebody has removed it, or the cgroup")]
    SenderDetached,
    /// The receiver's programs are not attached any more.
    #[error("PBE: the programs are not attached any more: somebody has removed them, or the cgroup")]
    ReceiverDetached,
    /// A map or a ring could not be read or written.
    #[error("PBE: {what}: {source:#}")]
    Map {
        /// Which.
        what: &'static str,
        /// What failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// What is told cannot be changed any more.
    #[error("{0}; without privileges that needs Linux 5.19")]
    Unprivileged(Box<Error>),
    /// A log cannot be read.
    #[error("PBE: cannot read the log {name}: {source}")]
    Read {
        /// The log.
        name: String,
        /// What failed.
        source: io::Error,
    },
    /// A file is something else than a log.
    #[error("PBE: {name} is no log of assignments: {why}")]
    NoLog {
        /// The file.
        name: String,
        /// What it lacks.
        why: lasthop_wire::dci::NotALog,
    },
    /// A log's subcarriers are not as far apart as they were said to be, or nothing was said.
    #[error("PBE: {name} {why}")]
    Spacing {
        /// The log.
        name: String,
        /// What it is, and what to say.
        why: &'static str,
    },
    /// The registry has no law.
    #[error("PBE: the registry has no law for a receiver")]
    NoLaw,
}

agent_error!(Error);
