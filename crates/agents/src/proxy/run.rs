//! The proxy's loop.

use super::arrivals::Arrivals;
use super::budget::Terms;
use super::config::{Config, Summary};
use super::control::{Control, Decided};
use super::key_file::KeyFile;
use super::reception::{Confirmed, Reception, Unanswered};
use super::refusals::{Refusal, Refusals};
use super::resolve::Resolver;
use super::rotation::{self, Hurry, Rotation};
use super::session::{Ask, CELL_LINES, Session};
use super::{log, route, window};
#[cfg(feature = "bpf")]
use crate::service::backoff_listener::BackoffListener;
use crate::service::cpu_latency_guard::CpuLatencyGuard;
use crate::service::latency_histogram::LatencyHistogram;
use crate::service::log::Log;
use crate::service::poll::{Poll, Ready};
use crate::service::privileges::Account;
use crate::service::run_loop::{self, Turns};
use crate::service::spin_sleeper::Until;
use crate::service::{self, Say, Stop, clock, files, random, system};
use crate::tunnel::link::Link;
use crate::tunnel::path::Path;
use crate::tunnel::sealer::Refused;
use crate::tunnel::{Error, Keyring, SILENCE, outgoing};
use lasthop_laws::tcp::Setup;
use lasthop_laws::{Choice, Why};
use lasthop_signals::{Node, Signal, StationFeedback, StreamReport};
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
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
    link: Link,
    poll: Poll,
    resolver: Resolver,
    #[cfg(feature = "bpf")]
    interception: Option<Taking>,
    control: Control,
    /// Serves stations that tell of their cells.
    cells: Option<Choice>,
    log: Option<Log>,
    terms: Terms,
    allow_local: bool,
    sessions: BTreeMap<u32, Session>,
    /// The session that counts, by station.
    current: BTreeMap<Node, u32>,
    /// Sessions by our numbers for their keys. A session has the number of its first keys.
    by_keys: BTreeMap<u32, u32>,
    reception: Reception,
    key_file: KeyFile,
    refusals: Refusals,
    arrivals: Arrivals,
    say: Say,
    scratch: Vec<u8>,
    wake: Option<Time>,
    /// Since when it is to stop.
    stopping: Option<Time>,
    rotation: Rotation,
    /// Stations for which packets have begun to wait or to rest since the law was told.
    moves: Vec<Signal>,
    housekept: Time,
    latency_guard: CpuLatencyGuard,
    /// When something was last seen to wait for its turn.
    waited: Time,
    pacing: LatencyHistogram,
    summary: Summary,
}

/// Connections that others make to stations, as they are taken over.
#[cfg(feature = "bpf")]
struct Taking {
    interception: crate::transparent::Interception,
    listener: BackoffListener,
    stations: BTreeMap<std::net::Ipv4Addr, Node>,
    /// When it was last looked whether the program is still on its interface.
    looked: Time,
}

const UDP: u64 = u64::MAX;
const RESOLVER: u64 = u64::MAX - 1;
#[cfg(feature = "bpf")]
const INTERCEPTED: u64 = u64::MAX - 2;
/// A session of which something was heard within this time is in use: stations ping twice a second.
const IN_USE: Span = Span::from_secs(1);
/// How often everything else is looked at.
const HOUSEKEEPING: Span = rotation::PERIOD;
/// Connections are taken over for stations that have been heard within this time: others are left to their own way.
#[cfg(feature = "bpf")]
const PRESENT: Span = Span::from_secs(10);
/// How often it is looked whether the program that takes connections over is attached.
#[cfg(feature = "bpf")]
const ATTACHMENT: Span = Span::from_millis(500);
/// How long what is under way may take to arrive when the proxy stops.
const DRAIN: Span = Span::from_secs(1);
/// Before the law has said anything of a station.
const FIRST_RATE: Rate = Rate::from_mbit(1);
/// A full IP packet, before a law has been shown any.
const PACKET: Bytes = Bytes::new(1500);
/// Real-time priority, below that of the kernel's own threads.
const PRIORITY: i32 = 10;
/// Processors are kept awake, and stations looked after a few at a time, while packets wait for their turn, and for so long after.
const AWAKE: Span = Span::from_millis(200);

