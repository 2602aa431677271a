//! What user space and the eBPF program share: `bpf/rwnd.h`, mirrored. The flow itself is
//! [`lasthop_laws::oal::rwnd::Flow`].

use lasthop_laws::oal::rwnd::Flow;
use lasthop_wire::{FlowKey, ip};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A flow's key: addresses and ports as on the wire (`struct rwnd_key`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(C)]
pub struct Key {
    /// The station's address; an IPv4 address fills the first 4 octets.
    pub station: [u8; 16],
    /// The other end's address.
    pub remote: [u8; 16],
    /// The station's port, network order.
    pub station_port: [u8; 2],
    /// The other end's port, network order.
    pub remote_port: [u8; 2],
    /// 4 or 6.
    pub version: u8,
    /// Zero.
    pub pad: [u8; 3],
}

/// What the program counts, summed over processors (`struct rwnd_counters`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Counters {
    /// TCP segments of known flows, both directions.
    pub segments: u64,
    /// Windows lowered.
    pub rewritten: u64,
    /// Uplink segments that passed untouched because the agent's heartbeat was too old.
    pub unattended: u64,
    /// TCP segments of known flows that could not be parsed.
    pub malformed: u64,
    /// Flows that entered the map.
    pub opened: u64,
}

/// A new target for a flow (`struct rwnd_order`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Order {
    /// Which flow.
    pub key: Key,
    /// Which connection of those that used the key.
    pub born: u64,
    /// The window, octets; 0 = none.
    pub target: u32,
    /// Zero.
    pub pad: u32,
}

impl Key {
    /// The key of a flow, given the five-tuple of its downlink direction; `None` if it is no TCP flow or mixes families.
    pub fn of_downlink(flow: &FlowKey) -> Option<Key> {
        let (station, remote, version) = match (flow.destination, flow.source) {
            (IpAddr::V4(station), IpAddr::V4(remote)) => (padded(station), padded(remote), 4),
            (IpAddr::V6(station), IpAddr::V6(remote)) => (station.octets(), remote.octets(), 6),
            _ => return None,
        };
        let (station_port, remote_port) = (flow.destination_port.to_be_bytes(), flow.source_port.to_be_bytes());
        (flow.protocol == ip::TCP).then_some(Key { station, remote, station_port, remote_port, version, pad: [0; 3] })
    }

    /// The five-tuple of the flow's downlink direction.
    pub fn downlink(&self) -> FlowKey {
        FlowKey {
            source: self.address(self.remote),
            destination: self.address(self.station),
            source_port: u16::from_be_bytes(self.remote_port),
            destination_port: u16::from_be_bytes(self.station_port),
            protocol: ip::TCP,
        }
    }

    /// The station's address.
    pub fn station_address(&self) -> IpAddr {
        self.address(self.station)
    }

    fn address(&self, octets: [u8; 16]) -> IpAddr {
        match (self.version, octets) {
            (4, [a, b, c, d, ..]) => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            _ => IpAddr::V6(Ipv6Addr::from(octets)),
        }
    }
}

fn padded(address: Ipv4Addr) -> [u8; 16] {
    let mut octets = [0; 16];
    octets[..4].copy_from_slice(&address.octets());
    octets
}

/// Types of which every bit pattern is a value and none of whose bytes is padding: they can be copied from and to maps.
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
unsafe impl Plain for Order {}

/// A map's bytes as a value; `None` if there are not exactly as many as the value has.
pub(super) fn from_bytes<T: Plain>(bytes: &[u8]) -> Option<T> {
    // SAFETY: the length is checked, the read is unaligned, and every bit pattern is a value of a `Plain` type.
    (bytes.len() == size_of::<T>()).then(|| unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) })
}

/// A value's bytes, for a map.
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
    assert!(size_of::<Flow>() == 232);
    assert!(size_of::<Key>() == 40 && offset_of!(Key, remote) == 16 && offset_of!(Key, station_port) == 32);
    assert!(offset_of!(Key, remote_port) == 34 && offset_of!(Key, version) == 36);
    assert!(size_of::<Counters>() == 40 && offset_of!(Counters, rewritten) == 8);
    assert!(offset_of!(Counters, unattended) == 16 && offset_of!(Counters, malformed) == 24);
    assert!(offset_of!(Counters, opened) == 32);
    assert!(size_of::<Order>() == 56 && offset_of!(Order, born) == 40 && offset_of!(Order, target) == 48);
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
