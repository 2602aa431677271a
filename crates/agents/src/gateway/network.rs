//! Networks to which the other gateway may be connected.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An address and how many of its bits are the network's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// A text that names no network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotANetwork {
    /// What stands before the `/`.
    #[error("not an IP address; write a network, such as 10.2.0.0/16 or fd00::/8, or an address")]
    Address,
    /// What stands behind it.
    #[error("the bits of the network are a number from 0 to {0}, such as in 10.2.0.0/16")]
    Bits(u8),
    /// Bits of the address that are not the network's.
    #[error("the address has bits beyond the network's {0}; did you mean {1}/{0}?")]
    Beyond(u8, IpAddr),
}

impl Network {
    /// True if the address, in whichever family it is shown, is in the network.
    pub fn contains(&self, address: IpAddr) -> bool {
        first(address.to_canonical(), self.bits) == Some(self.address)
    }
}

/// The first address of the network of so many bits that this one is in; `None` if it has not as many.
fn first(address: IpAddr, bits: u8) -> Option<IpAddr> {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32u32.checked_sub(bits.into())?).unwrap_or(0);
            Some(Ipv4Addr::from_bits(v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128u32.checked_sub(bits.into())?).unwrap_or(0);
            Some(Ipv6Addr::from_bits(v6.to_bits() & mask).into())
        }
    }
}

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Network, NotANetwork> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| NotANetwork::Address)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| NotANetwork::Bits(most)))?;
        match first(address, bits) {
            None => Err(NotANetwork::Bits(most)),
            Some(start) if start == address => Ok(Network { address, bits }),
            Some(start) => Err(NotANetwork::Beyond(bits, start)),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Result<Network, NotANetwork> {
        text.parse()
    }

    #[test]
    fn an_address_is_in_its_networks_and_no_other() {
        let within = |text: &str, address: &str| network(text).expect(text).contains(address.parse().expect("one"));
        for (text, address) in [
            ("10.2.0.0/16", "10.2.255.1"),
            ("10.2.0.0/16", "::ffff:10.2.3.4"),
            ("10.2.3.4", "10.2.3.4"),
            ("0.0.0.0/0", "203.0.113.9"),
            ("fd00::/8", "fdff::1"),
            ("::/0", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
        ] {
            assert!(within(text, address), "{address} in {text}");
        }
        for (text, address) in [
            ("10.2.0.0/16", "10.3.0.1"),
            ("10.2.3.4/32", "10.2.3.5"),
            ("0.0.0.0/0", "2001:db8::1"),
            ("::/0", "10.0.0.1"),
            ("fd00::/8", "fe80::1"),
        ] {
            assert!(!within(text, address), "{address} in {text}");
        }
        assert_eq!(network("10.2.3.4").expect("an address").to_string(), "10.2.3.4/32");
    }

    #[test]
    fn what_is_no_network_is_told_with_what_would_be_right() {
        for (wrong, says) in [
            ("host/8", "not an IP address"),
            ("10.0.0.0/33", "from 0 to 32"),
            ("fd00::/129", "from 0 to 128"),
            ("10.0.0.0/", "from 0 to 32"),
            ("10.0.0.0/-1", "from 0 to 32"),
            ("10.2.3.4/16", "did you mean 10.2.0.0/16?"),
            ("fd00::1/8", "did you mean fd00::/8?"),
        ] {
            let told = network(wrong).expect_err(wrong).to_string();
            assert!(told.contains(says), "{wrong}: {told}");
        }
    }
}
