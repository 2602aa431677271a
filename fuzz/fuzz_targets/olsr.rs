//! OLSR packets of any bytes: nothing panics, and what is understood survives being written and read again.
#![no_main]

use lasthop_wire::olsr::{Aliases, Hello, Networks, Packet, TopologyControl};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(packet) = Packet::decode(bytes) else { return };
    assert_eq!(packet.encode().as_deref(), Ok(bytes));
    for message in &packet.messages {
        if let Ok(hello) = Hello::decode(message.body) {
            assert_eq!(Hello::decode(&hello.encode().expect("as short")), Ok(hello));
        }
        if let Ok(tc) = TopologyControl::decode(message.body) {
            assert_eq!(TopologyControl::decode(&tc.encode()), Ok(tc));
        }
        if let Ok(aliases) = Aliases::decode(message.body) {
            assert_eq!(aliases.encode(), message.body);
        }
        if let Ok(networks) = Networks::decode(message.body) {
            assert_eq!(networks.encode(), message.body);
        }
    }
});
