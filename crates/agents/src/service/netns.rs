//! Network namespaces, as eBPF programs tell them apart.

use super::error::{Error, system};
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// The number that the kernel gave the calling thread's network namespace.
///
/// # Errors
/// [`Error::System`].
pub(crate) fn cookie() -> Result<u64, Error> {
    let socket = UdpSocket::bind("127.0.0.1:0").or_else(|_| UdpSocket::bind("[::]:0"));
    let socket = socket.map_err(system("a socket of this network namespace"))?;
    of_socket(&socket).map_err(system("the network namespace's cookie"))
}

fn of_socket(socket: &UdpSocket) -> io::Result<u64> {
    let (mut cookie, mut len) = (0u64, size_of::<u64>() as libc::socklen_t);
    // SAFETY: the pointers lead to a u64 and its length, which outlive the call.
    let failed = unsafe {
        let place = (&raw mut cookie).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, place, &mut len)
    };
    if failed == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()) }
}
