//! An upload over kernel TCP with a congestion control of its own, and what the kernel tells of it.

use super::netns::Netns;
use super::pump::pump;
use lasthop_units::Rate;
use lasthop_wire::tcp_info::{ROOM, TcpInfo};
use socket2::{Domain, Socket, Type};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Sends as fast as TCP lets it until dropped.
pub struct Upload {
    socket: TcpStream,
    received: TcpStream,
    threads: Vec<JoinHandle<()>>,
}

impl Upload {
    pub fn start(from: &Netns, to: &Netns, at: &str, congestion: &str) -> Upload {
        let at: SocketAddr = at.parse().expect("an address");
        let listener = to.within(|| TcpListener::bind(at)).expect("a free port");
        let socket = from.within(|| {
            let socket = Socket::new(Domain::for_address(at), Type::STREAM, None).expect("a socket");
            socket.set_tcp_congestion(congestion.as_bytes()).expect("a congestion control that there is");
            socket
                .connect_timeout(&listener.local_addr().expect("bound").into(), Duration::from_secs(5))
                .expect("a path");
            TcpStream::from(socket)
        });
        let (received, _) = listener.accept().expect("connected");
        let threads = pump(&socket, &received);
        Upload { socket, received, threads }
    }

    pub fn info(&self) -> TcpInfo {
        let mut bytes = [0; ROOM];
        let mut len = ROOM as libc::socklen_t;
        // SAFETY: the buffer has room for `len` octets.
        let failed = unsafe {
            let to = bytes.as_mut_ptr().cast();
            libc::getsockopt(self.socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, to, &mut len)
        };
        assert_eq!(failed, 0, "TCP_INFO");
        TcpInfo::parse(&bytes[..len as usize]).expect("a record")
    }

    pub fn cookie(&self) -> u64 {
        let (mut cookie, mut len) = (0u64, 8 as libc::socklen_t);
        // SAFETY: the cookie has room for eight octets.
        let failed = unsafe {
            let to = (&raw mut cookie).cast();
            libc::getsockopt(self.socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_COOKIE, to, &mut len)
        };
        assert_eq!(failed, 0, "SO_COOKIE");
        cookie
    }

    pub fn congestion(&self) -> String {
        let name = socket2::SockRef::from(&self.socket).tcp_congestion().expect("TCP has one");
        String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned()
    }

    /// From now on the kernel sends no faster than this.
    pub fn no_faster_than(&self, rate: Rate) {
        let octets = rate.as_bps() / 8;
        // SAFETY: the value is read, and has eight octets.
        let failed = unsafe {
            let from = (&raw const octets).cast();
            libc::setsockopt(self.socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, from, 8)
        };
        assert_eq!(failed, 0, "SO_MAX_PACING_RATE");
    }

    /// Waits until its state is so.
    pub fn until(&self, what: &str, so: impl Fn(&TcpInfo) -> bool) {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let info = self.info();
            if so(&info) {
                return;
            }
            assert!(Instant::now() < end, "{what}: {info:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Its state, ten times in a round trip of 20 ms.
    pub fn states(&self, span: Duration) -> Vec<TcpInfo> {
        let end = Instant::now() + span;
        let mut states = Vec::new();
        while Instant::now() < end {
            states.push(self.info());
            std::thread::sleep(Duration::from_millis(2));
        }
        states
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // What is unsent goes too: the kernel would try to send it for minutes.
        let _ = socket2::SockRef::from(&self.socket).set_linger(Some(Duration::ZERO));
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        let _ = self.received.shutdown(std::net::Shutdown::Both);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
