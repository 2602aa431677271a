//! The sockets at port 698: one that sends from the node's address, and one for each address that packets are broadcast to.
//!
//! What is sent to the node's own address is not read: it may come from beyond the link, which broadcasts to 255.255.255.255 cannot.

use super::interface::Address;
use crate::service::poll::Poll;
use crate::service::{self, Error, system};
use lasthop_wire::olsr::PORT;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

/// CS6 as an octet of the header: packets of routing (RFC 4594) do not wait behind data.
const CS6: u32 = 48 << 2;
/// Datagrams looked at in one go: a flood does not keep the agent from its other work.
const BUDGET: u32 = 256;

pub(super) struct Sockets {
    sender: UdpSocket,
    receivers: Vec<UdpSocket>,
    buffer: Vec<u8>,
}

impl Sockets {
    /// Binds the sockets to an interface. `poll` is told under `token`.
    ///
    /// # Errors
    /// [`Error::Address`] if somebody has the port, or it may not be had.
    pub(super) fn open(iface: &str, address: Address, (poll, token): (&Poll, u64)) -> Result<Sockets, Error> {
        let bound = |ip: Ipv4Addr| {
            let address = SocketAddr::from((ip, PORT));
            socket(iface, address).map_err(service::address("OLSR needs UDP", address))
        };
        let sender = bound(address.own)?;
        let receivers = [Some(Ipv4Addr::BROADCAST), address.broadcast];
        let receivers = receivers.into_iter().flatten().map(bound).collect::<Result<Vec<_>, _>>()?;
        for receiver in &receivers {
            poll.add_level(receiver, token).map_err(system("epoll"))?;
        }
        Ok(Sockets { sender, receivers, buffer: vec![0; 65_536] })
    }

    /// Tells all neighbours. False if the kernel did not take it, as while the interface is down: it is lost then.
    pub(super) fn tell(&self, packet: &[u8]) -> bool {
        self.sender.send_to(packet, (Ipv4Addr::BROADCAST, PORT)).is_ok()
    }

    /// Hands over what has come, with its sender's address.
    pub(super) fn hear(&mut self, mut each: impl FnMut(Ipv4Addr, &[u8])) {
        for receiver in &self.receivers {
            for _ in 0..BUDGET {
                let Ok((len, SocketAddr::V4(from))) = receiver.recv_from(&mut self.buffer) else { break };
                each(*from.ip(), &self.buffer[..len]);
            }
        }
    }
}

fn socket(iface: &str, address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    socket.bind_device(Some(iface.as_bytes()))?;
    socket.set_broadcast(true)?;
    socket.set_tos_v4(CS6)?;
    // Packets are for neighbours; their messages are forwarded in packets of others.
    socket.set_ttl_v4(1)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}
