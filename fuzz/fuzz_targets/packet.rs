//! Packets of any bytes: nothing panics, and a rewritten window leaves a valid checksum valid.
#![no_main]

use lasthop_wire::{FlowKey, Link, TcpPacket, ethernet, ip, tcp};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = ethernet::parse(bytes);
    let _ = tcp::parse(bytes);
    let _ = FlowKey::of_packet(bytes).map(|flow| flow.hash());
    let mut scratch = bytes.to_vec();
    if ip::mark_ce(&mut scratch) {
        assert!(ip::mark_ce(&mut scratch), "a marked packet is marked");
    }
    for link in [Link::Ethernet, Link::Ip] {
        let Ok(Some(found)) = TcpPacket::parse(bytes, link) else { continue };
        let mut rewritten = bytes.to_vec();
        found.set_window(&mut rewritten, found.header.window / 2);
        let again = TcpPacket::parse(&rewritten, link).expect("still well formed").expect("still a segment");
        assert_eq!(again.header.window, found.header.window / 2);
        assert_eq!(again.checksum_is_valid(&rewritten), found.checksum_is_valid(bytes));
    }
});
