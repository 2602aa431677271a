//! What can go wrong with a monitor interface.

use crate::service;

/// Why a monitor interface could not be opened or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MonitorError {
    /// No such interface, or a kernel interface that always works and did not.
    #[error(transparent)]
    Service(#[from] service::Error),
    /// An interface of a wireless device. Its packets do not begin with a radiotap header.
    #[error(
        "{name} is no monitor interface: its packets are of ARPHRD type {arphrd}, radiotap is 803\n\
         `iw dev {name} interface add mon0 type monitor && ip link set mon0 up` makes one beside it"
    )]
    NotRadiotap {
        /// The interface.
        name: String,
        /// Its type.
        arphrd: u16,
    },
    /// An interface that is no monitor interface, of a device beside which none can be made.
    #[error(
        "{name} has no 802.11 monitor mode: it is no wireless device (ARPHRD type {arphrd}); name a monitor interface \
         (radiotap, type 803) of one that `iw dev` lists"
    )]
    NotWireless {
        /// The interface.
        name: String,
        /// Its type.
        arphrd: u16,
    },
    /// An interface that is down shows nothing.
    #[error("{name} is down: `ip link set {name} up`")]
    Down {
        /// The interface.
        name: String,
    },
    /// The process may not listen.
    #[error("not allowed to listen on {name}: run as root, or with CAP_NET_RAW")]
    Permission {
        /// The interface.
        name: String,
    },
    /// The interface went away while it was read.
    #[error("{name} is gone")]
    Gone {
        /// The interface.
        name: String,
    },
}
