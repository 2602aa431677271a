//! The proxy's loop.

use super::config::{Config, Summary};
use super::control::{Control, Decided};
use super::log;
use super::resolve::Resolver;
use super::server;
use super::session::{Ask, Session};
use crate::ap::Stop;
use crate::tunnel::keys::{self, Key};
use crate::tunnel::link::Link;
use crate::tunnel::log::Log;
use crate::tunnel::path::Path;
use crate::tunnel::poll::{Poll, Ready};
use crate::tunnel::punctual::{Punctual, Until};
use crate::tunnel::spread::Spread;
use crate::tunnel::wakeful::Wakeful;
use crate::tunnel::{Error, Sealer, respond};
use crate::tunnel::{clock, files};
use lasthop_laws::Why;
use lasthop_signals::{Node, StationFeedback, StreamReport};
use lasthop_units::{Rate, Span, Time};
use lasthop_wire::tunnel::{Datagram, OpenResult};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Serves stations until `stop` is set, and then lets what is under way arrive.
///
/// # Errors
/// [`Error`] if it cannot start, or if the kernel takes away what it needs.
pub fn run(config: &Config, stop: &Stop) -> Result<Summary, Error> {
    Proxy::open(config)?.run(stop)
}

/// A proxy with its sockets open and its privileges given up.
pub struct Proxy {
    keys: BTreeMap<Node, Key>,
    link: Link,
    poll: Poll,
    resolver: Resolver,
    #[cfg(feature = "bpf")]
    interception: Option<(crate::transparent::Interception, BTreeMap<std::net::Ipv4Addr, Node>)>,
    control: Control,
    log: Option<Log>,
    slack: Span,
    allow_local: bool,
    sessions: BTreeMap<u32, Session>,
    /// The session that counts, by station.
    current: BTreeMap<Node, u32>,
    /// Sessions that no packet has confirmed yet, by station.
    pending: BTreeMap<Node, Pending>,
    next_number: u32,
    scratch: Vec<u8>,
    wake: Option<Time>,
    housekept: Time,
    wakeful: Wakeful,
    /// When something was last seen to wait for its turn.
    waited: Time,
    pacing: Spread,
    summary: Summary,
}

/// A session that a station has asked for and not used yet.
struct Pending {
    number: u32,
    sealer: Sealer,
    /// The initiation's message, and what was answered: the same question gets the same answer.
    question: Vec<u8>,
    answer: Vec<u8>,
    since: Time,
}

const UDP: u64 = u64::MAX;
const RESOLVER: u64 = u64::MAX - 1;
#[cfg(feature = "bpf")]
const INTERCEPTED: u64 = u64::MAX - 2;
/// How often windows are adjusted.
const HOUSEKEEPING: Span = Span::from_millis(2);
/// A station that has been silent for this long has gone.
const SILENCE: Span = Span::from_secs(10);
/// How long what is under way may take to arrive when the proxy stops.
const DRAIN: Span = Span::from_secs(1);
/// A station's handshakes are answered no more often: each costs an exponentiation.
const BETWEEN_HANDSHAKES: Span = Span::from_millis(50);
/// Before the law has said anything of a station.
const FIRST_RATE: Rate = Rate::from_mbit(1);
/// Real-time priority, below that of the kernel's own threads.
const PRIORITY: i32 = 10;
/// One part in so many of all time may be spent watching the clock.
const WATCHING: u64 = 2;
/// Processors are kept awake while packets wait for their turn, and for so long after.
const AWAKE: Span = Span::from_millis(200);

