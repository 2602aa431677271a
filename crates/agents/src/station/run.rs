//! The station's loop.

use super::cell::Cell;
use super::config::{Config, Summary};
use super::doors::{Doors, Guest, Wanted};
use super::error::Error;
use super::frames::Frames;
use super::log;
use super::search::Search;
use super::silence_reporter::{LastReception, SilenceReporter};
use super::slots::Slots;
use super::tunnel::{Answered, Tunnel};
use crate::service::latency_histogram::LatencyHistogram;
use crate::service::log::Log;
use crate::service::poll::{Poll, Ready};
use crate::service::privileges::Account;
use crate::service::rate_limited_log::RateLimitedLog;
use crate::service::run_loop::{self, Turns};
use crate::service::spin_sleeper::Until;
use crate::service::{self, Stop, clock, files, system};
use crate::tunnel::keys;
use crate::tunnel::link::Link;
use crate::tunnel::path::Path;
use lasthop_signals::{Arrival, Signal};
use lasthop_transport::tunnel::Delay;
use lasthop_units::{Bytes, Span, Time, count};
use lasthop_wire::tunnel::{Datagram, LEAST_DATAGRAM, OpenResult};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Serves local programs until `stop` is set.
///
/// # Errors
/// [`Error`] if it cannot start, or if the kernel takes away what it needs. A proxy that is not there is no error.
pub fn run(config: &Config, stop: &Stop) -> Result<Summary, Error> {
    Station::open(config)?.run(stop)
}

/// A station's agent with its sockets open and its privileges given up.
pub struct Station {
    config: Config,
    link: Link,
    /// To the proxy.
    path: Path,
    /// Until it has answered.
    search: Option<Search>,
    poll: Poll,
    doors: Doors,
    tunnel: Tunnel,
    silence: SilenceReporter,
    begun: RateLimitedLog<SocketAddr>,
    refused: RateLimitedLog<()>,
    tells: Tells,
    hop: [LatencyHistogram; 2],
    data: [LatencyHistogram; 2],
    log: Option<Log>,
    scratch: Vec<u8>,
    pinged: Time,
    summary: Summary,
}

/// What it tells the proxy of.
enum Tells {
    Slots(Box<Slots>),
    Cell(Box<Cell>),
}

const UDP: u64 = 0;
const LISTENER: u64 = 1 << 32;
const LOCAL: u64 = 2 << 32;
const PIPE: u64 = 3 << 32;
const LOG: u64 = 4 << 32;
const PING: Span = Span::from_millis(500);
const PRIORITY: i32 = 10;

impl Station {
    /// Opens everything that needs privileges, and gives those up.
    ///
    /// # Errors
    /// [`Error`].
    pub fn open(config: &Config) -> Result<Station, Error> {
        config.validate()?;
        let account = config.user.as_deref().map(Account::find).transpose()?;
        files::raise_limit();
        let (node, key) = keys::station_key(&config.key)?;
        let log = config.log.as_deref().map(|path| Log::create(path, config.say)).transpose()?;
        let poll = Poll::new().map_err(system("epoll"))?;
        let (search, link) = Search::begin(clock::now(), config.proxies(), |to| link_to(to, &poll))?;
        let others: Vec<SocketAddr> = config.proxies().collect();
        let wanted = Wanted {
            listen: config.listen,
            forwards: &config.forwards,
            transparent: config.transparent.as_deref(),
            others: &others,
        };
        let doors = Doors::open(clock::now(), &wanted, &poll, [LISTENER, LOCAL])?;
        let now = clock::now();
        let tells = match &config.cell {
            Some(logs) => Tells::Cell(Box::new(Cell::open(logs, now, &poll, LOG, config.say)?)),
            None => {
                let frames = Frames::open(config.monitor.as_deref(), config.say)?;
                (config.say)(&match &config.monitor {
                    Some(name) => format!("frames are told from what {name} shows"),
                    None => "frames are told from the arrival times of packets: no --monitor".to_owned(),
                });
                Tells::Slots(Box::new(Slots::open(config, frames, node, now)))
            }
        };
        clock::sharpen_timers();
        if config.realtime {
            clock::ask_for_realtime(PRIORITY, config.say);
        }
        if config.drop_privileges {
            crate::service::privileges::drop_all(account.as_ref())?;
        }
        doors.check()?;
        let now = clock::now();
        let tunnel = Tunnel::new(node, key, config.renew, (now.as_nanos() >> 20) as u32, config.cell.is_some());
        Ok(Station {
            tells,
            config: config.clone(),
            link,
            path: Path::new(search.tried()),
            search: Some(search),
            poll,
            doors,
            tunnel,
            silence: SilenceReporter::new(now),
            begun: RateLimitedLog::new(),
            refused: RateLimitedLog::new(),
            hop: Default::default(),
            data: Default::default(),
            log,
            scratch: vec![0; 256 << 10],
            pinged: now,
            summary: Summary::default(),
        })
    }

