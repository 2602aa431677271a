//! Properties of what reads and writes OLSR packets, over arbitrary bytes and arbitrary messages.

use lasthop_wire::olsr::{
    Aliases, Header, Hello, LinkCode, Message, Network, Networks, Packet, Sequence, TopologyControl, Validity,
    Willingness,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::net::Ipv4Addr;

fn any_header() -> impl Strategy<Value = Header> {
    (any::<[u8; 4]>(), any::<[u8; 4]>(), any::<u16>()).prop_map(
        |([kind, validity, ttl, hops], originator, sequence)| Header {
            kind,
            validity: Validity(validity),
            originator: originator.into(),
            ttl,
            hops,
            sequence: Sequence(sequence),
        },
    )
}

fn addresses() -> impl Strategy<Value = Vec<Ipv4Addr>> {
    vec(any::<[u8; 4]>().prop_map(Ipv4Addr::from), 0..40)
}

fn any_hello() -> impl Strategy<Value = Hello> {
    let code = any::<u8>().prop_filter_map("no code", |octet| LinkCode::from_octet(octet % 12));
    (any::<[u8; 2]>(), vec((code, addresses()), 0..6)).prop_map(|([interval, willingness], groups)| Hello {
        interval: Validity(interval),
        willingness: Willingness(willingness),
        groups,
    })
}

proptest! {
    #[test]
    fn packets_survive_being_written_and_read(
        sequence in any::<u16>(),
        messages in vec((any_header(), vec(any::<u8>(), 0..60)), 0..12),
    ) {
        let messages = messages.iter().map(|(header, body)| Message { header: *header, body }).collect();
        let packet = Packet { sequence: Sequence(sequence), messages };
        let bytes = packet.encode().expect("short");
        prop_assert_eq!(bytes.len(), packet.len());
        prop_assert_eq!(Packet::decode(&bytes), Ok(packet));
        // Whatever is missing at the end is missed.
        for len in 0..bytes.len() {
            prop_assert!(Packet::decode(&bytes[..len]).is_err());
        }
    }

    #[test]
    fn contents_survive_being_written_and_read(
        hello in any_hello(),
        listed in addresses(),
        ansn in any::<u16>(),
    ) {
        prop_assert_eq!(Hello::decode(&hello.encode().expect("short")), Ok(hello));
        let networks = listed.chunks_exact(2).map(|pair| Network { address: pair[0], mask: pair[1] });
        let networks = Networks(networks.collect());
        prop_assert_eq!(Networks::decode(&networks.encode()), Ok(networks));
        let aliases = Aliases(listed.clone());
        prop_assert_eq!(Aliases::decode(&aliases.encode()), Ok(aliases));
        let tc = TopologyControl { ansn: Sequence(ansn), neighbours: listed };
        prop_assert_eq!(TopologyControl::decode(&tc.encode()), Ok(tc));
    }

    #[test]
    fn no_bytes_make_a_parser_panic(bytes in vec(any::<u8>(), 0..200)) {
        if let Ok(packet) = Packet::decode(&bytes) {
            prop_assert_eq!(packet.encode(), Ok(bytes.clone()));
        }
        if let Ok(hello) = Hello::decode(&bytes) {
            // Reserved fields and unknown groups are gone; the rest stays.
            prop_assert_eq!(Hello::decode(&hello.encode().expect("short")), Ok(hello));
        }
        let _ = (TopologyControl::decode(&bytes), Aliases::decode(&bytes), Networks::decode(&bytes));
    }

    #[test]
    fn no_lengths_make_a_parser_panic(sizes in vec(0u8..24, 0..12), rest in vec(any::<u8>(), 0..60)) {
        // Headers with sizes that may or may not be right, before arbitrary octets.
        let mut bytes = vec![0, 0, 0, 0];
        for size in &sizes {
            bytes.extend_from_slice(&[1, 5, 0, *size, 10, 0, 0, 1, 1, 0, 0, 0]);
            bytes.extend_from_slice(&[0, 0, 5, 3, 6, 0, 0, size.wrapping_sub(16)]);
        }
        bytes.extend_from_slice(&rest);
        bytes[1] = bytes.len() as u8;
        if let Ok(packet) = Packet::decode(&bytes) {
            prop_assert_eq!(packet.encode(), Ok(bytes.clone()));
            packet.messages.iter().for_each(|message| { let _ = Hello::decode(message.body); });
        }
    }

    #[test]
    fn of_two_numbers_at_most_one_is_newer(a in any::<u16>(), b in any::<u16>()) {
        let (a, b) = (Sequence(a), Sequence(b));
        prop_assert_eq!(a.is_newer_than(b) || b.is_newer_than(a), a != b);
        prop_assert!(!(a.is_newer_than(b) && b.is_newer_than(a)));
    }
}
