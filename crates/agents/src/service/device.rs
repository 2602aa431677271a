//! An interface of this network namespace.

use super::error::{Error, system};
use lasthop_system::netlink::{Netlink, Raw};
use netlink_packet_core::NLM_F_ACK;
use nix::net::if_::if_nametoindex;

/// What the kernel tells of an interface.
pub(crate) struct Link {
    pub(crate) index: u32,
    /// The type of its packets' headers (`ARPHRD_…`).
    pub(crate) arphrd: u16,
    /// False for one that is down.
    pub(crate) up: bool,
}

/// What must be known of an interface to attach to it.
#[cfg(feature = "bpf")]
pub(crate) struct Device {
    pub(crate) index: i32,
    /// Octets of link-layer header that a program sees.
    pub(crate) link_len: u32,
}

/// IP without a header before it (`linux/if_arp.h`); the libc crate does not have it.
#[cfg(feature = "bpf")]
const ARPHRD_RAWIP: u16 = 519;

/// Looks an interface up of which packets begin with Ethernet or IP.
#[cfg(feature = "bpf")]
pub(crate) fn find(name: &str) -> Result<Device, Error> {
    let Link { index, arphrd, .. } = link(name)?;
    let link_len = match arphrd {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => 14,
        libc::ARPHRD_NONE | ARPHRD_RAWIP => 0,
        _ => return Err(Error::LinkType { name: name.to_owned(), arphrd }),
    };
    Ok(Device { index: index.cast_signed(), link_len })
}

/// Looks an interface up.
///
/// The kernel is asked directly: `/sys` may show another namespace's interfaces.
pub(crate) fn link(name: &str) -> Result<Link, Error> {
    let missing = || Error::NoInterface { name: name.to_owned() };
    let index = if_nametoindex(name).map_err(|_| missing())?;
    // `struct ifinfomsg`: family, padding and type; index; flags; which of them change.
    let body = [0, index, 0, 0].map(u32::to_ne_bytes).concat();
    let mut link = None;
    let asked = Netlink::open(libc::NETLINK_ROUTE).and_then(|mut netlink| {
        netlink.ask(Raw { kind: libc::RTM_GETLINK, body }, NLM_F_ACK, |answer| {
            let Ok(Raw { body, .. }) = answer else { return };
            if let (Some(arphrd), Some(flags)) = (body.get(2..4), body.get(8..12)) {
                let arphrd = u16::from_ne_bytes([arphrd[0], arphrd[1]]);
                let flags = libc::c_int::from_ne_bytes([flags[0], flags[1], flags[2], flags[3]]);
                link = Some(Link { index, arphrd, up: flags & libc::IFF_UP != 0 });
            }
        })
    });
    asked.map_err(system("the interface's type"))?;
    link.ok_or_else(missing)
}
