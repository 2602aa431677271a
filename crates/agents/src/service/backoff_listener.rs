//! A listener that rests when there is no room.

use super::poll::Poll;
use lasthop_units::{Span, Time};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// A listener that is watched, but not while the process or the system has no more files to give: whoever waits in its queue would
/// wake the agent again at once, for ever.
pub struct BackoffListener {
    listener: TcpListener,
    token: u64,
    /// Nobody is let in until then.
    resting: Option<Time>,
}

/// A listener with connections for which there is no room is asked again after this.
const REST: Span = Span::from_millis(100);

impl BackoffListener {
    /// How many are let in at most in one turn: whoever waits beyond that wakes the agent again.
    pub const BUDGET: usize = 64;

    /// Watches a listener, which must not block, under `token`.
    ///
    /// # Errors
    /// If it cannot be watched.
    pub fn open(listener: TcpListener, token: u64, poll: &Poll) -> io::Result<BackoffListener> {
        poll.add_level(&listener, token)?;
        Ok(BackoffListener { listener, token, resting: None })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The next waiting connection; `None` if none waits, or if there is no room for it.
    pub fn admit(&mut self, now: Time, poll: &Poll) -> Option<TcpStream> {
        loop {
            match self.listener.accept() {
                Ok((socket, _)) => return Some(socket),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                // There is no room, and would be none if we asked again at once: waiting connections can wait a little
                // longer.
                Err(_) => {
                    poll.remove(&self.listener);
                    self.resting = Some(now + REST);
                    return None;
                }
            }
        }
    }

    /// Watches the listener again once it has rested long enough.
    pub fn look_after(&mut self, now: Time, poll: &Poll) {
        if self.resting.is_some_and(|until| until <= now) {
            let watched = poll.add_level(&self.listener, self.token).is_ok();
            self.resting = (!watched).then_some(now + REST);
        }
    }

    /// When [`BackoffListener::look_after`] must be called next.
    pub fn next_look(&self) -> Option<Time> {
        self.resting
    }
}
