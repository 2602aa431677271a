//! What can go wrong with an access point's agent.

use crate::service::{self, agent_error};

/// Why the agent could not start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What any agent can meet.
    #[error(transparent)]
    Service(#[from] service::Error),
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
}

agent_error!(Error);