impl Proxy {
    /// Opens everything that needs privileges, and gives those up.
    ///
    /// # Errors
    /// [`Error`].
    pub fn open(config: &Config) -> Result<Proxy, Error> {
        config.validate()?;
        let account = config.user.as_deref().map(Account::find).transpose()?;
        files::raise_limit();
        let (key_file, keys) = KeyFile::open(config.keys.clone())?;
        for (address, station) in config.transparent.iter().flat_map(|transparent| &transparent.stations) {
            if !keys.contains_key(station) {
                let (number, path) = (station.0, config.keys.display());
                (config.say)(&format!(
                    "station {number}, {address}, has no key in {path} yet: nothing is brought to it"
                ));
            }
        }
        let control = Control::new(&config.rule)?;
        let log = config.log.as_deref().map(|path| Log::create(path, config.say)).transpose()?;
        let address = config.listen;
        let link = Link::bind(address).map_err(service::address("cannot listen on", address))?;
        let poll = Poll::new().map_err(system("epoll"))?;
        let resolver = Resolver::new().map_err(system("eventfd"))?;
        poll.add_level(&link, UDP).map_err(system("epoll"))?;
        poll.add_level(&resolver, RESOLVER).map_err(system("epoll"))?;
        #[cfg(not(feature = "bpf"))]
        if config.transparent.is_some() {
            return Err(service::Error::NotBuilt.into());
        }
        #[cfg(feature = "bpf")]
        let interception = intercept(config, &poll)?;
        clock::sharpen_timers();
        // Refusal costs accuracy, which the pacing error shows.
        let latency_guard = match config.realtime {
            true => {
                clock::ask_for_realtime(PRIORITY, config.say);
                CpuLatencyGuard::open()
            }
            false => CpuLatencyGuard::none(),
        };
        if config.drop_privileges {
            crate::service::privileges::drop_all(account.as_ref())?;
        }
        let first = u32::from_be_bytes(random()?) >> 2;
        let reception = Reception::new(keys, random()?, first);
        Ok(Proxy {
            link,
            poll,
            resolver,
            #[cfg(feature = "bpf")]
            interception,
            control,
            cells: config.cells.clone(),
            log,
            terms: Terms { slack: config.allowance, retracts: window::may_be_taken_back() },
            allow_local: config.allow_local,
            sessions: BTreeMap::new(),
            current: BTreeMap::new(),
            by_keys: BTreeMap::new(),
            reception,
            key_file,
            refusals: Refusals::new(),
            arrivals: Arrivals::default(),
            say: config.say,
            scratch: vec![0; 256 << 10],
            wake: None,
            stopping: None,
            rotation: Rotation::default(),
            moves: Vec::new(),
            housekept: Time::ZERO,
            latency_guard,
            waited: Time::ZERO,
            pacing: LatencyHistogram::default(),
            summary: Summary::default(),
        })
    }

