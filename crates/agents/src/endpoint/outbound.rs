//! The sending end of a stream, with its socket.

use super::calling::{Call, Calling};
use super::choice::Law;
use super::error::Failure;
use super::own_delay::{OwnDelay, held};
use super::seals::Seals;
use crate::service::poll::Poll;
use crate::service::spin_sleeper::{SpinSleeper, Until};
use crate::service::{self, Error, clock, random, system};
use crate::tunnel::Key;
use crate::tunnel::link::Link;
use crate::tunnel::path::Path;
use lasthop_transport::stream::Figures;
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::datagram::UNKNOWN_SIZE;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

/// One part in so many of the time spent waiting may be spent watching the clock.
const WATCHING: u64 = 20;
/// Datagrams that are put together before they are handed to the kernel.
const TRAIN: usize = 40;
/// Batches that are received before anything is sent again.
const BATCHES: usize = 8;

/// Octets of memory beyond which the host's own queue is given no more: some sixty full packets. What the law lets go beyond that waits here,
/// where it is not dropped (as TCP small queues of Linux, `tcp_small_queue_check`).
const HELD: usize = 160 << 10;
/// How soon it is looked at again then.
const HELD_AGAIN: Span = Span::from_micros(500);

/// What a stream is sent with.
#[derive(Clone, Debug)]
pub struct OutboundOptions {
    /// The law, and by that the transport.
    pub law: Law,
    /// The key that the receiver has too.
    pub key: Option<Key>,
    /// Octets that the stream will have, if that is known: the receiver shows it.
    pub size: Option<u64>,
    /// How long to wait for a sign of the receiver.
    pub patience: Span,
}

/// The sending end of a stream.
pub struct Outbound {
    link: Link,
    path: Path,
    poll: Poll,
    sleeper: SpinSleeper,
    calling: Calling,
    own: OwnDelay,
    train: Vec<u8>,
    /// The most that may be written and not yet sent, and whether a write was cut short by that.
    ahead: Option<u64>,
    short: bool,
    /// The host's queue was full when something was to be sent last.
    full: bool,
}

impl Outbound {
    /// Begins to call the receiver at `to`. What is written waits until it has answered.
    ///
    /// # Errors
    /// [`Error`], if there is no socket to be had or the law cannot be built. That nobody answers shows later, by [`Outbound::end`].
    pub fn connect(to: SocketAddr, options: &OutboundOptions) -> Result<Outbound, Error> {
        let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let address = SocketAddr::new(any, 0);
        let link = Link::bind(address).map_err(service::address("cannot send from", address))?;
        let poll = Poll::new().map_err(system("epoll"))?;
        poll.add_level(&link, 0).map_err(system("epoll"))?;
        let (now, mut path) = (clock::now(), Path::new(to));
        path.look(now, || link.address());
        let random: [u8; 32] = random()?;
        let part = |from: usize| u64::from_be_bytes(random[from..from + 8].try_into().expect("eight octets"));
        let (connection, seed) = (part(16) as u32, part(24));
        let datagram = path.size().datagram() - Seals::overhead(options.key.as_ref());
        let stream = options.law.sender(now, connection, seed, datagram)?;
        let call = Call {
            connection,
            nonce: random[..16].try_into().expect("sixteen octets"),
            transport: options.law.transport(),
            size: options.size.unwrap_or(UNKNOWN_SIZE),
            key: options.key.clone(),
            patience: options.patience,
        };
        let (calling, own) = (Calling::new(now, call, stream), OwnDelay::default());
        Ok(Outbound {
            link,
            path,
            poll,
            sleeper: SpinSleeper::new(WATCHING),
            calling,
            own,
            train: Vec::new(),
            ahead: None,
            short: false,
            full: false,
        })
    }