impl Proxy {
    /// Opens everything that needs privileges, and gives those up.
    ///
    /// # Errors
    /// [`Error`].
    pub fn open(config: &Config) -> Result<Proxy, Error> {
        config.validate()?;
        files::raise_limit();
        let keys = keys::proxy_keys(&config.keys)?;
        let control = Control::new(&config.rule)?;
        let log = config.log.as_deref().map(Log::create).transpose()?;
        let address = config.listen;
        let link =
            Link::bind(address).map_err(|source| Error::Address { what: "cannot listen on", address, source })?;
        let poll = Poll::new().map_err(Error::system("epoll"))?;
        let resolver = Resolver::new().map_err(Error::system("eventfd"))?;
        poll.add_level(&link, UDP).map_err(Error::system("epoll"))?;
        poll.add_level(&resolver, RESOLVER).map_err(Error::system("epoll"))?;
        #[cfg(not(feature = "bpf"))]
        if config.transparent.is_some() {
            return Err(crate::ap::Error::NotBuilt.into());
        }
        #[cfg(feature = "bpf")]
        let interception = intercept(config, &poll)?;
        clock::sharpen_timers();
        // Refusal costs accuracy, which the pacing error shows.
        let wakeful = match config.realtime {
            true => {
                clock::become_realtime(PRIORITY);
                Wakeful::open()
            }
            false => Wakeful::none(),
        };
        if config.drop_privileges {
            crate::ap::drop_all_privileges()?;
        }
        let first = u32::from_be_bytes(random()?) >> 2;
        Ok(Proxy {
            keys,
            link,
            poll,
            resolver,
            #[cfg(feature = "bpf")]
            interception,
            control,
            log,
            slack: config.allowance,
            allow_local: config.allow_local,
            sessions: BTreeMap::new(),
            current: BTreeMap::new(),
            pending: BTreeMap::new(),
            next_number: first,
            scratch: vec![0; 256 << 10],
            wake: None,
            housekept: Time::ZERO,
            wakeful,
            waited: Time::ZERO,
            pacing: Spread::default(),
            summary: Summary::default(),
        })
    }

