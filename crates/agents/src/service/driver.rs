//! Where the agent learns what the driver knows.

use lasthop_signals::Node;
use lasthop_units::Span;
use lasthop_wire::driver::{self, Record};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, recv, socket};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A source of driver reports: a socket, or the kernel itself.
pub trait DriverSource {
    /// The newest report, waiting for one up to `patience`; `None` if none came. Older reports that came meanwhile are
    /// skipped: counters are cumulative. However many there are, it returns soon.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`]: what came was no record; the next one may be. Any other: the driver has gone, and
    /// [`DriverSource::reconnect`] may find it again.
    fn newest(&mut self, patience: Span) -> io::Result<Option<Record>>;

    /// The one station that stands for everybody behind the interface, where there is no more to know; `None` where flows are told apart.
    fn everybody(&self) -> Option<Node> {
        None
    }

    /// Tries to reach a driver that has gone.
    ///
    /// # Errors
    /// It is still gone.
    fn reconnect(&mut self) -> io::Result<()>;
}

/// Records (see [`lasthop_wire::driver`]) from a Unix socket of type `SOCK_SEQPACKET`.
pub struct SocketDriver {
    path: PathBuf,
    socket: OwnedFd,
    buffer: Vec<u8>,
    /// What is wrong with a message that came behind a record, to be told next time.
    behind: Option<io::Error>,
}

impl SocketDriver {
    /// Connects to the driver that listens at `path`.
    ///
    /// # Errors
    /// Nobody listens there, or not to us.
    pub fn connect(path: &Path) -> io::Result<SocketDriver> {
        let socket = open(path)?;
        // One octet more than the longest record: a longer message then shows as such.
        Ok(SocketDriver { path: path.to_owned(), socket, buffer: vec![0; driver::MAX_LEN + 1], behind: None })
    }

