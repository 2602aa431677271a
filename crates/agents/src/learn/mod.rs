//! Training beside the access point's agent, in a process of its own: [`Desk`] is the agent's end of the socket between them, [`run`] is
//! the other process.
//!
//! The socket is of type `SOCK_SEQPACKET`. The agent sends lessons (`lasthop_laws::oal::lesson`), one a message. The learner sends trees:
//! the latest end of a horizon among its lessons (8 octets, ns, big-endian), then the tree (`Tree::encode`). Neither end waits for the
//! other, and either may come, go and come again.

mod desk;
mod learner;

pub use desk::Desk;
pub use learner::{Config, Summary, run};

use crate::service;
use std::io;
use std::path::PathBuf;

/// Octets of the longest message with a tree that is taken: some 6 500 nodes. Leaves of 20 items of 10 000 make a thousand.
pub const MESSAGE_MAX: usize = 1 << 16;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The socket cannot be made.
    #[error("socket {path} for a learner: {source}")]
    Socket {
        /// Where.
        path: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// Another agent listens there.
    #[error("socket {path} for a learner: another agent listens there; give each its own")]
    Taken {
        /// Where.
        path: PathBuf,
    },
    /// The user of the learner does not exist.
    #[error("--learner: {0}")]
    Learner(service::Error),
    /// The socket cannot be given to the learner's user.
    #[error("--learner: the socket cannot be made that user's: {0}")]
    Give(io::Error),
    /// The newest tree cannot be kept.
    #[error("tree {path}: {source}")]
    Out {
        /// Where.
        path: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// What any agent can meet.
    #[error(transparent)]
    Service(#[from] service::Error),
}
