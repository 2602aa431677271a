//! Where packets to an address go, as the kernel would route them (`RTM_GETROUTE` of rtnetlink(7)).

use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteType};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read};
use std::net::IpAddr;
use std::time::Duration;

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
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST;
    let mut request = NetlinkMessage::new(header, NetlinkPayload::from(RouteNetlinkMessage::GetRoute(question)));
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);

    // A question a socket: what it receives is the answer.
    let mut socket = Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW, Some(Protocol::from(libc::NETLINK_ROUTE)))?;
    socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    socket.send(&bytes)?;
    let mut answer = [0; 8192];
    let len = socket.read(&mut answer)?;
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer[..len])
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
    match answer.payload {
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(route)) => Ok(route.header.kind),
        NetlinkPayload::Error(error) => Err(error.to_io()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "no route, and no error")),
    }
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
