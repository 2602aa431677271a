//! Packets of OLSR, the routing protocol of meshes.
//! Source:     RFC 3626, sections 3.3 (packets), 6.1 (HELLO), 9.1 (TC), 5.1 (MID), 12.1 (HNA), 18 (constants).
//!
//! A packet is a UDP datagram, at port [`PORT`], that holds messages:
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 2 | packet length, octets, this header included |
//! | 2 | 2 | packet sequence number |
//! | 4 | … | messages, each with a header of 12 octets ([`Header`]) that says its size |
//!
//! What a [`Message`] holds is left as octets: messages of types that nobody here knows are forwarded all the same. [`Hello`],
//! [`TopologyControl`], [`Aliases`] and [`Networks`] read and write the contents of those that the RFC defines. Numbers are in
//! network order, addresses are of IPv4.
//!
//! Deviations: a packet of another length than its datagram is refused, as is one in which a message does not fit; the
//! RFC says nothing of either. Reserved fields are written as zero and not read, as the RFC has it.

mod hello;
mod lists;
mod packet;
mod sequence;
mod validity;

pub use hello::{Hello, LinkCode, LinkType, NeighbourType, Willingness};
pub use lists::{Aliases, Network, Networks, TopologyControl};
pub use packet::{Header, MESSAGE_HEADER_LEN, Message, PACKET_HEADER_LEN, Packet, kind};
pub use sequence::Sequence;
pub use validity::Validity;

use crate::{Error, take};
use std::net::Ipv4Addr;

/// The UDP port.
pub const PORT: u16 = 698;

/// Octets of an address.
const ADDRESS_LEN: usize = 4;

/// The addresses of which `bytes` consist.
fn addresses<'a>(field: &'static str, bytes: &'a [u8]) -> Result<impl Iterator<Item = Ipv4Addr> + 'a, Error> {
    if !bytes.len().is_multiple_of(ADDRESS_LEN) {
        return Err(Error::Length { field, value: bytes.len() });
    }
    Ok(bytes.chunks_exact(ADDRESS_LEN).filter_map(|octets| take::<4>(octets, 0)).map(Ipv4Addr::from))
}

/// Appends addresses.
fn put<'a>(addresses: impl IntoIterator<Item = &'a Ipv4Addr>, out: &mut Vec<u8>) {
    addresses.into_iter().for_each(|address| out.extend_from_slice(&address.octets()));
}
