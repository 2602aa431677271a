//! One question at a time to the kernel, over netlink(7), and its answer.

use netlink_packet_core::{
    NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, NetlinkAddr, recv, recvfrom};
use socket2::{Domain, Protocol, Socket, Type};
use std::convert::Infallible;
use std::fmt::Display;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// A channel to one of the kernel's families (`libc::NETLINK_ROUTE` and the like), of the calling thread's network namespace.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence: u32,
    answer: Vec<u8>,
}

/// The longest IP packet and what stands around it. The kernel puts less into one datagram of a dump.
const ANSWER: usize = 65_536 + 4096;

impl Netlink {
    /// Opens a channel.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn open(family: libc::c_int) -> io::Result<Netlink> {
        let socket = Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW, Some(Protocol::from(family)))?;
        socket.set_read_timeout(Some(Duration::from_secs(5)))?;
        filter_in_kernel(&socket);
        Ok(Netlink::of(socket.into()))
    }

    /// A channel over a socket that is open.
    pub fn of(socket: OwnedFd) -> Netlink {
        Netlink { socket: socket.into(), sequence: 0, answer: vec![0; ANSWER] }
    }

    /// Sends a request, hands over what the answer holds, each as far as it can be read, and returns when it has ended.
    ///
    /// # Errors
    /// What the kernel refuses; [`io::ErrorKind::InvalidData`] if its answer is none.
    pub fn ask<I>(
        &mut self,
        message: I,
        flags: u16,
        mut each: impl FnMut(Result<I, netlink_packet_core::DecodeError>),
    ) -> io::Result<()>
    where
        I: NetlinkSerializable + NetlinkDeserializable,
        NetlinkPayload<I>: From<I>,
    {
        self.send(message, flags)?;
        loop {
            let sequence = self.sequence;
            let mut rest = self.receive()?;
            while let Some(one) = next(&mut rest)? {
                // The sequence number: what is left of an earlier answer is nobody's.
                if one.get(8..12) != Some(&sequence.to_ne_bytes()) {
                    continue;
                }
                match NetlinkMessage::<I>::deserialize(one) {
                    Err(error) => each(Err(error)),
                    Ok(answer) => match answer.payload {
                        NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                        NetlinkPayload::Error(_) | NetlinkPayload::Done(_) => return Ok(()),
                        NetlinkPayload::InnerMessage(message) => each(Ok(message)),
                        _ => {}
                    },
                }
            }
        }
    }

    /// Sends a request without waiting for an answer.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn send<I: NetlinkSerializable>(&mut self, message: I, flags: u16) -> io::Result<()>
    where
        NetlinkPayload<I>: From<I>,
    {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::from(message));
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.write(&bytes)
    }

    /// Sends a message as it is, header and sequence number included.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn write(&self, message: &[u8]) -> io::Result<()> {
        self.socket.send(message).map(drop)
    }

    /// The next datagram of the kernel's, waited for up to five seconds.
    ///
    /// # Errors
    /// The kernel's; `ENOBUFS` if datagrams have found no room.
    pub fn receive(&mut self) -> io::Result<&[u8]> {
        let len = loop {
            match recvfrom::<NetlinkAddr>(self.socket.as_raw_fd(), &mut self.answer) {
                // Only the kernel has number 0.
                Ok((_, Some(from))) if from.pid() != 0 => {}
                Err(Errno::EINTR) => {}
                read => break read?.0,
            }
        };
        Ok(&self.answer[..len])
    }

    /// The next datagram; `None` if none is there.
    ///
    /// # Errors
    /// As of [`Netlink::receive`].
    pub fn poll(&mut self) -> io::Result<Option<&[u8]>> {
        match recv(self.socket.as_raw_fd(), &mut self.answer, MsgFlags::MSG_DONTWAIT) {
            Err(Errno::EAGAIN) => Ok(None),
            read => Ok(Some(&self.answer[..read?])),
        }
    }
}

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A message as it is.
#[derive(Debug)]
pub struct Raw {
    /// Its type.
    pub kind: u16,
    /// What follows the header.
    pub body: Vec<u8>,
}

impl NetlinkSerializable for Raw {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        self.body.len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.body);
    }
}

impl NetlinkDeserializable for Raw {
    type Error = Infallible;

    fn deserialize(header: &NetlinkHeader, body: &[u8]) -> Result<Raw, Infallible> {
        Ok(Raw { kind: header.message_type, body: body.to_vec() })
    }
}

impl From<Raw> for NetlinkPayload<Raw> {
    fn from(message: Raw) -> NetlinkPayload<Raw> {
        NetlinkPayload::InnerMessage(message)
    }
}

/// The next message of a datagram.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] if it does not end in there.
pub fn next<'a>(rest: &mut &'a [u8]) -> io::Result<Option<&'a [u8]>> {
    if rest.is_empty() {
        return Ok(None);
    }
    let size = rest.get(..4).and_then(|size| size.try_into().ok()).map_or(0, u32::from_ne_bytes) as usize;
    let one = rest.get(..size).filter(|one| one.len() >= 16).ok_or_else(|| invalid(&"a message is cut"))?;
    *rest = rest.get(size.next_multiple_of(4)..).unwrap_or(&[]);
    Ok(Some(one))
}

/// What the kernel said makes no sense.
pub fn invalid(error: &dyn Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

/// Has the kernel look at what a question says (`NETLINK_GET_STRICT_CHK`, Linux 4.20), so that it does not list what was not asked for.
/// Older ones do list that.
fn filter_in_kernel(socket: &Socket) {
    const NETLINK_GET_STRICT_CHK: libc::c_int = 12;
    let on: libc::c_int = 1;
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `on` is an int that outlives the call.
    unsafe {
        let value = std::ptr::from_ref(&on).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_NETLINK, NETLINK_GET_STRICT_CHK, value, len)
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP};
    use netlink_packet_route::RouteNetlinkMessage;
    use netlink_packet_route::link::LinkMessage;

    #[test]
    fn the_kernel_lists_the_loopback_and_refuses_what_is_not_there() {
        let mut netlink = Netlink::open(libc::NETLINK_ROUTE).expect("everybody may ask");
        for _ in 0..2 {
            let mut seen = Vec::new();
            let question = RouteNetlinkMessage::GetLink(LinkMessage::default());
            let each = |answer| {
                if let Ok(RouteNetlinkMessage::NewLink(link)) = answer {
                    seen.push(link.header.index);
                }
            };
            netlink.ask(question, NLM_F_DUMP, each).expect("a list");
            assert!(seen.contains(&1), "{seen:?}");
        }
        let mut nowhere = LinkMessage::default();
        nowhere.header.index = 0x7fff_0000;
        let refused = netlink.ask(RouteNetlinkMessage::GetLink(nowhere), NLM_F_ACK, |_| {});
        assert_eq!(refused.expect_err("no such interface").raw_os_error(), Some(libc::ENODEV));
    }

    #[test]
    fn a_datagram_that_is_cut_is_an_error_and_ends() {
        for bytes in [&[1u8, 0, 0][..], &[0, 0, 0, 0], &[17, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]] {
            assert!(next(&mut &bytes[..]).is_err(), "{bytes:?}");
        }
    }
}
