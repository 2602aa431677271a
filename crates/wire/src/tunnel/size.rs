//! How long the tunnel's packets are on a path.

use super::{MAX_DATAGRAM, SEALED_HEADER, TAG};
use crate::datagram::preamble::PREAMBLE;

/// Octets of an IPv4 and a UDP header.
pub const IP_UDP_LEN: usize = 28;
/// Octets of an IPv6 and a UDP header.
pub const IPV6_UDP_LEN: usize = 48;
/// Datagrams are never made to be shorter for a path: IPv6 carries 1280 octets everywhere, and so does nearly every IPv4 path.
pub const LEAST_DATAGRAM: usize = 1200;

/// The length of full packets on a path, and what the path adds to each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSize {
    headers: usize,
    /// Octets of a datagram before the tunnel's own.
    outer: usize,
    datagram: usize,
}

impl PacketSize {
    /// Over IPv4 where packets of 1500 octets pass.
    pub const ETHERNET: PacketSize = PacketSize { headers: IP_UDP_LEN, outer: 0, datagram: MAX_DATAGRAM };

    /// For a path that carries IP packets of `mtu` octets: IP packets are as long as that, but no longer than 1500, and
    /// datagrams no shorter than [`LEAST_DATAGRAM`] (which a smaller path carries in fragments).
    pub fn of_path(ipv6: bool, mtu: usize) -> PacketSize {
        let headers = if ipv6 { IPV6_UDP_LEN } else { IP_UDP_LEN };
        let datagram = mtu.min(1500).saturating_sub(headers).max(LEAST_DATAGRAM);
        PacketSize { headers, outer: 0, datagram }
    }

    /// The same on a mesh, where a preamble stands before every datagram of the tunnel.
    pub fn over_mesh(self) -> PacketSize {
        PacketSize { outer: PREAMBLE, ..self }
    }

    /// Octets of a full datagram (UDP payload).
    pub fn datagram(self) -> usize {
        self.datagram
    }

    /// Octets of a full packet (what is encrypted).
    pub fn packet(self) -> usize {
        self.datagram - self.outer - SEALED_HEADER - TAG
    }

    /// Octets of an IP packet with this much in its datagram.
    pub fn ip_len(self, datagram: usize) -> usize {
        datagram + self.headers
    }

    /// Octets of the IP packet of a packet of this length.
    pub fn sealed_ip_len(self, packet: usize) -> usize {
        self.ip_len(self.outer + SEALED_HEADER + packet + TAG)
    }
}

impl Default for PacketSize {
    fn default() -> PacketSize {
        PacketSize::ETHERNET
    }
}
