//! The interface as it is now.

use super::config::Prefix;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::if_nametoindex;
use std::net::Ipv4Addr;

/// An address of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Address {
    pub(super) own: Ipv4Addr,
    pub(super) network: Prefix,
    /// To which the whole network listens, if there is such an address.
    pub(super) broadcast: Option<Ipv4Addr>,
}

/// An interface of this network namespace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Interface {
    pub(super) index: u32,
    /// Its IPv4 addresses, in the kernel's order.
    pub(super) addresses: Vec<Address>,
}

impl Interface {
    /// The interface of that name, if there is one.
    pub(super) fn of(name: &str) -> Option<Interface> {
        let index = if_nametoindex(name).ok()?;
        let found = getifaddrs().into_iter().flatten().filter(|found| found.interface_name == name);
        let addresses = found.filter_map(|found| {
            let ip = |address: Option<nix::sys::socket::SockaddrStorage>| Some(address?.as_sockaddr_in()?.ip());
            let own = ip(found.address)?;
            let network = Prefix::of(own, ip(found.netmask).unwrap_or(Ipv4Addr::BROADCAST));
            Some(Address { own, network, broadcast: ip(found.broadcast).filter(|broadcast| *broadcast != own) })
        });
        Some(Interface { index, addresses: addresses.collect() })
    }
}

/// Whether a switch of the kernel for an interface is on; `None` if it cannot be read.
pub(super) fn switch(iface: &str, name: &str) -> Option<bool> {
    let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/conf/{iface}/{name}")).ok()?;
    Some(text.trim() != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_has_its_network_and_what_is_not_there_is_none() {
        let lo = Interface::of("lo").expect("every namespace has one");
        assert!(lo.addresses.iter().any(|found| found.own == Ipv4Addr::LOCALHOST), "{lo:?}");
        assert!(lo.addresses.iter().all(|found| found.network.contains(found.own)), "{lo:?}");
        assert_eq!(Interface::of("no-such-iface"), None);
        assert!(switch("lo", "forwarding").is_some() && switch("lo", "no-such-switch").is_none());
    }
}
