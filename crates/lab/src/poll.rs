//! Waiting for files or for a moment, whichever comes first, to the nanosecond.

use crate::error::{Doing, Result};
use lasthop_units::Span;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// An epoll instance with a nanosecond timeout (`epoll_pwait2`, Linux 5.11; `epoll_wait` counts in milliseconds).
pub(crate) struct Poll {
    epoll: Epoll,
    ready: Vec<libc::epoll_event>,
}

const AT_ONCE: usize = 64;

impl Poll {
    pub(crate) fn new() -> Result<Poll> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing(|| "making an epoll instance".into())?;
        Ok(Poll { epoll, ready: vec![libc::epoll_event { events: 0, u64: 0 }; AT_ONCE] })
    }

    /// Watches `file` for something to read; `token` tells which it was.
    pub(crate) fn add(&mut self, file: BorrowedFd<'_>, token: u64) -> Result<()> {
        self.epoll.add(file, EpollEvent::new(EpollFlags::EPOLLIN, token)).doing(|| "watching a file".into())
    }

    /// Waits at most `longest`; returns how many files are ready.
    pub(crate) fn wait(&mut self, longest: Span) -> Result<usize> {
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
            Err(_) => Err(io::Error::last_os_error()).doing(|| "waiting for packets (epoll_pwait2)".into()),
        }
    }

    /// The token of the `n`-th ready file.
    pub(crate) fn token(&self, n: usize) -> u64 {
        self.ready[n].u64
    }
}
