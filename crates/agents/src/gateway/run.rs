//! The gateway's loop.

use super::config::{Config, Roles, Summary};
use super::session::{Beginning, Session, refuse};
use super::session_log::SessionLog;
use crate::endpoint::own_delay::OwnDelay;
use crate::proxy::key_file::KeyFile;
use crate::proxy::reception::{Confirmed, Reception, Unanswered};
use crate::proxy::refusals::{Refusal, Refusals};
use crate::proxy::resolve::Resolver;
use crate::proxy::route;
use crate::service::poll::{Poll, Ready};
use crate::service::privileges::Account;
use crate::service::run_loop::{self, Turns};
use crate::service::spin_sleeper::Until;
use crate::service::{self, Stop, clock, files, random, system};
use crate::station::doors::{Doors, Guest, Wanted};
use crate::station::search::Search;
use crate::station::silence_reporter::{LastReception, SilenceReporter};
use crate::tunnel::asking::{Asking, Running};
use crate::tunnel::link::Link;
use crate::tunnel::path::{Path, Unsent};
use crate::tunnel::sealer::Refused;
use crate::tunnel::{Error, Keyring, SILENCE, outgoing};
use lasthop_signals::Node;
use lasthop_units::{Span, Time};
use lasthop_wire::datagram::preamble;
use lasthop_wire::tunnel::{Datagram, OpenResult};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Carries connections until `stop` is set.
///
/// # Errors
/// [`Error`] if it cannot start, or if the kernel takes away what it needs. Another gateway that is not there is no error.
pub fn run(config: &Config, stop: &Stop) -> Result<Summary, Error> {
    Gateway::open(config)?.run(stop)
}

/// A gateway with its sockets open and its privileges given up.
pub struct Gateway {
    config: Config,
    link: Link,
    poll: Poll,
    resolver: Resolver,
    doors: Doors,
    /// Key of the gateway to which the doors lead.
    via: Option<Node>,
    calling: Option<Calling>,
    sessions: BTreeMap<u32, Session>,
    /// The session that counts, by key.
    current: BTreeMap<Node, u32>,
    /// Sessions by our numbers for their keys. A session has the number of its first keys.
    by_keys: BTreeMap<u32, u32>,
    reception: Reception,
    key_file: KeyFile,
    refusals: Refusals,
    session_log: SessionLog,
    own: OwnDelay,
    /// The host's own queue takes no more for now.
    full: bool,
    housekept: Time,
    scratch: Vec<u8>,
    summary: Summary,
}

/// The gateway that is called.
struct Calling {
    node: Node,
    asking: Asking,
    /// Until it has answered.
    search: Option<Search>,
    path: Path,
    silence: SilenceReporter,
}

const UDP: u64 = u64::MAX;
const RESOLVER: u64 = u64::MAX - 1;
const LISTENER: u64 = 0xffff_fffe << 32;
const LOCAL: u64 = 0xffff_fffd << 32;
/// Numbers of keys that we have asked for have this bit; those that we give out have not ([`Reception`]). None comes near the tokens above.
const ASKED: u32 = 1 << 31;
const ASKED_ROOM: u32 = (1 << 30) - 1;
/// New connections are refused, or take their ordinary way, where nothing was heard for so long: the calling gateway
/// pings twice a second.
const PRESENT: Span = Span::from_secs(3);
/// A session of which something was heard within this time is in use.
const IN_USE: Span = Span::from_secs(1);
const HOUSEKEEPING: Span = Span::from_millis(250);
/// How soon the host's own queue is looked at again when it was full.
const HELD_AGAIN: Span = Span::from_micros(500);
const PRIORITY: i32 = 10;

