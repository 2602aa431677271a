//! What can go wrong with a relay.

use crate::service::{self, agent_error};
use std::io;

/// Why a relay could not start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What any agent can meet.
    #[error(transparent)]
    Service(#[from] service::Error),
    /// The program is not attached to an interface any more.
    #[error("relay: {why}; nothing is stamped: start it again (as a service, with a restart on failure)")]
    Detached {
        /// What has become of interface or program.
        why: String,
    },
    /// An interface gathers datagrams where the program cannot see them.
    #[error("relay: {0} gathers datagrams into lists that cannot be stamped: `ethtool -K {0} rx-gro-list off`")]
    Lists(String),
    /// No netfilter queue for a handler at user level.
    #[error(
        "relay: a netfilter queue: {source}; it needs CAP_NET_ADMIN and a kernel with CONFIG_NETFILTER_NETLINK_QUEUE, and \
         queues {first} to {last} are looked at"
    )]
    Queue {
        /// What failed.
        source: io::Error,
        /// The first queue that was tried.
        first: u16,
        /// The last.
        last: u16,
    },
    /// A handler at user level has ended.
    #[error("relay: the handler of packets has ended by itself; they pass without it")]
    Ended,
    /// iptables cannot be run.
    #[error("relay: {}", match .0.kind() {
        io::ErrorKind::NotFound => {
            "handlers at user level need iptables, which is not there: `apt-get install iptables`".to_owned()
        }
        _ => format!("iptables: {}", .0),
    })]
    Iptables(io::Error),
    /// A rule is refused.
    #[error("relay: {rule}: {said}")]
    Rule {
        /// As it was called.
        rule: String,
        /// What it said.
        said: String,
    },
}

agent_error!(Error);
