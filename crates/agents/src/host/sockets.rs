//! The TCP sockets of a network namespace, listed by the kernel (NETLINK_SOCK_DIAG).
//!
//! Every list is whole or an error. A list that the kernel says it could not take at one moment is asked for again, a few times; the
//! last one then stands, as a socket too many or too few does less harm than none at all.

use super::error::Error;
use crate::service::system;
use lasthop_system::netlink::Netlink;
use lasthop_wire::sock_diag::{Answer, Family, Messages, Socket, States, request};
use nix::errno::Errno;

/// A channel to the kernel's list of sockets, of the network namespace in which it was opened.
#[derive(Debug)]
pub struct Sockets {
    netlink: Netlink,
    sequence: u32,
    found: Vec<Socket>,
}

/// How often a list is asked for that was interrupted or lost.
const ATTEMPTS: usize = 4;

/// How the answer to one question ended.
enum End {
    Whole,
    /// The table changed meanwhile.
    Interrupted,
    /// Messages were lost.
    Lost,
}

impl Sockets {
    /// Opens a channel into the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::Service`].
    pub fn open() -> Result<Sockets, Error> {
        let netlink = Netlink::open(libc::NETLINK_SOCK_DIAG).map_err(system("a netlink socket"))?;
        Ok(Sockets { netlink, sequence: 0, found: Vec::new() })
    }

    /// Every TCP socket, IPv4 and IPv6, in one of these states. [`States::CONNECTED`] are connections that are not over.
    ///
    /// # Errors
    /// [`Error::NoDiag`], [`Error::Answer`], [`Error::Service`].
    pub fn list(&mut self, states: States) -> Result<&[Socket], Error> {
        self.found.clear();
        for family in [Family::V4, Family::V6] {
            match self.ask(family, states) {
                // A kernel without IPv6 has no such sockets.
                Err(Error::NoDiag) if family == Family::V6 => {}
                asked => asked?,
            }
        }
        Ok(&self.found)
    }

    /// Appends the sockets of a family.
    fn ask(&mut self, family: Family, states: States) -> Result<(), Error> {
        let before = self.found.len();
        for attempt in 1..=ATTEMPTS {
            self.found.truncate(before);
            self.sequence = self.sequence.wrapping_add(1);
            let question = request(family, states, self.sequence);
            self.netlink.write(&question).map_err(system("asking for TCP sockets"))?;
            match self.answer()? {
                End::Whole => return Ok(()),
                End::Interrupted if attempt == ATTEMPTS => return Ok(()),
                End::Interrupted | End::Lost => {}
            }
        }
        Err(system("TCP sockets were lost on their way, again and again")(Errno::ENOBUFS).into())
    }

    /// Takes in what the kernel answers to the latest question.
    fn answer(&mut self) -> Result<End, Error> {
        let mut interrupted = false;
        loop {
            let datagram = match self.netlink.receive() {
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => return Ok(End::Lost),
                read => read.map_err(system("the list of TCP sockets"))?,
            };
            for message in Messages::new(datagram) {
                let message = message.map_err(Error::Answer)?;
                // What is left of an answer that was given up.
                if message.sequence != self.sequence {
                    continue;
                }
                interrupted |= message.interrupted;
                match message.answer {
                    Answer::Socket(socket) => self.found.push(socket),
                    Answer::Done if interrupted => return Ok(End::Interrupted),
                    Answer::Done => return Ok(End::Whole),
                    Answer::Refused(libc::ENOENT) => return Err(Error::NoDiag),
                    Answer::Refused(error) => return Err(system("TCP sockets")(Errno::from_raw(error)).into()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_wire::tcp_info::{CaState, TcpState};
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    fn pair(address: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(address).expect("loopback");
        let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("listening");
        (client, listener.accept().expect("connected").0)
    }

    fn cookie(socket: &TcpStream) -> u64 {
        let (mut cookie, mut len) = (0_u64, size_of::<u64>() as libc::socklen_t);
        // SAFETY: the kernel writes at most `len` octets, which `cookie` has.
        let failed = unsafe {
            libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_COOKIE, (&raw mut cookie).cast(), &mut len)
        };
        assert_eq!(failed, 0, "SO_COOKIE");
        cookie
    }

    #[test]
    fn own_connections_are_found_with_their_state() {
        let mut sockets = Sockets::open().expect("a netlink socket");
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (mut client, mut server) = pair(address);
            client.write_all(&[0; 5000]).expect("connected");
            server.read_exact(&mut [0; 4000]).expect("sent");
            let list = sockets.list(States::CONNECTED).expect("a list");
            let find = |stream: &TcpStream| {
                let mut found = list.iter().filter(|socket| socket.cookie == cookie(stream));
                let socket = *found.next().expect("it is listed");
                assert_eq!(found.next(), None, "once");
                assert_eq!(socket.local, stream.local_addr().expect("bound"));
                assert_eq!(socket.peer, stream.peer_addr().expect("connected"));
                assert_eq!(socket.state, TcpState::Established);
                assert_ne!(socket.inode, 0);
                assert!(!socket.congestion_control.as_str().is_empty());
                (socket, socket.info.expect("the kernel tells it"))
            };
            let ((client, info), (server, theirs)) = (find(&client), find(&server));
            assert_eq!((info.state, info.ca_state), (TcpState::Established, CaState::Open));
            // RFC 6928's initial window, or grown since.
            assert!(info.cwnd >= 10 && info.rtt.is_some() && info.min_rtt <= info.rtt, "{info:?}");
            assert_eq!(info.bytes_sent.expect("Linux 4.19").get(), 5000);
            assert_eq!((server.receive_queue.get(), client.receive_queue.get()), (1000, 0));
            assert_eq!(theirs.bytes_received.expect("Linux 4.2").get(), 5000);
        }
    }

    #[test]
    fn only_the_states_asked_for_are_listed() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        let mut sockets = Sockets::open().expect("a netlink socket");
        let has = |list: &[Socket]| list.iter().any(|socket| socket.local == address);
        assert!(!has(sockets.list(States::CONNECTED).expect("a list")));
        let list = sockets.list(States::NONE.with(TcpState::Listen)).expect("a list");
        assert!(has(list) && list.iter().all(|socket| socket.state == TcpState::Listen));
    }

    #[test]
    fn more_sockets_than_fit_a_datagram_are_all_listed() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        let connect = || TcpStream::connect(address).and_then(|client| Ok((client, listener.accept()?.0)));
        let pairs: Vec<_> = (0..400).map(|_| connect().expect("connected")).collect();
        let mut sockets = Sockets::open().expect("a netlink socket");
        let list = sockets.list(States::CONNECTED).expect("a list");
        assert_eq!(list.iter().filter(|socket| socket.peer == address).count(), pairs.len());
        assert_eq!(list.iter().filter(|socket| socket.local == address).count(), pairs.len());
    }
}
