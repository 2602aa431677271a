//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers, extension headers looked through.

pub mod dscp;
mod ecn;
mod v4;
mod v6;

pub use ecn::{Ecn, mark_ce};
pub use v6::MAX_EXTENSIONS;

use crate::{Error, take};
use std::net::IpAddr;

/// Protocol number of TCP.
pub const TCP: u8 = 6;
/// Protocol number of UDP.
pub const UDP: u8 = 17;

/// An IP header of either version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpHeader {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// The transport protocol, behind any extension headers.
    pub protocol: u8,
    /// Differentiated services code point (RFC 2474).
    pub dscp: u8,
    /// Explicit congestion notification field (RFC 3168).
    pub ecn: Ecn,
    /// Time to live, or hop limit.
    pub hop_limit: u8,
    /// True for any fragment, the first included. A fragment's payload need not begin with a transport header.
    pub fragment: bool,
    /// Where the payload begins, counted from the header's first octet: options and extension headers included.
    pub payload_at: usize,
    /// Octets of payload, link-layer padding excluded.
    pub payload_len: usize,
}

impl IpHeader {
    /// The payload within the `packet` that this header was parsed from; empty if it is another, shorter packet.
    pub fn payload<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        packet.get(self.payload_at..self.payload_at.saturating_add(self.payload_len)).unwrap_or(&[])
    }
}

/// Parses the header of a packet of either version. Octets behind the packet's own length are link-layer padding.
///
/// # Errors
/// [`Error`] if the packet is cut short, its lengths contradict each other (jumbograms included: their length field is
/// 0), or it has more than [`MAX_EXTENSIONS`] extension headers.
pub fn parse(packet: &[u8]) -> Result<IpHeader, Error> {
    match packet.first().map(|first| first >> 4) {
        Some(4) => v4::parse(packet),
        Some(6) => v6::parse(packet),
        Some(version) => Err(Error::IpVersion(version)),
        None => Err(Error::Truncated { needed: 20, got: 0 }),
    }
}

/// The destination of a packet of either version, although it may be cut short behind its fixed header, as in captures.
pub fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => take::<4>(packet, 16).map(IpAddr::from),
        6 => take::<16>(packet, 24).map(IpAddr::from),
        _ => None,
    }
}

/// Writes a header without options or extensions, for a payload of `payload_len` octets that follows it.
///
/// # Errors
/// [`Error::MixedFamilies`] and [`Error::TooLong`].
pub fn write(
    out: &mut Vec<u8>,
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    ecn: Ecn,
    payload_len: usize,
) -> Result<(), Error> {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            v4::write(out, source, destination, protocol, ecn, payload_len)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            v6::write(out, source, destination, protocol, ecn, payload_len)
        }
        _ => Err(Error::MixedFamilies),
    }
}

/// Hop limit of packets written here: what most stacks start with.
const HOP_LIMIT: u8 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_needs_a_whole_fixed_header() {
        for (source, to) in [("192.0.2.1", "192.0.2.9"), ("2001:db8::1", "2001:db8::9")] {
            let address = |text: &str| text.parse::<IpAddr>().expect("an address");
            let mut packet = [0; 60];
            packet[0] = if address(to).is_ipv4() { 0x45 } else { 0x60 };
            let fixed = match (address(source), address(to)) {
                (IpAddr::V4(source), IpAddr::V4(to)) => {
                    packet[12..20].copy_from_slice(&[source.octets(), to.octets()].concat());
                    20
                }
                (IpAddr::V6(source), IpAddr::V6(to)) => {
                    packet[8..40].copy_from_slice(&[source.octets(), to.octets()].concat());
                    40
                }
                _ => unreachable!("both are of one version"),
            };
            for cut in 0..packet.len() {
                let want = (cut >= fixed).then(|| address(to));
                assert_eq!(destination(&packet[..cut]), want, "{to} cut to {cut}");
            }
        }
        assert_eq!(destination(&[0x15; 60]), None);
    }
}
