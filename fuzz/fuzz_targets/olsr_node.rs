//! Any packets, from anybody and at any time, to an OLSR node: nothing panics, sets stay within their bounds, what it sends can be read, and it
//! asks for no moment that is over.
#![no_main]

use lasthop_routing::olsr::{MOST_DUPLICATES, MOST_FORWARDS, MOST_LINKS, MOST_TOPOLOGY, MOST_TWO_HOP, Olsr, Params};
use lasthop_units::{Seed, Span, Time};
use lasthop_wire::olsr::Packet;
use libfuzzer_sys::fuzz_target;
use std::net::Ipv4Addr;

const BOUNDS: [usize; 5] = [MOST_LINKS, MOST_TWO_HOP, MOST_TOPOLOGY, MOST_DUPLICATES, MOST_FORWARDS];

fuzz_target!(|bytes: &[u8]| {
    let own = Ipv4Addr::new(10, 0, 0, 1);
    let mut now = Time::ZERO;
    let mut node =
        Olsr::new(own, Params::default(), Seed(1).stream("olsr"), now).expect("the RFC's parameters are right");
    let mut rest = bytes;
    // Its sender, how long after the one before, its length; then messages, to which a packet's header is added.
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
        assert!(node.routes().iter().all(|(to, route)| *to != own && route.hops > 0));
    }
});