impl Gateway {
    /// Opens everything that needs privileges, and gives those up.
    ///
    /// # Errors
    /// [`Error`].
    pub fn open(config: &Config) -> Result<Gateway, Error> {
        config.validate()?;
        let account = config.user.as_deref().map(Account::find).transpose()?;
        files::raise_limit();
        let (key_file, mut keys) = KeyFile::open(config.keys.clone())?;
        let Roles { calls, via } = config.roles(&keys)?;
        if let Some((node, _)) = &calls {
            // A gateway that calls with a key takes no calls with it.
            keys.remove(node);
        }
        let address = config.bind;
        let link = Link::bind(address).map_err(service::address("cannot listen on", address))?;
        let poll = Poll::new().map_err(system("epoll"))?;
        let resolver = Resolver::new().map_err(system("eventfd"))?;
        poll.add_level(&link, UDP).map_err(system("epoll"))?;
        poll.add_level(&resolver, RESOLVER).map_err(system("epoll"))?;
        let others = others(config);
        let wanted = Wanted {
            listen: config.listen,
            forwards: &config.forwards,
            transparent: config.transparent.as_deref(),
            others: &others,
        };
        let now = clock::now();
        let doors = Doors::open(now, &wanted, &poll, [LISTENER, LOCAL])?;
        clock::sharpen_timers();
        if config.realtime {
            clock::ask_for_realtime(PRIORITY, config.say);
        }
        if config.drop_privileges {
            crate::service::privileges::drop_all(account.as_ref())?;
        }
        doors.check()?;
        let calling = calls.map(|(node, key)| {
            let first = (now.as_nanos() >> 20) as u32 & ASKED_ROOM | ASKED;
            let begun = Search::begin(now, others.iter().copied(), |_| Ok::<(), ()>(()));
            let search = begun.map(|(search, ())| search).expect("nothing is opened");
            let path = Path::over_mesh(search.tried());
            let asking = Asking::new(node, key, config.renew, first);
            Calling {
                node,
                asking,
                search: Some(search),
                path,
                silence: SilenceReporter::between(now, ["gateway", "gateway"]),
            }
        });
        let first = u32::from_be_bytes(random()?) >> 2;
        Ok(Gateway {
            config: config.clone(),
            link,
            poll,
            resolver,
            doors,
            via,
            calling,
            sessions: BTreeMap::new(),
            current: BTreeMap::new(),
            by_keys: BTreeMap::new(),
            reception: Reception::new(keys, random()?, first),
            key_file,
            refusals: Refusals::new(),
            session_log: SessionLog::default(),
            own: OwnDelay::default(),
            full: false,
            housekept: Time::ZERO,
            scratch: vec![0; 256 << 10],
            summary: Summary::default(),
        })
    }

    /// Where others reach it (UDP).
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn address(&self) -> Result<SocketAddr, Error> {
        Ok(self.link.address().map_err(system("the address of a socket"))?)
    }