    /// Where stations reach it.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn address(&self) -> Result<SocketAddr, Error> {
        self.link.address().map_err(Error::system("the address of a socket"))
    }

    /// Serves until `stop` is set.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn run(mut self, stop: &Stop) -> Result<Summary, Error> {
        let mut punctual = Punctual::new(clock::now(), WATCHING);
        let mut stopping: Option<Time> = None;
        loop {
            let now = clock::now();
            if stop.is_asked() && stopping.is_none() {
                stopping = Some(now);
            }
            if let Some(since) = stopping {
                let empty = self.sessions.values().all(|session| session.backlog().get() == 0);
                if empty || stop.is_urgent() || now.since(since) > DRAIN {
                    break;
                }
            }
            self.service(now, stopping.is_none())?;
            let until = self.next_wake(clock::now());
            let ready =
                punctual.wait(&mut self.poll, clock::now, until).map_err(Error::system("waiting for packets"))?;
            let now = clock::now();
            for n in 0..ready {
                let event = self.poll.ready(n);
                self.on_ready(now, event)?;
            }
        }
        self.farewell()
    }

    fn on_ready(&mut self, now: Time, event: Ready) -> Result<(), Error> {
        match event.token {
            UDP => self.receive(now)?,
            #[cfg(feature = "bpf")]
            INTERCEPTED => self.accept(),
            RESOLVER => {
                while let Some(answer) = self.resolver.answer() {
                    let Some(session) = self.sessions.get_mut(&answer.session) else { continue };
                    let count = answer.addresses.len();
                    let mut allowed = answer.addresses;
                    allowed.retain(|address| server::is_allowed(address.ip(), self.allow_local));
                    match count > 0 && allowed.is_empty() {
                        true => session.refuse(answer.stream, OpenResult::Forbidden),
                        false => session.on_addresses(now, answer.stream, allowed, &self.poll),
                    }
                }
            }
            token => {
                let (number, stream) = ((token >> 32) as u32, token as u32);
                if let Some(session) = self.sessions.get_mut(&number) {
                    session.on_ready(now, stream, event.readable, event.writable, &self.poll);
                }
            }
        }
        Ok(())
    }

    /// Brings connections that were taken over to their stations. Those to a station that is not there are refused.
    #[cfg(feature = "bpf")]
    fn accept(&mut self) {
        let Some((interception, stations)) = &self.interception else { return };
        while let Ok((socket, _)) = interception.listener.accept() {
            let Ok(to) = socket.local_addr() else { continue };
            let station = match to.ip() {
                std::net::IpAddr::V4(address) => stations.get(&address),
                std::net::IpAddr::V6(_) => None,
            };
            let number = station.and_then(|station| self.current.get(station));
            let session = number.and_then(|number| self.sessions.get_mut(number));
            let Ok(pipe) = crate::tunnel::pipe::Pipe::new(socket) else { continue };
            match session {
                // What cannot be watched ends here, as if the station had refused it.
                Some(session) => drop(session.offer(pipe, to, &self.poll)),
                None => pipe.abort(),
            }
        }
    }

    fn receive(&mut self, now: Time) -> Result<(), Error> {
        let count = self.link.receive().map_err(Error::system("receiving datagrams"))?;
        let mut answers = Vec::new();
        for n in 0..count {
            let (bytes, arrival) = self.link.datagram(n);
            let Some(from) = arrival.from else {
                self.summary.refused += 1;
                continue;
            };
            let accepted = match Datagram::parse(bytes) {
                Ok(Datagram::Sealed { session, number, sealed }) => {
                    // Written out, because the link is borrowed.
                    let Proxy { sessions, current, pending, control, slack, summary, pacing, .. } = self;
                    if !sessions.contains_key(&session) {
                        confirm(
                            now,
                            session,
                            number,
                            sealed,
                            from,
                            *slack,
                            (sessions, current, pending, control),
                            (summary, pacing),
                        )
                    } else {
                        let session = sessions.get_mut(&session).expect("just looked up");
                        session.on_sealed(now, number, sealed, from).is_ok()
                    }
                }
                Ok(Datagram::Initiation { station, message }) => {
                    match greet(now, station, message, &self.keys, &mut self.pending, &mut self.next_number) {
                        Some(answer) => {
                            answers.push((from, answer));
                            true
                        }
                        None => false,
                    }
                }
                Ok(Datagram::Response { .. }) | Err(_) => false,
            };
            self.summary.refused += u64::from(!accepted);
        }
        for (to, answer) in answers {
            let mut path = Path::new(to);
            self.link.send_train(&mut path, &answer).map_err(Error::system("sending a datagram"))?;
            self.summary.unsent.add(path.unsent());
        }
        Ok(())
    }

    fn service(&mut self, now: Time, taking: bool) -> Result<(), Error> {
        let mut asks = Vec::new();
        let numbers: Vec<u32> = self.sessions.keys().copied().collect();
        for number in numbers {
            let Some(session) = self.sessions.get_mut(&number) else { continue };
            session.asks(now, &mut asks);
            for ask in asks.drain(..) {
                match ask {
                    Ask::Resolve { stream, host, port } => self.resolver.ask(number, stream, &host, port),
                    Ask::Feedback(feedback) => self.on_feedback(now, number, &feedback),
                    Ask::Refused(to) => self.pass_by(to),
                    Ask::Over => {
                        if let Some(session) = self.sessions.get_mut(&number) {
                            session.heard = Time::ZERO;
                        }
                    }
                }
            }
        }
        if self.wake.is_some_and(|wake| wake <= now) {
            let streams: Vec<StreamReport> = self.sessions.values().map(Session::report).collect();
            self.control.sense(now, &streams, None);
            self.decide(now);
        }
        if now.since(self.housekept) >= HOUSEKEEPING {
            self.housekept = now;
            self.housekeep(now);
        }
        for session in self.sessions.values_mut() {
            session.send(now, &self.link).map_err(Error::system("sending datagrams"))?;
        }
        if taking {
            self.sessions.values_mut().for_each(|session| session.pull(now, &mut self.scratch));
        }
        Ok(())
    }

    fn housekeep(&mut self, now: Time) {
        let mut begun = false;
        for session in self.sessions.values_mut() {
            let waited = session.waiting;
            session.housekeep(now);
            if session.waiting && !waited {
                self.control.begins(now, session.report());
                begun = true;
            }
        }
        if begun {
            self.decide(now);
        }
        if self.sessions.values().any(|session| session.waiting) {
            self.waited = now;
        }
        self.wakeful.hold(now.since(self.waited) < AWAKE);
        let gone: Vec<u32> =
            self.sessions.iter().filter(|(_, s)| now.since(s.heard) > SILENCE).map(|(number, _)| *number).collect();
        gone.into_iter().for_each(|number| self.end(number));
        self.pending.retain(|_, pending| now.since(pending.since) < SILENCE);
        self.intercept_for_those_present();
    }

    /// Connections are taken over for stations that have a session; what cannot be told the kernel stays as it is, and what is
    /// taken over for a station that is not there is refused.
    fn intercept_for_those_present(&mut self) {
        #[cfg(feature = "bpf")]
        if let Some((interception, stations)) = &mut self.interception {
            let there = stations.iter().filter(|(_, station)| self.current.contains_key(station));
            let _ = interception.set_present(there.map(|(address, _)| *address).collect());
        }
    }

    /// A station's agent does not serve this: from the next connection on it is reached as if there were no proxy.
    fn pass_by(&mut self, to: SocketAddr) {
        #[cfg(feature = "bpf")]
        if let (Some((interception, _)), SocketAddr::V4(to)) = (&mut self.interception, to) {
            let _ = interception.pass(to);
        }
        #[cfg(not(feature = "bpf"))]
        let _ = to;
    }

    fn on_feedback(&mut self, now: Time, number: u32, feedback: &StationFeedback) {
        let Some(session) = self.sessions.get(&number) else { return };
        self.control.sense(now, &[session.report()], Some(*feedback));
        self.decide(now);
        let Some(session) = self.sessions.get_mut(&number) else { return };
        if let Some(log) = &mut self.log {
            log::slot(log, now, &self.control, session, feedback);
        }
        let stats = &mut session.stats;
        self.pacing.merge(&stats.pacing);
        stats.pacing.clear();
        (stats.looks, stats.over, stats.backlog) = (0, 0, lasthop_units::Bytes::ZERO);
    }

    /// Asks the law and passes on what it says.
    fn decide(&mut self, now: Time) {
        let (decided, wake) = self.control.decide(now, &self.current);
        self.wake = wake;
        for (station, number) in &self.current {
            if let (Some(decided), Some(session)) = (decided.get(station), self.sessions.get_mut(number))
                && session.decided != *decided
            {
                session.pace(now, *decided);
            }
        }
    }

    fn next_wake(&self, now: Time) -> Until {
        let due = self.sessions.values().filter_map(|session| session.next_departure(now)).min();
        let timers = self.sessions.values().filter_map(Session::next_timer);
        let housekeeping = if self.sessions.is_empty() { Span::from_secs(1) } else { HOUSEKEEPING };
        let kept = self.housekept.max(now.saturating_sub(housekeeping)) + housekeeping;
        Until { due, about: timers.chain(self.wake).fold(kept, Time::min) }
    }

    fn end(&mut self, number: u32) {
        let Some(session) = self.sessions.remove(&number) else { return };
        if self.current.get(&session.station) == Some(&number) {
            self.current.remove(&session.station);
        }
        close_books(&mut self.summary, &mut self.pacing, session);
    }

    /// Tells every station that the sessions end, and sums up.
    fn farewell(mut self) -> Result<Summary, Error> {
        let now = clock::now();
        for session in self.sessions.values_mut() {
            session.endpoint().close();
            // Whoever does not hear this notices the silence.
            let _ = session.send(now, &self.link);
        }
        for (_, session) in std::mem::take(&mut self.sessions) {
            close_books(&mut self.summary, &mut self.pacing, session);
        }
        let error = |q| self.pacing.quantile(q);
        self.summary.pacing_error = error(0.5).zip(error(0.99));
        self.summary.log_error = self.log.take().and_then(Log::finish);
        Ok(self.summary)
    }
}

