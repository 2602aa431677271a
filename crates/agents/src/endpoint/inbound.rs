//! The receiving end of a stream, with its socket.

use super::error::Failure;
use super::listening::{Event, Listening};
use crate::service::poll::Poll;
use crate::service::spin_sleeper::{SpinSleeper, Until};
use crate::service::{self, Error, clock, random, system};
use crate::tunnel::Key;
use crate::tunnel::link::Link;
use crate::tunnel::path::Path;
use lasthop_transport::stream::Figures;
use lasthop_units::{Span, Time};
use lasthop_wire::tunnel::PacketSize;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// One part in so many of the time spent waiting may be spent watching the clock: what a receiver sends may be a little late.
const WATCHING: u64 = 1000;

/// What streams are received with.
#[derive(Clone, Debug)]
pub struct InboundOptions {
    /// Where to listen.
    pub bind: SocketAddr,
    /// The key that senders must have.
    pub key: Option<Key>,
    /// How long to wait for a sign of the sender.
    pub patience: Span,
}

/// Listens, and is the receiving end of one stream at a time.
pub struct Inbound {
    link: Link,
    poll: Poll,
    sleeper: SpinSleeper,
    listening: Listening,
    path: Path,
    out: Vec<u8>,
}

impl Inbound {
    /// Listens.
    ///
    /// # Errors
    /// [`Error`], if the address cannot be had.
    pub fn bind(options: &InboundOptions) -> Result<Inbound, Error> {
        let address = options.bind;
        let link = Link::bind(address).map_err(service::address("cannot listen at", address))?;
        let poll = Poll::new().map_err(system("epoll"))?;
        poll.add_level(&link, 0).map_err(system("epoll"))?;
        let datagram = PacketSize::of_path(address.is_ipv6(), 1500).datagram();
        let listening = Listening::new(random()?, options.key.clone(), options.patience, datagram);
        let (sleeper, path) = (SpinSleeper::new(WATCHING), Path::new(address));
        Ok(Inbound { link, poll, sleeper, listening, path, out: Vec::new() })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn address(&self) -> Result<SocketAddr, Error> {
        self.link.address().map_err(system("the address of a socket"))
    }

    /// Moves what has come in order into `out`, and says how much that is.
    pub fn read(&mut self, out: &mut [u8]) -> usize {
        self.listening.read(clock::now(), out)
    }

    /// The application has kept everything: the answer to [`Event::Complete`].
    pub fn kept(&mut self) {
        self.listening.kept(clock::now());
    }

    /// The application cannot keep what comes; the sender is told.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn cannot_keep(&mut self) -> Result<(), Error> {
        self.listening.cannot_keep(clock::now());
        self.transmit(clock::now())
    }

    /// This end was told to stop; the sender is told.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn stop(&mut self) -> Result<(), Error> {
        self.listening.stop(clock::now());
        self.transmit(clock::now())
    }

    /// [`Inbound::step`] ends early, too, when there is something to read from `file`.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn watch(&self, file: &impl AsFd) -> Result<(), Error> {
        self.poll.add_level(file, 1).map_err(system("epoll"))
    }

    /// What there is to tell of the present stream; `None` without one.
    pub fn figures(&self) -> Option<Figures> {
        self.listening.figures()
    }

    /// Datagrams that were refused so far: of nobody's connection, forged, or repeated.
    pub fn refused(&self) -> u64 {
        self.listening.refused()
    }

    /// Lets datagrams come and go until `until`, or until something has come before; says what has happened to the connection. Something may
    /// be there to read after each call.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn step(&mut self, until: Time) -> Result<Option<Event>, Error> {
        if let Some(event) = self.listening.event() {
            return Ok(Some(event));
        }
        let now = clock::now();
        self.listening.on_timeout(now);
        self.transmit(now)?;
        if let Some(event) = self.listening.event() {
            return Ok(Some(event));
        }
        let due = self.listening.next_timeout();
        if due.is_none_or(|due| due > now) {
            let about = until.max(now);
            let waited = self.sleeper.wait(&mut self.poll, clock::now, Until { due, about });
            waited.map_err(system("epoll"))?;
        }
        let count = self.link.receive().map_err(system("receive datagrams"))?;
        let now = clock::now();
        for n in 0..count {
            let (bytes, arrival) = self.link.datagram(n);
            if let Some(from) = arrival.from {
                self.listening.on_datagram(now, from, bytes);
            }
        }
        self.listening.on_timeout(now);
        self.transmit(now)?;
        Ok(self.listening.event())
    }

    fn transmit(&mut self, now: Time) -> Result<(), Error> {
        while let Some(to) = self.listening.poll_transmit(now, &mut self.out) {
            self.path.lead_to(to);
            let sent = self.link.send_train(&mut self.path, &self.out);
            self.out.clear();
            sent.map_err(system("send datagrams"))?;
        }
        Ok(())
    }
}

impl AsFd for Inbound {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}

/// True for what ends a receiver that serves one stream.
impl Event {
    /// How the stream has ended, if it has.
    pub fn ended(&self) -> Option<Result<(), Failure>> {
        match self {
            Event::Over => Some(Ok(())),
            Event::Failed(why) => Some(Err(why.clone())),
            Event::Begun(..) | Event::Complete => None,
        }
    }
}
