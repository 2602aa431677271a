//! The agent's loop: probes in, answers out.

use super::config::{Config, Tally};
use super::probe::{LEN, PACKET, Probe};
use crate::service::counters::account;
use crate::service::poll::{Poll, Ready};
use crate::service::privileges::{self, Account};
use crate::service::run_loop::{self, Turns};
use crate::service::spin_sleeper::Until;
use crate::service::status::Shown;
use crate::service::{self, Error, Stop, clock, device, random, system};
use lasthop_laws::HopLaw;
use lasthop_units::{Span, Time};
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

/// How often a neighbour is asked.
const ASK: Span = Span::from_millis(100);
/// How often the status is shown.
const SHOW: Span = Span::from_millis(500);
/// Questions to which an answer counts.
const OPEN: usize = 64;
/// Datagrams looked at in one go.
const BUDGET: u32 = 256;

/// An agent with its socket open and its privileges given up.
pub struct Echo {
    config: Config,
    law: Box<dyn HopLaw>,
    /// Addresses of the interface, with the masks of their networks.
    networks: Vec<(Ipv4Addr, Ipv4Addr)>,
    socket: UdpSocket,
    poll: Poll,
    shown: Shown<()>,
    /// When the next answer may leave.
    free: Time,
    /// When it asks and shows next.
    ask: Time,
    show: Time,
    /// The number of the next question.
    number: u64,
    /// The latest questions without an answer: their numbers, and when they were asked.
    open: VecDeque<(u64, Time)>,
    tally: Tally,
}

impl Echo {
    /// Opens everything that needs privileges, and gives those up.
    ///
    /// # Errors
    /// [`Error`].
    pub fn open(config: &Config) -> Result<Echo, Error> {
        let account = config.user.as_deref().map(Account::find).transpose()?;
        let law = config.law.hop()?;
        let index = device::link(&config.iface)?.index.cast_signed();
        let shown = Shown::claim("echo", (&config.iface, index), config.viewers.clone())?;
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, config.port));
        let socket = socket(&config.iface, any).map_err(service::address("probes need UDP", any))?;
        let poll = Poll::new().map_err(system("epoll"))?;
        poll.add_level(&socket, 0).map_err(system("epoll"))?;
        if config.drop_privileges {
            privileges::drop_all(account.as_ref())?;
        }
        shown.serve()?;
        let (networks, now) = (networks(&config.iface), clock::now());
        let (number, open) = (u64::from_be_bytes(random()?), VecDeque::new());
        let (config, tally) = (config.clone(), Tally::default());
        Ok(Echo { config, law, networks, socket, poll, shown, free: now, ask: now, show: now, number, open, tally })
    }

    /// Works until `stop` is set.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn run(mut self, stop: &Stop) -> Result<Tally, Error> {
        run_loop::run(&mut self, stop)?;
        Ok(self.tally)
    }

    fn ask(&mut self, now: Time, to: Ipv4Addr) {
        self.open.truncate(OPEN - 1);
        self.open.push_front((self.number, now));
        let sent = self.socket.send_to(&Probe::Ask(self.number).bytes(), (to, self.config.port));
        self.number = self.number.wrapping_add(1);
        self.tally.asked += u64::from(sent.is_ok());
    }

    fn answered(&mut self, now: Time, number: u64) {
        let place = self.open.iter().position(|(asked, _)| *asked == number);
        let Some((_, at)) = place.and_then(|place| self.open.remove(place)) else {
            self.tally.refused += 1;
            return;
        };
        self.tally.heard += 1;
        self.tally.longest_round_trip_us = self.tally.longest_round_trip_us.max(now.since(at).as_micros());
    }

    /// Answers, unless the law has it wait: a probe is worth no queue.
    fn answer(&mut self, now: Time, number: u64, to: SocketAddr) {
        if now < self.free {
            self.tally.spared += 1;
            return;
        }
        let mut gap = Span::ZERO;
        self.law.decide(now, &mut |_, decision| {
            gap = decision.pacing.and_then(|rate| rate.time_for(PACKET)).unwrap_or(Span::ZERO);
        });
        self.free = now + gap;
        let sent = self.socket.send_to(&Probe::Answer(number).bytes(), to);
        self.tally.answered += u64::from(sent.is_ok());
    }

    fn is_neighbour(&self, from: Ipv4Addr) -> bool {
        let near = |(own, mask): &(Ipv4Addr, Ipv4Addr)| *own != from && *own & *mask == from & *mask;
        self.config.ask == Some(from) || self.networks.iter().any(near)
    }
}

impl Turns for Echo {
    type Error = Error;

    fn poll(&mut self) -> &mut Poll {
        &mut self.poll
    }

    fn service(&mut self, now: Time) -> Result<(), Error> {
        if self.show <= now {
            self.show = now + SHOW;
            self.shown.show(|| ((), account(&self.tally)));
        }
        if let Some(to) = self.config.ask.filter(|_| self.ask <= now) {
            self.ask = now + ASK;
            self.ask(now, to);
        }
        Ok(())
    }

    fn next(&mut self, _: Time) -> Until {
        if self.config.ask.is_some() { self.show.min(self.ask).into() } else { self.show.into() }
    }

    fn on_ready(&mut self, now: Time, _: Ready) -> Result<(), Error> {
        let mut buffer = [0; LEN + 1];
        for _ in 0..BUDGET {
            let Ok((len, SocketAddr::V4(from))) = self.socket.recv_from(&mut buffer) else { break };
            let probe = Probe::parse(&buffer[..len]).filter(|_| self.is_neighbour(*from.ip()));
            match probe {
                Some(Probe::Ask(number)) => self.answer(now, number, from.into()),
                Some(Probe::Answer(number)) if Some(*from.ip()) == self.config.ask => self.answered(now, number),
                _ => self.tally.refused += 1,
            }
        }
        Ok(())
    }
}

/// The IPv4 addresses of an interface, with the masks of their networks.
fn networks(iface: &str) -> Vec<(Ipv4Addr, Ipv4Addr)> {
    let found = getifaddrs().into_iter().flatten().filter(|found| found.interface_name == iface);
    let ip = |address: Option<SockaddrStorage>| Some(address?.as_sockaddr_in()?.ip());
    found.filter_map(|found| Some((ip(found.address)?, ip(found.netmask)?))).collect()
}

fn socket(iface: &str, address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    socket.bind_device(Some(iface.as_bytes()))?;
    // Probes and answers are for neighbours.
    socket.set_ttl_v4(1)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}
