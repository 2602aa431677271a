//! A monitor interface that shows nothing.

use super::delay::device;
use super::netns::Netns;
use std::fs::File;
use std::os::fd::AsRawFd;

/// Makes an interface of link type radiotap, and up; it goes when the file is closed.
pub fn monitor(netns: &Netns, name: &str) -> File {
    const TUNSETLINK: libc::c_ulong = 0x4004_54cd;
    const ARPHRD_IEEE80211_RADIOTAP: libc::c_int = 803;
    let file = netns.within(|| device(name, libc::IFF_TAP));
    // SAFETY: TUNSETLINK takes an int.
    let failed = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETLINK, ARPHRD_IEEE80211_RADIOTAP) };
    assert_eq!(failed, 0, "TUNSETLINK: {}", std::io::Error::last_os_error());
    netns.ip(&format!("link set {name} up"));
    file
}
