//! Whose an interface is: one agent's of a kind at a time, for as long as that lives.
//!
//! A claim is an abstract Unix socket that bears the interface's number. It is of the network namespace that the interface is in,
//! so that whoever could attach to the one sees the other, and the kernel takes it away with its process, however that ends. A process
//! that is only stopped keeps it. Names are free to everybody: whoever takes one keeps agents from beginning, but what is to be cleaned
//! up is left to root and the same user alone.

use super::Error;
use nix::errno::Errno;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, getsockopt, listen, socket,
};
use nix::unistd::geteuid;
use std::os::fd::{AsRawFd, OwnedFd};

/// The kind of an access point's agent.
pub(crate) const AP: &str = "ap";
/// The kind of a relay.
pub(crate) const RELAY: &str = "relay";

/// An interface is this process's until this is dropped.
#[derive(Debug)]
pub(crate) struct Claim(#[expect(dead_code, reason = "held for its drop")] OwnedFd);

/// Claims an interface for an agent of a kind.
///
/// # Errors
/// [`Error::Busy`] if a process that lives has it; [`Error::System`].
pub(crate) fn claim(kind: &str, ifindex: i32) -> Result<Claim, Error> {
    let failed = |errno: Errno| Error::System { what: "the claim of an interface", source: errno.into() };
    let fd = unix().map_err(failed)?;
    match bind(fd.as_raw_fd(), &name(kind, ifindex).map_err(failed)?) {
        Ok(()) => {}
        Err(Errno::EADDRINUSE) => return Err(Error::Busy),
        Err(errno) => return Err(failed(errno)),
    }
    // Who listens can be asked who it is.
    listen(&fd, Backlog::new(1).map_err(failed)?).map_err(failed)?;
    Ok(Claim(fd))
}

/// True if an agent of a kind that lives has claimed an interface.
pub(crate) fn is_claimed(kind: &str, ifindex: i32) -> bool {
    let Ok((fd, name)) = unix().and_then(|fd| Ok((fd, name(kind, ifindex)?))) else { return false };
    match connect(fd.as_raw_fd(), &name) {
        Ok(()) => {
            getsockopt(&fd, PeerCredentials).is_ok_and(|owner| owner.uid() == 0 || owner.uid() == geteuid().as_raw())
        }
        // It listens, and has been asked by others.
        Err(Errno::EAGAIN) => true,
        Err(_) => false,
    }
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

    #[test]
    fn an_interface_is_one_agents_until_that_ends() {
        // No interface has such a number.
        let ifindex = i32::MAX - 7;
        assert!(!is_claimed(AP, ifindex));
        let first = claim(AP, ifindex).expect("nobody has it");
        assert!(!is_claimed(RELAY, ifindex), "a relay beside it is another kind");
        for _ in 0..4 {
            assert!(is_claimed(AP, ifindex));
        }
        assert!(matches!(claim(AP, ifindex), Err(Error::Busy)));
        drop(first);
        assert!(!is_claimed(AP, ifindex));
        drop(claim(AP, ifindex).expect("free again"));
    }
}