    /// Where stations reach it.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn address(&self) -> Result<SocketAddr, Error> {
        Ok(self.link.address().map_err(system("the address of a socket"))?)
    }

    /// Serves until `stop` is set.
    ///
    /// # Errors
    /// [`Error::Service`].
    pub fn run(mut self, stop: &Stop) -> Result<Summary, Error> {
        let ran = run_loop::run(&mut self, stop);
        let summary = self.farewell();
        ran.and(summary)
    }

    /// Brings connections that were taken over to their stations. Those to a station that is not there are refused.
    #[cfg(feature = "bpf")]
    fn accept(&mut self, now: Time) {
        let Some(Taking { listener, stations, .. }) = &mut self.interception else { return };
        for _ in 0..BackoffListener::BUDGET {
            let Some(socket) = listener.admit(now, &self.poll) else { return };
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
        let count = self.link.receive().map_err(system("receiving datagrams"))?;
        let mut answers = Vec::new();
        for n in 0..count {
            let (bytes, arrival) = self.link.datagram(n);
            let Some(from) = arrival.from else {
                self.summary.refused += 1;
                continue;
            };
            // Why it is refused, and whether anybody is told: what was repeated on the way, or sealed for a proxy that was here before, is
            // nobody's mistake.
            let accepted = match Datagram::parse(bytes) {
                Ok(Datagram::Sealed { session: keys, number, sealed }) => {
                    // Written out, because the link is borrowed.
                    let Proxy {
                        sessions,
                        current,
                        by_keys,
                        reception,
                        control,
                        terms,
                        refusals,
                        arrivals,
                        summary,
                        pacing,
                        ..
                    } = self;
                    if let Some(confirmed) = reception.confirm(keys, number, sealed) {
                        let old = current.get(&confirmed.station).and_then(|number| sessions.get(number));
                        if confirmed.continues.is_none() && old.is_some_and(|old| old.is_heard(now, IN_USE)) {
                            refusals.replaced(now, from, confirmed.station);
                        }
                        if confirmed.continues.is_none() {
                            arrivals.begun(now, confirmed.station, from);
                        }
                        begin_or_go_on(
                            now,
                            confirmed,
                            *terms,
                            (sessions, current, by_keys, control),
                            (summary, pacing),
                        );
                    }
                    let session = by_keys.get(&keys).and_then(|session| sessions.get_mut(session));
                    let opened = session
                        .map(|session| session.on_sealed(now, keys, number, sealed, from, reception.challenger()));
                    opened.unwrap_or(Err(Refused::Unknown)).map_err(|why| match why {
                        Refused::Forged => Some(Refusal::Forged),
                        Refused::Repeated | Refused::Unknown => None,
                    })
                }
                Ok(Datagram::Initiation { station, message }) => {
                    let (sessions, current) = (&self.sessions, &self.current);
                    let goes_on = |number: &u32, id| !sessions[number].closed && sessions[number].keys.id() == id;
                    let known = |id| current.get(&station).copied().filter(|number| goes_on(number, id));
                    let answer = self.reception.greet(now, from, station, message, known);
                    answer.map(|answer| answers.push((from, answer))).map_err(|why| match why {
                        Unanswered::Unknown => Some(Refusal::Unknown(station)),
                        Unanswered::WrongKey => Some(Refusal::WrongKey(station)),
                        Unanswered::Enough => None,
                    })
                }
                Ok(Datagram::Response { .. } | Datagram::Challenge { .. }) | Err(_) => Err(Some(Refusal::Foreign)),
            };
            if let Err(why) = accepted {
                self.summary.refused += 1;
                why.into_iter().for_each(|why| self.refusals.add(now, from, why));
            }
        }
        for (to, answer) in answers {
            let mut path = Path::new(to);
            self.link.send_train(&mut path, &answer).map_err(system("sending a datagram"))?;
            self.summary.unsent.add(path.unsent());
        }
        Ok(())
    }

    /// Adjusts the windows of these sessions, and notes for the law which stations begin to wait or to rest.
    fn look_after(&mut self, now: Time, turn: &[u32]) {
        for number in turn {
            let Some(session) = self.sessions.get_mut(number) else { continue };
            session.housekeep(now, &self.poll);
            self.moves.extend(session.begins(now));
            if let Some(log) = &mut self.log
                && now.since(session.logged) >= CELL_LINES
                && let Some(figures) = session.cell(now)
            {
                log::cell(log, now, session, &figures);
                self.pacing.merge(&session.stats.pacing);
                session.begin_line(now);
            }
        }
    }

    fn housekeep(&mut self, now: Time) {
        // Together, since what one does changes the rates of all.
        if !self.moves.is_empty() {
            self.control.moves(now, &std::mem::take(&mut self.moves));
            self.decide(now);
        }
        if self.sessions.values().any(|session| session.waiting) {
            self.waited = now;
        }
        self.latency_guard.hold(self.hurry(now) == Hurry::Packets);
        let gone: Vec<u32> =
            self.sessions.iter().filter(|(_, s)| !s.is_heard(now, SILENCE)).map(|(number, _)| *number).collect();
        for number in gone {
            if let Some(session) = self.sessions.get(&number) {
                self.arrivals.silent(now, session.station);
            }
            self.end(now, number);
        }
        self.arrivals.tell(now, self.say);
        self.reception.forget(now);
        if let Some(line) = self.refusals.take(now) {
            (self.say)(&line);
        }
        self.look_for_keys(now);
        self.intercept_for_those_present(now);
    }

    /// Takes keys over that have changed. A station with another key now, or none, is shut out at once.
    fn look_for_keys(&mut self, now: Time) {
        let keys = match self.key_file.look(now) {
            None => return,
            Some(Ok(keys)) => keys,
            Some(Err(error)) => return (self.say)(&format!("the keys stay as they were: {error}")),
        };
        let changed = self.reception.rekey(keys);
        (self.say)(&format!("the keys have been read again: {} stations", self.reception.stations()));
        for station in changed {
            if let Some(number) = self.current.get(&station).copied() {
                (self.say)(&format!("station {}: its session has ended, its key is another one now", station.0));
                self.end(now, number);
            }
        }
    }

    /// Connections are taken over for stations that have a session; what cannot be told the kernel stays as it is, and what is
    /// taken over for a station that is not there is refused.
    fn intercept_for_those_present(&mut self, now: Time) {
        #[cfg(feature = "bpf")]
        if let Some(Taking { interception, listener, stations, .. }) = &mut self.interception {
            let (sessions, current) = (&self.sessions, &self.current);
            let is_there = |station| current.get(station).is_some_and(|n| sessions[n].is_heard(now, PRESENT));
            let there = stations.iter().filter(|(_, station)| is_there(station));
            let _ = interception.set_present(there.map(|(address, _)| *address).collect());
            listener.look_after(now, &self.poll);
        }
        #[cfg(not(feature = "bpf"))]
        let _ = now;
    }

    /// Refuses to go on when connections are not taken over any more: the interface has gone, or somebody has removed the program.
    fn look_at_attachment(&mut self, now: Time) -> Result<(), Error> {
        #[cfg(feature = "bpf")]
        if let Some(taking) = self.interception.as_mut().filter(|taking| now.since(taking.looked) >= ATTACHMENT) {
            taking.looked = now;
            if !taking.interception.is_attached() {
                return Err(crate::transparent::Error::OffInterface.into());
            }
        }
        #[cfg(not(feature = "bpf"))]
        let _ = now;
        Ok(())
    }

    /// A station's agent does not serve this: from the next connection on it is reached as if there were no proxy.
    fn pass_by(&mut self, to: SocketAddr) {
        #[cfg(feature = "bpf")]
        if let (Some(taking), SocketAddr::V4(to)) = (&mut self.interception, to) {
            let _ = taking.interception.pass(to);
        }
        #[cfg(not(feature = "bpf"))]
        let _ = to;
    }

    fn on_feedback(&mut self, now: Time, number: u32, feedback: &StationFeedback) {
        let Some(session) = self.sessions.get(&number) else { return };
        self.control.sense(now, &[session.report()], Some((number, *feedback)));
        if let Some(line) = self.control.complaint(number, feedback) {
            (self.say)(&line);
        }
        self.decide(now);
        let Some(session) = self.sessions.get_mut(&number) else { return };
        if let Some(log) = &mut self.log {
            log::slot(log, now, &self.control, session, feedback);
        }
        self.pacing.merge(&session.stats.pacing);
        session.begin_line(now);
    }

    /// A station tells of its cell. The law of the others hears no more of it.
    fn follow(&mut self, now: Time, number: u32) -> Result<(), Error> {
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        let station = session.station;
        self.arrivals.tells(now, station, self.cells.is_some());
        if let Some(choice) = &self.cells {
            let random = Seed(u64::from(number)).stream("cell");
            session.follow(now, choice.sender(Setup::new(PACKET, random))?);
            self.moves.push(Signal::Idle(station));
        }
        Ok(())
    }

    /// Asks the law and passes on what it says.
    fn decide(&mut self, now: Time) {
        let Proxy { control, current, sessions, .. } = self;
        self.wake = control.decide(now, current, |number, decided| {
            if let Some(session) = sessions.get_mut(&number)
                && session.decided != decided
            {
                session.pace(now, decided);
            }
        });
    }

    /// Whether something waits, or did a moment ago.
    fn hurry(&self, now: Time) -> Hurry {
        if now.since(self.waited) < AWAKE { Hurry::Packets } else { Hurry::Nothing }
    }

    /// When a listener without room is asked again.
    fn next_look(&self) -> Option<Time> {
        #[cfg(feature = "bpf")]
        return self.interception.as_ref().and_then(|taking| taking.listener.next_look());
        #[cfg(not(feature = "bpf"))]
        None
    }

    fn end(&mut self, now: Time, number: u32) {
        let Some(mut session) = self.sessions.remove(&number) else { return };
        session.farewell(now, &self.link);
        if self.current.get(&session.station) == Some(&number) {
            self.current.remove(&session.station);
        }
        self.by_keys.retain(|_, session| *session != number);
        close_books(&mut self.summary, &mut self.pacing, session);
    }

    /// Tells every station that the sessions end, and sums up.
    fn farewell(mut self) -> Result<Summary, Error> {
        let now = clock::now();
        for session in self.sessions.values_mut() {
            session.farewell(now, &self.link);
        }
        for (_, session) in std::mem::take(&mut self.sessions) {
            close_books(&mut self.summary, &mut self.pacing, session);
        }
        (self.summary.handshakes, self.summary.challenges) = (self.reception.granted, self.reception.challenged);
        let error = |q| self.pacing.quantile(q);
        self.summary.pacing_error = error(0.5).zip(error(0.99));
        self.summary.log_error = self.log.take().and_then(Log::finish);
        Ok(self.summary)
    }
}