    /// Where local programs reach it: the proxy port and then the forwarded ones, in order.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, Error> {
        Ok(self.doors.addresses()?)
    }

    /// Serves until `stop` is set.
    ///
    /// # Errors
    /// [`Error::Service`].
    pub fn run(mut self, stop: &Stop) -> Result<Summary, Error> {
        run_loop::run(&mut self, stop)?;
        // First of all nobody is led here any more.
        self.doors.release();
        self.tunnel.end(clock::now(), &self.link, &mut self.path, &mut self.summary);
        let quantiles = |histogram: &LatencyHistogram| histogram.quantile(0.5).zip(histogram.quantile(0.95));
        self.summary.hop_delay = quantiles(&self.hop[1]);
        self.summary.data_delay = quantiles(&self.data[1]);
        self.summary.unsent = self.path.unsent();
        if let Tells::Cell(cell) = &self.tells {
            self.summary.cell = Some(cell.counts());
        }
        self.summary.log_error = self.log.take().and_then(Log::finish);
        Ok(self.summary)
    }

    fn receive(&mut self, now: Time) -> Result<(), Error> {
        let count = self.link.receive().map_err(system("receiving datagrams"))?;
        for n in 0..count {
            let (bytes, arrival) = self.link.datagram(n);
            let accepted = match Datagram::parse(bytes) {
                Ok(Datagram::Sealed { session: keys, number, sealed }) => {
                    let sent = self.tunnel.session().map(|session| session.on_sealed(now, keys, number, sealed));
                    let sent = sent.and_then(Result::ok);
                    if let Some(sent) = sent {
                        let (at, len) = (arrival.at.unwrap_or(now), self.path.size().ip_len(bytes.len()));
                        let arrival = Arrival { at, sent, len: Bytes::new(len as u64) };
                        match &mut self.tells {
                            // Shorter ones are never full.
                            Tells::Slots(slots) if bytes.len() >= LEAST_DATAGRAM => slots.on_arrival(now, arrival),
                            Tells::Slots(_) => {}
                            Tells::Cell(cell) => cell.on_arrival(arrival),
                        }
                    }
                    sent.is_some()
                }
                Ok(Datagram::Response { session, message }) => {
                    let answered = self.tunnel.on_response(now, session, message, &mut self.summary);
                    if answered == Answered::Begun {
                        self.begun.add(now, self.path.to());
                        match &mut self.tells {
                            Tells::Slots(slots) => slots.begin(now),
                            Tells::Cell(cell) => {
                                cell.begin(now)?;
                                // The first packet of the session says so.
                                cell.look(now, &self.poll, self.tunnel.session());
                            }
                        }
                        self.search = None;
                    }
                    answered != Answered::Refused
                }
                Ok(Datagram::Challenge { session, challenge, proof }) => {
                    self.tunnel.on_challenge(now, session, challenge, proof)
                }
                Ok(Datagram::Initiation { .. }) | Err(_) => false,
            };
            self.summary.refused += u64::from(!accepted);
        }
        Ok(())
    }

    /// Tries the next address of the proxy, when this one has had its time.
    fn search(&mut self, now: Time) {
        let Some(search) = &mut self.search else { return };
        let Some(link) = search.look(now, |to| link_to(to, &self.poll)) else { return };
        self.path.lead_to(search.tried());
        self.poll.remove(&self.link);
        self.link = link;
        self.tunnel.ask_anew();
    }

    fn connect(&mut self, now: Time, (local, target): Guest) {
        match self.tunnel.session() {
            Some(session) => session.open(local, &target),
            None => {
                self.refused.add(now, ());
                drop(local.answer(OpenResult::NetworkUnreachable));
            }
        }
    }

    /// Leads programs' connections here as long as that does them good.
    fn divert(&mut self, now: Time) -> Result<(), Error> {
        let session = self.tunnel.session();
        let heard = session.as_ref().map(|session| session.heard);
        let forbidden = session.map(|session| std::mem::take(&mut session.forbidden)).unwrap_or_default();
        Ok(self.doors.divert(now, heard, forbidden)?)
    }

    /// Says what is known of a proxy that is silent.
    fn listen_for_the_proxy(&mut self, now: Time) {
        let (refused, unsent) = (self.summary.refused, self.path.unsent());
        let heard = self.tunnel.session().map(|session| session.heard);
        if let Some(line) = self.silence.look(now, LastReception { proxy: self.path.to(), heard, refused, unsent }) {
            (self.config.say)(&line);
        }
        if let Some((number, proxy)) = self.begun.take(now) {
            (self.config.say)(&format!("{} begun, the last with the proxy at {proxy}", count(number, "session")));
        }
        if let Some((number, ())) = self.refused.take(now) {
            (self.config.say)(&format!("{} refused: there is no session with a proxy", count(number, "connection")));
        }
    }

    /// Tells the proxy what there is to tell, and writes a line of the log when that is due.
    fn tell(&mut self, now: Time) -> Result<(), Error> {
        let mut session = self.tunnel.session();
        let spreads = [&self.hop[0], &self.data[0]];
        match &mut self.tells {
            Tells::Slots(slots) => {
                slots.look(now, session.as_deref_mut())?;
                if !slots.is_over(now) {
                    return Ok(());
                }
                let now = clock::now();
                let told = slots.end(now, session.as_deref_mut())?;
                if let (Some(log), Some((end, account)), Some(session)) = (&mut self.log, told, session) {
                    log::slot(log, end, &account, slots.missed(), spreads, session.endpoint.clock_offset(now));
                }
            }
            Tells::Cell(cell) => {
                cell.look(now, &self.poll, session.as_deref_mut());
                if !cell.takes_line(now) {
                    return Ok(());
                }
                if let (Some(log), Some(session)) = (&mut self.log, session) {
                    log::cell(log, now, cell, &session.endpoint, spreads);
                }
            }
        }
        self.hop[0].clear();
        self.data[0].clear();
        Ok(())
    }
}

