//! What the models want to know of a frame.

use crate::address::{HopId, node_of};
use crate::frame::Frame;
use lasthop_radio::{AccessClass, Dest, Ecn, Packet};
use lasthop_signals::Node;
use lasthop_units::Bytes;
use lasthop_wire::{FlowKey, ip};

/// Turns a frame that node `src` of `hop` sent into a packet for the model; gives the frame back if its receiver is
/// not on the hop. What is no IP (ARP, for one) is carried too, as best effort.
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
    let len = Bytes::new(bytes.len() as u64);
    let (class, flow_hash, ecn) = match ip::parse(bytes) {
        Ok(header) => {
            let hash = FlowKey::of_header(&header, bytes).map_or(0, |flow| flow.hash());
            (access_class(header.dscp), hash, in_model(header.ecn))
        }
        Err(_) => (AccessClass::BestEffort, 0, Ecn::NotEct),
    };
    Ok(Packet { len, src, dst, class, flow_hash, ecn, payload: frame })
}

/// The access category of a DSCP, by its user priority (IEEE 802.11-2020, table 10-1).
fn access_class(dscp: u8) -> AccessClass {
    match ip::dscp::user_priority(dscp) {
        1 | 2 => AccessClass::Background,
        4 | 5 => AccessClass::Video,
        6 | 7 => AccessClass::Voice,
        _ => AccessClass::BestEffort,
    }
}

fn in_model(ecn: ip::Ecn) -> Ecn {
    match ecn {
        ip::Ecn::NotEct => Ecn::NotEct,
        ip::Ecn::Ect0 => Ecn::Ect0,
        ip::Ecn::Ect1 => Ecn::Ect1,
        ip::Ecn::Ce => Ecn::Ce,
    }
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

    /// An IPv4 header and two ports; DSCP 45, of which the upper bits decide, and ECT(0).
    const IPV4: [u8; 24] =
        [0x45, 0xb6, 0, 24, 0x1c, 0x46, 0x40, 0, 64, 6, 0xc9, 0xc3, 10, 76, 1, 1, 10, 76, 1, 3, 0, 80, 1, 2];

    #[test]
    fn receiver_class_and_ecn_are_read_from_the_bytes() {
        let packet = packet(HopId(1), Node(0), frame(0x0800, &IPV4)).expect("known receiver");
        assert_eq!((packet.dst, packet.len), (Dest::Node(Node(2)), Bytes::new(24)));
        // Priority 5 is video.
        assert_eq!((packet.class, packet.ecn), (AccessClass::Video, Ecn::Ect0));
        assert_ne!(packet.flow_hash, 0);
    }

    #[test]
    fn the_class_is_read_from_the_dscp_in_both_ip_versions() {
        use AccessClass::{Background, BestEffort, Video, Voice};
        for class in [Background, BestEffort, Video, Voice] {
            let octet = crate::traffic::tos(class);
            let mut v4 = IPV4;
            v4[1] = octet | 0x02;
            let mut v6 = [0; 48];
            // Eight octets of UDP between unspecified addresses; the traffic class lies across two octets.
            v6[..8].copy_from_slice(&[0x60 | octet >> 4, octet << 4, 0, 0, 0, 8, 17, 64]);
            for (ethertype, bytes) in [(0x0800, &v4[..]), (0x86dd, &v6[..])] {
                let packet = packet(HopId(1), Node(0), frame(ethertype, bytes)).expect("known receiver");
                assert_eq!(packet.class, class, "octet {octet:#04x}, type {ethertype:#06x}");
            }
        }
    }

    #[test]
    fn unknown_unicast_comes_back_and_broadcast_is_carried() {
        assert!(packet(HopId(0), Node(0), frame(0x0800, &IPV4)).is_err());
        let mut everybody = frame(0x0806, &[0; 28]);
        everybody.bytes_mut()[..6].copy_from_slice(&[0xff; 6]);
        let packet = packet(HopId(1), Node(0), everybody).expect("a group frame");
        assert_eq!((packet.dst, packet.class), (Dest::Group, AccessClass::BestEffort));
    }

    #[test]
    fn truncated_frames_are_carried_or_refused_but_never_panic() {
        for len in 0..24 {
            assert!(packet(HopId(1), Node(0), frame(0x0800, &IPV4[..len])).is_ok());
        }
        let mut runt = frame(0x0800, &[]);
        runt.set_len(5);
        assert!(packet(HopId(1), Node(0), runt).is_err());
    }
}
