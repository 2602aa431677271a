//! The way from a host's program to the one that it calls: straight, or through the agent on the station, which is asked by HTTP
//! CONNECT (RFC 9110, 9.3.6) at a port of the station's own.

use super::{Period, TICK, is_transient, mark};
use lasthop_units::Span;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;

/// How programs of a host reach the one that they call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Door {
    /// The agent's port; `None` if there is no agent.
    pub(crate) at: Option<SocketAddr>,
    /// What the packets of its connections are marked with (DSCP, in the octet of the IP header).
    pub(crate) tos: u8,
}

/// Between two attempts: until the agent has found its proxy it refuses.
const AGAIN: Span = Span::from_millis(20);
/// An answer longer than this is none.
const LONGEST_ANSWER: usize = 4096;

impl Door {
    /// A connection to `to` from the namespace in which `make` makes sockets; `None` if the period ends before there is one.
    /// Reads time out after [`TICK`].
    ///
    /// # Errors
    /// What the kernel or the agent refused for good.
    pub(crate) fn connect(
        self,
        to: SocketAddr,
        period: &Period,
        make: impl Fn() -> io::Result<Socket>,
    ) -> io::Result<Option<Socket>> {
        while period.lasts() {
            match self.attempt(to, period, make()?) {
                Ok(socket) => return Ok(Some(socket)),
                Err(_) if !period.lasts() => return Ok(None),
                Err(error) if is_transient(&error) && self.at.is_none() => return Ok(None),
                // Only the agent may need more time.
                Err(error) if self.at.is_none() => return Err(error),
                Err(error) if error.kind() == ErrorKind::InvalidData => return Err(error),
                Err(_) => std::thread::sleep(AGAIN.into()),
            }
        }
        Ok(None)
    }

    fn attempt(self, to: SocketAddr, period: &Period, socket: Socket) -> io::Result<Socket> {
        connect(&socket, self.at.unwrap_or(to), period)?;
        socket.set_read_timeout(Some(TICK))?;
        if self.at.is_some() {
            ask(&socket, to, period)?;
        }
        Ok(socket)
    }

    /// A socket of the right kind for [`Door::connect`], with the kernel's congestion control `congestion`.
    pub(crate) fn socket(self, to: SocketAddr, congestion: &str) -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(self.at.unwrap_or(to)), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_tcp_congestion(congestion.as_bytes())?;
        mark(&socket, self.tos)?;
        Ok(socket)
    }
}

/// Connects `socket`; times out when the period ends. Where a queue is full the kernel sends its first segment again after 1, 3
/// and 7 s: nobody who stops a run should have to wait for that.
fn connect(socket: &Socket, to: SocketAddr, period: &Period) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    match socket.connect(&SockAddr::from(to)) {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
        done => return done.and_then(|()| socket.set_nonblocking(false)),
    }
    let tick = PollTimeout::try_from(TICK).expect("some milliseconds");
    while period.lasts() {
        let mut watched = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
        match poll(&mut watched, tick) {
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => return socket.take_error()?.map_or_else(|| socket.set_nonblocking(false), Err),
            Err(error) => return Err(error.into()),
        }
    }
    Err(ErrorKind::TimedOut.into())
}

