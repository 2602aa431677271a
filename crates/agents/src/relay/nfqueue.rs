//! NFQUEUE: packets that netfilter holds until a process has said what becomes of them (`linux/netfilter/nfnetlink_queue.h`).
//!
//! By hand, since the crates there are either need a C library or do not show their socket, without which nobody can wait for packets and for the end.

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// `NFNL_SUBSYS_QUEUE`, and its messages.
const SUBSYSTEM: u16 = 3;
const PACKET: u16 = SUBSYSTEM << 8;
const VERDICT: u16 = SUBSYSTEM << 8 | 1;
const CONFIG: u16 = SUBSYSTEM << 8 | 2;

const CFG_CMD: u16 = 1;
const CFG_PARAMS: u16 = 2;
const CFG_QUEUE_MAXLEN: u16 = 3;
const CFG_MASK: u16 = 4;
const CFG_FLAGS: u16 = 5;
const CMD_BIND: u8 = 1;
const COPY_PACKET: u8 = 2;
const FAIL_OPEN: u32 = 1;

const PACKET_HDR: u16 = 1;
const VERDICT_HDR: u16 = 2;
const PAYLOAD: u16 = 10;
/// Flags in an attribute's type: nested, network order.
const TYPE: u16 = 0x3fff;

/// `NF_DROP` and `NF_ACCEPT`.
const DROP: u32 = 0;
const ACCEPT: u32 = 1;

/// `struct nlmsghdr` and `struct nfgenmsg`.
const HEADER_LEN: usize = 16;
const GENERIC_LEN: usize = 4;

/// The longest packet, and what stands around it.
const BUFFER_LEN: usize = 65_536 + 4096;
/// Packets that wait for the handler, at most: what comes then passes.
const MOST_WAITING: u32 = 256;

/// A queue that is this process's.
pub(super) struct Queue {
    fd: OwnedFd,
    number: u16,
    buffer: Vec<u8>,
    out: Vec<u8>,
}

/// A packet that is held.
pub(super) struct Held {
    id: [u8; 4],
    /// The packet, IP header first.
    pub packet: Vec<u8>,
}

impl Queue {
    /// Opens the first of these queues that nobody has.
    ///
    /// # Errors
    /// All are taken, or the kernel or the process's rights do not let have one.
    pub(super) fn open(numbers: impl IntoIterator<Item = u16>) -> io::Result<Queue> {
        let mut failed = io::Error::from(io::ErrorKind::AddrInUse);
        for number in numbers {
            let flags = SockFlag::SOCK_CLOEXEC;
            let fd = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkNetFilter)?;
            let mut queue = Queue { fd, number, buffer: vec![0; BUFFER_LEN], out: Vec::new() };
            match queue.bind() {
                Ok(()) => return Ok(queue),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn bind(&mut self) -> io::Result<()> {
        self.configure(&[(CFG_CMD, &[CMD_BIND, 0, 0, 0])])?;
        let mut params = u32::MAX.to_be_bytes().to_vec();
        params.push(COPY_PACKET);
        self.configure(&[(CFG_PARAMS, &params)])?;
        self.configure(&[(CFG_QUEUE_MAXLEN, &MOST_WAITING.to_be_bytes())])?;
        let fail_open = FAIL_OPEN.to_be_bytes();
        self.configure(&[(CFG_MASK, &fail_open), (CFG_FLAGS, &fail_open)])
    }

    /// Its number.
    pub(super) fn number(&self) -> u16 {
        self.number
    }

    /// The next packet; `None` if none is there.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn take(&mut self) -> io::Result<Option<Held>> {
        loop {
            let len = match recv(self.fd.as_raw_fd(), &mut self.buffer, MsgFlags::MSG_DONTWAIT) {
                // Packets that found no room in the socket have passed.
                Err(Errno::ENOBUFS | Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => return Ok(None),
                other => other?,
            };
            // Each packet comes in a message of its own.
            let message = self.buffer.get(..len).unwrap_or_default();
            if let Some(held) = header(message).filter(|(kind, _)| *kind == PACKET).and_then(|(_, body)| held(body)) {
                return Ok(Some(held));
            }
        }
    }

    /// Lets a packet go on, as it is held or as `changed` is; or drops it.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn pass(&mut self, held: &Held, changed: bool) -> io::Result<()> {
        let verdict = verdict(ACCEPT, held);
        let (verdict, payload) = ((VERDICT_HDR, &verdict[..]), (PAYLOAD, &held.packet[..]));
        if changed { self.send(VERDICT, 0, &[verdict, payload]) } else { self.send(VERDICT, 0, &[verdict]) }
    }

    /// Drops a packet.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn drop(&mut self, held: &Held) -> io::Result<()> {
        self.send(VERDICT, 0, &[(VERDICT_HDR, &verdict(DROP, held)[..])])
    }