    /// Where local programs reach it: the proxy port, if there is one, and then the forwarded ones, in order.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn doors(&self) -> Result<Vec<SocketAddr>, Error> {
        Ok(self.doors.addresses()?)
    }

    /// Serves until `stop` is set.
    ///
    /// # Errors
    /// [`Error::Service`].
    pub fn run(mut self, stop: &Stop) -> Result<Summary, Error> {
        let ran = run_loop::run(&mut self, stop);
        self.end_all();
        ran?;
        if let Some(calling) = &self.calling {
            self.summary.unsent.add(calling.path.unsent());
        }
        Ok(self.summary)
    }

    /// The session to which the doors lead, if there is one.
    fn through(&mut self) -> Option<&mut Session> {
        let number = self.current.get(&self.via?)?;
        self.sessions.get_mut(number)
    }

    fn connect(&mut self, now: Time, (local, target): Guest) {
        match self.through().filter(|session| session.is_heard(now, PRESENT)) {
            Some(session) => session.open(local, &target),
            None => {
                self.session_log.refused(now);
                refuse(local, OpenResult::NetworkUnreachable);
            }
        }
    }

    /// Connects streams to those addresses of their hosts to which the other end may be connected.
    fn resolved(&mut self, now: Time) {
        while let Some(answer) = self.resolver.answer() {
            let Some(session) = self.sessions.get_mut(&answer.session) else { continue };
            let (Config { allow, allow_local, .. }, mut allowed) = (&self.config, answer.addresses.clone());
            allowed.retain(|to| {
                let listed = allow.is_empty() || allow.iter().any(|network| network.contains(to.ip()));
                listed && outgoing::is_allowed(to.ip(), *allow_local) && (*allow_local || !route::is_own(to.ip()))
            });
            match answer.addresses.first().filter(|_| allowed.is_empty()) {
                Some(to) => {
                    self.session_log.forbidden(now, session.node, *to);
                    session.refuse(answer.stream, OpenResult::Forbidden);
                }
                None => session.on_addresses(now, answer.stream, allowed, &self.poll),
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
            let stripped = preamble::strip(bytes).and_then(|(delay, inner)| Ok((delay, Datagram::parse(inner)?)));
            // Why it is refused, and whether anybody is told: what was repeated on the way, or sealed for a gateway that was here before, is
            // nobody's mistake.
            let accepted = match stripped {
                Ok((delay, Datagram::Sealed { session: keys, number, sealed })) => {
                    let confirmed = self.reception.confirm(keys, number, sealed);
                    if let Some(confirmed) = confirmed {
                        begin_or_go_on(
                            now,
                            confirmed,
                            from,
                            &self.config,
                            (&mut self.sessions, &mut self.current, &mut self.by_keys),
                            (&mut self.summary, &mut self.session_log, &mut self.refusals),
                        );
                    }
                    let session = self.by_keys.get(&keys).and_then(|session| self.sessions.get_mut(session));
                    let challenger = self.reception.challenger();
                    let opened = session
                        .map(|session| session.on_sealed(now, (keys, number, sealed), (from, delay), challenger));
                    opened.unwrap_or(Err(Refused::Unknown)).map_err(|why| match why {
                        Refused::Forged => Some(Refusal::Forged),
                        Refused::Repeated | Refused::Unknown => None,
                    })
                }
                Ok((_, Datagram::Initiation { station: node, message })) => {
                    let (sessions, current) = (&self.sessions, &self.current);
                    let goes_on = |number: &u32, id| !sessions[number].closed && sessions[number].keys.id() == id;
                    let known = |id| current.get(&node).copied().filter(|number| goes_on(number, id));
                    let answer = self.reception.greet(now, from, node, message, known);
                    answer.map(|answer| answers.push((from, answer))).map_err(|why| match why {
                        Unanswered::Unknown => Some(Refusal::Unknown(node)),
                        Unanswered::WrongKey => Some(Refusal::WrongKey(node)),
                        Unanswered::Enough => None,
                    })
                }
                Ok((_, Datagram::Response { session, message })) => {
                    let calling = self.calling.as_mut();
                    let agreed = calling.and_then(|calling| calling.asking.on_response(session, message));
                    match agreed {
                        Some(agreed) => {
                            let number = session;
                            called(
                                now,
                                number,
                                agreed,
                                self.calling.as_mut().expect("it has called"),
                                &self.config,
                                (&mut self.sessions, &mut self.current, &mut self.by_keys),
                                (&mut self.summary, &mut self.session_log),
                            );
                            Ok(())
                        }
                        None => Err(None),
                    }
                }
                Ok((_, Datagram::Challenge { session, challenge, proof })) => {
                    let running = self.calling.as_ref().and_then(|calling| self.current.get(&calling.node));
                    let id = running.and_then(|number| self.sessions.get(number)).map(|session| session.keys.id());
                    let calling = self.calling.as_mut();
                    let taken = calling.is_some_and(|one| one.asking.on_challenge(now, id, session, challenge, proof));
                    if taken { Ok(()) } else { Err(None) }
                }
                Err(_) => Err(Some(Refusal::Foreign)),
            };
            if let Err(why) = accepted {
                self.summary.refused += 1;
                why.into_iter().for_each(|why| self.refusals.add(now, from, why));
            }
        }
        for (to, answer) in answers {
            let unsent = send_bare(&self.link, &mut Path::over_mesh(to), &answer)?;
            self.summary.unsent.add(unsent);
        }
        Ok(())
    }

    /// Calls the gateway that is to be called, if it is time to.
    fn call(&mut self, now: Time) -> Result<(), Error> {
        let Gateway { calling: Some(calling), sessions, current, link, .. } = self else { return Ok(()) };
        if let Some(search) = &mut calling.search
            && search.look(now, |_| Ok::<(), ()>(())).is_some()
        {
            calling.path.lead_to(search.tried());
            calling.asking.anew();
        }
        let session = current.get(&calling.node).and_then(|number| sessions.get(number));
        let running = session.map(|session| Running { heard: session.heard, keys: &session.keys });
        if let Some(datagram) = calling.asking.look(now, running) {
            let datagram = datagram.to_vec();
            send_bare(link, &mut calling.path, &datagram)?;
        }
        let (other, heard) = (calling.path.to(), session.map(|session| session.heard));
        let (refused, unsent) = (self.summary.refused, calling.path.unsent());
        if let Some(line) = calling.silence.look(now, LastReception { proxy: other, heard, refused, unsent }) {
            (self.config.say)(&line);
        }
        Ok(())
    }

    fn end_those_that_are_over(&mut self, now: Time) {
        let over = |(number, session): (&u32, &Session)| (!session.is_heard(now, SILENCE)).then_some(*number);
        let over: Vec<u32> = self.sessions.iter().filter_map(over).collect();
        for number in over {
            if let Some(session) = self.sessions.get(&number).filter(|session| !session.closed) {
                self.session_log.silent(now, session.node);
            }
            self.end(now, number);
        }
    }

    fn housekeep(&mut self, now: Time) {
        self.session_log.tell(now, &self.config.allow, self.config.say);
        self.reception.forget(now);
        if let Some(line) = self.refusals.take(now) {
            (self.config.say)(&line);
        }
        let mut keys = match self.key_file.look(now) {
            None => return,
            Some(Ok(keys)) => keys,
            Some(Err(error)) => return (self.config.say)(&format!("the keys stay as they were: {error}")),
        };
        // Another key to call with takes another start.
        if let Some(calling) = &self.calling {
            keys.remove(&calling.node);
        }
        for node in self.reception.rekey(keys) {
            if let Some(number) = self.current.get(&node).copied() {
                (self.config.say)(&format!("key {}: its session has ended, the key is another one now", node.0));
                self.end(now, number);
            }
        }
    }

    fn end(&mut self, now: Time, number: u32) {
        let Some(mut session) = self.sessions.remove(&number) else { return };
        session.farewell(now, &self.link);
        if self.current.get(&session.node) == Some(&number) {
            self.current.remove(&session.node);
        }
        self.by_keys.retain(|_, session| *session != number);
        if let Some(calling) = self.calling.as_mut().filter(|calling| calling.node == session.node) {
            // It asked for a session to go on that is no more.
            calling.asking.anew();
        }
        close_books(&mut self.summary, session);
    }

    /// Nobody is led here any more, and all are told that it is over.
    fn end_all(&mut self) {
        self.doors.release();
        let (now, numbers) = (clock::now(), self.sessions.keys().copied().collect::<Vec<_>>());
        numbers.into_iter().for_each(|number| self.end(now, number));
    }
}

