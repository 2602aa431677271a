//! What user space and the eBPF program share: `bpf/rwnd.h`, mirrored. The flow itself is
//! [`lasthop_laws::oal::rwnd::Flow`].

use crate::service::counters::counters;
use lasthop_laws::oal::rwnd::Flow;
use lasthop_laws::oal::rwnd::ways::WAYS;
use lasthop_units::Time;
use lasthop_wire::{FlowKey, ip};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A flow's key: addresses and ports as on the wire (`struct rwnd_key`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(C)]
pub struct Key {
    /// IPv4: the station's 4 octets, the other end's 4, then zeros. IPv6: 16 and 16.
    ends: [u8; 32],
    /// The station's port, network order.
    station_port: [u8; 2],
    /// The other end's port, network order.
    remote_port: [u8; 2],
    /// 4 or 6.
    version: u8,
    pad: u8,
    /// Sum of the pseudo-header without its length: follows from the rest.
    sum: u16,
}

counters! {
    /// What the program counts apart from what stands in flows, summed over processors
    /// (`struct rwnd_counters`).
    #[repr(C)]
    pub struct Counters {
        /// Windows lowered.
        pub rewritten: u64,
        /// Uplink segments that passed untouched because the agent's heartbeat was too old.
        pub unattended: u64,
        /// TCP segments of known flows that could not be parsed.
        pub malformed: u64,
        /// Flows that entered the table.
        pub opened: u64,
        /// Of these, those that took the place of a flow that was not over.
        pub evicted: u64,
        /// Flows for which there was no place: they are left alone.
        pub refused: u64,
        /// Segments of known flows that needed more than the program's short way.
        pub apart: u64,
        /// Events for which the ring had no room.
        #[serde(skip)]
        pub missed: u64,
    }
}

/// SACK blocks that fit into a header.
const SACKS: usize = 4;

/// A segment of which its flow's numbers do not tell, with those numbers as they stood before it (`struct rwnd_event`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Event {
    /// The flow.
    pub key: Key,
    born: u64,
    at: u64,
    /// Highest sequence number that had been forwarded to the station.
    pub max_end: u32,
    /// Highest acknowledgement that had been forwarded from it.
    pub highest_ack: u32,
    /// Sequence number of its first payload octet.
    pub seq: u32,
    /// Payload octets.
    pub len: u32,
    /// Next sequence number that its sender expects.
    pub ack: u32,
    /// Segments that the kernel has merged into it; 0 counts as one.
    pub count: u16,
    up: u8,
    sacks: u8,
    sack: [u32; 2 * SACKS],
}

impl Event {
    /// When its connection's first SYN passed.
    pub fn born(&self) -> Time {
        Time::from_nanos(self.born)
    }

    /// When it passed.
    pub fn at(&self) -> Time {
        Time::from_nanos(self.at)
    }

    /// True of a segment from the station.
    pub fn is_up(&self) -> bool {
        self.up != 0
    }

    /// The left and right edges of its SACK blocks, in the order of the option.
    pub fn sack(&self) -> impl Iterator<Item = (u32, u32)> {
        let edges = self.sack.map(u32::from_be);
        (0..SACKS.min(usize::from(self.sacks))).map(move |block| (edges[2 * block], edges[2 * block + 1]))
    }

    /// As the program would write it: key, birth and time; both numbers; direction; sequence number, payload and acknowledgement; blocks.
    #[cfg(test)]
    pub(super) fn test(
        (key, born, at): (Key, Time, Time),
        (max_end, highest_ack): (u32, u32),
        up: bool,
        (seq, len, ack): (u32, u32, u32),
        blocks: &[(u32, u32)],
    ) -> Event {
        let mut sack = [0; 2 * SACKS];
        let edges = blocks.iter().flat_map(|(left, right)| [left.to_be(), right.to_be()]);
        sack.iter_mut().zip(edges).for_each(|(word, edge)| *word = edge);
        let (born, at) = (born.as_nanos(), at.as_nanos());
        let sacks = blocks.len() as u8;
        Event { key, born, at, max_end, highest_ack, seq, len, ack, count: 0, up: u8::from(up), sacks, sack }
    }
}

/// A place of the table and what stands in it (`struct rwnd_entry`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(super) struct Entry {
    pub key: Key,
    pub flow: Flow,
}

/// A set of the table (`struct rwnd_set`): its layout only. Nobody reads it as a whole, since packets change it meanwhile.
#[repr(C)]
pub(super) struct Set {
    pub tags: [u32; WAYS],
    pub lock: u32,
    pub used: [u32; WAYS],
    pub pad: u32,
    pub ways: [Entry; WAYS],
    pub spare: [u8; 192],
}

/// Argument of the heartbeat program (`struct rwnd_beat`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(super) struct Beat {
    pub now_ns: u64,
}

impl Key {
    /// The key of a flow, given the five-tuple of its downlink direction; `None` if it is no TCP flow or mixes families.
    pub fn of_downlink(flow: &FlowKey) -> Option<Key> {
        let mut ends = [0; 32];
        let version = match (flow.destination, flow.source) {
            (IpAddr::V4(station), IpAddr::V4(remote)) => {
                ends[..4].copy_from_slice(&station.octets());
                ends[4..8].copy_from_slice(&remote.octets());
                4
            }
            (IpAddr::V6(station), IpAddr::V6(remote)) => {
                ends[..16].copy_from_slice(&station.octets());
                ends[16..].copy_from_slice(&remote.octets());
                6
            }
            _ => return None,
        };
        let (station_port, remote_port) = (flow.destination_port.to_be_bytes(), flow.source_port.to_be_bytes());
        let key = Key { ends, station_port, remote_port, version, pad: 0, sum: pseudo_sum(&ends) };
        (flow.protocol == ip::TCP).then_some(key)
    }