/// Asks the agent for a connection to `to`.
fn ask(mut socket: &Socket, to: SocketAddr, period: &Period) -> io::Result<()> {
    socket.write_all(format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").as_bytes())?;
    let mut answer = Vec::new();
    // One byte at a time: what follows the empty line is the server's.
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\n") {
        match socket.read(&mut byte) {
            Ok(0) => return Err(ErrorKind::ConnectionRefused.into()),
            Ok(_) => answer.push(byte[0]),
            Err(error) if is_transient(&error) && period.lasts() => {}
            Err(error) => return Err(error),
        }
        if answer.len() > LONGEST_ANSWER {
            return Err(io::Error::new(ErrorKind::InvalidData, "the station's agent does not answer as HTTP does"));
        }
    }
    let line = String::from_utf8_lossy(answer.split(|byte| *byte == b'\r').next().unwrap_or_default()).into_owned();
    match line.split_whitespace().nth(1) {
        Some(status) if status.starts_with('2') => Ok(()),
        Some(_) => Err(io::Error::new(ErrorKind::ConnectionRefused, line)),
        None => Err(io::Error::new(ErrorKind::InvalidData, format!("the station's agent said {line:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::stop::Stop;
    use lasthop_units::Time;
    use std::net::TcpListener;
    use std::time::Duration;

    /// An agent that answers one connection after the other with what it is told to.
    fn agent(answers: &'static [&'static str]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        std::thread::spawn(move || {
            for answer in answers {
                let (mut connection, _) = listener.accept().expect("a caller");
                let mut request = [0; 512];
                let len = connection.read(&mut request).expect("a request");
                let request = String::from_utf8_lossy(&request[..len]).into_owned();
                assert!(request.starts_with("CONNECT 10.76.0.1:5201 HTTP/1.1\r\nHost: "), "{request}");
                connection.write_all(answer.as_bytes()).expect("written");
            }
        });
        address
    }

    fn call(door: Door, lasts: Span) -> io::Result<Option<Socket>> {
        let to = SocketAddr::from(([10, 76, 0, 1], 5201));
        let (clock, start) = (Clock::start(), Time::ZERO);
        let period = Period { clock, start, end: start + lasts, stop: Stop::default() };
        door.connect(to, &period, || door.socket(to, "reno"))
    }

    #[test]
    fn a_door_is_asked_until_it_grants_and_the_rest_is_stream_data() {
        const REFUSED: &str = "HTTP/1.1 503 no proxy yet\r\n\r\n";
        let at = agent(&[REFUSED, REFUSED, "HTTP/1.1 200 OK\r\nVia: x\r\n\r\nfirst bytes"]);
        let socket = call(Door { at: Some(at), tos: 0 }, Span::from_secs(5)).expect("granted").expect("in time");
        let mut bytes = [0; 32];
        let len = (&socket).read(&mut bytes).expect("bytes");
        assert_eq!(&bytes[..len], b"first bytes");
    }

    #[test]
    fn a_call_that_nobody_takes_ends_when_the_run_is_stopped() {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).expect("a socket");
        listener.bind(&SockAddr::from(SocketAddr::from(([127, 0, 0, 1], 0)))).expect("loopback");
        listener.listen(0).expect("it listens");
        let to = listener.local_addr().expect("bound").as_socket().expect("an IP address");
        // Once the queue of those that wait to be taken is full, the kernel does not answer.
        let caller = || Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).expect("a socket");
        let takes = |caller: &Socket| caller.connect_timeout(&SockAddr::from(to), TICK).is_ok();
        let waiting: Vec<Socket> = std::iter::repeat_with(caller).take(8).take_while(takes).collect();
        assert!(waiting.len() < 8, "the queue never fills");

        let (clock, start, stop) = (Clock::start(), Time::ZERO, Stop::default());
        let period = Period { clock, start, end: start + Span::from_secs(60), stop: stop.clone() };
        let called = std::thread::spawn(move || connect(&caller(), to, &period).expect_err("nobody answers").kind());
        std::thread::sleep(Duration::from_millis(100));
        assert!(!called.is_finished(), "the kernel answered");
        stop.raise();
        let raised = clock.now();
        assert_eq!(called.join().expect("no panic"), ErrorKind::TimedOut);
        // The call would wait for a minute.
        assert!(clock.now().since(raised) < Span::from_secs(30), "deaf for {}", clock.now().since(raised));
    }

    #[test]
    fn a_bad_answer_or_a_lasting_refusal_fails() {
        let nonsense = agent(&["nonsense\r\n\r\n"]);
        assert_eq!(
            call(Door { at: Some(nonsense), tos: 0 }, Span::from_secs(5)).expect_err("no HTTP").kind(),
            ErrorKind::InvalidData
        );
        let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
        assert!(call(Door { at: Some(nobody), tos: 0 }, Span::from_millis(100)).expect("patience").is_none());
    }
}
