//! The access point that a wireless interface is associated with, as its driver says.
//!
//! By the wireless extensions' SIOCGIWAP, which mac80211's drivers answer where the kernel has CONFIG_CFG80211_WEXT, as
//! distributions' kernels do. It has not run on radio hardware.

use lasthop_signals::MacAddress;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// `SIOCGIWAP` of linux/wireless.h.
const SIOCGIWAP: libc::Ioctl = 0x8b15;

/// `struct iwreq` with an address in it.
#[repr(C)]
struct Request {
    name: [u8; 16],
    family: u16,
    address: [u8; 14],
}

/// The BSSID; `None` for an interface that is not wireless or not associated, or if its driver does not say.
pub(super) fn of(iface: &str) -> Option<MacAddress> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    let mut request = Request { name: [0; 16], family: 0, address: [0; 14] };
    request.name.iter_mut().take(15).zip(iface.bytes()).for_each(|(to, from)| *to = from);
    // SAFETY: the request is as large as the kernel's, and outlives the call.
    let failed = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGIWAP, &raw mut request) };
    let octets: [u8; 6] = request.address[..6].try_into().ok()?;
    // All zeros and all ones mean that there is none.
    (failed == 0 && octets != [0; 6] && octets[0] & 1 == 0).then_some(MacAddress(octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_wireless_has_none() {
        assert_eq!((size_of::<Request>(), of("lo"), of("no-such-iface")), (32, None, None));
    }
}