    /// The five-tuple of the flow's downlink direction.
    pub fn downlink(&self) -> FlowKey {
        let [station, remote] = self.addresses();
        FlowKey {
            source: remote,
            destination: station,
            source_port: u16::from_be_bytes(self.remote_port),
            destination_port: u16::from_be_bytes(self.station_port),
            protocol: ip::TCP,
        }
    }

    /// The station's address.
    pub fn station_address(&self) -> IpAddr {
        self.addresses()[0]
    }

    /// Station, other end.
    fn addresses(&self) -> [IpAddr; 2] {
        if self.version == 4 {
            let [a, b, c, d, e, f, g, h, ..] = self.ends;
            return [Ipv4Addr::new(a, b, c, d).into(), Ipv4Addr::new(e, f, g, h).into()];
        }
        [0, 16].map(|at| {
            let octets: [u8; 16] = self.ends[at..at + 16].try_into().expect("half of it");
            Ipv6Addr::from(octets).into()
        })
    }
}

/// The one's-complement sum of both addresses and the protocol, in the machine's order, folded and not complemented.
fn pseudo_sum(ends: &[u8; 32]) -> u16 {
    let words = ends.chunks_exact(2).map(|pair| u32::from(u16::from_ne_bytes([pair[0], pair[1]])));
    let mut sum = words.sum::<u32>() + u32::from(u16::from(ip::TCP).to_be());
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Types without padding, of which every bit pattern is a value: they can be copied from and to maps.
///
/// # Safety
/// `#[repr(C)]`, integers and arrays of them only, no implicit padding.
pub(super) unsafe trait Plain: Copy {}

// SAFETY: integers only, sizes and offsets asserted below and beside `Flow`.
unsafe impl Plain for Key {}
// SAFETY: as above.
unsafe impl Plain for Flow {}
// SAFETY: as above.
unsafe impl Plain for Counters {}
// SAFETY: as above.
unsafe impl Plain for Entry {}
// SAFETY: as above.
unsafe impl Plain for Event {}
// SAFETY: as above.
unsafe impl Plain for Beat {}

/// A map's bytes as a value; `None` if there are not exactly as many as the value has.
pub(super) fn from_bytes<T: Plain>(bytes: &[u8]) -> Option<T> {
    // SAFETY: the length is checked, the read is unaligned, and every bit pattern is a value of a `Plain` type.
    (bytes.len() == size_of::<T>()).then(|| unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) })
}

/// A value's bytes, for a map.
#[cfg(test)]
pub(super) fn as_bytes<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: a `Plain` value has no padding, so that all its bytes are initialised; the slice borrows it.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// A value's bytes, writable.
pub(super) fn as_bytes_mut<T: Plain>(value: &mut T) -> &mut [u8] {
    // SAFETY: as for `as_bytes`, and any bytes written leave a value.
    unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(value).cast(), size_of::<T>()) }
}

const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<Flow>() == 216);
    assert!(size_of::<Key>() == 40 && offset_of!(Key, station_port) == 32 && offset_of!(Key, remote_port) == 34);
    assert!(offset_of!(Key, version) == 36 && offset_of!(Key, sum) == 38);
    assert!(size_of::<Entry>() == 256 && offset_of!(Entry, flow) == 40);
    assert!(size_of::<Set>() == 2048 && offset_of!(Set, lock) == 28 && offset_of!(Set, used) == 32);
    assert!(offset_of!(Set, ways) == 64);
    assert!(size_of::<Event>() == 112 && offset_of!(Event, born) == 40 && offset_of!(Event, at) == 48);
    assert!(offset_of!(Event, max_end) == 56 && offset_of!(Event, highest_ack) == 60 && offset_of!(Event, seq) == 64);
    assert!(offset_of!(Event, len) == 68 && offset_of!(Event, ack) == 72 && offset_of!(Event, count) == 76);
    assert!(offset_of!(Event, up) == 78 && offset_of!(Event, sacks) == 79 && offset_of!(Event, sack) == 80);
    assert!(size_of::<Counters>() == 64 && offset_of!(Counters, missed) == 56);
    assert!(offset_of!(Counters, unattended) == 8);
    assert!(offset_of!(Counters, malformed) == 16 && offset_of!(Counters, opened) == 24);
    assert!(offset_of!(Counters, evicted) == 32 && offset_of!(Counters, refused) == 40);
    assert!(offset_of!(Counters, apart) == 48);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_hold_both_families() {
        for (a, b) in [("192.0.2.1", "10.0.0.7"), ("2001:db8::1", "fe80::2")] {
            let flow = FlowKey {
                source: a.parse().expect("an address"),
                destination: b.parse().expect("an address"),
                source_port: 443,
                destination_port: 50_000,
                protocol: ip::TCP,
            };
            let key = Key::of_downlink(&flow).expect("one family");
            assert_eq!(key.downlink(), flow);
            assert_eq!(key.station_address(), flow.destination);
            assert_eq!(from_bytes::<Key>(as_bytes(&key)), Some(key));
        }
        assert_eq!(from_bytes::<Key>(&[0; 39]), None);
    }
}
