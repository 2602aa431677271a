//! What the models want to know of a frame, and the one thing they may change in it.

use crate::address::{HopId, node_of};
use crate::frame::Frame;
use lasthop_radio::{AccessClass, Dest, Ecn, Packet};
use lasthop_signals::Node;
use lasthop_units::Bytes;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// Turns a frame that node `src` of `hop` sent into a packet for the model; gives the frame back if its receiver is
/// not on the hop.
pub fn packet(hop: HopId, src: Node, frame: Frame) -> Result<Packet<Frame>, Frame> {
    let dst = match frame.destination() {
        Some([first, ..]) if first & 1 == 1 => Dest::Group,
        Some(mac) => match node_of(hop, mac) {
            Some(node) => Dest::Node(node),
            None => return Err(frame),
        },
        None => return Err(frame),
    };
    let bytes = frame.packet();
    let traffic_class = traffic_class(frame.ethertype(), bytes).unwrap_or(0);
    Ok(Packet {
        len: Bytes::new(bytes.len() as u64),
        src,
        dst,
        class: access_class(traffic_class >> 2),
        flow_hash: flow_hash(frame.ethertype(), bytes).unwrap_or(0),
        ecn: [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(traffic_class & 3)],
        payload: frame,
    })
}

/// Writes "congestion experienced" into the packet of `frame`. Does nothing if it carries no IP.
pub fn mark_ce(frame: &mut Frame) {
    match (frame.ethertype(), frame.packet_mut()) {
        (IPV4, [version, tos, _, _, _, _, _, _, _, _, high, low, ..]) => {
            let old = u16::from_be_bytes([*version, *tos]);
            *tos |= 3;
            let new = u16::from_be_bytes([*version, *tos]);
            // RFC 1624, equation 3: the checksum follows the changed word.
            let sum = u32::from(!u16::from_be_bytes([*high, *low])) + u32::from(!old) + u32::from(new);
            let sum = (sum & 0xffff) + (sum >> 16);
            [*high, *low] = (!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes();
        }
        // The ECN field is the low two bits of the traffic class, which spans octets 0 and 1.
        (IPV6, [_, second, ..]) => *second |= 0x30,
        _ => {}
    }
}

/// The DS field with its ECN bits (RFC 3168).
fn traffic_class(ethertype: u16, packet: &[u8]) -> Option<u8> {
    let (first, second) = (*packet.first()?, *packet.get(1)?);
    match ethertype {
        IPV4 => Some(second),
        IPV6 => Some(first << 4 | second >> 4),
        _ => None,
    }
}

/// The access category that Linux gives a DSCP: its class selector bits taken as 802.1D priority.
fn access_class(dscp: u8) -> AccessClass {
    match dscp >> 3 {
        1 | 2 => AccessClass::Background,
        4 | 5 => AccessClass::Video,
        6 | 7 => AccessClass::Voice,
        _ => AccessClass::BestEffort,
    }
}

/// A hash over addresses, protocol and ports.
fn flow_hash(ethertype: u16, packet: &[u8]) -> Option<u32> {
    let (addresses, protocol, rest) = match ethertype {
        IPV4 => {
            let header = usize::from(packet.first()? & 0xf) * 4;
            (packet.get(12..20)?, *packet.get(9)?, packet.get(header..)?)
        }
        IPV6 => (packet.get(8..40)?, *packet.get(6)?, packet.get(40..)?),
        _ => return None,
    };
    let has_ports = [libc::IPPROTO_TCP, libc::IPPROTO_UDP].contains(&i32::from(protocol));
    let ports = if has_ports { rest.get(..4).unwrap_or_default() } else { &[] };
    let hash = addresses
        .iter()
        .chain(ports)
        .chain([&protocol])
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    Some((hash ^ (hash >> 32)) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::mac;
    use crate::frame::Pool;

    fn frame(ethertype: u16, packet: &[u8]) -> Frame {
        let mut frame = Pool::default().take();
        let bytes = [&mac(HopId(1), Node(2))[..], &mac(HopId(1), Node(0)), &ethertype.to_be_bytes(), packet].concat();
        frame.buffer()[..bytes.len()].copy_from_slice(&bytes);
        frame.set_len(bytes.len());
        frame
    }

    fn ones_complement(header: &[u8]) -> u16 {
        let sum: u32 = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        ((sum & 0xffff) + (sum >> 16)) as u16
    }

    /// A header from RFC 1071 tutorials, ECT(0), with its checksum filled in.
    fn ipv4() -> [u8; 24] {
        let mut header = [0x45, 0xb6, 0, 24, 0x1c, 0x46, 0x40, 0, 64, 6, 0, 0, 10, 76, 1, 1, 10, 76, 1, 3, 0, 80, 1, 2];
        let checksum = !ones_complement(&header[..20]);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        header
    }

    #[test]
    fn marking_keeps_the_header_checksum_valid() {
        let mut frame = frame(IPV4, &ipv4());
        mark_ce(&mut frame);
        assert_eq!(frame.packet()[1], 0xb7);
        assert_eq!(ones_complement(&frame.packet()[..20]), 0xffff);
    }

    #[test]
    fn receiver_class_and_ecn_are_read_from_the_bytes() {
        let packet = packet(HopId(1), Node(0), frame(IPV4, &ipv4())).expect("known receiver");
        assert_eq!((packet.dst, packet.len), (Dest::Node(Node(2)), Bytes::new(24)));
        // 0xb6 is DSCP 45 (priority 5) with ECT(0).
        assert_eq!((packet.class, packet.ecn), (AccessClass::Video, Ecn::Ect0));
        assert_ne!(packet.flow_hash, 0);
    }

    #[test]
    fn a_marked_ipv6_packet_reads_as_marked() {
        let mut bytes = [0; 44];
        bytes[0] = 0x60;
        let mut six = frame(IPV6, &bytes);
        mark_ce(&mut six);
        assert_eq!(packet(HopId(1), Node(0), six).expect("known receiver").ecn, Ecn::Ce);
    }

    #[test]
    fn truncated_frames_are_carried_or_refused_but_never_panic() {
        for len in 0..24 {
            let mut short = frame(IPV4, &ipv4()[..len]);
            mark_ce(&mut short);
            assert!(packet(HopId(1), Node(0), short).is_ok());
        }
        let mut runt = frame(IPV4, &[]);
        runt.set_len(5);
        assert!(packet(HopId(1), Node(0), runt).is_err());
    }
}
