//! The one question to rtnetlink that libbpf cannot ask: are there other filters on a qdisc?

use lasthop_system::netlink::{Netlink, Raw};
use netlink_packet_core::NLM_F_DUMP;
use std::io;

/// Where `struct tcmsg` has its handle.
const HANDLE: std::ops::Range<usize> = 8..12;

/// How many filters stand under `parent` (a clsact side) of an interface.
pub(super) fn count(ifindex: i32, parent: u32) -> io::Result<usize> {
    // Family and padding, interface, handle, parent, info.
    let body = [0, ifindex.cast_unsigned(), 0, parent, 0].map(u32::to_ne_bytes).concat();
    let mut count = 0;
    Netlink::open(libc::NETLINK_ROUTE)?.ask(Raw { kind: libc::RTM_GETTFILTER, body }, NLM_F_DUMP, |answer| {
        // The kernel lists a chain's head too, without a handle.
        let is_filter = |Raw { kind, body }| kind == libc::RTM_NEWTFILTER && body.get(HANDLE) != Some(&[0; 4]);
        count += usize::from(answer.is_ok_and(is_filter));
    })?;
    Ok(count)
}
