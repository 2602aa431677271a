//! A bulk transfer over kernel TCP, watched through TCP_INFO.

use super::netns::Netns;
use super::pump::pump;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Sends as fast as TCP lets it, from one namespace to another, until dropped.
pub struct Bulk {
    sender: TcpStream,
    receiver: TcpStream,
    threads: Vec<std::thread::JoinHandle<()>>,
}

/// Which end opens the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opener {
    Receiver,
    Sender,
}

impl Bulk {
    pub fn start(from: (&Netns, IpAddr), to: (&Netns, IpAddr), opener: Opener) -> Bulk {
        let (listening, opening) = if opener == Opener::Receiver { (from, to) } else { (to, from) };
        let listener = listening.0.within(|| TcpListener::bind((listening.1, 0)).expect("a free port"));
        let at: SocketAddr = listener.local_addr().expect("bound");
        let opened = opening.0.within(|| TcpStream::connect_timeout(&at, Duration::from_secs(5)).expect("a path"));
        let (accepted, _) = listener.accept().expect("a connection");
        let (sender, receiver) = if opener == Opener::Receiver { (accepted, opened) } else { (opened, accepted) };
        let threads = pump(&sender, &receiver);
        Bulk { sender, receiver, threads }
    }

    pub fn info(&self) -> Info {
        Info::of(&self.sender)
    }

    /// What the sender's TCP has seen over `span`.
    pub fn watch(&self, span: Duration) -> Watched {
        let (before, began) = (self.info(), Instant::now());
        std::thread::sleep(span);
        let (after, took) = (self.info(), began.elapsed().as_secs_f64());
        Watched { mbit_s: (after.bytes_acked - before.bytes_acked) as f64 * 8.0 / took / 1e6, after }
    }
}

impl Drop for Bulk {
    fn drop(&mut self) {
        let _ = self.sender.shutdown(std::net::Shutdown::Both);
        let _ = self.receiver.shutdown(std::net::Shutdown::Both);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Watched {
    pub mbit_s: f64,
    pub after: Info,
}

/// What is read of `struct tcp_info` (linux/tcp.h).
#[derive(Clone, Copy, Debug)]
pub struct Info {
    pub bytes_acked: u64,
    pub rwnd_limited_us: u64,
    pub retransmissions: u32,
    /// The peer's window as the sender sees it, octets (Linux 6.2).
    pub snd_wnd: u32,
    /// Its unit, by the peer's window scale, octets.
    pub snd_wnd_unit: u32,
    pub rtt_us: u32,
}

impl Info {
    fn of(stream: &TcpStream) -> Info {
        let mut bytes = [0u8; 256];
        let mut len = bytes.len() as libc::socklen_t;
        // SAFETY: the buffer has room for `len` octets.
        let failed = unsafe {
            libc::getsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, bytes.as_mut_ptr().cast(), &mut len)
        };
        assert_eq!(failed, 0, "TCP_INFO");
        assert!(len >= 232, "a kernel that tells tcpi_snd_wnd");
        let u32_at = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four octets"));
        let u64_at = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight octets"));
        Info {
            bytes_acked: u64_at(120),
            rwnd_limited_us: u64_at(176),
            retransmissions: u32_at(100),
            snd_wnd: u32_at(228),
            // `tcpi_snd_wscale`, a field of four bits.
            snd_wnd_unit: 1 << if cfg!(target_endian = "little") { bytes[6] & 0xf } else { bytes[6] >> 4 },
            rtt_us: u32_at(68),
        }
    }
}
