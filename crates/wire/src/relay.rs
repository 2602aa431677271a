//! What a relay of ATP does to a packet that leaves: its own delay D stands in every datagram of ours where it is the larger one.
//!
//! The rule of `bpf/relay.bpf.c`, on a whole packet: the program is tested against it. A datagram is ours if it is UDP, from or to one of the
//! relay's ports, and [`crate::datagram::raise_delay`] takes its payload for ours. A first fragment is looked at, the others hold no header.
//! The UDP checksum is mended by the difference (RFC 1624); zero, which means none, stays.

use crate::datagram::{self, Raised};
use crate::{Link, be16, checksum, ethernet, ip};

const CHECKSUM_AT: usize = 6;
const HEADER_LEN: usize = 8;

/// What a relay did to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stamp {
    /// No datagram of the relay's ports begins in it.
    Elsewhere,
    /// A datagram of the relay's ports does, and is not ours.
    Other,
    /// What stands there is at least as large.
    Larger,
    /// D was raised.
    Raised,
}

/// Stamps a packet that leaves through a device of this kind, with the node's own D in microseconds. Never panics.
pub fn stamp(bytes: &mut [u8], link: Link, ports: &[u16], own: u32) -> Stamp {
    let Some((from, to, whole)) = find(bytes, link) else { return Stamp::Elsewhere };
    let datagram = &mut bytes[from..to];
    let port = |at| be16(datagram, at).is_ok_and(|port| port != 0 && ports.contains(&port));
    if !port(0) && !port(2) {
        return Stamp::Elsewhere;
    }
    let said = usize::from(be16(datagram, 4).unwrap_or(0));
    let end = if whole { said } else { datagram.len() };
    let Some(payload) = datagram.get_mut(HEADER_LEN..end) else { return Stamp::Other };
    let (before, after) = match datagram::raise_to(payload, own) {
        Raised::Foreign => return Stamp::Other,
        Raised::Not => return Stamp::Larger,
        Raised::From(before) => (before, own),
    };
    let Ok(sum @ 1..) = be16(datagram, CHECKSUM_AT) else { return Stamp::Raised };
    let halves = |word: u32| [(word >> 16) as u16, word as u16];
    let sum =
        halves(before).into_iter().zip(halves(after)).fold(sum, |sum, (old, new)| checksum::update(sum, old, new));
    // Zero would say that there is none.
    let sum = if sum == 0 { u16::MAX } else { sum };
    datagram[CHECKSUM_AT..HEADER_LEN].copy_from_slice(&sum.to_be_bytes());
    Stamp::Raised
}

/// Where a packet's UDP datagram stands, and whether it is there as a whole.
fn find(bytes: &[u8], link: Link) -> Option<(usize, usize, bool)> {
    let at = match link {
        Link::Ip => 0,
        Link::Ethernet => {
            let frame = ethernet::parse(bytes).ok()?;
            let version = bytes.get(frame.payload_at)? >> 4;
            let fits = matches!((frame.ethertype, version), (ethernet::IPV4, 4) | (ethernet::IPV6, 6));
            fits.then_some(frame.payload_at)?
        }
    };
    let packet = bytes.get(at..)?;
    let header = ip::parse(packet).ok()?;
    let offset = match packet.first()? >> 4 {
        4 => be16(packet, 6).ok()? & 0x1fff,
        // The fragment header stands just before what it is of.
        _ if header.fragment => be16(packet, header.payload_at.checked_sub(6)?).ok()? & 0xfff8,
        _ => 0,
    };
    let (from, to) = (at + header.payload_at, at + header.payload_at + header.payload_len);
    (header.protocol == ip::UDP && offset == 0 && header.payload_len >= HEADER_LEN).then_some((
        from,
        to,
        !header.fragment,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn packet(v6: bool, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
        let [from, to]: [IpAddr; 2] = if v6 {
            ["2001:db8::1", "2001:db8::2"].map(|ip| ip.parse().expect("an address"))
        } else {
            ["192.0.2.1", "192.0.2.2"].map(|ip| ip.parse().expect("an address"))
        };
        let mut udp = [ports.0, ports.1, (8 + payload.len()) as u16, 0].map(u16::to_be_bytes).concat();
        udp.extend_from_slice(payload);
        let sum = checksum::transport(from, to, ip::UDP, &udp);
        udp[6..8].copy_from_slice(&sum.to_be_bytes());
        let mut packet = Vec::new();
        ip::write(&mut packet, from, to, ip::UDP, ip::Ecn::NotEct, udp.len()).expect("short");
        packet.extend_from_slice(&udp);
        packet
    }

    fn sum_of(packet: &[u8]) -> u16 {
        let header = ip::parse(packet).expect("a packet");
        checksum::transport(header.source, header.destination, ip::UDP, header.payload(packet))
    }

    #[test]
    fn own_delay_stands_where_it_is_larger() {
        for v6 in [false, true] {
            let mut bytes = packet(v6, (4900, 1000), &[0x12, 0, 0, 0, 0, 0, 3, 0xe8, 9, 9, 9]);
            let at = bytes.len() - 7;
            for (own, did, stands) in
                [(999, Stamp::Larger, 1000), (1000, Stamp::Larger, 1000), (5000, Stamp::Raised, 5000u32)]
            {
                assert_eq!(stamp(&mut bytes, Link::Ip, &[4900], own), did);
                assert_eq!(bytes[at..at + 4], stands.to_be_bytes());
                assert_eq!(sum_of(&bytes), 0);
            }
        }
    }

    #[test]
    fn others_are_left_alone() {
        let payload = [0x12, 0, 0, 0, 0, 0, 0, 1];
        let refused = |mut bytes: Vec<u8>, why| {
            let before = bytes.clone();
            assert_eq!(stamp(&mut bytes, Link::Ip, &[4900, 0], 7), why);
            assert_eq!(bytes, before);
        };
        refused(packet(false, (0, 4901), &payload), Stamp::Elsewhere);
        refused(packet(false, (4900, 4900), &[0x22, 0, 0, 0, 0, 0, 0, 1]), Stamp::Other);
        refused(packet(true, (4900, 4900), &payload[..7]), Stamp::Other);
        let mut later = packet(false, (4900, 4900), &payload);
        later[7] = 1;
        refused(later, Stamp::Elsewhere);
        for len in 0..36 {
            refused(packet(false, (4900, 4900), &payload)[..len].to_vec(), Stamp::Elsewhere);
        }
    }

    #[test]
    fn no_checksum_stays_none_and_none_comes_about() {
        let mut bytes = packet(false, (4900, 1), &[0x12, 0, 0, 0, 0, 0, 0, 1]);
        bytes[26..28].fill(0);
        assert_eq!(stamp(&mut bytes, Link::Ip, &[4900], 7), Stamp::Raised);
        assert_eq!(bytes[26..28], [0, 0]);
        // A checksum that would become zero is written as its other form.
        let mut bytes = packet(false, (4900, 1), &[0x12, 0, 0, 0, 0, 0, 0, 1]);
        let sum = u16::from_be_bytes([bytes[26], bytes[27]]);
        assert_eq!(stamp(&mut bytes, Link::Ip, &[4900], u32::from(sum) + 1), Stamp::Raised);
        assert_eq!(bytes[26..28], [0xff, 0xff]);
        assert_eq!(sum_of(&bytes), 0);
    }
}
