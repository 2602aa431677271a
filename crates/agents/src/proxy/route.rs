//! Where packets to an address go, as the kernel would route them (`RTM_GETROUTE` of rtnetlink(7)).

use lasthop_system::netlink::{Netlink, invalid};
use netlink_packet_core::NLM_F_ACK;
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteType};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use std::io;
use std::net::IpAddr;

/// True if packets to an address stay on this machine: it is one of any interface, of a range that is local, or a broadcast address.
/// Where there is no way the answer is no: no connection will be made either. Where the kernel does not answer it is yes, for nobody can
/// tell.
pub(crate) fn is_own(address: IpAddr) -> bool {
    match kind(address.to_canonical()) {
        Ok(kind) => matches!(kind, RouteType::Local | RouteType::Broadcast | RouteType::Anycast | RouteType::Multicast),
        Err(error) => !is_no_way(&error),
    }
}

/// True for what the kernel says of an address to which no route leads, or of a family that it lacks.
fn is_no_way(error: &io::Error) -> bool {
    let ways = [libc::ENETUNREACH, libc::EHOSTUNREACH, libc::EACCES, libc::EAFNOSUPPORT];
    error.raw_os_error().is_some_and(|code| ways.contains(&code))
}

/// The type of the route that packets to an address take.
fn kind(address: IpAddr) -> io::Result<RouteType> {
    let mut question = RouteMessage::default();
    let (family, bits, destination) = match address {
        IpAddr::V4(address) => (AddressFamily::Inet, 32, RouteAddress::Inet(address)),
        IpAddr::V6(address) => (AddressFamily::Inet6, 128, RouteAddress::Inet6(address)),
    };
    question.header.address_family = family;
    question.header.destination_prefix_length = bits;
    question.attributes = vec![RouteAttribute::Destination(destination)];
    let mut kind = Err(invalid(&"no route, and no error"));
    let question = RouteNetlinkMessage::GetRoute(question);
    Netlink::open(libc::NETLINK_ROUTE)?.ask(question, NLM_F_ACK, |answer| match answer {
        Ok(RouteNetlinkMessage::NewRoute(route)) => kind = Ok(route.header.kind),
        Ok(_) => {}
        Err(error) => kind = Err(invalid(&error)),
    })?;
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machines_addresses_are_its_own() {
        let own = |text: &str| is_own(text.parse().expect("an address"));
        assert!(own("127.0.0.1") && own("127.8.9.10") && own("::ffff:127.0.0.1"));
        // Of a documentation network: somebody else's, or nobody's.
        assert!(!own("192.0.2.1") && !own("2001:db8::1"));
    }
}
