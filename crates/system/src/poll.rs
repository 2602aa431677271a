//! Waiting for sockets or for a moment, whichever comes first, to the nanosecond.

use lasthop_units::Span;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// An epoll instance with a nanosecond timeout (`epoll_pwait2`, Linux 5.11).
pub struct Poll {
    epoll: Epoll,
    ready: Vec<libc::epoll_event>,
}

/// A file that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Under which number it was added.
    pub token: u64,
    /// There is something to read, or its end.
    pub readable: bool,
    /// There is room to write, or an error to fetch.
    pub writable: bool,
}

const AT_ONCE: usize = 256;

impl Poll {
    /// An instance that watches nothing yet.
    ///
    /// # Errors
    /// If the kernel has no more files to give.
    pub fn new() -> io::Result<Poll> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        Ok(Poll { epoll, ready: vec![libc::epoll_event { events: 0, u64: 0 }; AT_ONCE] })
    }

    /// Watches `file` for as long as there is something to read.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn add_level(&self, file: &impl AsFd, token: u64) -> io::Result<()> {
        Ok(self.epoll.add(file, EpollEvent::new(EpollFlags::EPOLLIN, token))?)
    }

    /// Watches `file` for changes: something new to read, new room to write.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn add_edge(&self, file: &impl AsFd, token: u64) -> io::Result<()> {
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
        Ok(self.epoll.add(file, EpollEvent::new(flags, token))?)
    }

    /// Watches `file` no longer.
    pub fn remove(&self, file: &impl AsFd) {
        // What is not watched need not be removed.
        let _ = self.epoll.delete(file);
    }

    /// Waits at most `longest`; returns how many files are ready.
    ///
    /// # Errors
    /// If the kernel refuses. A signal is no error.
    pub fn wait(&mut self, longest: Span) -> io::Result<usize> {
        let ns = longest.as_nanos();
        let timeout = libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: the event array has room for as many events as are asked for, the timeout outlives the call, and a
        // null signal mask (of any size) leaves the thread's mask alone.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.0.as_raw_fd(),
                self.ready.as_mut_ptr(),
                self.ready.len() as libc::c_int,
                &timeout as *const libc::timespec,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        match usize::try_from(count) {
            Ok(count) => Ok(count),
            Err(_) if Errno::last() == Errno::EINTR => Ok(0),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }

    /// The `n`-th file that is ready.
    pub fn ready(&self, n: usize) -> Ready {
        let event = self.ready[n];
        let flags = EpollFlags::from_bits_truncate(event.events as i32);
        let gone = EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP;
        Ready {
            token: event.u64,
            readable: flags.intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | gone),
            writable: flags.intersects(EpollFlags::EPOLLOUT | gone),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn level_events_last_until_read_and_edges_are_reported_once() {
        let (mut ours, mut theirs) = UnixStream::pair().expect("sockets");
        let mut poll = Poll::new().expect("an instance");
        poll.add_level(&ours, 7).expect("watched");
        assert_eq!(poll.wait(Span::from_micros(10)).expect("waited"), 0);
        theirs.write_all(b"x").expect("room");
        for _ in 0..2 {
            assert_eq!(poll.wait(Span::from_millis(100)).expect("waited"), 1);
            assert_eq!(poll.ready(0), Ready { token: 7, readable: true, writable: false });
        }
        ours.read_exact(&mut [0]).expect("one octet");
        assert_eq!(poll.wait(Span::ZERO).expect("waited"), 0);
        poll.remove(&ours);

        poll.add_edge(&ours, 8).expect("watched");
        assert_eq!(poll.wait(Span::from_millis(100)).expect("waited"), 1);
        assert_eq!(poll.ready(0), Ready { token: 8, readable: false, writable: true });
        assert_eq!(poll.wait(Span::ZERO).expect("waited"), 0, "told once");
        drop(theirs);
        assert_eq!(poll.wait(Span::from_millis(100)).expect("waited"), 1);
        assert!(poll.ready(0).readable, "the end is something to read");
    }
}
