//! Network namespaces, as eBPF programs tell them apart.

use std::io;
use std::os::fd::AsRawFd;

/// The number that the kernel gave the network namespace of a socket.
pub(crate) fn cookie(socket: &impl AsRawFd) -> io::Result<u64> {
    let (mut cookie, mut len) = (0u64, size_of::<u64>() as libc::socklen_t);
    // SAFETY: the pointers lead to a u64 and its length, which outlive the call.
    let failed = unsafe {
        let place = (&raw mut cookie).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, place, &mut len)
    };
    if failed == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()) }
}
