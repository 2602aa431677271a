//! What the kernel tells of a TCP connection.

use lasthop_units::{Bytes, Rate, Span};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `struct tcp_info` of linux/tcp.h, as far as the lab reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Congestion window.
    pub cwnd: Bytes,
    /// Smoothed round-trip time.
    pub srtt: Span,
    /// Mean deviation of the round-trip time.
    pub rttvar: Span,
    /// Smallest round-trip time of the kernel's window for it.
    pub min_rtt: Span,
    /// Window that the receiver advertised last.
    pub peer_window: Bytes,
    /// Latest delivery rate sample.
    pub delivery_rate: Rate,
    /// Pacing rate.
    pub pacing_rate: Rate,
    /// Payload sent, retransmissions included.
    pub sent: Bytes,
    /// Payload retransmitted.
    pub retransmitted: Bytes,
    /// Segments with payload sent, retransmissions included.
    pub segments: u32,
    /// Segments retransmitted.
    pub retransmitted_segments: u32,
    /// Payload acknowledged.
    pub acked: Bytes,
    /// Time during which the receiver's window, not the network, held the sender back.
    pub window_limited: Span,
}

/// Long enough for the kernel's struct up to `tcpi_rehash`; the kernel fills what it has.
const LENGTH: usize = 240;

impl TcpInfo {
    /// Reads the state of a connection.
    pub fn of(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
        let mut bytes = [0u8; LENGTH];
        let mut len = LENGTH as libc::socklen_t;
        // SAFETY: the buffer is `len` bytes long, and both outlive the call.
        let code = unsafe {
            libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, bytes.as_mut_ptr().cast(), &mut len)
        };
        if code == 0 { Ok(TcpInfo::parse(&bytes)) } else { Err(io::Error::last_os_error()) }
    }

    /// Offsets are those of linux/tcp.h; fields that an older kernel lacks stay zero.
    fn parse(bytes: &[u8; LENGTH]) -> TcpInfo {
        let u32_at = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let u64_at = |at: usize| {
            let mut field = [0; 8];
            field.copy_from_slice(&bytes[at..at + 8]);
            u64::from_ne_bytes(field)
        };
        let us = |value: u64| Span::from_micros(value);
        // Rates come in bytes a second, all ones for "unlimited".
        let rate = |value: u64| Rate::from_bps(value.saturating_mul(8));
        let mss = Bytes::new(u64::from(u32_at(16)));
        TcpInfo {
            cwnd: mss * u64::from(u32_at(80)),
            srtt: us(u32_at(68).into()),
            rttvar: us(u32_at(72).into()),
            // All ones until the first sample.
            min_rtt: if u32_at(148) == u32::MAX { Span::ZERO } else { us(u32_at(148).into()) },
            peer_window: Bytes::new(u32_at(228).into()),
            delivery_rate: rate(u64_at(160)),
            pacing_rate: rate(u64_at(104)),
            sent: Bytes::new(u64_at(200)),
            retransmitted: Bytes::new(u64_at(208)),
            segments: u32_at(156),
            retransmitted_segments: u32_at(100),
            acked: Bytes::new(u64_at(120)),
            window_limited: us(u64_at(176)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    #[test]
    fn a_connection_over_loopback_reports_what_was_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let mut client = TcpStream::connect(listener.local_addr().expect("bound")).expect("listening");
        let (mut server, _) = listener.accept().expect("connected");
        server.write_all(&[0; 50_000]).expect("connected");
        drop(server.try_clone());
        let mut received = [0; 50_000];
        client.read_exact(&mut received).expect("sent");
        // The last ACK may still be on its way.
        let mut info = TcpInfo::of(server.as_fd()).expect("a TCP socket");
        for _ in 0..1000 {
            if info.acked == info.sent {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
            info = TcpInfo::of(server.as_fd()).expect("a TCP socket");
        }
        assert_eq!((info.sent, info.acked), (Bytes::new(50_000), Bytes::new(50_000)));
        assert!(info.cwnd >= Bytes::new(10 * 1000) && info.peer_window > Bytes::ZERO, "{info:?}");
        assert!(info.srtt > Span::ZERO && info.srtt < Span::from_secs(10), "{info:?}");
        assert_eq!((info.retransmitted, info.retransmitted_segments), (Bytes::ZERO, 0));
        // The loopback's MTU is 64 KiB: few segments, but some.
        assert!((1..=50).contains(&info.segments), "{info:?}");
    }
}
