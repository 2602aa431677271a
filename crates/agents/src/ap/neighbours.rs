//! Which hardware address an IP address has: the kernel's neighbour table, followed as it changes.

use super::Error;
use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::sys::socket::{
    AddressFamily as Family, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, sendto, socket,
};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};

/// A source of what is known of neighbours.
pub(super) trait Neighbours {
    /// Takes in what has changed since it was last asked.
    fn refresh(&mut self);
    /// The hardware address behind an IP address.
    fn hardware(&self, address: IpAddr) -> Option<[u8; 6]>;
}

/// The kernel's table, of one interface.
pub(super) struct KernelNeighbours {
    socket: OwnedFd,
    ifindex: u32,
    known: BTreeMap<IpAddr, [u8; 6]>,
    buffer: Vec<u8>,
}

/// `RTMGRP_NEIGH` of `linux/rtnetlink.h`: be told of changes.
const CHANGES: u32 = 4;

impl KernelNeighbours {
    /// Opens a channel in the calling thread's network namespace, and asks for all there is.
    ///
    /// # Errors
    /// [`Error::System`].
    pub(super) fn open(ifindex: i32) -> Result<KernelNeighbours, Error> {
        let failed = |error: nix::Error| Error::System { what: "the neighbour table", source: error.into() };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let fd = socket(Family::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute).map_err(failed)?;
        // First listen, then ask: what changes between is told twice, not never.
        bind(fd.as_raw_fd(), &NetlinkAddr::new(0, CHANGES)).map_err(failed)?;
        let neighbours = KernelNeighbours {
            socket: fd,
            ifindex: ifindex.unsigned_abs(),
            known: BTreeMap::new(),
            buffer: vec![0; 65_536],
        };
        neighbours.ask().map_err(failed)?;
        Ok(neighbours)
    }

    fn ask(&self) -> nix::Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = AddressFamily::Unspec;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        let payload = NetlinkPayload::from(RouteNetlinkMessage::GetNeighbour(message));
        let mut message = NetlinkMessage::new(header, payload);
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        sendto(self.socket.as_raw_fd(), &bytes, &NetlinkAddr::new(0, 0), MsgFlags::empty()).map(|_| ())
    }
}

impl Neighbours for KernelNeighbours {
    fn refresh(&mut self) {
        loop {
            match recv(self.socket.as_raw_fd(), &mut self.buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(len) => learn(&mut self.known, self.ifindex, &self.buffer[..len]),
                // Messages were lost: ask anew. If that fails too, what is known is what there is.
                Err(nix::Error::ENOBUFS) => drop(self.ask()),
                Err(nix::Error::EINTR) => {}
                Err(_) => return,
            }
        }
    }

    fn hardware(&self, address: IpAddr) -> Option<[u8; 6]> {
        self.known.get(&address).copied()
    }
}

/// Takes in the messages of one datagram; those that make no sense end it.
fn learn(known: &mut BTreeMap<IpAddr, [u8; 6]>, ifindex: u32, mut bytes: &[u8]) {
    while let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes) {
        let len = message.header.length as usize;
        let (neighbour, is_there) = match message.payload {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewNeighbour(neighbour)) => (Some(neighbour), true),
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelNeighbour(neighbour)) => (Some(neighbour), false),
            _ => (None, false),
        };
        if let Some(neighbour) = neighbour.filter(|neighbour| neighbour.header.ifindex == ifindex) {
            note(known, &neighbour, is_there);
        }
        match bytes.get(len.next_multiple_of(4)..) {
            Some(rest) if len > 0 => bytes = rest,
            _ => return,
        }
    }
}

fn note(known: &mut BTreeMap<IpAddr, [u8; 6]>, neighbour: &NeighbourMessage, is_there: bool) {
    let address = neighbour.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => Some(IpAddr::V4(*address)),
        NeighbourAttribute::Destination(NeighbourAddress::Inet6(address)) => Some(IpAddr::V6(*address)),
        _ => None,
    });
    let hardware = neighbour.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLocalAddress(octets) => <[u8; 6]>::try_from(octets.as_slice()).ok(),
        _ => None,
    });
    let Some(address) = address else { return };
    let unresolved = matches!(neighbour.header.state, NeighbourState::Incomplete | NeighbourState::Failed);
    match hardware.filter(|_| is_there && !unresolved) {
        Some(hardware) => drop(known.insert(address, hardware)),
        None => drop(known.remove(&address)),
    }
}

/// No neighbours, for whoever names every station.
#[cfg(test)]
impl Neighbours for BTreeMap<IpAddr, [u8; 6]> {
    fn refresh(&mut self) {}

    fn hardware(&self, address: IpAddr) -> Option<[u8; 6]> {
        self.get(&address).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(new: bool, ifindex: u32, state: NeighbourState, hardware: Option<Vec<u8>>) -> Vec<u8> {
        let mut neighbour = NeighbourMessage::default();
        neighbour.header.family = AddressFamily::Inet;
        neighbour.header.ifindex = ifindex;
        neighbour.header.state = state;
        neighbour.attributes = vec![NeighbourAttribute::Destination(NeighbourAddress::Inet([10, 0, 0, 2].into()))];
        neighbour.attributes.extend(hardware.map(NeighbourAttribute::LinkLocalAddress));
        let inner = match new {
            true => RouteNetlinkMessage::NewNeighbour(neighbour),
            false => RouteNetlinkMessage::DelNeighbour(neighbour),
        };
        let mut message = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::from(inner));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        bytes
    }

    #[test]
    fn neighbours_come_change_and_go() {
        let mut known = BTreeMap::new();
        let two = IpAddr::from([10, 0, 0, 2]);
        let mac = |last| Some(vec![2, 0, 0, 0, 0, last]);
        let both =
            [message(true, 7, NeighbourState::Reachable, mac(1)), message(true, 8, NeighbourState::Reachable, mac(9))];
        learn(&mut known, 7, &both.concat());
        assert_eq!(known.hardware(two), Some([2, 0, 0, 0, 0, 1]), "the other interface's does not count");
        learn(&mut known, 7, &message(true, 7, NeighbourState::Stale, mac(2)));
        assert_eq!(known.hardware(two), Some([2, 0, 0, 0, 0, 2]));
        learn(&mut known, 7, &message(true, 7, NeighbourState::Failed, mac(2)));
        assert_eq!(known.hardware(two), None);
        learn(&mut known, 7, &message(true, 7, NeighbourState::Permanent, mac(3)));
        learn(&mut known, 7, &message(false, 7, NeighbourState::None, None));
        assert_eq!(known.hardware(two), None);
        learn(&mut known, 7, &message(true, 7, NeighbourState::Reachable, Some(vec![1, 2, 3])));
        assert_eq!(known.hardware(two), None, "not an Ethernet address");
    }

    proptest! {
        #[test]
        fn no_octets_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            learn(&mut BTreeMap::new(), 1, &bytes);
        }
    }
}
