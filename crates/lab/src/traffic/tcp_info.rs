//! What the kernel tells of a connection of the lab's own.

use lasthop_wire::tcp_info::{ROOM, TcpInfo};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Reads the state of a connection.
pub fn of(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    let mut bytes = [0u8; ROOM];
    let mut len = ROOM as libc::socklen_t;
    // SAFETY: the buffer is `len` bytes long, and both outlive the call.
    let code = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, bytes.as_mut_ptr().cast(), &mut len)
    };
    if code != 0 {
        return Err(io::Error::last_os_error());
    }
    TcpInfo::parse(&bytes[..(len as usize).min(ROOM)]).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::{Bytes, Span};
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
        let mut info = of(server.as_fd()).expect("a TCP socket");
        for _ in 0..1000 {
            if info.bytes_acked == info.bytes_sent {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
            info = of(server.as_fd()).expect("a TCP socket");
        }
        assert_eq!((info.bytes_sent, info.bytes_acked), (Some(Bytes::new(50_000)), Some(Bytes::new(50_000))));
        assert!(info.cwnd >= 10 && info.snd_wnd > Some(Bytes::ZERO), "{info:?}");
        assert!(info.rtt.is_some_and(|rtt| rtt < Span::from_secs(10)), "{info:?}");
        assert_eq!((info.bytes_retrans, info.total_retrans), (Some(Bytes::ZERO), 0));
        // The loopback's MTU is 64 KiB: few segments, but some.
        assert!(info.data_segs_out.is_some_and(|segments| (1..=50).contains(&segments)), "{info:?}");
    }
}