    /// Asks for something, and waits for the answer.
    fn configure(&mut self, attributes: &[(u16, &[u8])]) -> io::Result<()> {
        self.send(CONFIG, libc::NLM_F_ACK as u16, attributes)?;
        loop {
            let len = recv(self.fd.as_raw_fd(), &mut self.buffer, MsgFlags::empty())?;
            match header(self.buffer.get(..len).unwrap_or_default()) {
                Some((kind, body)) if i32::from(kind) == libc::NLMSG_ERROR => {
                    let code = body.first_chunk::<4>().map_or(0, |code| i32::from_ne_bytes(*code));
                    return if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-code)) };
                }
                // A packet that came before the answer is lost, as those are that come before the queue is there.
                _ => {}
            }
        }
    }

    fn send(&mut self, kind: u16, flags: u16, attributes: &[(u16, &[u8])]) -> io::Result<()> {
        let out = &mut self.out;
        out.clear();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&kind.to_ne_bytes());
        out.extend_from_slice(&(flags | libc::NLM_F_REQUEST as u16).to_ne_bytes());
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&self.number.to_be_bytes());
        for (kind, value) in attributes {
            let len = u16::try_from(value.len() + 4).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
            out.extend_from_slice(&len.to_ne_bytes());
            out.extend_from_slice(&kind.to_ne_bytes());
            out.extend_from_slice(value);
            out.resize(out.len().next_multiple_of(4), 0);
        }
        let len = out.len() as u32;
        out[..4].copy_from_slice(&len.to_ne_bytes());
        sendto(self.fd.as_raw_fd(), out, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
        Ok(())
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn verdict(what: u32, held: &Held) -> [u8; 8] {
    let mut verdict = [0; 8];
    verdict[..4].copy_from_slice(&what.to_be_bytes());
    verdict[4..].copy_from_slice(&held.id);
    verdict
}

/// A message's kind and what follows its header; `None` if it ends before it says so.
fn header(message: &[u8]) -> Option<(u16, &[u8])> {
    let len = u32::from_ne_bytes(*message.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes(message.get(4..6)?.try_into().ok()?);
    Some((kind, message.get(HEADER_LEN..len)?))
}

/// The packet of a message.
fn held(body: &[u8]) -> Option<Held> {
    let (mut id, mut packet) = (None, None);
    let mut rest = body.get(GENERIC_LEN..)?;
    while let Some((kind, value, behind)) = attribute(rest) {
        match kind {
            PACKET_HDR => id = value.first_chunk::<4>().copied(),
            PAYLOAD => packet = Some(value.to_vec()),
            _ => {}
        }
        rest = behind;
    }
    Some(Held { id: id?, packet: packet? })
}

fn attribute(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let len = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
    let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?) & TYPE;
    let value = bytes.get(4..len)?;
    Some((kind, value, bytes.get(len.next_multiple_of(4)..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(id: u32, packet: &[u8]) -> Vec<u8> {
        let mut body = vec![2, 0, 0, 7];
        for (kind, value) in
            [(3u16, &[1u8, 2, 3][..]), (PACKET_HDR, &[id.to_be_bytes(), [8, 0, 4, 0]].concat()), (PAYLOAD, packet)]
        {
            body.extend_from_slice(&(value.len() as u16 + 4).to_ne_bytes());
            body.extend_from_slice(&kind.to_ne_bytes());
            body.extend_from_slice(value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        let len = (body.len() + HEADER_LEN) as u32;
        [&len.to_ne_bytes()[..], &PACKET.to_ne_bytes(), &[0; 10], &body].concat()
    }

    #[test]
    fn a_packet_is_found_among_the_attributes() {
        let message = message(77, b"packet");
        let (kind, body) = header(&message).expect("whole");
        let held = held(body).expect("a packet");
        assert_eq!((kind, held.id, &held.packet[..]), (PACKET, 77u32.to_be_bytes(), &b"packet"[..]));
        assert_eq!(verdict(ACCEPT, &held), [0, 0, 0, 1, 0, 0, 0, 77]);
    }

    proptest! {
        #[test]
        fn any_octets_are_read_or_passed_over(octets in prop::collection::vec(any::<u8>(), 0..200), at: usize, with: u8) {
            let read = |bytes: &[u8]| header(bytes).and_then(|(_, body)| held(body)).is_some();
            let _ = read(&octets);
            let mut message = message(1, &octets);
            prop_assert!(read(&message));
            let at = at % message.len();
            message[at] = with;
            let _ = read(&message);
            prop_assert!(!read(&message[..message.len() - 1 - octets.len() / 2]));
        }
    }
}
