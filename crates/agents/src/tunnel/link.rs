//! The tunnel's UDP socket: many datagrams a system call where that costs no evenness.

use lasthop_units::Time;
use lasthop_wire::tunnel::MAX_DATAGRAM;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, sendmsg, setsockopt,
    sockopt,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Datagrams received with one system call.
const BATCH: usize = 64;
/// Longer ones are not ours; they are cut, and refused for that.
const ROOM: usize = 2048;
/// What the kernel may hold for us, each way.
const BUFFER: usize = 4 << 20;

/// A UDP socket.
pub struct Link {
    socket: UdpSocket,
    headers: MultiHeaders<SockaddrStorage>,
    buffers: Vec<[u8; ROOM]>,
    /// Of the last batch: length, sender, arrival at this host by the wall clock.
    arrived: Vec<Arrival>,
    segmentation: bool,
}

/// A datagram that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    len: usize,
    /// Who sent it.
    pub from: Option<SocketAddr>,
    /// When the kernel received it, by `CLOCK_REALTIME`.
    pub at: Option<Time>,
}

impl Link {
    /// A socket bound to an address.
    ///
    /// # Errors
    /// If it cannot be bound.
    pub fn bind(address: SocketAddr) -> io::Result<Link> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        // More than the limit is cut to it, and beyond it for who may.
        let forced = setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).is_ok();
        if !forced {
            setsockopt(&socket, sockopt::RcvBuf, &BUFFER)?;
        }
        setsockopt(&socket, sockopt::SndBuf, &BUFFER)?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        let control = nix::cmsg_space!(nix::sys::time::TimeSpec);
        let headers = MultiHeaders::preallocate(BATCH, Some(control));
        Ok(Link {
            socket,
            headers,
            buffers: vec![[0; ROOM]; BATCH],
            arrived: Vec::with_capacity(BATCH),
            segmentation: true,
        })
    }

    /// Where the socket is.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Receives what is there, up to a batch; returns how many datagrams that are. They stay until the next call.
    ///
    /// # Errors
    /// Those of the socket; that there is nothing is none, nor is an ICMP message about something sent earlier.
    pub fn receive(&mut self) -> io::Result<usize> {
        self.arrived.clear();
        let mut slices: Vec<[IoSliceMut<'_>; 1]> =
            self.buffers.iter_mut().map(|buffer| [IoSliceMut::new(buffer)]).collect();
        let flags = MsgFlags::MSG_DONTWAIT;
        let received = match recvmmsg(self.socket.as_raw_fd(), &mut self.headers, slices.iter_mut(), flags, None) {
            Ok(received) => received,
            Err(error) => {
                let error = io::Error::from(error);
                return if is_passing(&error) { Ok(0) } else { Err(error) };
            }
        };
        for message in received {
            let stamp = message.cmsgs().ok().and_then(|mut all| {
                all.find_map(|one| match one {
                    ControlMessageOwned::ScmTimestampns(stamp) => {
                        let (s, ns) = (u64::try_from(stamp.tv_sec()).ok()?, u64::try_from(stamp.tv_nsec()).ok()?);
                        Some(Time::from_nanos(s * 1_000_000_000 + ns))
                    }
                    _ => None,
                })
            });
            self.arrived.push(Arrival { len: message.bytes, from: message.address.and_then(address), at: stamp });
        }
        Ok(self.arrived.len())
    }

    /// The `n`-th datagram of the last batch.
    pub fn datagram(&self, n: usize) -> (&[u8], Arrival) {
        let arrival = self.arrived[n];
        (&self.buffers[n][..arrival.len], arrival)
    }

    /// Sends datagrams that lie one behind the other in `bytes`, all [`MAX_DATAGRAM`] long but the last.
    ///
    /// # Errors
    /// Those of the socket. What does not fit its buffer is dropped, as the network would.
    pub fn send_train(&mut self, to: SocketAddr, bytes: &[u8]) -> io::Result<()> {
        const MOST: usize = 44 * MAX_DATAGRAM;
        for train in bytes.chunks(MOST) {
            if self.segmentation && train.len() > MAX_DATAGRAM {
                let size = MAX_DATAGRAM as u16;
                let segments = [ControlMessage::UdpGsoSegments(&size)];
                match self.send(to, train, &segments) {
                    // Not every device can do it; the kernel says so at once.
                    Err(error) if matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL)) => {
                        self.segmentation = false;
                    }
                    done => {
                        done?;
                        continue;
                    }
                }
            }
            train.chunks(MAX_DATAGRAM).try_for_each(|one| self.send(to, one, &[]))?;
        }
        Ok(())
    }

    fn send(&self, to: SocketAddr, bytes: &[u8], control: &[ControlMessage<'_>]) -> io::Result<()> {
        let to = SockaddrStorage::from(to);
        match sendmsg(self.socket.as_raw_fd(), &[IoSlice::new(bytes)], control, MsgFlags::MSG_DONTWAIT, Some(&to)) {
            Ok(_) => Ok(()),
            Err(error) => {
                let error = io::Error::from(error);
                if is_passing(&error) { Ok(()) } else { Err(error) }
            }
        }
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// What a path or a busy machine causes, and time mends.
fn is_passing(error: &io::Error) -> bool {
    use libc::{ECONNREFUSED, EHOSTUNREACH, EINTR, ENETDOWN, ENETUNREACH, ENOBUFS, EPERM};
    error.kind() == io::ErrorKind::WouldBlock
        || matches!(
            error.raw_os_error(),
            Some(ECONNREFUSED | EHOSTUNREACH | EINTR | ENETDOWN | ENETUNREACH | ENOBUFS | EPERM)
        )
}

fn address(address: SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::from(std::net::SocketAddrV4::from(*v4)));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| SocketAddr::from(std::net::SocketAddrV6::from(*v6))))
}
