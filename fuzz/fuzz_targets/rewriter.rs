//! The rewriter on any packets in any order: windows only fall, none becomes zero, checksums stay valid.
//!
//! Input: a target window (4 octets), then packets, each behind its length (1 octet) and direction (1 octet).
#![no_main]

use lasthop_laws::oal::rwnd::Flow;
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::{Link, TcpPacket};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((target, mut rest)) = bytes.split_first_chunk::<4>() else { return };
    let mut flow = Flow::new();
    flow.set_target(Some(Bytes::new(u64::from(u32::from_le_bytes(*target)))));
    let mut now = Time::ZERO;
    while let [len, direction, after @ ..] = rest {
        let (packet, next) = after.split_at(usize::from(*len).min(after.len()));
        rest = next;
        now += Span::from_micros(u64::from(*direction) * 100);
        let Ok(Some(found)) = TcpPacket::parse(packet, Link::Ip) else { continue };
        if direction % 2 == 0 {
            flow.on_downlink(now, &found.header);
        } else if let Some(window) = flow.on_uplink(now, &found.header) {
            assert!(window > 0 && window < found.header.window);
            let mut rewritten = packet.to_vec();
            found.set_window(&mut rewritten, window);
            assert_eq!(found.checksum_is_valid(&rewritten), found.checksum_is_valid(packet));
        }
    }
});
