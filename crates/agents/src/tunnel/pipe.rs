//! The relay between a TCP connection and a stream of the tunnel.
//!
//! It reads from the connection what the tunnel wants now and not an octet more, so that what waits waits in the
//! connection's window, where its sender feels it.

use lasthop_transport::tunnel::Endpoint;
use lasthop_units::{Span, Time};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// A TCP connection that is one end of a stream.
pub struct Pipe {
    socket: TcpStream,
    /// There may be something to read.
    readable: bool,
    /// There may be room to write.
    writable: bool,
    read_ended: bool,
    write_ended: bool,
    /// Octets that have been read.
    taken: u64,
    /// How long data has been on its way when it is read here.
    pub lead: Span,
    /// The first octet of what is written next leaves in a segment of its own. A window that is smaller than the last one a Linux sender
    /// takes from a segment that acknowledges something new, or begins behind the one with the last window: a request that is one
    /// segment does neither, its second half does.
    pub apart: bool,
    /// What was written last did so.
    parted: bool,
}

/// How a pipe stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Something may still pass.
    Open,
    /// Both directions have ended in order.
    Done,
}

impl Pipe {
    /// A connection that does not block.
    ///
    /// # Errors
    /// If it cannot be made so.
    pub fn new(socket: TcpStream) -> io::Result<Pipe> {
        socket.set_nonblocking(true)?;
        // Interactive data shall not wait for acknowledgements; what is written here are whole packets.
        socket.set_nodelay(true)?;
        let (read_ended, write_ended) = (false, false);
        Ok(Pipe {
            socket,
            readable: true,
            writable: true,
            read_ended,
            write_ended,
            taken: 0,
            lead: Span::ZERO,
            apart: false,
            parted: false,
        })
    }

    /// The connection.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// The kernel says that something has changed.
    pub fn on_ready(&mut self, readable: bool, writable: bool) {
        self.readable |= readable;
        self.writable |= writable;
    }

    /// True if there may be something to read.
    pub fn is_readable(&self) -> bool {
        self.readable && !self.read_ended
    }

    /// Moves what the tunnel wants from the connection into the stream, but no more than `most` octets.
    fn pull(
        &mut self,
        now: Time,
        endpoint: &mut Endpoint,
        stream: u32,
        most: usize,
        scratch: &mut [u8],
    ) -> Result<(), io::Error> {
        let mut left = most.min(scratch.len());
        while self.is_readable() {
            let wanted = endpoint.wants(now, stream).min(left);
            if wanted == 0 {
                break;
            }
            match self.socket.read(&mut scratch[..wanted]) {
                Ok(0) => {
                    self.read_ended = true;
                    endpoint.finish(stream);
                }
                Ok(count) => {
                    endpoint.write(stream, &scratch[..count], now.saturating_sub(self.lead));
                    // A short read is no sign that there is no more: the end may stand right behind it, and has been told.
                    (self.taken, left) = (self.taken + count as u64, left - count);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// True once after something was written in two segments.
    pub fn has_parted(&mut self) -> bool {
        std::mem::take(&mut self.parted)
    }

    /// Moves what can be read of the stream into the connection.
    pub fn push(&mut self, now: Time, endpoint: &mut Endpoint, stream: u32) -> Result<(), io::Error> {
        while self.writable && !self.write_ended {
            let ready = endpoint.readable(stream);
            if ready.is_empty() {
                break;
            }
            let apart = self.apart && ready.len() > 1;
            match self.socket.write(if apart { &ready[..1] } else { ready }) {
                Ok(count) => {
                    endpoint.consume(now, stream, count);
                    if apart {
                        (self.apart, self.parted) = (false, true);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if !self.write_ended && endpoint.take_end(stream) {
            self.write_ended = true;
            // A connection that has gone meanwhile has ended, too.
            let _ = self.socket.shutdown(Shutdown::Write);
        }
        Ok(())
    }

    /// Octets that have been read from the connection.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// How the pipe stands.
    pub fn state(&self) -> State {
        if self.read_ended && self.write_ended { State::Done } else { State::Open }
    }

    /// Makes the other end see that the connection has failed, not that it has ended.
    pub fn abort(self) {
        fail_when_closed(&self.socket, true);
    }

    /// From now on the other end sees that the connection has failed whenever the socket is closed, also where the process is killed; unless it
    /// ends by [`Pipe::finish`].
    pub fn fail_when_killed(self) -> Pipe {
        fail_when_closed(&self.socket, true);
        self
    }

    /// Both directions have ended in order: what has not been acknowledged yet still arrives.
    pub fn finish(self) {
        fail_when_closed(&self.socket, false);
    }

    /// Octets that wait in the kernel to be read.
    pub fn queued(&self) -> u64 {
        let mut count: libc::c_int = 0;
        // SAFETY: the descriptor is open, and FIONREAD writes one int.
        let failed = unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::FIONREAD, &mut count) };
        if failed == 0 { u64::try_from(count).unwrap_or(0) } else { 0 }
    }
}

/// Whether a connection is reset when its socket is closed.
pub fn fail_when_closed(socket: &TcpStream, fails: bool) {
    let linger = libc::linger { l_onoff: fails.into(), l_linger: 0 };
    // Refusal costs the other end the distinction.
    let _ = nix::sys::socket::setsockopt(socket, nix::sys::socket::sockopt::Linger, &linger);
}

impl AsFd for Pipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Reads from connections in turn.
#[derive(Debug, Default)]
pub struct Turns {
    /// The connection that was read last.
    last: u32,
}

/// How many octets a connection may bring in its turn while others wait for theirs: what two packets carry. With less, packets
/// would be put together of more parts than need be.
const TURN: usize = 2800;

impl Turns {
    /// Moves what the tunnel wants from connections into their streams. `pipe` gives the connection of an entry of `all`, if there is
    /// one. Returns the streams of failed connections.
    pub fn pull<T>(
        &mut self,
        now: Time,
        endpoint: &mut Endpoint,
        all: &mut BTreeMap<u32, T>,
        pipe: impl Fn(&mut T) -> Option<&mut Pipe>,
        scratch: &mut [u8],
    ) -> Vec<u32> {
        let mut broken = Vec::new();
        loop {
            let wanted = endpoint.wants_in_all(now);
            if wanted == 0 {
                return broken;
            }
            let readable = |entry: &mut T| pipe(entry).is_some_and(|pipe| pipe.is_readable());
            let waiting: Vec<u32> =
                all.iter_mut().filter_map(|(stream, entry)| readable(entry).then_some(*stream)).collect();
            let most = TURN.max(wanted / waiting.len().max(1));
            let next = waiting.partition_point(|stream| *stream <= self.last);
            let mut moved = false;
            for stream in waiting[next..].iter().chain(&waiting[..next]) {
                let Some(pipe) = all.get_mut(stream).and_then(&pipe) else { continue };
                let before = pipe.taken;
                if pipe.pull(now, endpoint, *stream, most, scratch).is_err() {
                    pipe.readable = false;
                    broken.push(*stream);
                }
                moved |= pipe.taken > before;
                self.last = *stream;
                if endpoint.wants_in_all(now) == 0 {
                    return broken;
                }
            }
            if !moved {
                return broken;
            }
        }
    }
}
