#![allow(clippy::disallowed_methods, reason = "real sockets are what is tested")]

use super::*;
use crate::tunnel::{Initiator, Key, Question};
use lasthop_wire::tunnel::{CHALLENGE, Datagram, Grant, Wish};
use std::io::Read;
use std::net::{TcpListener, TcpStream};

const NOW: Time = Time::from_nanos(1_000_000_000_000);

/// A session with a station that has just come.
pub(in crate::proxy) fn session() -> Session {
    pair().0
}

/// And the station's end of it.
fn pair() -> (Session, Keyring) {
    let (station, key) = (Node(1), Key::new([7; 32]));
    let mut asks = Initiator::new(station, &key, Wish { number: 1, challenge: [0; CHALLENGE], continues: None });
    let Ok(Datagram::Initiation { message, .. }) = Datagram::parse(asks.datagram()) else { panic!("an initiation") };
    let question = Question::hear(station, &key, message).expect("the same key");
    let (answer, agreed) = question.answer(Grant { number: 7, continued: false }).expect("a key");
    let Ok(Datagram::Response { message, .. }) = Datagram::parse(&answer) else { panic!("an answer") };
    let theirs = asks.finish(message).expect("the same key");
    let terms = Terms { slack: ReceiveWindow::ALLOWANCE, retracts: false };
    let session = Session::new(NOW, station, 7, home(), Keyring::new(NOW, agreed.id, 7, agreed.sealer), terms);
    (session, Keyring::new(NOW, theirs.id, 1, theirs.sealer))
}

fn challenger() -> Challenger {
    Challenger::new([5; 32])
}

/// Where the station is.
fn home() -> SocketAddr {
    "192.0.2.1:4000".parse().expect("an address")
}

/// A caller of a station, and the proxy's end of that connection.
fn call() -> (TcpStream, Pipe, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let to = listener.local_addr().expect("an address");
    let caller = TcpStream::connect(to).expect("loopback");
    (caller, Pipe::new(listener.accept().expect("a connection").0).expect("a socket"), to)
}

#[test]
fn an_unwatchable_caller_is_reset_and_others_are_served() {
    let (mut session, poll) = (session(), Poll::new().expect("epoll"));
    let (mut refused, pipe, to) = call();
    // It is watched already, and so cannot be.
    poll.add_edge(&pipe, 0).expect("a socket");
    session.offer(pipe, to, &poll).expect_err("watched twice");
    let error = refused.read(&mut [0]).expect_err("broken off, not ended in order");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert!(session.servers.is_empty() && session.offered.is_empty() && session.stats.connections == 0);
    let (caller, pipe, to) = call();
    session.offer(pipe, to, &poll).expect("it can be watched");
    let stream = *session.servers.keys().next().expect("the second");
    let wants = |stream| session.endpoint.wants(NOW, stream);
    assert!(wants(stream) > 0, "the second is open");
    assert_eq!(wants(stream - 2), 0, "nothing is left of the first");
    drop(caller);
}

/// A server that answers nobody: it has more callers than it takes. With those callers.
fn silent() -> (SocketAddr, impl Sized) {
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    socket.bind(&any.into()).and_then(|()| socket.listen(0)).expect("a listener");
    let address = socket.local_addr().expect("an address").as_socket().expect("of IPv4");
    let caller = TcpStream::connect(address).expect("the first is taken");
    (address, (socket, caller))
}