impl Turns for Gateway {
    type Error = Error;
    const WATCHING: u64 = 20;

    fn poll(&mut self) -> &mut Poll {
        &mut self.poll
    }

    fn service(&mut self, now: Time) -> Result<(), Error> {
        self.own.look(now, &self.link);
        self.doors.look_after(now, &self.poll);
        self.call(now)?;
        let mut asks = Vec::new();
        for (number, session) in &mut self.sessions {
            session.events(now, &self.poll, &mut asks);
            for ask in asks.drain(..) {
                self.resolver.ask(session.node, (*number, ask.stream), &ask.host, ask.port);
            }
        }
        self.end_those_that_are_over(now);
        if now.since(self.housekept) >= HOUSEKEEPING {
            self.housekept = now;
            self.housekeep(now);
            let through = self.through();
            let heard = through.as_ref().map(|session| session.heard);
            let forbidden = through.map(|session| std::mem::take(&mut session.forbidden)).unwrap_or_default();
            self.doors.divert(now, heard, forbidden)?;
        }
        self.full = false;
        for session in self.sessions.values_mut() {
            let own = (&mut self.own, self.config.least_delay);
            let sent = session.send(now, &self.link, own, &mut self.scratch);
            self.full |= !sent.map_err(system("sending datagrams"))?;
        }
        Ok(())
    }

    fn next(&mut self, now: Time) -> Until {
        let due = match self.full {
            true => Some(now + HELD_AGAIN),
            false => self.sessions.values().filter_map(|session| session.next_departure(now)).min(),
        };
        let timers = self.sessions.values().map(|session| {
            // What cannot leave does not hurry.
            if self.full { session.next_timer().max(now + HELD_AGAIN) } else { session.next_timer() }
        });
        let calls = self.calling.as_ref().map(|calling| {
            let session = self.current.get(&calling.node).and_then(|number| self.sessions.get(number));
            let running = session.map(|session| Running { heard: session.heard, keys: &session.keys });
            let search = calling.search.as_ref().and_then(Search::next_look).unwrap_or(Time::MAX);
            calling.asking.next_wake(running).min(search)
        });
        let about = timers.chain(calls).chain(self.doors.next_look());
        Until { due, about: about.fold(self.housekept + HOUSEKEEPING, Time::min) }
    }

    fn on_ready(&mut self, now: Time, event: Ready) -> Result<(), Error> {
        let (high, number) = (event.token & !u64::from(u32::MAX), event.token as u32);
        match (event.token, high) {
            (UDP, _) => self.receive(now)?,
            (RESOLVER, _) => self.resolved(now),
            (_, LISTENER) => {
                let guests = self.doors.accept(now, number as usize, &self.poll);
                guests.into_iter().for_each(|guest| self.connect(now, guest));
            }
            (_, LOCAL) => {
                let guest = self.doors.listen(number, &self.poll);
                guest.into_iter().for_each(|guest| self.connect(now, guest));
            }
            (token, _) => {
                if let Some(session) = self.sessions.get_mut(&((token >> 32) as u32)) {
                    session.on_ready(now, number, event.readable, event.writable, &self.poll);
                }
            }
        }
        Ok(())
    }
}

