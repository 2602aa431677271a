//! The addresses of the lab's hosts.
//!
//! Addresses carry the hop and the node in their bytes, so the emulator finds a frame's receiver without a table:
//! node `n` of hop `h` is `02:4c:48:h:n:n`, `10.76.h.(n+1)` and `fd4c:48::h:(n+1)`.

use lasthop_signals::Node;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A hop of the lab, numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HopId(pub u8);

/// The most nodes that one hop may have: their numbers share one octet with the network's own addresses.
pub const MAX_NODES: u16 = 250;

/// Prefix length of a hop's IPv4 network.
pub const V4_PREFIX: u8 = 24;
/// Prefix length of a hop's IPv6 network.
pub const V6_PREFIX: u8 = 112;

/// IP version of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Family {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

/// The Ethernet address of `node` on `hop`: locally administered.
pub fn mac(hop: HopId, node: Node) -> [u8; 6] {
    let [high, low] = node.0.to_be_bytes();
    [0x02, 0x4c, 0x48, hop.0, high, low]
}

/// The node that `mac` names on `hop`; `None` for an address that the lab did not give.
pub fn node_of(hop: HopId, mac: [u8; 6]) -> Option<Node> {
    let [0x02, 0x4c, 0x48, at, high, low] = mac else { return None };
    (at == hop.0).then(|| Node(u16::from_be_bytes([high, low])))
}

/// The IPv4 address of `node` on `hop`.
pub fn v4(hop: HopId, node: Node) -> Ipv4Addr {
    Ipv4Addr::new(10, 76, hop.0, host(node))
}

/// The IPv6 address of `node` on `hop`.
pub fn v6(hop: HopId, node: Node) -> Ipv6Addr {
    Ipv6Addr::new(0xfd4c, 0x48, 0, 0, 0, 0, u16::from(hop.0), u16::from(host(node)))
}

/// The address of `node` on `hop` in `family`.
pub fn ip(family: Family, hop: HopId, node: Node) -> IpAddr {
    match family {
        Family::V4 => v4(hop, node).into(),
        Family::V6 => v6(hop, node).into(),
    }
}

fn host(node: Node) -> u8 {
    debug_assert!(node.0 < MAX_NODES);
    (node.0 % MAX_NODES) as u8 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mac_names_its_node_on_its_hop_only() {
        let address = mac(HopId(1), Node(258));
        assert_eq!(node_of(HopId(1), address), Some(Node(258)));
        assert_eq!(node_of(HopId(0), address), None);
        assert_eq!(node_of(HopId(1), [0xff; 6]), None);
    }
}
