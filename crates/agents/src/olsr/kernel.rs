//! Routes in the kernel's main table, over rtnetlink(7).

use lasthop_routing::olsr::Routes;
use lasthop_system::netlink::Netlink;
use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_REPLACE};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;

/// The protocol number of the agent's routes (`proto` of ip-route(8)): no other program's in iproute2's list.
pub const PROTOCOL: u8 = 98;
/// Their metric: other routes to the same address go first, and none of them is ever replaced.
pub const METRIC: u32 = 698;

/// The routes of one interface.
pub(super) struct KernelRoutes {
    netlink: Netlink,
    index: u32,
    /// From which address packets of this host go.
    source: Ipv4Addr,
    /// Next hop by destination, as the kernel has them.
    installed: BTreeMap<Ipv4Addr, Ipv4Addr>,
}

impl KernelRoutes {
    /// The routes of an agent on interface `index`, as they are: those that a killed one has left.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub(super) fn open(index: u32, source: Ipv4Addr) -> io::Result<KernelRoutes> {
        let netlink = Netlink::open(libc::NETLINK_ROUTE)?;
        let mut routes = KernelRoutes { netlink, index, source, installed: BTreeMap::new() };
        routes.look()?;
        Ok(routes)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.installed.len()
    }

    /// Asks the kernel which there are: an interface that has been down has none any more.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub(super) fn look(&mut self) -> io::Result<()> {
        let mut question = RouteMessage::default();
        question.header.address_family = AddressFamily::Inet;
        question.header.protocol = RouteProtocol::Other(PROTOCOL);
        question.attributes = vec![RouteAttribute::Oif(self.index)];
        let mut installed = BTreeMap::new();
        let index = self.index;
        self.exchange(RouteNetlinkMessage::GetRoute(question), NLM_F_DUMP, |route| {
            installed.extend(own(route, index));
        })?;
        self.installed = installed;
        Ok(())
    }

    /// Makes the kernel's routes these. Goes on where one is refused, and returns the first refusal.
    ///
    /// # Errors
    /// The first refusal, and of which destination.
    pub(super) fn apply(&mut self, wanted: &Routes) -> Result<(), (Ipv4Addr, io::Error)> {
        let mut first = Ok(());
        let mut note = |destination, done: io::Result<()>| {
            let refused = done.map_err(|error| (destination, error));
            let is_done = refused.is_ok();
            if first.is_ok() {
                first = refused;
            }
            is_done
        };
        let gone: Vec<Ipv4Addr> = self.installed.keys().filter(|known| !wanted.contains_key(known)).copied().collect();
        for destination in gone {
            let done = self.remove(destination);
            if note(destination, done) {
                self.installed.remove(&destination);
            }
        }
        for (destination, route) in wanted {
            if self.installed.get(destination) != Some(&route.next) {
                let done = self.set(*destination, route.next);
                if note(*destination, done) {
                    self.installed.insert(*destination, route.next);
                }
            }
        }
        first
    }

    fn set(&mut self, destination: Ipv4Addr, next: Ipv4Addr) -> io::Result<()> {
        let mut message = self.message(destination);
        message.attributes.push(RouteAttribute::PrefSource(RouteAddress::Inet(self.source)));
        if next == destination {
            message.header.scope = RouteScope::Link;
        } else {
            // The next node is heard on this link, whether the interface's network says so or not.
            message.header.flags = RouteFlags::Onlink;
            message.attributes.push(RouteAttribute::Gateway(RouteAddress::Inet(next)));
        }
        self.exchange(RouteNetlinkMessage::NewRoute(message), NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, |_| {})
    }

    fn remove(&mut self, destination: Ipv4Addr) -> io::Result<()> {
        let mut message = self.message(destination);
        message.header.scope = RouteScope::NoWhere;
        match self.exchange(RouteNetlinkMessage::DelRoute(message), NLM_F_ACK, |_| {}) {
            // It has gone by itself, as with an interface that is down.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            done => done,
        }
    }

    fn message(&self, destination: Ipv4Addr) -> RouteMessage {
        let mut message = RouteMessage::default();
        message.header.address_family = AddressFamily::Inet;
        message.header.destination_prefix_length = 32;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Other(PROTOCOL);
        message.header.kind = RouteType::Unicast;
        message.attributes = vec![
            RouteAttribute::Destination(RouteAddress::Inet(destination)),
            RouteAttribute::Oif(self.index),
            RouteAttribute::Priority(METRIC),
        ];
        message
    }

    /// Sends a request and hands over the routes in the answer. Of a route of somebody else's that the library does not know nothing is
    /// said. Of ours it knows all.
    fn exchange(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        mut each: impl FnMut(&RouteMessage),
    ) -> io::Result<()> {
        self.netlink.ask(message, flags, |answer| {
            if let Ok(RouteNetlinkMessage::NewRoute(route)) = answer {
                each(&route);
            }
        })
    }
}

impl Drop for KernelRoutes {
    fn drop(&mut self) {
        let _ = self.apply(&Routes::new());
    }
}

/// Destination and next hop of a route that is an agent's, of interface `index`.
fn own(route: &RouteMessage, index: u32) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let (mut destination, mut gateway, mut oif, mut metric) = (None, None, None, None);
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Destination(RouteAddress::Inet(address)) => destination = Some(*address),
            RouteAttribute::Gateway(RouteAddress::Inet(address)) => gateway = Some(*address),
            RouteAttribute::Oif(index) => oif = Some(*index),
            RouteAttribute::Priority(priority) => metric = Some(*priority),
            _ => {}
        }
    }
    let header = &route.header;
    let ours = header.protocol == RouteProtocol::Other(PROTOCOL)
        && header.table == RouteHeader::RT_TABLE_MAIN
        && header.destination_prefix_length == 32
        && (oif, metric) == (Some(index), Some(METRIC));
    let destination = destination.filter(|_| ours)?;
    Some((destination, gateway.unwrap_or(destination)))
}
