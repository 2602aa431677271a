//! Wakes a thread that waits for a socket.

use crate::tunnel::Error;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// The end that rings.
pub(super) struct Bell(UnixStream);

/// The end that the thread watches.
pub(super) struct Ringing(UnixStream);

/// Both ends.
pub(super) fn bell() -> Result<(Bell, Ringing), Error> {
    let both = || -> io::Result<(UnixStream, UnixStream)> {
        let (bell, ringing) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        ringing.set_nonblocking(true)?;
        Ok((bell, ringing))
    };
    let (bell, ringing) = both().map_err(Error::system("a pair of sockets"))?;
    Ok((Bell(bell), Ringing(ringing)))
}

impl Bell {
    /// Wakes the thread. One that has been rung for and has not looked yet need not be rung for again.
    pub(super) fn ring(&self) {
        let _ = (&self.0).write(&[0]);
    }
}

impl Ringing {
    /// Makes it silent.
    pub(super) fn silence(&self) {
        let mut octets = [0; 64];
        while (&self.0).read(&mut octets).is_ok_and(|count| count == octets.len()) {}
    }
}

impl AsFd for Ringing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