impl Turns for Proxy {
    type Error = Error;
    const WATCHING: u64 = 2;

    fn poll(&mut self) -> &mut Poll {
        &mut self.poll
    }

    fn service(&mut self, now: Time) -> Result<(), Error> {
        let mut asks = Vec::new();
        let numbers: Vec<u32> = self.sessions.keys().copied().collect();
        for number in numbers {
            let Some(session) = self.sessions.get_mut(&number) else { continue };
            session.asks(now, &mut asks);
            let station = session.station;
            for ask in asks.drain(..) {
                match ask {
                    Ask::Resolve { stream, host, port } => self.resolver.ask(station, (number, stream), &host, port),
                    Ask::Feedback(feedback) => self.on_feedback(now, number, &feedback),
                    Ask::Follow => self.follow(now, number)?,
                    Ask::Refused(to) => self.pass_by(to),
                }
            }
        }
        if self.wake.is_some_and(|wake| wake <= now) {
            let regulated = self.sessions.values().filter(|session| !session.follows());
            let streams: Vec<StreamReport> = regulated.map(Session::report).collect();
            self.control.sense(now, &streams, None);
            self.decide(now);
        }
        let turn = self.rotation.turn(now, &self.sessions, self.hurry(now));
        self.look_after(now, &turn);
        // Together with a whole round, so that an idle proxy wakes up once for both.
        let whole = !turn.is_empty() && turn.len() == self.sessions.len();
        if whole || now.since(self.housekept) >= HOUSEKEEPING {
            self.housekept = now;
            self.housekeep(now);
        }
        for session in self.sessions.values_mut() {
            session.send(now, &self.link).map_err(system("sending datagrams"))?;
        }
        if self.stopping.is_none() {
            self.sessions.values_mut().for_each(|session| session.pull(now, &mut self.scratch));
        }
        self.look_at_attachment(now)
    }