fn close_books(summary: &mut Summary, pacing: &mut Spread, mut session: Session) {
    pacing.merge(&session.stats.pacing);
    summary.packets += session.stats.packets;
    summary.octets += session.stats.octets;
    summary.connections += session.stats.connections;
    summary.lost += session.endpoint().lost_packets();
    summary.unsent.add(session.path.unsent());
}

type Sessions<'a> =
    (&'a mut BTreeMap<u32, Session>, &'a mut BTreeMap<Node, u32>, &'a mut BTreeMap<Node, Pending>, &'a mut Control);

/// A sealed packet of a session that is not up: if it opens, the session is, and takes the place of the station's last.
#[allow(clippy::too_many_arguments, reason = "parts of the proxy, of which another part is borrowed")]
fn confirm(
    now: Time,
    number: u32,
    packet: u64,
    sealed: &[u8],
    from: SocketAddr,
    slack: Span,
    (sessions, current, pending, control): Sessions<'_>,
    (summary, pacing): (&mut Summary, &mut Spread),
) -> bool {
    let Some(station) = pending.iter().find(|(_, p)| p.number == number).map(|(station, _)| *station) else {
        return false;
    };
    let Some(found) = pending.remove(&station) else { return false };
    // Only what opens may use up what was pending.
    let mut trial = [0; 2048];
    if found.sealer.try_open(packet, sealed, &mut trial).is_err() {
        pending.insert(station, found);
        return false;
    }
    let mut session = Session::new(now, station, number, from, found.sealer, slack);
    let opened = session.on_sealed(now, packet, sealed, from).is_ok();
    if let Some(old) = current.insert(station, number).and_then(|old| sessions.remove(&old)) {
        close_books(summary, pacing, old);
    }
    summary.sessions += 1;
    session.decided = Decided { rate: FIRST_RATE, why: Why::Unmanaged };
    sessions.insert(number, session);
    let decided = control.decide(now, current).0.get(&station).copied();
    if let (Some(session), decided) = (sessions.get_mut(&number), decided) {
        session.pace(now, decided.unwrap_or(Decided { rate: FIRST_RATE, why: Why::Unmanaged }));
    }
    opened
}

