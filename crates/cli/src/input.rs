//! Files and standard input that are read piece by piece.

use anyhow::{Context as _, bail};
use lasthop_agents::service::{Stop, stop_on_signals};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a pipe is asked whether it has something, and how long it may go on when we are asked to stop.
const LOOK: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(1);

/// Opens a file that is read to its end. `what` it is; `instead`: what to name in place of a device, which may have no end.
pub fn file(path: &Path, what: &str, instead: &str) -> anyhow::Result<File> {
    let unreadable = || format!("cannot read {what} {}", path.display());
    // A device may have no end. Pipes have one.
    if std::fs::metadata(path).with_context(unreadable)?.file_type().is_char_device() {
        bail!("{} is a device: {instead}", path.display());
    }
    File::open(path).with_context(unreadable)
}

/// Standard input, until it ends; when it is asked to stop, for a little longer.
pub struct Pipe {
    stop: &'static Stop,
    /// Until when what it has still to say is awaited.
    end: Option<Instant>,
}

impl Pipe {
    /// From now on Ctrl-C ends the pipe, not the process.
    pub fn open() -> anyhow::Result<Pipe> {
        Ok(Pipe { stop: stop_on_signals()?, end: None })
    }

    /// The next octets; none at the end.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let input = io::stdin();
        loop {
            let mut fds = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
            let ready = match poll(&mut fds, PollTimeout::try_from(LOOK).unwrap_or(PollTimeout::ZERO)) {
                Ok(ready) => ready,
                Err(Errno::EINTR) => 0,
                Err(error) => return Err(error.into()),
            };
            // Ctrl-C reaches the writing program, too, and what that has still to say is worth waiting for.
            if self.stop.is_asked() {
                let end = *self.end.get_or_insert_with(|| Instant::now() + PATIENCE);
                if Instant::now() >= end || self.stop.is_urgent() {
                    return Ok(0);
                }
            }
            if ready > 0 {
                match nix::unistd::read(&input, buffer) {
                    Err(Errno::EINTR | Errno::EAGAIN) => {}
                    read => return Ok(read?),
                }
            }
        }
    }
}