    fn next(&mut self, now: Time) -> Until {
        let due = self.sessions.values().filter_map(|session| session.next_departure(now)).min();
        let timers = self.sessions.values().filter_map(Session::next_timer);
        let housekeeping = if self.sessions.is_empty() { Span::from_secs(1) } else { HOUSEKEEPING };
        let mut kept = self.housekept.max(now.saturating_sub(housekeeping)) + housekeeping;
        if !self.sessions.is_empty() {
            kept = kept.min(self.rotation.next(self.sessions.len(), self.hurry(now)));
        }
        Until { due, about: timers.chain(self.wake).chain(self.next_look()).fold(kept, Time::min) }
    }

    fn on_ready(&mut self, now: Time, event: Ready) -> Result<(), Error> {
        match event.token {
            UDP => self.receive(now)?,
            #[cfg(feature = "bpf")]
            INTERCEPTED => self.accept(now),
            RESOLVER => {
                while let Some(answer) = self.resolver.answer() {
                    let Some(session) = self.sessions.get_mut(&answer.session) else { continue };
                    let count = answer.addresses.len();
                    let mut allowed = answer.addresses.clone();
                    let local = self.allow_local;
                    allowed.retain(|to| outgoing::is_allowed(to.ip(), local) && (local || !route::is_own(to.ip())));
                    match count > 0 && allowed.is_empty() {
                        true => {
                            self.arrivals.forbidden(now, session.station, answer.addresses[0]);
                            session.refuse(answer.stream, OpenResult::Forbidden);
                        }
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

    /// Once it is to stop, and what was under way has arrived.
    fn is_over(&mut self, now: Time, stop: &Stop) -> bool {
        if !stop.is_asked() {
            return false;
        }
        let since = *self.stopping.get_or_insert(now);
        let empty = self.sessions.values().all(|session| session.backlog().get() == 0);
        empty || stop.is_urgent() || now.since(since) > DRAIN
    }
}

fn close_books(summary: &mut Summary, pacing: &mut LatencyHistogram, mut session: Session) {
    pacing.merge(&session.stats.pacing);
    summary.packets += session.stats.packets;
    summary.octets += session.stats.octets;
    summary.connections += session.stats.connections;
    summary.lost += session.endpoint().lost_packets();
    summary.unsent.add(session.path.unsent());
    summary.doubted.merge(session.stats.doubted);
    session.end();
}

type Sessions<'a> =
    (&'a mut BTreeMap<u32, Session>, &'a mut BTreeMap<Node, u32>, &'a mut BTreeMap<u32, u32>, &'a mut Control);

/// A station uses keys for the first time: its session goes on with them, or a new one takes the place of its last.
fn begin_or_go_on(
    now: Time,
    confirmed: Confirmed,
    terms: Terms,
    (sessions, current, by_keys, control): Sessions<'_>,
    (summary, pacing): (&mut Summary, &mut LatencyHistogram),
) {
    let Confirmed { station, at, number, sealer, id, continues } = confirmed;
    if let Some(old) = continues {
        // If it has ended meanwhile, the station will notice the silence.
        let Some(session) = sessions.get_mut(&old).filter(|session| !session.closed) else { return };
        session.keys.renew(now, number, sealer);
        by_keys.retain(|keys, session| *session != old || sessions[&old].keys.numbers().any(|number| number == *keys));
        by_keys.insert(number, old);
        summary.renewals += 1;
        return;
    }
    let mut session = Session::new(now, station, number, at, Keyring::new(now, id, number, sealer), terms);
    if let Some(old) = current.insert(station, number) {
        by_keys.retain(|_, session| *session != old);
        if let Some(old) = sessions.remove(&old) {
            close_books(summary, pacing, old);
        }
    }
    summary.sessions += 1;
    let mut decided = Decided { rate: FIRST_RATE, why: Why::Unmanaged };
    control.decide(now, current, |of, what| {
        if of == number {
            decided = what;
        }
    });
    session.pace(now, decided);
    by_keys.insert(number, number);
    sessions.insert(number, session);
}

/// Begins to take connections over, if that is wanted.
#[cfg(feature = "bpf")]
fn intercept(config: &Config, poll: &Poll) -> Result<Option<Taking>, Error> {
    let Some(transparent) = &config.transparent else { return Ok(None) };
    // The kernel tells of it before the proxy knows how many come, and for which stations.
    let (interception, listener) =
        crate::transparent::Interception::begin(transparent, |socket| window::prepare(socket, window::LEAST))?;
    let listener = BackoffListener::open(listener, INTERCEPTED, poll).map_err(system("epoll"))?;
    let stations = lasthop_units::count(transparent.stations.len(), "station");
    (config.say)(&format!("connections that come in at {} for {stations} are taken over", transparent.iface));
    Ok(Some(Taking {
        interception,
        listener,
        stations: transparent.stations.iter().copied().collect(),
        looked: Time::ZERO,
    }))
}
