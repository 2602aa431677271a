//! Interfaces, addresses, routes and neighbours, configured over rtnetlink.
//!
//! Every function acts on the network namespace of the calling thread; see `Namespace::within`.

use crate::error::{Doing, Result};
use lasthop_system::netlink;
use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use std::net::IpAddr;

/// What a lab interface looks like.
#[derive(Clone, Copy, Debug)]
pub struct LinkSettings {
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// Largest network-layer packet.
    pub mtu: u32,
    /// Packets that its transmit queue holds.
    pub tx_queue_len: u32,
}

/// A channel to the kernel's network configuration.
#[derive(Debug)]
pub struct Netlink(netlink::Netlink);

impl Netlink {
    /// Opens a channel into the calling thread's namespace.
    pub fn open() -> Result<Netlink> {
        Ok(Netlink(netlink::Netlink::open(libc::NETLINK_ROUTE).doing(|| "opening rtnetlink".into())?))
    }

    /// Gives interface `index` its settings.
    pub fn set_link(&mut self, index: u32, settings: LinkSettings) -> Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes = vec![
            LinkAttribute::Address(settings.mac.to_vec()),
            LinkAttribute::Mtu(settings.mtu),
            LinkAttribute::TxQueueLen(settings.tx_queue_len),
        ];
        self.ask(RouteNetlinkMessage::SetLink(message), 0, || format!("configuring interface {index}"))
    }

    /// Takes interface `index` up.
    pub fn set_up(&mut self, index: u32) -> Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.ask(RouteNetlinkMessage::SetLink(message), 0, || format!("taking interface {index} up"))
    }

    /// Adds `address` to interface `index`, usable at once.
    pub fn add_address(&mut self, index: u32, address: IpAddr, prefix: u8) -> Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = prefix;
        message.header.index = index;
        // Without duplicate detection: an address must not stay tentative for a second.
        message.header.flags = AddressHeaderFlags::Nodad;
        message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        self.create(RouteNetlinkMessage::NewAddress(message), || format!("adding address {address}"))
    }

    /// Routes what has no better route through `gateway` on interface `index`.
    pub fn add_default_route(&mut self, index: u32, gateway: IpAddr) -> Result<()> {
        let mut message = route(index, gateway, RouteScope::Universe);
        message.attributes.push(RouteAttribute::Gateway(route_address(gateway)));
        self.create(RouteNetlinkMessage::NewRoute(message), || format!("adding a route through {gateway}"))
    }

    /// Says that `host`, and nobody else by this, is reached over interface `index` without a gateway.
    pub fn add_link_route(&mut self, index: u32, host: IpAddr) -> Result<()> {
        let mut message = route(index, host, RouteScope::Link);
        message.header.destination_prefix_length = if host.is_ipv4() { 32 } else { 128 };
        message.attributes.push(RouteAttribute::Destination(route_address(host)));
        self.create(RouteNetlinkMessage::NewRoute(message), || format!("adding a route to {host}"))
    }

    /// Routes what is for `host` through `gateway` on interface `index`.
    pub fn add_host_route(&mut self, index: u32, host: IpAddr, gateway: IpAddr) -> Result<()> {
        let mut message = route(index, host, RouteScope::Universe);
        message.header.destination_prefix_length = if host.is_ipv4() { 32 } else { 128 };
        message.attributes.push(RouteAttribute::Destination(route_address(host)));
        message.attributes.push(RouteAttribute::Gateway(route_address(gateway)));
        self.create(RouteNetlinkMessage::NewRoute(message), || format!("adding a route to {host} through {gateway}"))
    }

    /// Tells interface `index` for good that `address` is at `mac`, so that nobody asks on the hop.
    pub fn add_neighbour(&mut self, index: u32, address: IpAddr, mac: [u8; 6]) -> Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = family(address);
        message.header.ifindex = index;
        message.header.state = NeighbourState::Permanent;
        message.header.kind = RouteType::Unicast;
        let destination = match address {
            IpAddr::V4(address) => NeighbourAddress::Inet(address),
            IpAddr::V6(address) => NeighbourAddress::Inet6(address),
        };
        message.attributes =
            vec![NeighbourAttribute::Destination(destination), NeighbourAttribute::LinkLayerAddress(mac.to_vec())];
        self.create(RouteNetlinkMessage::NewNeighbour(message), || format!("adding neighbour {address}"))
    }

    fn create(&mut self, message: RouteNetlinkMessage, what: impl FnOnce() -> String) -> Result<()> {
        self.ask(message, NLM_F_CREATE | NLM_F_REPLACE, what)
    }

    /// Sends one request and waits for the kernel's answer to it.
    fn ask(&mut self, message: RouteNetlinkMessage, flags: u16, what: impl FnOnce() -> String) -> Result<()> {
        self.0.ask(message, NLM_F_ACK | flags, |_| {}).doing(what)
    }
}

/// A route of the family of `address` over interface `index`, to be completed.
fn route(index: u32, address: IpAddr, scope: RouteScope) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(address);
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Static;
    message.header.scope = scope;
    message.header.kind = RouteType::Unicast;
    message.attributes = vec![RouteAttribute::Oif(index)];
    message
}

fn route_address(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(address) => RouteAddress::Inet(address),
        IpAddr::V6(address) => RouteAddress::Inet6(address),
    }
}

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}