#[test]
fn unreachable_addresses_are_skipped_until_the_deadline() {
    let ((mut session, poll), (silent, _kept)) = ((session(), Poll::new().expect("epoll")), silent());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("an address");
    for (stream, addresses) in [(2, vec![silent, address]), (4, vec![silent]), (6, vec![silent; 7])] {
        session.servers.insert(stream, Server::resolving());
        session.on_addresses(NOW, stream, addresses, &poll);
    }
    // How many addresses of each are left after so many milliseconds, if it is still tried.
    let mut left = |ms: u64| {
        session.housekeep(NOW + Span::from_millis(ms), &poll);
        [2, 4, 6].map(|stream| match session.servers.get(&stream).map(|server| &server.state) {
            Some(State::Connecting { left, .. }) => Some(left.count()),
            _ => None,
        })
    };
    assert_eq!(left(2000), [Some(1), Some(0), Some(6)], "each has its share, and time for a second SYN");
    assert_eq!(left(2001), [Some(1), Some(0), Some(5)]);
    assert_eq!(left(5000), [Some(1), Some(0), Some(4)]);
    assert_eq!(left(5001), [Some(0), Some(0), Some(4)]);
    let (_answers, _) = listener.accept().expect("the second address");
    assert_eq!([left(6004), left(8005)], [[Some(0), Some(0), Some(4)], [Some(0), Some(0), Some(3)]]);
    session.on_ready(NOW + Span::from_millis(8005), 2, false, true, &poll);
    assert!(matches!(session.servers[&2].state, State::Up(_)) && session.stats.connections == 1);
    session.housekeep(NOW + Span::from_millis(10_001), &poll);
    assert!(session.servers.keys().eq([&2]), "ten seconds are all that a host has, however many addresses");
}

#[test]
fn a_session_that_is_over_takes_nothing_more_and_stays_over() {
    let within = Span::from_secs(30);
    for closes in [true, false] {
        let ((mut session, mut keys), mut station) = (pair(), Endpoint::new(TunnelConfig::station()));
        let mut bring = |packet: &[u8], number| {
            let mut datagram = Vec::new();
            assert!(keys.seal(NOW, number, packet, &mut datagram), "the keys are new");
            let Ok(Datagram::Sealed { number, sealed, .. }) = Datagram::parse(&datagram) else { panic!("a packet") };
            let taken = session.on_sealed(NOW, 7, number, sealed, home(), &challenger());
            session.asks(NOW, &mut Vec::new());
            (taken, session.is_heard(NOW, within))
        };
        let next = |station: &mut Endpoint| {
            let mut packet = Vec::new();
            (station.poll_transmit(NOW, &mut packet).expect("something to say").number, packet)
        };
        station.ping();
        let (number, ping) = next(&mut station);
        assert_eq!(bring(&ping, number), (Ok(()), true));
        // What no frame begins like, or the end.
        let mut last = vec![0xff; 64];
        if closes {
            station.close();
            last = next(&mut station).1;
        }
        assert_eq!(bring(&last, number + 1), (Ok(()), false), "closed: {closes}");
        assert_eq!(bring(&ping, number + 2), (Err(Refused::Unknown), false), "closed: {closes}");
    }
}

/// A session that sends its packets to a socket, and what that station sends and hears at several.
struct Moving {
    session: Session,
    link: Link,
    keys: Keyring,
    station: Endpoint,
    packet: Vec<u8>,
}

/// Where a station may be.
fn place() -> std::net::UdpSocket {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback");
    socket.set_nonblocking(true).expect("a socket");
    socket
}

impl Moving {
    fn new(home: &std::net::UdpSocket) -> Moving {
        let ((mut session, keys), station) = (pair(), Endpoint::new(TunnelConfig::station()));
        session.path = Path::new(home.local_addr().expect("bound"));
        let link = Link::bind("127.0.0.1:0".parse().expect("an address")).expect("loopback");
        Moving { session, link, keys, station, packet: Vec::new() }
    }

    /// The station's next packet, sealed; `None` if it has nothing to say.
    fn says(&mut self, now: Time) -> Option<Vec<u8>> {
        let number = self.station.poll_transmit(now, &mut self.packet)?.number;
        let mut datagram = Vec::new();
        assert!(self.keys.seal(now, number, &self.packet, &mut datagram), "the keys are new");
        Some(datagram)
    }

    /// A datagram arrives at the proxy from there.
    fn arrives(&mut self, now: Time, datagram: &[u8], from: &std::net::UdpSocket) -> Result<(), Refused> {
        let Ok(Datagram::Sealed { number, sealed, .. }) = Datagram::parse(datagram) else { panic!("a packet") };
        let from = from.local_addr().expect("bound");
        self.session.on_sealed(now, 7, number, sealed, from, &challenger())
    }