/// Answers an initiation; `None` if it is refused.
fn greet(
    now: Time,
    station: Node,
    message: &[u8],
    keys: &BTreeMap<Node, Key>,
    pending: &mut BTreeMap<Node, Pending>,
    next_number: &mut u32,
) -> Option<Vec<u8>> {
    let key = keys.get(&station)?;
    if let Some(asked) = pending.get(&station) {
        if asked.question == message {
            return Some(asked.answer.clone());
        }
        if now.since(asked.since) < BETWEEN_HANDSHAKES {
            return None;
        }
    }
    let number = *next_number;
    let (answer, sealer) = respond(station, key, message, number).ok()?;
    *next_number = next_number.wrapping_add(1) & (u32::MAX >> 1);
    let asked = Pending { number, sealer, question: message.to_vec(), answer: answer.clone(), since: now };
    pending.insert(station, asked);
    Some(answer)
}

/// Begins to take connections over, if that is wanted.
#[cfg(feature = "bpf")]
#[allow(clippy::type_complexity, reason = "used once")]
fn intercept(
    config: &Config,
    poll: &Poll,
) -> Result<Option<(crate::transparent::Interception, BTreeMap<std::net::Ipv4Addr, Node>)>, Error> {
    let Some(transparent) = &config.transparent else { return Ok(None) };
    let interception = crate::transparent::Interception::begin(transparent, server::prepare)?;
    poll.add_level(&interception.listener, INTERCEPTED).map_err(Error::system("epoll"))?;
    Ok(Some((interception, transparent.stations.iter().copied().collect())))
}

fn random<const N: usize>() -> Result<[u8; N], Error> {
    use std::io::Read;
    let mut octets = [0; N];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut octets));
    read.map_err(Error::system("the kernel's random source"))?;
    Ok(octets)
}
