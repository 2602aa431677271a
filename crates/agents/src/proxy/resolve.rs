//! Asking for the addresses of a host without waiting for the answer.

use nix::sys::eventfd::{EfdFlags, EventFd};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A resolver whose file becomes readable when there are answers.
pub(super) struct Resolver {
    bell: Arc<EventFd>,
    answers: (Sender<Answer>, Receiver<Answer>),
    /// Questions that are being asked, by session.
    open: BTreeMap<u32, usize>,
}

/// The addresses for one stream of one session.
pub(super) struct Answer {
    pub(super) session: u32,
    pub(super) stream: u32,
    /// Empty if the host has none.
    pub(super) addresses: Vec<SocketAddr>,
}

/// More questions of a session at once are answered with nothing: one station cannot use up what all need.
const MOST: usize = 16;
/// Nor can all together use up the process's threads.
const MOST_IN_ALL: usize = 256;

impl Resolver {
    pub(super) fn new() -> io::Result<Resolver> {
        let bell = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        Ok(Resolver { bell: Arc::new(bell), answers: channel(), open: BTreeMap::new() })
    }

    /// Asks. An address needs no asking, but the answer comes the same way.
    pub(super) fn ask(&mut self, session: u32, stream: u32, host: &str, port: u16) {
        let (sender, bell) = (self.answers.0.clone(), Arc::clone(&self.bell));
        let answer = move |addresses| {
            // Nobody may be left to hear it.
            let _ = sender.send(Answer { session, stream, addresses });
            let _ = bell.write(1);
        };
        let in_all: usize = self.open.values().sum();
        let of_session = self.open.entry(session).or_default();
        *of_session += 1;
        match host.parse::<IpAddr>() {
            Ok(address) => answer(vec![SocketAddr::new(address, port)]),
            Err(_) if *of_session > MOST || in_all >= MOST_IN_ALL => answer(Vec::new()),
            Err(_) => {
                let (host, otherwise) = (host.to_owned(), answer.clone());
                // The system's resolver blocks, so it gets a thread; those are few, and end with their question.
                let asking = std::thread::Builder::new().spawn(move || {
                    answer((host.as_str(), port).to_socket_addrs().map(Iterator::collect).unwrap_or_default());
                });
                if asking.is_err() {
                    otherwise(Vec::new());
                }
            }
        }
    }

    /// The next answer.
    pub(super) fn answer(&mut self) -> Option<Answer> {
        let answer = self.answers.1.try_recv().ok();
        match answer {
            Some(Answer { session, .. }) => {
                if let Entry::Occupied(mut open) = self.open.entry(session) {
                    *open.get_mut() -= 1;
                    if *open.get() == 0 {
                        open.remove();
                    }
                }
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_asks_too_much_leaves_others_their_answers() {
        let mut resolver = Resolver::new().expect("an eventfd");
        // Names of this machine, which no network is asked for; answers are only taken afterwards.
        for stream in 0..MOST as u32 + 5 {
            resolver.ask(1, stream, "localhost", 7);
        }
        resolver.ask(2, 0, "localhost", 7);
        let mut answers: Vec<Answer> = Vec::new();
        for _ in 0..10_000 {
            if answers.len() == MOST + 6 {
                break;
            }
            match resolver.answer() {
                Some(answer) => answers.push(answer),
                None => std::thread::sleep(std::time::Duration::from_millis(1)),
            }
        }
        assert_eq!(answers.len(), MOST + 6);
        let refused = answers.iter().filter(|answer| answer.session == 1 && answer.stream >= MOST as u32);
        assert!(refused.clone().count() == 5 && refused.into_iter().all(|answer| answer.addresses.is_empty()));
        assert!(answers.iter().any(|answer| answer.session == 2 && !answer.addresses.is_empty()), "the other's");
        assert!(resolver.open.is_empty());
        resolver.ask(1, 0, "192.0.2.1", 7);
        assert!(resolver.answer().is_some_and(|answer| answer.addresses.len() == 1), "it may ask again");
    }
}
