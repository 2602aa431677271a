//! NFQUEUE: packets that netfilter holds until a process has said what becomes of them (`linux/netfilter/nfnetlink_queue.h`).
//!
//! By hand, since the crates there are either need a C library or do not show their socket, without which nobody can wait for packets and for the end.

use lasthop_system::netlink::{Netlink, Raw};
use lasthop_wire::nla::{Attributes, push};
use netlink_packet_core::NLM_F_ACK;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

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

/// `NF_DROP` and `NF_ACCEPT`.
const DROP: u32 = 0;
const ACCEPT: u32 = 1;

/// `struct nlmsghdr` and `struct nfgenmsg`.
const HEADER_LEN: usize = 16;
const GENERIC_LEN: usize = 4;

/// Packets that wait for the handler, at most: what comes then passes.
const MOST_WAITING: u32 = 256;

/// A queue that is this process's.
pub(super) struct Queue {
    netlink: Netlink,
    number: u16,
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
            let mut queue = Queue { netlink: Netlink::open(libc::NETLINK_NETFILTER)?, number };
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
            let message = match self.netlink.poll() {
                // Packets that found no room in the socket have passed.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => continue,
                Ok(None) => return Ok(None),
                Ok(Some(message)) => message,
                Err(error) => return Err(error),
            };
            // Each packet comes in a message of its own.
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
        if changed { self.send(&[verdict, payload]) } else { self.send(&[verdict]) }
    }

    /// Drops a packet.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn drop(&mut self, held: &Held) -> io::Result<()> {
        self.send(&[(VERDICT_HDR, &verdict(DROP, held)[..])])
    }

    /// Asks for something, and waits for the answer. A packet that comes before it is lost, as those are that come before the
    /// queue is there.
    fn configure(&mut self, attributes: &[(u16, &[u8])]) -> io::Result<()> {
        let message = self.message(CONFIG, attributes);
        self.netlink.ask(message, NLM_F_ACK, |_| {})
    }

    fn send(&mut self, attributes: &[(u16, &[u8])]) -> io::Result<()> {
        let message = self.message(VERDICT, attributes);
        self.netlink.send(message, 0)
    }

    fn message(&self, kind: u16, attributes: &[(u16, &[u8])]) -> Raw {
        let [high, low] = self.number.to_be_bytes();
        let mut body = vec![0, 0, high, low];
        attributes.iter().for_each(|(kind, value)| push(&mut body, *kind, value));
        Raw { kind, body }
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.netlink.as_fd()
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
    let attributes = || Attributes::new(body.get(GENERIC_LEN..).unwrap_or_default()).map_while(Result::ok);
    let find = |kind| attributes().filter(|attribute| attribute.kind == kind).last().map(|found| found.value);
    Some(Held { id: *find(PACKET_HDR)?.first_chunk()?, packet: find(PAYLOAD)?.to_vec() })
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