impl Turns for Station {
    type Error = Error;

    fn poll(&mut self) -> &mut Poll {
        &mut self.poll
    }

    fn service(&mut self, now: Time) -> Result<(), Error> {
        self.doors.look_after(now, &self.poll);
        self.divert(now)?;
        self.listen_for_the_proxy(now);
        self.search(now);
        let sending = system("sending datagrams");
        self.tunnel.look(now, &self.link, &mut self.path, &mut self.summary).map_err(sending)?;
        if let Some(session) = self.tunnel.session() {
            session.events(now, &self.config.serve, &self.poll, |stream| PIPE | u64::from(stream));
            for delay in session.endpoint.delays() {
                match delay {
                    Delay::Hop(span) => {
                        self.hop.iter_mut().for_each(|histogram| histogram.add(span));
                        if let Tells::Slots(slots) = &mut self.tells {
                            slots.sense(now, &Signal::OneWay(span));
                        }
                    }
                    Delay::Data(span) => self.data.iter_mut().for_each(|histogram| histogram.add(span)),
                }
            }
            if now.since(self.pinged) >= PING {
                self.pinged = now;
                session.endpoint.ping();
            }
        }
        self.tell(now)?;
        let Some(session) = self.tunnel.session() else { return Ok(()) };
        Ok(session.service(now, &self.link, &mut self.path, &mut self.scratch).map_err(sending)?)
    }

    fn next(&mut self, now: Time) -> Until {
        let session = self.tunnel.session().map(|session| {
            // What has ended is looked at at once.
            let over = if session.closed { now } else { Time::MAX };
            session.endpoint.next_timeout(now).unwrap_or(Time::MAX).min(self.pinged + PING).min(over)
        });
        let tunnel = self.tunnel.next_wake().min(session.unwrap_or(Time::MAX));
        let tells = match &self.tells {
            Tells::Slots(slots) => slots.next(now),
            Tells::Cell(cell) => cell.next(now),
        };
        let search = self.search.as_ref().and_then(Search::next_look);
        let times = self.doors.next_look().into_iter().chain(search);
        times.fold(tunnel.min(tells).min(self.silence.next()), Time::min).into()
    }

    fn on_ready(&mut self, now: Time, event: Ready) -> Result<(), Error> {
        let number = event.token as u32;
        match event.token & !u64::from(u32::MAX) {
            UDP => return self.receive(now),
            // What it has to say is read with all that comes.
            LOG => {}
            LISTENER => {
                let guests = self.doors.accept(now, number as usize, &self.poll);
                guests.into_iter().for_each(|guest| self.connect(now, guest));
            }
            LOCAL => {
                let guest = self.doors.listen(number, &self.poll);
                guest.into_iter().for_each(|guest| self.connect(now, guest));
            }
            _ => {
                if let Some(session) = self.tunnel.session() {
                    session.on_ready(now, number, event.readable, event.writable);
                }
            }
        }
        Ok(())
    }
}

/// A socket for datagrams to this address, watched for what comes.
fn link_to(proxy: SocketAddr, poll: &Poll) -> Result<Link, Error> {
    let any: IpAddr = match proxy {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let address = SocketAddr::new(any, 0);
    let link = Link::bind(address).map_err(service::address("cannot send from", address))?;
    poll.add_level(&link, UDP).map_err(system("epoll"))?;
    Ok(link)
}
