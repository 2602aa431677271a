//! Messages that are lists of addresses: TC, MID and HNA (RFC 3626, sections 9.1, 5.1 and 12.1).

use super::{ADDRESS_LEN, Sequence, addresses, put};
use crate::{Error, be16};
use std::net::Ipv4Addr;

/// The contents of a TC: the neighbours for which a node forwards.
///
/// | offset | size | field |
/// | --- | --- | --- |
/// | 0 | 2 | advertised neighbour sequence number (ANSN) |
/// | 2 | 2 | reserved |
/// | 4 | … | addresses |
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopologyControl {
    /// Grows whenever the neighbours are others.
    pub ansn: Sequence,
    /// Main addresses of neighbours. None: the node forwards for nobody any more.
    pub neighbours: Vec<Ipv4Addr>,
}

impl TopologyControl {
    /// The contents of a message of type [`kind::TC`](super::kind::TC).
    ///
    /// # Errors
    /// If the octets end within a field.
    pub fn decode(body: &[u8]) -> Result<TopologyControl, Error> {
        let ansn = Sequence(be16(body, 0)?);
        let listed = body.get(4..).ok_or(Error::Truncated { needed: 4, got: body.len() })?;
        Ok(TopologyControl { ansn, neighbours: addresses("size of a TC", listed)?.collect() })
    }

    /// The octets.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(4 + ADDRESS_LEN * self.neighbours.len());
        out.extend_from_slice(&self.ansn.0.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        put(&self.neighbours, &mut out);
        out
    }
}

/// The contents of a MID: addresses of a node's interfaces beside its main address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Aliases(pub Vec<Ipv4Addr>);

impl Aliases {
    /// The contents of a message of type [`kind::MID`](super::kind::MID).
    ///
    /// # Errors
    /// If the octets end within an address.
    pub fn decode(body: &[u8]) -> Result<Aliases, Error> {
        Ok(Aliases(addresses("size of a MID", body)?.collect()))
    }

    /// The octets.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(ADDRESS_LEN * self.0.len());
        put(&self.0, &mut out);
        out
    }
}

/// A network behind a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Network {
    /// Its address.
    pub address: Ipv4Addr,
    /// Its mask, of whatever bits: the RFC asks for no prefix.
    pub mask: Ipv4Addr,
}

/// The contents of an HNA.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Networks(pub Vec<Network>);

impl Networks {
    /// The contents of a message of type [`kind::HNA`](super::kind::HNA).
    ///
    /// # Errors
    /// If the octets end within a network.
    pub fn decode(body: &[u8]) -> Result<Networks, Error> {
        if !body.len().is_multiple_of(2 * ADDRESS_LEN) {
            return Err(Error::Length { field: "size of an HNA", value: body.len() });
        }
        let mut listed = addresses("size of an HNA", body)?;
        let pairs = std::iter::from_fn(|| Some(Network { address: listed.next()?, mask: listed.next()? }));
        Ok(Networks(pairs.collect()))
    }

    /// The octets.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(2 * ADDRESS_LEN * self.0.len());
        self.0.iter().for_each(|network| put([&network.address, &network.mask], &mut out));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_written_by_hand_are_read() {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let octets = [10, 0, 0, 1, 10, 0, 0, 2];
        let tc = TopologyControl::decode(&[&[1, 2, 0, 0][..], &octets].concat());
        assert_eq!(tc, Ok(TopologyControl { ansn: Sequence(0x0102), neighbours: vec![a, b] }));
        assert_eq!(Aliases::decode(&octets), Ok(Aliases(vec![a, b])));
        assert_eq!(Networks::decode(&octets), Ok(Networks(vec![Network { address: a, mask: b }])));
    }

    #[test]
    fn half_an_address_is_refused() {
        let wrong = |field, value| Err(Error::Length { field, value });
        assert_eq!(TopologyControl::decode(&[0, 1, 0, 0, 10]).map(|_| ()), wrong("size of a TC", 1));
        assert_eq!(TopologyControl::decode(&[0, 1, 0]).map(|_| ()), Err(Error::Truncated { needed: 4, got: 3 }));
        assert_eq!(Aliases::decode(&[10, 0, 0]).map(|_| ()), wrong("size of a MID", 3));
        assert_eq!(Networks::decode(&[10, 0, 0, 0]).map(|_| ()), wrong("size of an HNA", 4));
    }
}
