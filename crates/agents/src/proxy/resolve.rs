//! Asking for the addresses of a host without waiting for the answer.

use lasthop_signals::Node;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A resolver. Its file becomes readable when there are answers.
pub(crate) struct Resolver {
    bell: Arc<EventFd>,
    answers: (Sender<Answer>, Receiver<Answer>),
    /// Names that are being asked for, by station: in a new session a station still has its old questions.
    open: BTreeMap<Node, usize>,
}

/// The addresses for one stream of one session.
pub(crate) struct Answer {
    pub(crate) session: u32,
    pub(crate) stream: u32,
    /// Empty if the host has none.
    pub(crate) addresses: Vec<SocketAddr>,
    /// The station for which a name was asked for.
    asked: Option<Node>,
}

/// More names at once for a station are answered with nothing: one station cannot use up what all need.
const MOST: usize = 16;
/// Nor can all together use up the process's threads.
const MOST_IN_ALL: usize = 256;

impl Resolver {
    pub(crate) fn new() -> io::Result<Resolver> {
        let bell = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        Ok(Resolver { bell: Arc::new(bell), answers: channel(), open: BTreeMap::new() })
    }

    /// Asks for a stream of a station's session. An address needs no asking, but the answer comes the same way.
    pub(crate) fn ask(&mut self, station: Node, (session, stream): (u32, u32), host: &str, port: u16) {
        let (sender, bell) = (self.answers.0.clone(), Arc::clone(&self.bell));
        let answer = move |asked, addresses| {
            // Nobody may be left to hear it.
            let _ = sender.send(Answer { session, stream, addresses, asked });
            let _ = bell.write(1);
        };
        if let Ok(address) = host.parse::<IpAddr>() {
            return answer(None, vec![SocketAddr::new(address, port)]);
        }
        let of_station = self.open.get(&station).copied().unwrap_or(0);
        if of_station >= MOST || self.open.values().sum::<usize>() >= MOST_IN_ALL {
            return answer(None, Vec::new());
        }
        self.open.insert(station, of_station + 1);
        let (host, otherwise) = (host.to_owned(), answer.clone());
        // The system's resolver blocks, so it gets a thread; those are few, and end with their question.
        let asking = std::thread::Builder::new().spawn(move || {
            let addresses = (host.as_str(), port).to_socket_addrs().map(Iterator::collect).unwrap_or_default();
            answer(Some(station), addresses);
        });
        if asking.is_err() {
            otherwise(Some(station), Vec::new());
        }
    }

    /// The next answer. After the last one the bell is silent until there is another.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let answer = self.next(|bell| _ = bell.read())?;
        if let Some(Entry::Occupied(mut open)) = answer.asked.map(|station| self.open.entry(station)) {
            *open.get_mut() -= 1;
            if *open.get() == 0 {
                open.remove();
            }
        }
        Some(answer)
    }

    /// Silenced before the last look: a later answer rings again, and an earlier one is seen by that look.
    fn next(&self, silence: impl FnOnce(&EventFd)) -> Option<Answer> {
        let next = || self.answers.1.try_recv().ok();
        next().or_else(|| {
            silence(&self.bell);
            next()
        })
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

    /// So many answers, once they are there.
    fn answers(resolver: &mut Resolver, count: usize) -> Vec<Answer> {
        let mut answers: Vec<Answer> = Vec::new();
        for _ in 0..10_000 {
            if answers.len() == count {
                break;
            }
            match resolver.answer() {
                Some(answer) => answers.push(answer),
                None => std::thread::sleep(std::time::Duration::from_millis(1)),
            }
        }
        assert_eq!(answers.len(), count);
        answers
    }

    #[test]
    fn a_station_that_asks_too_much_leaves_others_their_answers() {
        let mut resolver = Resolver::new().expect("an eventfd");
        // Names of this machine, which no network is asked for; answers are only taken afterwards.
        for stream in 0..MOST as u32 + 5 {
            resolver.ask(Node(1), (1, stream), "localhost", 7);
        }
        resolver.ask(Node(2), (2, 0), "localhost", 7);
        let answers = answers(&mut resolver, MOST + 6);
        let refused = answers.iter().filter(|answer| answer.session == 1 && answer.stream >= MOST as u32);
        assert!(refused.clone().count() == 5 && refused.into_iter().all(|answer| answer.addresses.is_empty()));
        assert!(answers.iter().any(|answer| answer.session == 2 && !answer.addresses.is_empty()), "the other's");
        assert!(resolver.open.is_empty());
        resolver.ask(Node(1), (1, 0), "192.0.2.1", 7);
        assert!(resolver.answer().is_some_and(|answer| answer.addresses.len() == 1), "it may ask again");
    }

    #[test]
    fn an_answer_just_before_the_eventfd_is_read_is_not_lost() {
        let resolver = Resolver::new().expect("an eventfd");
        let found = resolver.next(|bell| {
            let answer = Answer { session: 1, stream: 2, addresses: Vec::new(), asked: None };
            resolver.answers.0.send(answer).expect("a receiver");
            bell.write(1).and_then(|_| bell.read()).expect("an eventfd");
        });
        assert_eq!(found.map(|answer| (answer.session, answer.stream)), Some((1, 2)));
    }

    #[test]
    fn addresses_need_no_lookup_and_a_new_session_shares_the_limit() {
        let mut resolver = Resolver::new().expect("an eventfd");
        let addresses = MOST_IN_ALL as u32 + 1;
        for stream in 0..addresses {
            resolver.ask(Node(1), (1, stream), if stream % 2 == 0 { "192.0.2.1" } else { "2001:db8::1" }, 7);
        }
        for stream in 0..MOST as u32 {
            resolver.ask(Node(1), (1, addresses + stream), "localhost", 7);
        }
        resolver.ask(Node(1), (2, 0), "localhost", 7);
        resolver.ask(Node(1), (2, 1), "192.0.2.1", 7);
        let answers = answers(&mut resolver, addresses as usize + MOST + 2);
        let of_old = |answer: &&Answer| answer.session == 1;
        assert!(answers.iter().filter(of_old).all(|answer| !answer.addresses.is_empty()), "names beside addresses");
        let of_new = |stream| answers.iter().find(|answer| (answer.session, answer.stream) == (2, stream));
        assert_eq!([0, 1].map(|stream| of_new(stream).map(|answer| answer.addresses.len())), [Some(0), Some(1)]);
        assert!(resolver.open.is_empty());
    }
}
