//! Asking for the addresses of a host without waiting for the answer.

use nix::sys::eventfd::{EfdFlags, EventFd};
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A resolver whose file becomes readable when there are answers.
pub(super) struct Resolver {
    bell: Arc<EventFd>,
    answers: (Sender<Answer>, Receiver<Answer>),
    /// Questions that are being asked.
    open: usize,
}

/// The addresses for one stream of one session.
pub(super) struct Answer {
    pub(super) session: u32,
    pub(super) stream: u32,
    /// Empty if the host has none.
    pub(super) addresses: Vec<SocketAddr>,
}

/// More questions at once are answered with nothing.
const MOST: usize = 256;

impl Resolver {
    pub(super) fn new() -> io::Result<Resolver> {
        let bell = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        Ok(Resolver { bell: Arc::new(bell), answers: channel(), open: 0 })
    }

    /// Asks. An address needs no asking, but the answer comes the same way.
    pub(super) fn ask(&mut self, session: u32, stream: u32, host: &str, port: u16) {
        let (sender, bell) = (self.answers.0.clone(), Arc::clone(&self.bell));
        let answer = move |addresses| {
            // Nobody may be left to hear it.
            let _ = sender.send(Answer { session, stream, addresses });
            let _ = bell.write(1);
        };
        self.open += 1;
        match host.parse::<IpAddr>() {
            Ok(address) => answer(vec![SocketAddr::new(address, port)]),
            Err(_) if self.open > MOST => answer(Vec::new()),
            Err(_) => {
                let host = host.to_owned();
                // The system's resolver blocks, so it gets a thread; those are few, and end with their question.
                std::thread::spawn(move || {
                    answer((host.as_str(), port).to_socket_addrs().map(Iterator::collect).unwrap_or_default());
                });
            }
        }
    }

    /// The next answer.
    pub(super) fn answer(&mut self) -> Option<Answer> {
        let answer = self.answers.1.try_recv().ok();
        match answer {
            Some(_) => self.open -= 1,
            None => drop(self.bell.read()),
        }
        answer
    }
}

impl AsFd for Resolver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
