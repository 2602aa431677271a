//! The tunnel's UDP socket: many datagrams a system call where that costs no evenness.

use super::path::Path;
use crate::service::clock;
use lasthop_units::Time;
use nix::errno::Errno;
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
/// Datagrams sent with one system call: with any length of ours they are fewer octets than the kernel's limit of 65507.
const MOST_SEGMENTS: usize = 44;

/// A UDP socket.
pub struct Link {
    socket: UdpSocket,
    headers: MultiHeaders<SockaddrStorage>,
    buffers: Vec<[u8; ROOM]>,
    /// Of the last batch: length, sender, arrival at this host by the wall clock.
    arrived: Vec<Arrival>,
}

/// A datagram that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    len: usize,
    /// The sender. Nobody can be answered at port 0: what comes from there has neither sender nor length.
    pub from: Option<SocketAddr>,
    /// When the kernel received it, by the agent's clock.
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
        // A size beyond the limit is cut to the limit, unless the process may exceed it.
        let forced = setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).is_ok();
        if !forced {
            setsockopt(&socket, sockopt::RcvBuf, &BUFFER)?;
        }
        setsockopt(&socket, sockopt::SndBuf, &BUFFER)?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        let control = nix::cmsg_space!(nix::sys::time::TimeSpec);
        let headers = MultiHeaders::preallocate(BATCH, Some(control));
        Ok(Link { socket, headers, buffers: vec![[0; ROOM]; BATCH], arrived: Vec::with_capacity(BATCH) })
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
            // The arguments do not change: an error in them would come again, at once.
            Err(error) if is_gone(error) || matches!(error, Errno::EFAULT | Errno::EINVAL) => return Err(error.into()),
            Err(_) => return Ok(0),
        };
        for message in received {
            let stamp = message.cmsgs().ok().and_then(|mut all| {
                all.find_map(|one| match one {
                    ControlMessageOwned::ScmTimestampns(stamp) => {
                        let (s, ns) = (u64::try_from(stamp.tv_sec()).ok()?, u64::try_from(stamp.tv_nsec()).ok()?);
                        Some(clock::of_stamp(Time::from_nanos(s * 1_000_000_000 + ns)))
                    }
                    _ => None,
                })
            });
            let from = message.address.and_then(address).filter(|from| from.port() != 0);
            let len = if from.is_some() { message.bytes } else { 0 };
            self.arrived.push(Arrival { len, from, at: stamp });
        }
        Ok(self.arrived.len())
    }

    /// The `n`-th datagram of the last batch.
    pub fn datagram(&self, n: usize) -> (&[u8], Arrival) {
        let arrival = self.arrived[n];
        (&self.buffers[n][..arrival.len], arrival)
    }

    /// Sends datagrams that lie one behind the other in `bytes`, all as long as the path's packets are but the last. What the
    /// kernel does not take is lost, as the network might have lost it, and the path counts it.
    ///
    /// # Errors
    /// If the socket itself is gone.
    pub fn send_train(&self, path: &mut Path, bytes: &[u8]) -> io::Result<()> {
        let size = path.size().datagram();
        for train in bytes.chunks(MOST_SEGMENTS * size) {
            if path.segmentation && train.len() > size {
                let segment = u16::try_from(size).expect("shorter than an IP packet");
                match self.send(path.to(), train, &[ControlMessage::UdpGsoSegments(&segment)]) {
                    Ok(()) => continue,
                    // Not every device can do it, and not where the pieces do not pass whole; the kernel says so at once.
                    Err(Errno::EIO | Errno::EINVAL | Errno::EMSGSIZE | Errno::EOPNOTSUPP) => path.segmentation = false,
                    Err(error) => {
                        lost(path, train.len().div_ceil(size), error)?;
                        continue;
                    }
                }
            }
            for one in train.chunks(size) {
                self.send(path.to(), one, &[]).or_else(|error| lost(path, 1, error))?;
            }
        }
        Ok(())
    }

    fn send(&self, to: SocketAddr, bytes: &[u8], control: &[ControlMessage<'_>]) -> Result<(), Errno> {
        let to = SockaddrStorage::from(to);
        sendmsg(self.socket.as_raw_fd(), &[IoSlice::new(bytes)], control, MsgFlags::MSG_DONTWAIT, Some(&to)).map(drop)
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Datagrams that were not sent: the path's loss, unless no datagram can be sent any more.
fn lost(path: &mut Path, count: usize, error: Errno) -> io::Result<()> {
    path.refused(count, error);
    if is_gone(error) { Err(error.into()) } else { Ok(()) }
}

/// True if there is no socket any more. Whatever else the kernel says is about one path or one moment, and there are others.
fn is_gone(error: Errno) -> bool {
    matches!(error, Errno::EBADF | Errno::ENOTSOCK)
}

fn address(address: SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::from(std::net::SocketAddrV4::from(*v4)));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| SocketAddr::from(std::net::SocketAddrV6::from(*v6))))
}
