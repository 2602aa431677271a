//! Whose an interface is: one agent's at a time, for as long as that lives.
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

/// An interface is this process's until this is dropped.
#[derive(Debug)]
pub(super) struct Claim(#[expect(dead_code, reason = "held for its drop")] OwnedFd);

/// Claims an interface.
///
/// # Errors
/// [`Error::Busy`] if a process that lives has it; [`Error::System`].
pub(super) fn claim(ifindex: i32) -> Result<Claim, Error> {
    let failed = |errno: Errno| Error::System { what: "the claim of an interface", source: errno.into() };
    let fd = unix().map_err(failed)?;
    match bind(fd.as_raw_fd(), &name(ifindex).map_err(failed)?) {
        Ok(()) => {}
        Err(Errno::EADDRINUSE) => return Err(Error::Busy),
        Err(errno) => return Err(failed(errno)),
    }
    // Who listens can be asked who it is.
    listen(&fd, Backlog::new(1).map_err(failed)?).map_err(failed)?;
    Ok(Claim(fd))
}

/// True if a process that lives has claimed an interface.
pub(super) fn is_claimed(ifindex: i32) -> bool {
    let Ok((fd, name)) = unix().and_then(|fd| Ok((fd, name(ifindex)?))) else { return false };
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

fn name(ifindex: i32) -> nix::Result<UnixAddr> {
    UnixAddr::new_abstract(format!("lasthop-ap/{ifindex}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_one_agents_until_that_ends() {
        // No interface has such a number.
        let ifindex = i32::MAX - 7;
        assert!(!is_claimed(ifindex));
        let first = claim(ifindex).expect("nobody has it");
        for _ in 0..4 {
            assert!(is_claimed(ifindex));
        }
        assert!(matches!(claim(ifindex), Err(Error::Busy)));
        drop(first);
        assert!(!is_claimed(ifindex));
        drop(claim(ifindex).expect("free again"));
    }
}
