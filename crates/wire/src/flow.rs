//! The five-tuple that names a transport flow in one direction.

use crate::ip::{self, IpHeader};
use crate::{Error, be16};
use std::net::IpAddr;

/// Addresses and ports of the sender and the receiver. The other direction of the same connection is
/// [`FlowKey::reversed`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowKey {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Source port; 0 for protocols without ports and for fragments.
    pub source_port: u16,
    /// Destination port; 0 for protocols without ports and for fragments.
    pub destination_port: u16,
    /// IP protocol number.
    pub protocol: u8,
}

impl FlowKey {
    /// The flow that an IP packet (no link-layer header) belongs to. Every fragment of a packet gives the same flow,
    /// without ports, as only the first one has them.
    ///
    /// # Errors
    /// Those of [`ip::parse`], and [`Error::Truncated`] if the packet ends before its ports.
    pub fn of_packet(packet: &[u8]) -> Result<FlowKey, Error> {
        FlowKey::of_header(&ip::parse(packet)?, packet)
    }

    /// As [`FlowKey::of_packet`], for a packet with a header that is parsed already.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the packet ends before its ports.
    pub fn of_header(header: &IpHeader, packet: &[u8]) -> Result<FlowKey, Error> {
        let has_ports = matches!(header.protocol, ip::TCP | ip::UDP) && !header.fragment;
        let (source_port, destination_port) = match has_ports {
            true => (be16(header.payload(packet), 0)?, be16(header.payload(packet), 2)?),
            false => (0, 0),
        };
        let IpHeader { source, destination, protocol, .. } = *header;
        Ok(FlowKey { source, destination, source_port, destination_port, protocol })
    }

    /// The flow of the answers.
    pub const fn reversed(self) -> FlowKey {
        FlowKey {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
            protocol: self.protocol,
        }
    }

    /// A hash for queue assignment (FQ-CoDel and its like): the same on every machine and in every release, well
    /// spread in its low bits. It is not keyed: against an adversary, mix a secret in.
    pub fn hash(&self) -> u32 {
        let mut state: u64 = 0x9e37_79b9_7f4a_7c15 ^ u64::from(self.protocol);
        let mut mix = |word: u64| {
            state = (state ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
            state ^= state >> 32;
        };
        for address in [self.source, self.destination] {
            match address {
                IpAddr::V4(a) => mix(u64::from(a.to_bits())),
                IpAddr::V6(a) => {
                    mix((a.to_bits() >> 64) as u64);
                    mix(a.to_bits() as u64);
                }
            }
        }
        mix(u64::from(self.source_port) << 16 | u64::from(self.destination_port));
        (state ^ state >> 29) as u32
    }
}
