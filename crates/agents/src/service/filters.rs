//! The one question to rtnetlink that libbpf cannot ask: are there other filters on a qdisc?

use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket};
use std::io;
use std::os::fd::AsRawFd;

/// `struct nlmsghdr` and `struct tcmsg`, in words of 4 octets.
const HEADER_LEN: usize = 16;
const TCMSG_LEN: usize = 20;

/// How many filters stand under `parent` (a clsact side) of an interface.
pub(super) fn count(ifindex: i32, parent: u32) -> io::Result<usize> {
    let fd = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)?;
    let mut request = Vec::with_capacity(HEADER_LEN + TCMSG_LEN);
    request.extend_from_slice(&((HEADER_LEN + TCMSG_LEN) as u32).to_ne_bytes());
    request.extend_from_slice(&libc::RTM_GETTFILTER.to_ne_bytes());
    request.extend_from_slice(&((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
    // Sequence number and port: one question a socket.
    request.extend_from_slice(&[0; 8]);
    // Family and padding, interface, handle, parent, info.
    request.extend_from_slice(&[0; 4]);
    request.extend_from_slice(&ifindex.to_ne_bytes());
    request.extend_from_slice(&0u32.to_ne_bytes());
    request.extend_from_slice(&parent.to_ne_bytes());
    request.extend_from_slice(&0u32.to_ne_bytes());
    sendto(fd.as_raw_fd(), &request, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
    let mut buffer = vec![0; 65_536];
    let mut count = 0;
    loop {
        let len = recv(fd.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
        let mut rest = &buffer[..len];
        while let Some((message_len, kind)) = header(rest) {
            match i32::from(kind) {
                libc::NLMSG_DONE => return Ok(count),
                libc::NLMSG_ERROR => return Err(io::Error::other("the kernel refused to list filters")),
                // The kernel lists a chain's head too, without a handle.
                _ if kind == libc::RTM_NEWTFILTER && word(rest, HEADER_LEN + 8) != Some(0) => count += 1,
                _ => {}
            }
            rest = rest.get(message_len.next_multiple_of(4)..).unwrap_or(&[]);
        }
    }
}

/// A message's length and type; `None` at the end of the buffer or of sense.
fn header(bytes: &[u8]) -> Option<(usize, u16)> {
    let len = word(bytes, 0)? as usize;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    (len >= HEADER_LEN && len <= bytes.len()).then_some((len, kind))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
