//! Ownership of an interface: one agent of a kind has it at a time, for as long as that agent lives.
//!
//! A claim is an abstract Unix socket that bears the interface's number. It is of the network namespace that the interface is in,
//! so that whoever could attach to the one sees the other, and the kernel takes it away with its process, however that ends. A process
//! that is only stopped keeps it. Names are free to everybody: whoever takes one keeps agents from beginning, but what is to be cleaned
//! up is left to root and the same user alone.

use super::error::{Error, system};
use nix::errno::Errno;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, accept4, bind, connect, getsockopt, listen, socket,
};
use nix::unistd::geteuid;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Callers that are looked at in one turn: the backlog, twice.
const TURN: usize = 16;

/// An interface is this process's until this is dropped.
#[derive(Debug)]
pub(crate) struct Claim(OwnedFd);

impl Claim {
    /// A caller ([`call`]) that is root or this user; `None` if there is none. Does not wait. The connections of other
    /// callers are closed, some at a time: a caller that connects again and again does not hold the agent up.
    pub(crate) fn asker(&self) -> Option<OwnedFd> {
        for _ in 0..TURN {
            let fd = match accept4(self.0.as_raw_fd(), SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK) {
                // SAFETY: a fresh descriptor, owned by nobody else.
                Ok(fd) => unsafe { OwnedFd::from_raw_fd(fd) },
                Err(Errno::EINTR | Errno::ECONNABORTED) => continue,
                Err(_) => return None,
            };
            if is_ours(&fd) {
                return Some(fd);
            }
        }
        None
    }
}

/// Calls the agent of a kind that has claimed an interface, if one does, and it is root's or this user's.
///
/// # Errors
/// What the kernel refuses; [`io::ErrorKind::PermissionDenied`] if the claim is another user's; [`io::ErrorKind::WouldBlock`] if others have
/// called and the agent has not taken their calls.
pub(crate) fn call(kind: &str, ifindex: i32) -> io::Result<Option<UnixStream>> {
    let (fd, name) = (unix()?, name(kind, ifindex)?);
    match connect(fd.as_raw_fd(), &name) {
        Ok(()) if is_ours(&fd) => {
            let stream = UnixStream::from(fd);
            stream.set_nonblocking(false)?;
            Ok(Some(stream))
        }
        Ok(()) => Err(io::Error::new(io::ErrorKind::PermissionDenied, "the interface is another user's")),
        Err(Errno::ECONNREFUSED) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// True if at the other end there is root, or this user.
fn is_ours(fd: &OwnedFd) -> bool {
    getsockopt(fd, PeerCredentials).is_ok_and(|peer| peer.uid() == 0 || peer.uid() == geteuid().as_raw())
}

/// Claims an interface for an agent of a kind.
///
/// # Errors
/// [`Error::Busy`] if a process that lives has it; [`Error::System`].
pub(crate) fn claim(kind: &str, ifindex: i32) -> Result<Claim, Error> {
    let failed = system("the claim of an interface");
    let fd = unix().map_err(failed)?;
    match bind(fd.as_raw_fd(), &name(kind, ifindex).map_err(failed)?) {
        Ok(()) => {}
        Err(Errno::EADDRINUSE) => return Err(Error::Busy),
        Err(errno) => return Err(failed(errno)),
    }
    // Other processes can ask the owner of a listening socket for its status.
    listen(&fd, Backlog::new(8).map_err(failed)?).map_err(failed)?;
    Ok(Claim(fd))
}

/// True if an agent of a kind that lives has claimed an interface.
#[cfg(feature = "bpf")]
pub(crate) fn is_claimed(kind: &str, ifindex: i32) -> bool {
    let Ok((fd, name)) = unix().and_then(|fd| Ok((fd, name(kind, ifindex)?))) else { return false };
    match connect(fd.as_raw_fd(), &name) {
        Ok(()) => is_ours(&fd),
        // It listens, and has been asked by others.
        Err(Errno::EAGAIN) => true,
        Err(_) => false,
    }
}

/// The kinds of agents that have claimed interfaces of the calling thread's network namespace, with
/// the numbers of those.
///
/// # Errors
/// If the kernel does not list its sockets.
pub(crate) fn claims() -> io::Result<BTreeSet<(String, i32)>> {
    let sockets = std::fs::read_to_string("/proc/thread-self/net/unix")?;
    let claim = |line: &str| {
        let (kind, index) = line.rsplit_once(" @lasthop-")?.1.split_once('/')?;
        Some((kind.to_owned(), index.parse().ok()?))
    };
    Ok(sockets.lines().filter_map(claim).collect())
}

fn unix() -> nix::Result<OwnedFd> {
    socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK, None)
}

fn name(kind: &str, ifindex: i32) -> nix::Result<UnixAddr> {
    UnixAddr::new_abstract(format!("lasthop-{kind}/{ifindex}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const AP: &str = "ap";

    #[test]
    fn an_interface_is_one_agents_until_that_ends() {
        // No interface has such a number.
        let ifindex = i32::MAX - 7;
        assert!(!is_claimed(AP, ifindex));
        let first = claim(AP, ifindex).expect("nobody has it");
        assert!(!is_claimed("relay", ifindex), "a relay beside it is another kind");
        for _ in 0..4 {
            assert!(is_claimed(AP, ifindex));
        }
        assert!(matches!(claim(AP, ifindex), Err(Error::Busy)));
        assert!(claims().expect("the kernel lists them").contains(&(AP.to_owned(), ifindex)));
        // Whoever calls is taken in turn; those before have only looked, and have gone.
        let mut caller = call(AP, ifindex).expect("we may").expect("it is claimed");
        let mut answered = 0;
        while let Some(asker) = first.asker() {
            let _ = nix::sys::socket::send(asker.as_raw_fd(), b"hello", nix::sys::socket::MsgFlags::MSG_NOSIGNAL);
            answered += 1;
        }
        let mut said = String::new();
        std::io::Read::read_to_string(&mut caller, &mut said).expect("an answer");
        assert_eq!((said.as_str(), answered), ("hello", 5));
        drop(first);
        assert!(call(AP, ifindex).expect("we may").is_none());
        assert!(!is_claimed(AP, ifindex));
        drop(claim(AP, ifindex).expect("free again"));
    }
}
