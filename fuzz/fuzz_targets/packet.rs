//! Packets of any bytes: nothing panics, and a rewritten window leaves a valid checksum valid.
#![no_main]

use lasthop_wire::{FlowKey, Link, TcpPacket, ethernet, ip, tcp};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = ethernet::parse(bytes);
    if let Ok((header, _)) = tcp::parse(bytes)
        && let Some(capacity) = header.options.capacity
    {
        let options = tcp::TcpOptions { capacity: Some(capacity), ..tcp::TcpOptions::default() };
        let mut written = Vec::new();
        tcp::write(&mut written, &tcp::TcpHeader { options, ..header }).expect("eight octets fit");
        let (again, _) = tcp::parse(&written).expect("it is well formed");
        assert_eq!(again.options, options);
    }
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