/// Where the gateway that is called may be, as the socket's family writes it.
fn others(config: &Config) -> Vec<SocketAddr> {
    let written = |to: &SocketAddr| match (config.bind, to.ip()) {
        (SocketAddr::V6(_), IpAddr::V4(v4)) => SocketAddr::new(v4.to_ipv6_mapped().into(), to.port()),
        _ => *to,
    };
    config.peer.iter().flat_map(|peer| &peer.addresses).map(written).collect()
}

/// Sends a datagram of a handshake.
fn send_bare(link: &Link, path: &mut Path, inner: &[u8]) -> Result<Unsent, Error> {
    let mut datagram = Vec::with_capacity(preamble::PREAMBLE + inner.len());
    path.preface(&mut datagram);
    datagram.extend_from_slice(inner);
    link.send_train(path, &datagram).map_err(system("sending a datagram"))?;
    Ok(path.unsent())
}

fn close_books(summary: &mut Summary, mut session: Session) {
    summary.connections += session.counts.connections;
    summary.served += session.counts.served;
    summary.packets += session.counts.packets;
    summary.lost += session.endpoint.lost_packets();
    summary.received += session.endpoint.arrived().0;
    summary.unsent.add(session.path.unsent());
    if let Some(figures) = session.endpoint.path_figures() {
        summary.delay = summary.delay.max(figures.heard);
        summary.most_delay = summary.most_delay.max(figures.most);
    }
    session.end();
}

type Sessions<'a> = (&'a mut BTreeMap<u32, Session>, &'a mut BTreeMap<Node, u32>, &'a mut BTreeMap<u32, u32>);

/// The gateway that was called has answered: the session goes on under other keys, or there is a new one.
fn called(
    now: Time,
    number: u32,
    agreed: crate::tunnel::Agreed,
    calling: &mut Calling,
    config: &Config,
    (sessions, current, by_keys): Sessions<'_>,
    (summary, session_log): (&mut Summary, &mut SessionLog),
) {
    calling.search = None;
    let running = current.get(&calling.node).copied();
    if let Some(old) = running.filter(|_| agreed.continued)
        && let Some(session) = sessions.get_mut(&old)
    {
        session.go_on(now, number, agreed.sealer);
        by_keys.retain(|keys, of| *of != old || session.keys.numbers().any(|number| number == *keys));
        by_keys.insert(number, old);
        summary.renewals += 1;
        return;
    }
    let (node, at) = (calling.node, calling.path.to());
    let keys = Keyring::new(now, agreed.id, number, agreed.sealer);
    let beginning = Beginning { node, number, at, keys, calls: true, variant: config.variant };
    begin(now, beginning, (sessions, current, by_keys), summary);
    session_log.begun(now, node, at);
}

/// Another gateway uses keys for the first time: its session goes on with them, or a new one takes the place of its last.
fn begin_or_go_on(
    now: Time,
    confirmed: Confirmed,
    from: SocketAddr,
    config: &Config,
    (sessions, current, by_keys): Sessions<'_>,
    (summary, session_log, refusals): (&mut Summary, &mut SessionLog, &mut Refusals),
) {
    let Confirmed { station: node, at, number, sealer, id, continues } = confirmed;
    if let Some(old) = continues {
        // If it has ended meanwhile, the other end will notice the silence.
        let Some(session) = sessions.get_mut(&old).filter(|session| !session.closed) else { return };
        session.go_on(now, number, sealer);
        by_keys.retain(|keys, of| *of != old || session.keys.numbers().any(|number| number == *keys));
        by_keys.insert(number, old);
        summary.renewals += 1;
        return;
    }
    let old = current.get(&node).and_then(|number| sessions.get(number));
    if old.is_some_and(|old| old.is_heard(now, IN_USE)) {
        refusals.replaced(now, from, node);
    }
    let keys = Keyring::new(now, id, number, sealer);
    let beginning = Beginning { node, number, at, keys, calls: false, variant: config.variant };
    begin(now, beginning, (sessions, current, by_keys), summary);
    session_log.begun(now, node, at);
}

/// A session begins; whoever held the other end of the old one is no more.
fn begin(now: Time, beginning: Beginning, (sessions, current, by_keys): Sessions<'_>, summary: &mut Summary) {
    let (node, number) = (beginning.node, beginning.number);
    if let Some(old) = current.insert(node, number) {
        by_keys.retain(|_, session| *session != old);
        if let Some(old) = sessions.remove(&old) {
            close_books(summary, old);
        }
    }
    summary.sessions += 1;
    by_keys.insert(number, number);
    sessions.insert(number, Session::new(now, beginning));
}
