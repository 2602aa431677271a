//! What must hold on any bytes, a function for each fuzz target of this crate. A function panics
//! where it does not hold. `fuzz/README.md` says how they are run.

use crate::olsr::{MOST_DUPLICATES, MOST_FORWARDS, MOST_LINKS, MOST_TOPOLOGY, MOST_TWO_HOP, Olsr, Params};
use lasthop_units::{Seed, Span, Time};
use lasthop_wire::olsr::Packet;
use std::net::Ipv4Addr;

const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const BOUNDS: [usize; 5] = [MOST_LINKS, MOST_TWO_HOP, MOST_TOPOLOGY, MOST_DUPLICATES, MOST_FORWARDS];

/// Packets, from anybody and at any time, to an OLSR node: it does not panic, sets stay within
/// their bounds, what it sends can be read, routes are of other nodes, and it asks for no moment
/// that is over.
///
/// The bytes are packets, each behind three octets: who sends it, how long after the one before
/// (in 50 ms), its length. A packet is given without its header.
pub fn olsr_node(bytes: &[u8]) {
    let mut now = Time::ZERO;
    let mut node =
        Olsr::new(OWN, Params::default(), Seed(1).stream("olsr"), now).expect("the RFC's parameters are right");
    let mut rest = bytes;
    while let [from, gap, len, after @ ..] = rest {
        let (messages, after) = after.split_at(usize::from(*len).min(after.len()));
        rest = after;
        now += Span::from_millis(u64::from(*gap) * 50);
        let mut packet = (4 + messages.len() as u16).to_be_bytes().to_vec();
        packet.extend_from_slice(&[0, 0]);
        packet.extend_from_slice(messages);
        let _ = node.on_packet(now, Ipv4Addr::new(10, 0, 0, *from), &packet);
        while let Some(sent) = node.poll_transmit(now) {
            assert!(!Packet::decode(&sent).expect("it can be read").is_empty());
        }
        assert!(node.next_timeout() > now);
        assert!(node.sizes().iter().zip(BOUNDS).all(|(size, bound)| *size <= bound));
        assert!(node.routes().iter().all(|(to, route)| *to != OWN && route.hops > 0));
    }
}

#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_wire::olsr::{
        Header, Hello, LinkCode, LinkType, Message, NeighbourType, Sequence, TopologyControl, Validity, Willingness,
        kind,
    };

    fn node(n: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, n)
    }

    /// One message from a neighbour, which has come a second after what was before.
    fn message(from: u8, kind: u8, originator: u8, sequence: u16, body: &[u8]) -> Vec<u8> {
        let (validity, ttl) = (Validity::at_least(Span::from_secs(15)), if kind == kind::HELLO { 1 } else { 255 });
        let header =
            Header { kind, validity, originator: node(originator), ttl, hops: 0, sequence: Sequence(sequence) };
        let mut octets = Vec::new();
        Message { header, body }.encode(&mut octets).expect("short");
        [&[from, 20, u8::try_from(octets.len()).expect("short")][..], &octets].concat()
    }

    /// A neighbour's HELLO: it has chosen this node, and hears another.
    fn hello(from: u8, sequence: u16, other: u8) -> Vec<u8> {
        let code = |neighbour| LinkCode::new(LinkType::Symmetric, neighbour).expect("a code");
        let groups = vec![(code(NeighbourType::Relay), vec![OWN]), (code(NeighbourType::Symmetric), vec![node(other)])];
        let hello = Hello { interval: Validity(5), willingness: Willingness::DEFAULT, groups };
        message(from, kind::HELLO, from, sequence, &hello.encode().expect("short"))
    }

    #[test]
    fn olsr_node() {
        let tc = |from, originator, sequence: u16, neighbours: &[Ipv4Addr]| {
            let body = TopologyControl { ansn: Sequence(sequence), neighbours: neighbours.to_vec() }.encode();
            message(from, kind::TC, originator, sequence, &body)
        };
        let neighbours = [hello(2, 1, 4), hello(3, 1, 4), hello(2, 2, 5), hello(3, 2, 4)];
        let far = [tc(2, 5, 1, &[node(2), node(6)]), tc(2, 6, 1, &[node(5), node(7)]), tc(3, 4, 1, &[node(3)])];
        // A type that the RFC does not know; a minute and more in which nothing comes.
        let unknown = message(2, 130, 9, 1, &[1, 2, 3]);
        let silence = [2, 255, 0].repeat(6);
        let mesh = [neighbours.concat(), far.concat(), unknown].concat();
        let lost = [neighbours.concat(), silence, hello(2, 9, 4)].concat();
        super::seeds::run("olsr_node", super::olsr_node, &[("mesh", mesh), ("lost", lost)]);
    }
}
