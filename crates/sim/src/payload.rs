//! What packets carry in the simulator, and how long that makes them.

use dyn_clone::DynClone;
use lasthop_radio::{AccessClass, Dest, Ecn, Packet};
use lasthop_scenario::REQUEST;
use lasthop_signals::{HostId, Node, StationFeedback};
use lasthop_units::{Bytes, Time};
use lasthop_wire::tcp::{CAPACITY_LEN, TcpHeader, TcpOptions};
use lasthop_wire::tunnel as wire;
use std::any::Any;
use std::fmt::Debug;
use std::num::NonZeroU32;

/// The payload of a simulated packet: what it carries, and between which hosts.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// What it carries.
    pub content: Payload,
    /// The host that made it.
    pub from: HostId,
    /// The host that it is for.
    pub to: HostId,
    /// The program there that it is for.
    pub program: ProgramId,
}

/// The number of a program of the world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProgramId(pub(crate) u32);

impl ProgramId {
    /// No program: what is sent to it ends at the host.
    pub const NONE: ProgramId = ProgramId(u32::MAX);
}

impl Default for ProgramId {
    fn default() -> ProgramId {
        ProgramId::NONE
    }
}

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    /// The host.
    pub(crate) host: HostId,
    /// The program there.
    pub(crate) program: ProgramId,
}

impl Address {
    /// A host, and no program of it.
    pub(crate) fn nobody(host: HostId) -> Address {
        Address { host, program: ProgramId::NONE }
    }
}

/// A packet that has not left yet. Inlined, it is built where it will lie, and not copied.
#[inline(always)]
pub(crate) fn packet(
    (from, to): (HostId, Address),
    len: Bytes,
    class: AccessClass,
    flow_hash: u32,
    content: Payload,
) -> Packet<Datagram> {
    let (src, dst, ecn) = (Node(0), Dest::Node(Node(0)), Ecn::NotEct);
    let payload = Datagram { content, from, to: to.host, program: to.program };
    Packet { len, src, dst, class, flow_hash, ecn, payload }
}

/// What packets of one kind of program carry, and no other program looks at.
pub trait Message: Any + DynClone + Debug + Send {}

impl<T: Any + Clone + Debug + Send> Message for T {}

dyn_clone::clone_trait_object!(Message);

/// What a packet carries.
///
/// A packet is moved some ten times on its way, from queue to queue: what makes some payloads large lies behind a pointer.
#[derive(Clone, Debug)]
pub enum Payload {
    /// A TCP segment of one connection. Its payload has a length but no content.
    Tcp {
        /// Which connection.
        connection: u32,
        /// Its header.
        header: Box<TcpHeader>,
    },
    /// A UDP packet of a probe stream, of a constant load, or of one that a regulator paces.
    Udp {
        /// When it was sent.
        sent: Time,
        /// Its number among the packets that the edge proxy has sent to the station, from 1; `None` if it does not come from
        /// there.
        packet: Option<NonZeroU32>,
    },
    /// Another program's own.
    Own(Box<dyn Message>),
    /// What passes between edge proxy and station.
    Tunnel(Tunnel),
}

/// A packet of the tunnel between edge proxy and station.
#[derive(Clone, Debug)]
pub enum Tunnel {
    /// Part of a stream, to the station.
    Data {
        /// Which part of what the station is to get: from 0 without gaps. What is sent again has the number that it had.
        number: u32,
        /// Number among the packets that the proxy has sent to the station: every one has its own.
        packet: u32,
        /// When it left the proxy.
        sent: Time,
        /// Which connection's stream.
        connection: u32,
        /// Octets of payload.
        len: u16,
    },
    /// What has arrived, from the station.
    Ack {
        /// The station's.
        station: Node,
        /// Every packet below this number.
        next: u32,
        /// Those missing between that and the highest.
        missing: Box<[u32]>,
    },
    /// The account of a slot, from the station.
    Feedback(Box<StationFeedback>),
    /// The station's application wants a connection to the server.
    Open {
        /// Which.
        connection: u32,
    },
}

impl Payload {
    /// What a program of its own kind makes of `message`.
    pub(crate) fn own(message: impl Message) -> Payload {
        Payload::Own(Box::new(message))
    }

    /// A program's own message, if it is one of this type.
    pub(crate) fn message<T: Message>(&self) -> Option<&T> {
        match self {
            Payload::Own(message) => (&**message as &dyn Any).downcast_ref(),
            _ => None,
        }
    }

    /// The same to be changed.
    pub(crate) fn message_mut<T: Message>(&mut self) -> Option<&mut T> {
        match self {
            Payload::Own(message) => (&mut **message as &mut dyn Any).downcast_mut(),
            _ => None,
        }
    }

