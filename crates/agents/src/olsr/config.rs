//! What an operator may choose, and what there is to say at the end.

use crate::service::{Error, Say};
use lasthop_routing::olsr::{Account, Params};
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// A network, as `10.0.0.0/8`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    address: Ipv4Addr,
    len: u8,
}

/// What is no network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PrefixError {
    /// Not of the form.
    #[error("not a network: write an IPv4 address and a length, such as 10.0.0.0/8")]
    Form,
    /// There are bits behind the length.
    #[error("not a network: {0} has bits behind /{1}; write {2}/{1}")]
    Host(Ipv4Addr, u8, Ipv4Addr),
}

impl Prefix {
    /// The network of an interface's address; a mask with holes counts up to its first.
    pub(super) fn of(address: Ipv4Addr, mask: Ipv4Addr) -> Prefix {
        let len = u32::from(mask).leading_ones() as u8;
        Prefix { address: Ipv4Addr::from(u32::from(address) & bits(len)), len }
    }

    /// True if an address is in it.
    pub fn contains(self, address: Ipv4Addr) -> bool {
        u32::from(address) & bits(self.len) == u32::from(self.address)
    }

    /// True if it is one address alone.
    pub(super) fn is_host(self) -> bool {
        self.len == 32
    }
}

/// The mask of a length.
fn bits(len: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0)
}

impl FromStr for Prefix {
    type Err = PrefixError;
    fn from_str(text: &str) -> Result<Prefix, PrefixError> {
        let (address, len) = text.split_once('/').ok_or(PrefixError::Form)?;
        let address: Ipv4Addr = address.parse().map_err(|_| PrefixError::Form)?;
        let len = len.parse().ok().filter(|len| *len <= 32).ok_or(PrefixError::Form)?;
        let network = Ipv4Addr::from(u32::from(address) & bits(len));
        if network != address { Err(PrefixError::Host(address, len, network)) } else { Ok(Prefix { address, len }) }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

/// An agent's configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The interface that is in the mesh.
    pub iface: String,
    /// Which of its addresses; `None`: the first that it has.
    pub address: Option<Ipv4Addr>,
    /// Neighbours and destinations outside of it are ignored; `None`: the network of the address.
    pub within: Option<Prefix>,
    /// Intervals, holding times, willingness.
    pub params: Params,
    /// Give up all privileges but CAP_NET_ADMIN once everything is open.
    pub drop_privileges: bool,
    /// The user, by name or number, that the process becomes then; `None` to keep its own. Only with `drop_privileges`.
    pub user: Option<String>,
    /// Receives messages about what happens meanwhile.
    pub say: Say,
}

impl Config {
    /// An agent for an interface, with defaults for the rest.
    pub fn new(iface: impl Into<String>) -> Config {
        Config {
            iface: iface.into(),
            address: None,
            within: None,
            params: Params::default(),
            drop_privileges: true,
            user: None,
            say: |_| {},
        }
    }

    pub(super) fn validate(&self) -> Result<(), Error> {
        self.params.check().map_err(|error| Error::Config { key: error.key, got: error.got, bound: error.bound })
    }
}

/// What an agent did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    /// What the node has done and refused.
    pub node: Account,
    /// Packets from outside of the network that counts.
    pub strangers: u64,
    /// Packets that the kernel did not take.
    pub unsent: u64,
    /// Changes of routes.
    pub changes: u64,
    /// Most routes at once.
    pub routes: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_and_told() {
        let net: Prefix = "10.1.0.0/16".parse().expect("a network");
        assert!(net.contains(Ipv4Addr::new(10, 1, 255, 3)) && !net.contains(Ipv4Addr::new(10, 2, 0, 0)));
        assert_eq!(net.to_string(), "10.1.0.0/16");
        let all: Prefix = "0.0.0.0/0".parse().expect("a network");
        assert!(all.contains(Ipv4Addr::new(203, 0, 113, 9)) && !all.is_host());
        let own = Prefix::of(Ipv4Addr::new(10, 1, 2, 3), Ipv4Addr::new(255, 255, 255, 0));
        assert_eq!(own.to_string(), "10.1.2.0/24");
        assert!("10.1.2.3/32".parse::<Prefix>().expect("a host").is_host());
    }

    #[test]
    fn what_is_no_network_is_told_with_what_would_be_right() {
        let told = |text: &str| text.parse::<Prefix>().expect_err(text).to_string();
        for wrong in ["", "10.0.0.0", "10.0.0.0/33", "10.0.0/8", "::/0", "10.0.0.0/-1"] {
            assert!(told(wrong).contains("10.0.0.0/8"), "{wrong}");
        }
        assert_eq!(told("10.1.2.3/8"), "not a network: 10.1.2.3 has bits behind /8; write 10.0.0.0/8");
    }

    #[test]
    fn intervals_that_cannot_be_are_refused() {
        let mut config = Config::new("wlan0");
        assert!(config.validate().is_ok());
        config.params.hello_interval = lasthop_units::Span::from_millis(1);
        assert!(matches!(config.validate(), Err(Error::Config { key: "hello_interval", .. })));
    }
}