    /// Takes as many octets as there is room for, and says how many those are.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let ahead = self.ahead.map_or(u64::MAX, |ahead| ahead.saturating_sub(self.calling.unsent()));
        let room = usize::try_from(ahead).unwrap_or(usize::MAX);
        let count = self.calling.write(&bytes[..bytes.len().min(room)]);
        self.short = count == room && count < bytes.len();
        count
    }

    /// From now on no more is taken than so many octets ahead of what has been sent (as `TCP_NOTSENT_LOWAT` of Linux), two at least: what is
    /// written goes into the network soon. [`Outbound::step`] then ends early when half of that has been sent.
    pub fn limit_unsent(&mut self, most: Bytes) {
        self.ahead = Some(most.get().max(2));
    }

    /// True if the application was cut short, and what it has written is about to run out.
    fn runs_dry(&self) -> bool {
        self.short && self.ahead.is_some_and(|ahead| self.calling.unsent() <= ahead / 2)
    }

    /// The stream ends with what was written.
    pub fn close(&mut self) {
        self.calling.close();
    }

    /// Gives up, and tells the receiver.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn stop(&mut self) -> Result<(), Error> {
        self.calling.stop();
        self.transmit(clock::now())
    }

    /// How the stream has ended, once it has: well if the receiver has kept everything.
    pub fn end(&self) -> Option<&Result<(), Failure>> {
        self.calling.end()
    }

    /// True once the receiver has answered.
    pub fn is_open(&self) -> bool {
        self.calling.is_open()
    }

    /// [`Outbound::step`] ends early, too, when there is something to read from `file`.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn watch(&self, file: &impl AsFd) -> Result<(), Error> {
        self.poll.add_level(file, 1).map_err(system("epoll"))
    }

    /// What there is to tell of the stream.
    pub fn figures(&self) -> Figures {
        self.calling.figures()
    }

    /// Datagrams that the kernel did not take.
    pub fn unsent(&self) -> u64 {
        self.path.unsent().count
    }

    /// Lets datagrams go and come until `until`, or until something has come before.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn step(&mut self, until: Time) -> Result<(), Error> {
        self.transmit(clock::now())?;
        if self.runs_dry() {
            return Ok(());
        }
        let now = clock::now();
        let due = if self.full { Some(now + HELD_AGAIN) } else { self.calling.next_timeout() };
        if due.is_none_or(|due| due > now) {
            let about = until.max(now);
            let waited = self.sleeper.wait(&mut self.poll, clock::now, Until { due, about });
            waited.map_err(system("epoll"))?;
        }
        for _ in 0..BATCHES {
            let count = self.link.receive().map_err(system("receive datagrams"))?;
            let now = clock::now();
            for n in 0..count {
                let (bytes, arrival) = self.link.datagram(n);
                if arrival.from.is_some_and(|from| same(from, self.path.to())) {
                    self.calling.on_datagram(now, bytes);
                }
            }
            if count == 0 {
                break;
            }
        }
        let now = clock::now();
        self.own.look(now, &self.link);
        self.calling.set_own_delay(self.own.delay(now));
        self.calling.on_timeout(now);
        self.transmit(now)
    }

    fn transmit(&mut self, now: Time) -> Result<(), Error> {
        let full = self.path.size().datagram();
        loop {
            self.full = held(&self.link) > HELD;
            if self.full {
                return Ok(());
            }
            let (mut count, mut from) = (0, 0);
            // A train's datagrams are as long as each other, but for the last.
            while count < TRAIN && self.calling.poll_transmit(now, &mut self.train) {
                count += 1;
                let len = self.train.len() - from;
                from = self.train.len();
                if len != full {
                    break;
                }
            }
            if count == 0 {
                return Ok(());
            }
            let looked = self.own.begin(now, &self.link, count as u64);
            let sent = self.link.send_train(&mut self.path, &self.train);
            if looked {
                self.own.end(&self.link);
            }
            self.train.clear();
            sent.map_err(system("send datagrams"))?;
        }
    }
}

/// The same address, whichever family it is shown in.
fn same(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() == other.port() && one.ip().to_canonical() == other.ip().to_canonical()
}

impl AsFd for Outbound {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_ahead_of_the_network_than_was_said() {
        for law in ["adaptive", "cubic"] {
            let law = Law::named(law).expect("a law");
            let options = OutboundOptions { law, key: None, size: None, patience: Span::from_secs(15) };
            // Nobody is asked: nothing leaves before `step`.
            let mut outbound = Outbound::connect(([127, 0, 0, 1], 9).into(), &options).expect("a socket");
            assert_eq!((outbound.write(&[1; 5_000]), outbound.runs_dry()), (5_000, false), "nothing was said");
            outbound.limit_unsent(Bytes::new(12_000));
            assert_eq!((outbound.write(&[1; 3_000]), outbound.write(&[1; 9_000])), (3_000, 4_000));
            assert_eq!(outbound.write(&[1; 100]), 0);
            assert!(!outbound.runs_dry(), "12 000 octets wait");
            outbound.limit_unsent(Bytes::new(30_000));
            assert!(outbound.runs_dry(), "less than half of what may wait");
            assert_eq!((outbound.write(&[1; 100]), outbound.runs_dry()), (100, false), "it was not cut short");
        }
    }
}