    /// When it left the edge proxy for a station, and its number among what has, if it is of what that paces.
    pub fn left_proxy(&self) -> Option<(Time, u32)> {
        match self {
            Payload::Udp { sent, packet: Some(packet), .. } => Some((*sent, packet.get() - 1)),
            Payload::Tunnel(Tunnel::Data { sent, packet, .. }) => Some((*sent, *packet)),
            _ => None,
        }
    }
}

impl Tunnel {
    /// Part `number` of what a station is to get, of a connection's stream, which leaves now as the station's `packet`.
    pub fn data(sent: Time, (number, packet): (u32, u32), connection: usize, len: Bytes) -> Tunnel {
        let connection = index(connection);
        let len = u16::try_from(len.get()).expect("less than a packet holds");
        Tunnel::Data { number, packet, sent, connection, len }
    }
}

/// The number of a connection or source as packets carry it.
pub fn index(number: usize) -> u32 {
    u32::try_from(number).expect("fewer connections than packets")
}

// A payload that is larger goes behind a pointer too.
const _: () = assert!(size_of::<Datagram>() <= 32);

const IPV4_HEADER: u64 = 20;
const TCP_HEADER: u64 = 20;
const UDP_HEADER: u64 = 8;

/// Network-layer length of a segment in IPv4.
pub fn tcp_packet(header: &TcpHeader) -> Bytes {
    Bytes::new(IPV4_HEADER + TCP_HEADER + options(&header.options) + u64::from(header.payload_len))
}

/// Network-layer length of a UDP packet in IPv4.
pub fn udp_packet(payload: Bytes) -> Bytes {
    payload + Bytes::new(IPV4_HEADER + UDP_HEADER)
}

/// Octets of a packet of the tunnel beside its frames: IPv4, UDP, and what seals it.
const SEALED: usize = wire::IP_UDP_LEN + wire::SEALED_HEADER + wire::TAG + wire::PACKET_HEADER;
/// What stands in a packet of the tunnel beside the octets of a stream.
pub const TUNNEL_OVERHEAD: Bytes = Bytes::new((SEALED + wire::data_header()) as u64);
/// Network-layer length of a full packet.
pub const FULL_PACKET: Bytes = Bytes::new(1500);

/// Octets of a stream in a full packet of the tunnel.
pub const TUNNEL_PAYLOAD: Bytes = Bytes::new(FULL_PACKET.get() - TUNNEL_OVERHEAD.get());

/// Network-layer length of a tunnel packet.
pub fn tunnel_packet(tunnel: &Tunnel) -> Bytes {
    match tunnel {
        Tunnel::Data { len, .. } => TUNNEL_OVERHEAD + Bytes::new(u64::from(*len)),
        // A range ends before everything that is missing.
        Tunnel::Ack { missing, .. } => Bytes::new((SEALED + wire::ack_len(missing.len() + 1)) as u64),
        Tunnel::Feedback(_) => Bytes::new((SEALED + 1 + wire::FEEDBACK_LEN) as u64),
        Tunnel::Open { .. } => TUNNEL_OVERHEAD + REQUEST,
    }
}

/// Length of the options as Linux lays them out: each padded to a multiple of four.
fn options(options: &TcpOptions) -> u64 {
    let mss = 4 * u64::from(options.mss.is_some());
    let scale = 4 * u64::from(options.window_scale.is_some());
    let timestamps = 12 * u64::from(options.timestamps.is_some());
    // SACK-permitted fills the padding that timestamps leave.
    let permitted = 4 * u64::from(options.sack_permitted && options.timestamps.is_none());
    let blocks = options.sack.as_slice().len() as u64;
    let sack = if blocks > 0 { 4 + 8 * blocks } else { 0 };
    let capacity = if options.capacity.is_some() { CAPACITY_LEN as u64 } else { 0 };
    mss + scale + timestamps + permitted + sack + capacity
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_wire::tcp::{Capacity, Flags, SackBlock, Timestamps};

    fn header(options: TcpOptions, payload_len: u32) -> TcpHeader {
        let (source_port, destination_port, seq, ack, window) = (1, 2, 0, 0, 0);
        TcpHeader { source_port, destination_port, seq, ack, flags: Flags::ACK, window, options, payload_len }
    }

    #[test]
    fn lengths_are_those_that_linux_sends() {
        let timestamps = Some(Timestamps { val: 1, ecr: 2 });
        let data = header(TcpOptions { timestamps, ..TcpOptions::default() }, 1448);
        assert_eq!(tcp_packet(&data), Bytes::new(1500));
        let mut sack = TcpOptions { timestamps, ..TcpOptions::default() };
        sack.sack.push(SackBlock { left: 1, right: 2 });
        assert_eq!(tcp_packet(&header(sack, 0)), Bytes::new(64));
        let told = TcpOptions { capacity: Some(Capacity::default()), ..sack };
        assert_eq!(tcp_packet(&header(told, 0)), Bytes::new(72));
        let syn = TcpOptions {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps,
            ..Default::default()
        };
        assert_eq!(tcp_packet(&header(syn, 0)), Bytes::new(60));
    }
}
