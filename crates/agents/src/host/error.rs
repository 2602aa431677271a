//! What can go wrong with reading the host's connections.

use std::io;

/// Why connections could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// This kernel lists no TCP sockets.
    #[error(
        "this kernel lists no TCP sockets: it needs CONFIG_INET_DIAG and CONFIG_INET_TCP_DIAG (`modprobe tcp_diag`)"
    )]
    NoDiag,
    /// The kernel's answer makes no sense.
    #[error("the kernel's list of TCP sockets cannot be read: {0}")]
    Answer(lasthop_wire::Error),
    /// This binary was built without the eBPF programs.
    #[error(
        "this build has no eBPF programs: rebuild with feature `bpf` (needs clang, libelf-dev, zlib1g-dev and pkg-config)"
    )]
    NotBuilt,
    /// Entries into states of congestion control are not counted.
    #[error("entries into states of congestion control are not counted: {0}")]
    NotCounting(String),
    /// Privileges could not be dropped.
    #[error("{0}")]
    Privileges(Box<crate::ap::Error>),
    /// A kernel interface that always works did not.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What failed.
        source: io::Error,
    },
}