    /// The newest record that `decode` reads, as [`DriverSource::newest`]. Records of another kind, of which it makes `None`, are passed over.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn newest_of<T>(
        &mut self,
        patience: Span,
        decode: impl Fn(&[u8]) -> Result<Option<T>, lasthop_wire::Error>,
    ) -> io::Result<Option<T>> {
        if let Some(error) = self.behind.take() {
            return Err(error);
        }
        if !self.wait(patience)? {
            return Ok(None);
        }
        let mut newest = None;
        for _ in 0..BUDGET {
            match recv(self.socket.as_raw_fd(), &mut self.buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(0) if newest.is_none() => return Err(io::ErrorKind::ConnectionReset.into()),
                // The end of the connection: told next time, after what came before it has been used.
                Ok(0) => return Ok(newest),
                Ok(len) => match decode(&self.buffer[..len]) {
                    Ok(record) => newest = record.or(newest),
                    Err(error) => {
                        let error = io::Error::new(io::ErrorKind::InvalidData, error);
                        if newest.is_none() {
                            return Err(error);
                        }
                        self.behind = Some(error);
                        return Ok(newest);
                    }
                },
                Err(nix::Error::EAGAIN) => return Ok(newest),
                Err(nix::Error::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(newest)
    }

    fn wait(&self, patience: Span) -> io::Result<bool> {
        let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        let ms = u16::try_from(patience.as_nanos().div_ceil(1_000_000)).unwrap_or(u16::MAX);
        match poll(&mut fds, PollTimeout::from(ms)) {
            // A signal: the caller looks whether it is to stop.
            Err(nix::Error::EINTR) => Ok(false),
            Err(error) => Err(error.into()),
            Ok(ready) => Ok(ready > 0),
        }
    }
}

impl DriverSource for SocketDriver {
    fn newest(&mut self, patience: Span) -> io::Result<Option<Record>> {
        self.newest_of(patience, |message| driver::other_kind(driver::decode(message), driver::KIND_NODE))
    }

    fn reconnect(&mut self) -> io::Result<()> {
        self.socket = open(&self.path)?;
        self.behind = None;
        Ok(())
    }
}

/// Records read in one turn: a second of them, more than the socket holds. A driver that never pauses fills it again meanwhile.
const BUDGET: usize = 256;

fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
    connect(fd.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(fd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::Time;
    use nix::sys::socket::{Backlog, accept, bind, listen, send};
    use std::os::fd::FromRawFd;

    fn record(ns: u64) -> Record {
        let mut record = Record { at: Time::from_nanos(ns), ..Record::default() };
        record.report.channel.busy = Some(Span::from_millis(ns));
        record
    }

    fn listener(path: &Path) -> OwnedFd {
        let fd = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
        bind(fd.as_raw_fd(), &UnixAddr::new(path).expect("a short path")).expect("a free path");
        listen(&fd, Backlog::new(4).expect("a small backlog")).expect("listening");
        fd
    }

    fn accepted(listener: &OwnedFd) -> OwnedFd {
        let fd = accept(listener.as_raw_fd()).expect("a connection");
        // SAFETY: a fresh descriptor, owned by nobody else.
        unsafe { OwnedFd::from_raw_fd(fd) }
    }

    #[test]
    fn a_driver_that_sends_without_pause_does_not_keep_its_reader() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("driver");
        let listening = listener(&path);
        let mut driver = SocketDriver::connect(&path).expect("a listener");
        let end = accepted(&listening);
        // A pause would be whenever the reader is faster: here there is none, since the rest waits in the socket.
        let message = driver::encode(&record(1)).expect("few stations");
        let mut sent = 0u32;
        while send(end.as_raw_fd(), &message, MsgFlags::MSG_DONTWAIT).is_ok() {
            sent += 1;
        }
        let flood = std::thread::spawn(move || {
            (0..20_000).for_each(|_| {
                send(end.as_raw_fd(), &message, MsgFlags::empty()).expect("it is read");
            });
            // Closed only after its reader has stopped.
            end
        });
        let mut turns = 0u32;
        while !flood.is_finished() {
            drop(driver.newest(Span::from_millis(1)).expect("connected"));
            turns += 1;
        }
        drop(flood.join().expect("no panic"));
        let least = (20_000 + sent) / BUDGET as u32 / 2;
        assert!(turns >= least, "{turns} turns for {} records", 20_000 + sent);
    }

    #[test]
    fn the_newest_record_counts_and_the_end_shows_as_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("driver");
        assert!(SocketDriver::connect(&path).is_err(), "nobody listens");
        let listening = listener(&path);
        let mut driver = SocketDriver::connect(&path).expect("a listener");
        let end = accepted(&listening);
        assert_eq!(driver.newest(Span::from_millis(1)).expect("connected"), None);
        for n in 1..=3 {
            let message = driver::encode(&record(n)).expect("few stations");
            send(end.as_raw_fd(), &message, MsgFlags::empty()).expect("room");
        }
        let newest = driver.newest(Span::from_millis(1_000)).expect("connected");
        assert_eq!(newest, Some(record(3)));
        // Records of a node's delay are for others.
        let node = driver::encode_node(&driver::NodeRecord::default());
        for message in [&driver::encode(&record(3)).expect("few stations")[..], &node] {
            send(end.as_raw_fd(), message, MsgFlags::empty()).expect("room");
        }
        assert_eq!(driver.newest(Span::from_millis(1_000)).expect("connected"), Some(record(3)));
        // A message that is no record takes none with it.
        for message in [&driver::encode(&record(4)).expect("few stations")[..], b"nonsense"] {
            send(end.as_raw_fd(), message, MsgFlags::empty()).expect("room");
        }
        assert_eq!(driver.newest(Span::from_millis(1_000)).expect("connected"), Some(record(4)));
        let error = driver.newest(Span::from_millis(1_000)).expect_err("nonsense");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(driver.newest(Span::from_millis(1)).expect("connected"), None);
        drop(end);
        assert!(driver.newest(Span::from_millis(1_000)).is_err());
        driver.reconnect().expect("still listening");
        let end = accepted(&listening);
        let message = driver::encode(&record(9)).expect("few stations");
        send(end.as_raw_fd(), &message, MsgFlags::empty()).expect("room");
        assert!(driver.newest(Span::from_millis(1_000)).expect("connected").is_some());
    }
}
