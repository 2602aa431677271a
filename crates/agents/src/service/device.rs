//! An interface of this network namespace.

use super::error::{Error, system};
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use std::io;
use std::os::fd::AsRawFd;

/// What must be known of an interface to attach to it.
pub(crate) struct Device {
    pub index: i32,
    /// Octets of link-layer header that a program sees.
    pub link_len: u32,
}

/// IP without a header before it (`linux/if_arp.h`); the libc crate does not have it.
const ARPHRD_RAWIP: u16 = 519;

/// Looks an interface up.
///
/// Its type is asked of the kernel directly: `/sys` may show another namespace's interfaces.
pub(crate) fn find(name: &str) -> Result<Device, Error> {
    let missing = || Error::NoInterface { name: name.to_owned() };
    let index = if_nametoindex(name).ok().and_then(|index| i32::try_from(index).ok()).ok_or_else(missing)?;
    let arphrd = link_type(name).map_err(system("the interface's type"))?;
    let link_len = match arphrd {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => 14,
        libc::ARPHRD_NONE | ARPHRD_RAWIP => 0,
        _ => return Err(Error::LinkType { name: name.to_owned(), arphrd }),
    };
    Ok(Device { index, link_len })
}

fn link_type(name: &str) -> io::Result<u16> {
    let fd = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: all zeros is a value of this struct of integers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last octet stays 0; a longer name has failed in `if_nametoindex`.
    for (to, from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: SIOCGIFHWADDR takes an `ifreq` with a name and fills its address in.
    let failed = unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCGIFHWADDR, &mut request) };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has filled this member of the union in.
    Ok(unsafe { request.ifr_ifru.ifru_hwaddr.sa_family })
}
