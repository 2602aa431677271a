//! The network that an interface is in: what was learned of one says nothing of the next.

use super::bss;
use lasthop_signals::MacAddress;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// An interface as it is now. Two that are equal are in the same network, as far as the interface tells.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Network {
    /// Its number; `None` if it has gone.
    index: Option<u32>,
    running: bool,
    bssid: Option<MacAddress>,
    addresses: BTreeSet<IpAddr>,
}

impl Network {
    /// The interface of that name in this network namespace, and its BSS, which only the driver says if it is not `given`.
    pub(super) fn of(iface: &str, given: Option<MacAddress>) -> Network {
        let index = if_nametoindex(iface).ok();
        let bssid = given.or_else(|| bss::of(iface));
        let mut network = Network { index, bssid, ..Network::default() };
        for found in getifaddrs().into_iter().flatten().filter(|found| found.interface_name == iface) {
            network.running |= found.flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING);
            let Some(address) = found.address else { continue };
            if let Some(v4) = address.as_sockaddr_in() {
                network.addresses.insert(v4.ip().into());
            } else if let Some(v6) = address.as_sockaddr_in6() {
                network.addresses.insert(v6.ip().into());
            }
        }
        network
    }

    /// The interface's number, if it is there.
    pub(super) fn index(&self) -> Option<u32> {
        self.index
    }

    /// The BSS that it is in, as far as is known.
    pub(super) fn bssid(&self) -> Option<MacAddress> {
        self.bssid
    }

    /// True if it is there, up, and has a carrier.
    pub(super) fn is_alive(&self) -> bool {
        self.index.is_some() && self.running
    }

    /// True if a connection from this address is of this interface.
    pub(super) fn has(&self, address: IpAddr) -> bool {
        self.addresses.contains(&address.to_canonical())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn the_loopback_has_its_address_and_what_is_not_there_has_none() {
        let lo = Network::of("lo", None);
        assert!(lo.is_alive() && lo.has(Ipv4Addr::LOCALHOST.into()), "{lo:?}");
        assert!(lo.has(Ipv4Addr::LOCALHOST.to_ipv6_mapped().into()) && !lo.has([192, 0, 2, 1].into()));
        let none = Network::of("no-such-iface", None);
        assert!(!none.is_alive() && none == Network::default());
    }
}
