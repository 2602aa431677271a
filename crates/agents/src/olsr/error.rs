//! What can go wrong with a node of a mesh.

use crate::service::{self, agent_error};
use std::io;
use std::net::Ipv4Addr;

/// Why a node could not start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What any agent can meet.
    #[error(transparent)]
    Service(#[from] service::Error),
    /// The interface does not have the address, or none.
    #[error(
        "routes: {iface} has {}: `ip addr add 10.0.0.1/24 dev {iface}` would give it one",
        wanted.map_or("no IPv4 address".to_owned(), |wanted| format!("not the address {wanted}"))
    )]
    NoAddress {
        /// The interface.
        iface: String,
        /// The address that was named.
        wanted: Option<Ipv4Addr>,
    },
    /// The address has no network, and none was named.
    #[error(
        "routes: {iface} has the address {own} alone, without a network: say which addresses are of the mesh (--within 10.0.0.0/8)"
    )]
    NoNetwork {
        /// The interface.
        iface: String,
        /// Its address.
        own: Ipv4Addr,
    },
    /// The process may not change routes.
    #[error(
        "routes: changing routes needs CAP_NET_ADMIN: start as root, with `--user NAME` to be that user from then on"
    )]
    Right,
    /// The interface has gone.
    #[error("routes: {0} has gone, and its routes with it")]
    InterfaceGone(String),
    /// The address has gone.
    #[error("routes: {iface} does not have the address {own} any more")]
    AddressGone {
        /// The interface.
        iface: String,
        /// The node's address.
        own: Ipv4Addr,
    },
    /// The kernel does not take a route.
    #[error("routes: the kernel refuses to change the route to {destination}: {source}")]
    Refused {
        /// Where it leads.
        destination: Ipv4Addr,
        /// What failed.
        source: io::Error,
    },
}

agent_error!(Error);
