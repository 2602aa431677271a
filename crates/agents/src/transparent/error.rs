//! What can go wrong with transparent mode, at a proxy or at a station.

#[cfg(feature = "bpf")]
use crate::service::cgroup::CgroupError;
use crate::service::{self, agent_error};
use std::io;

/// Why connections are not taken over.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What any agent can meet.
    #[error(transparent)]
    Service(#[from] service::Error),
    /// The program `ip` cannot be run.
    #[error("transparent mode: ip {arguments}: {source}")]
    Ip {
        /// How it was called.
        arguments: String,
        /// What failed.
        source: io::Error,
    },
    /// The program `ip` has refused.
    #[error("transparent mode: ip {arguments}: {said}")]
    Refused {
        /// How it was called.
        arguments: String,
        /// What it said.
        said: String,
    },
    /// The kernel did not take the programs.
    #[error("transparent mode: the eBPF {what}: {explained}")]
    Load {
        /// `program` or `programs`.
        what: &'static str,
        /// The kernel's reason, and what to do about it.
        explained: String,
    },
    /// The program cannot be attached to the interface.
    #[error("transparent mode: TCX (Linux 6.6) on the interface: {0}")]
    Attach(io::Error),
    /// The cgroup of the programs to serve.
    #[cfg(feature = "bpf")]
    #[error("transparent mode: {0}")]
    Cgroup(#[from] CgroupError),
    /// A map could not be written.
    #[error("transparent mode: {what}: {source:#}")]
    Map {
        /// Which, or when.
        what: &'static str,
        /// What failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The proxy's program is not attached any more.
    #[error(
        "transparent mode: the program is not attached to the interface any more, which has gone or been cleared: start the \
         proxy again (as a service, with a restart on failure)"
    )]
    OffInterface,
    /// The station's programs are not attached any more.
    #[error(
        "transparent mode: the programs are not attached to the cgroup any more, which has gone: start the agent again (as a \
         service, with a restart on failure)"
    )]
    OffCgroup,
}

agent_error!(Error);