    /// What the proxy sends: how much of it reaches a place.
    fn sends(&mut self, now: Time, place: &std::net::UdpSocket) -> Vec<Vec<u8>> {
        self.session.send(now, &self.link).expect("a socket");
        let mut bytes = [0; 2048];
        std::iter::from_fn(|| place.recv(&mut bytes).ok().map(|len| bytes[..len].to_vec())).collect()
    }

    /// The station hears these.
    fn hears(&mut self, now: Time, datagrams: &[Vec<u8>]) {
        for datagram in datagrams {
            let Ok(Datagram::Sealed { session, number, sealed }) = Datagram::parse(datagram) else {
                panic!("a packet")
            };
            let mut opened = [0; 2048];
            let (len, _) = self.keys.open(now, session, number, sealed, &mut opened).expect("sealed for it");
            self.station.on_packet(now, number, &opened[..len]).expect("understood");
        }
    }

    /// The station says something from there; what it is told there in return.
    fn speaks(&mut self, now: Time, place: &std::net::UdpSocket) -> Vec<Vec<u8>> {
        self.station.ping();
        while let Some(datagram) = self.says(now) {
            self.arrives(now, &datagram, place).expect("new");
        }
        self.sends(now, place)
    }

    fn is_at(&self, place: &std::net::UdpSocket) -> bool {
        self.session.path.to() == place.local_addr().expect("bound")
    }
}

#[test]
fn a_moved_station_is_followed_after_one_round_trip() {
    let (home, away) = (place(), place());
    let mut world = Moving::new(&home);
    let mut now = NOW;
    let heard = world.speaks(now, &home);
    world.hears(now, &heard);
    for (old, new) in [(&home, &away), (&away, &home)] {
        now += Span::from_secs(1);
        let asked = world.speaks(now, new);
        assert!(world.is_at(old) && asked.len() == 1 && asked[0].len() == 49, "a challenge, and nothing else");
        world.hears(now, &asked);
        let answer = world.says(now).expect("an answer");
        world.arrives(now, &answer, new).expect("new");
        assert!(world.is_at(new), "one round trip");
        world.sends(now, old);
        now += Span::from_millis(1);
        assert!(!world.speaks(now, new).is_empty() && world.sends(now, old).is_empty());
    }
    assert_eq!(world.session.path.unsent().count, 0);
}

#[test]
fn replayed_packets_get_a_challenge_within_3x() {
    let (home, thief) = (place(), place());
    let mut world = Moving::new(&home);
    let mut now = NOW;
    let heard = world.speaks(now, &home);
    world.hears(now, &heard);
    let (mut sent, mut got, mut challenges) = (0, 0, Vec::new());
    for _ in 0..100 {
        now += Span::from_millis(100);
        world.station.ping();
        while let Some(datagram) = world.says(now) {
            sent += datagram.len();
            world.arrives(now, &datagram, &thief).expect("he is the first");
            assert_eq!(world.arrives(now, &datagram, &home), Err(Refused::Repeated), "the station's own");
        }
        let stolen = world.sends(now, &thief);
        got += stolen.iter().map(Vec::len).sum::<usize>();
        challenges.extend(stolen);
        now += Span::from_millis(2);
        let heard = world.sends(now, &home);
        assert!(!heard.is_empty(), "the acknowledgement");
        world.hears(now, &heard);
        assert!(world.is_at(&home));
    }
    assert!(got > 0 && got <= 3 * sent, "{got} octets for {sent}");
    assert!(challenges.len() <= 11, "{} in 10.2 s", challenges.len());
    // What he was asked, answered by the station from where that is, leads nowhere.
    world.hears(now, &challenges[challenges.len() - 1..]);
    let answer = world.says(now).expect("an answer");
    world.arrives(now, &answer, &home).expect("new");
    assert!(world.is_at(&home));
    // An answer that comes too late does not, and asks for another challenge.
    now += Span::from_secs(1);
    let asked = world.speaks(now, &thief);
    world.hears(now, &asked);
    let answer = world.says(now).expect("an answer");
    now += Span::from_secs(20);
    world.arrives(now, &answer, &thief).expect("new");
    assert!(world.is_at(&home) && world.sends(now, &thief).len() == 1);
}
