//! Questions for the TCP sockets of a network namespace, and the kernel's answers: NETLINK_SOCK_DIAG.
//!
//! Source:     linux/netlink.h, linux/sock_diag.h and linux/inet_diag.h as of Linux 6.18 (`SOCK_DIAG_BY_FAMILY`).
//! Deviations: none.
//! Checked by: the tests below; `lasthop-agents` finds its own connections over loopback.
//!
//! The crate netlink-packet-sock-diag is not used: it reads `tcp_info` and the socket's memory at one fixed length, refuses the
//! shorter records of older kernels, and fails a whole message for one attribute that it cannot read. It also allocates a list
//! of attributes a socket, which a monitor of a thousand sockets twice a second does not need.
//!
//! One socket is one message: a netlink header (16 octets), `struct inet_diag_msg` (72), attributes. Numbers are in the byte order of
//! this host; ports and addresses in network order.

use crate::nla::{Attribute, Attributes};
use crate::tcp_info::{TcpInfo, TcpState};
use crate::{Error, be16, take};
use lasthop_units::Bytes;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// An address family that can be asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6, and IPv4 over IPv6 sockets.
    V6,
}

/// A set of connection states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct States(u32);

impl States {
    /// Connections that carry data or are about to end: neither listening nor over.
    pub const CONNECTED: States = States::NONE
        .with(TcpState::Established)
        .with(TcpState::SynSent)
        .with(TcpState::SynReceived)
        .with(TcpState::FinWait1)
        .with(TcpState::FinWait2)
        .with(TcpState::CloseWait)
        .with(TcpState::LastAck)
        .with(TcpState::Closing);
    /// No state.
    pub const NONE: States = States(0);

    /// These states and another.
    #[must_use]
    pub const fn with(self, state: TcpState) -> States {
        States(self.0 | 1 << state.number())
    }

    /// True if the state is one of them.
    pub const fn has(self, state: TcpState) -> bool {
        self.0 >> state.number() & 1 == 1
    }
}

/// Name of a congestion control, at most 15 octets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CongestionControl {
    octets: [u8; 15],
    len: u8,
}

impl CongestionControl {
    /// The name, without what is no UTF-8 and what does not fit.
    pub fn new(name: &[u8]) -> CongestionControl {
        let name = name.split(|octet| *octet == 0).next().unwrap_or(&[]);
        let name = &name[..name.len().min(15)];
        let name = match std::str::from_utf8(name) {
            Ok(name) => name.as_bytes(),
            Err(error) => &name[..error.valid_up_to()],
        };
        let mut octets = [0; 15];
        octets[..name.len()].copy_from_slice(name);
        CongestionControl { octets, len: name.len() as u8 }
    }

    /// The name; empty if the kernel gave none.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.octets[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl fmt::Debug for CongestionControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// One TCP socket, as the kernel shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Socket {
    /// The kernel's number for it (`SO_COOKIE`): never used again while the kernel runs.
    pub cookie: u64,
    /// This host's end. IPv4 over an IPv6 socket is shown as IPv4.
    pub local: SocketAddr,
    /// The peer's end.
    pub peer: SocketAddr,
    /// Interface that the socket is bound to; 0: none.
    pub interface: u32,
    /// State of the connection.
    pub state: TcpState,
    /// The user that owns the socket.
    pub uid: u32,
    /// Its inode, by which a process's descriptors name it; 0: no process has it.
    pub inode: u32,
    /// Payload received and not read.
    pub receive_queue: Bytes,
    /// Payload written and not acknowledged, whether it was sent or not.
    pub send_queue: Bytes,
    /// Name of the congestion control.
    pub congestion_control: CongestionControl,
    /// State of the connection's TCP; `None` if the kernel gave none (as for a SYN that was answered), or one that cannot be read.
    pub info: Option<TcpInfo>,
}

/// Octets of a request.
pub const REQUEST_LEN: usize = HEADER + 56;

const HEADER: usize = 16;
const ALIGNMENT: usize = 4;
/// `struct inet_diag_msg`.
const SOCKET: usize = 72;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_DUMP_INTR: u16 = 0x10;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const IPPROTO_TCP: u8 = 6;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// Asks for every TCP socket of a family in one of these states.
pub fn request(family: Family, states: States, sequence: u32) -> [u8; REQUEST_LEN] {
    let mut out = [0; REQUEST_LEN];
    out[..4].copy_from_slice(&(REQUEST_LEN as u32).to_ne_bytes());
    out[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    out[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    out[8..12].copy_from_slice(&sequence.to_ne_bytes());
    out[HEADER] = match family {
        Family::V4 => AF_INET,
        Family::V6 => AF_INET6,
    };
    out[HEADER + 1] = IPPROTO_TCP;
    // Bit n asks for attribute n + 1.
    out[HEADER + 2] = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1);
    out[HEADER + 4..HEADER + 8].copy_from_slice(&states.0.to_ne_bytes());
    // The socket's identity stays empty: any.
    out
}

/// One message of the kernel's answer.
#[allow(clippy::large_enum_variant, reason = "there is one at a time, and nearly all are sockets")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// A socket.
    Socket(Socket),
    /// There are no more.
    Done,
    /// The kernel refused: an errno.
    Refused(i32),
}

/// A message and what its header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// The sequence number of the request that is answered.
    pub sequence: u32,
    /// The table changed while the kernel walked it: sockets may be missing, or there twice.
    pub interrupted: bool,
    /// What it says.
    pub answer: Answer,
}

/// The messages of one datagram of the kernel's. A message that cannot be read is an error, and the next one follows it, unless it is
/// its length that is wrong: then the iterator ends.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Messages<'a> {
    /// The messages in these octets.
    pub fn new(datagram: &'a [u8]) -> Messages<'a> {
        Messages { rest: datagram }
    }

    fn read(&mut self) -> Result<Option<Message>, Error> {
        while !self.rest.is_empty() {
            let split = self.split();
            if split.is_err() {
                self.rest = &[];
            }
            let (kind, flags, sequence, body) = split?;
            let answer = match kind {
                SOCK_DIAG_BY_FAMILY => Answer::Socket(socket(body)?),
                NLMSG_DONE => match take(body, 0).map_or(0, i32::from_ne_bytes) {
                    0 => Answer::Done,
                    failed => Answer::Refused(failed.saturating_neg()),
                },
                NLMSG_ERROR => Answer::Refused(word(body, 0)?.cast_signed().saturating_neg()),
                _ => continue,
            };
            return Ok(Some(Message { sequence, interrupted: flags & NLM_F_DUMP_INTR != 0, answer }));
        }
        Ok(None)
    }

    /// Takes the next message off: its type, flags, sequence number and body.
    fn split(&mut self) -> Result<(u16, u16, u32, &'a [u8]), Error> {
        let len = word(self.rest, 0)? as usize;
        let (kind, flags, sequence) = (half(self.rest, 4)?, half(self.rest, 6)?, word(self.rest, 8)?);
        if len < HEADER {
            return Err(Error::Length { field: "nlmsg_len", value: len });
        }
        let body = self.rest.get(HEADER..len).ok_or(Error::Truncated { needed: len, got: self.rest.len() })?;
        self.rest = self.rest.get(len.next_multiple_of(ALIGNMENT)..).unwrap_or(&[]);
        Ok((kind, flags, sequence, body))
    }
}

impl Iterator for Messages<'_> {
    type Item = Result<Message, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

fn socket(body: &[u8]) -> Result<Socket, Error> {
    if body.len() < SOCKET {
        return Err(Error::Truncated { needed: SOCKET, got: body.len() });
    }
    let end = |port_at, address_at| Ok(SocketAddr::new(address(body, address_at)?, be16(body, port_at)?));
    let mut socket = Socket {
        cookie: u64::from(word(body, 44)?) | u64::from(word(body, 48)?) << 32,
        local: end(4, 8)?,
        peer: end(6, 24)?,
        interface: word(body, 40)?,
        state: TcpState::of(body[1])?,
        uid: word(body, 64)?,
        inode: word(body, 68)?,
        receive_queue: Bytes::new(word(body, 56)?.into()),
        send_queue: Bytes::new(word(body, 60)?.into()),
        congestion_control: CongestionControl::default(),
        info: None,
    };
    for attribute in Attributes::new(&body[SOCKET..]) {
        let Attribute { kind, value } = attribute?;
        match kind {
            INET_DIAG_INFO => socket.info = TcpInfo::parse(value).ok(),
            INET_DIAG_CONG => socket.congestion_control = CongestionControl::new(value),
            _ => {}
        }
    }
    Ok(socket)
}

/// An address of the family that the message names.
fn address(body: &[u8], at: usize) -> Result<IpAddr, Error> {
    let short = Error::Truncated { needed: at + 16, got: body.len() };
    match body[0] {
        AF_INET => Ok(IpAddr::V4(Ipv4Addr::from(take::<4>(body, at).ok_or(short)?))),
        AF_INET6 => Ok(IpAddr::V6(Ipv6Addr::from(take::<16>(body, at).ok_or(short)?)).to_canonical()),
        family => Err(Error::Unknown { what: "address family", value: family.into() }),
    }
}

fn word(bytes: &[u8], at: usize) -> Result<u32, Error> {
    take(bytes, at).map(u32::from_ne_bytes).ok_or(Error::Truncated { needed: at + 4, got: bytes.len() })
}

fn half(bytes: &[u8], at: usize) -> Result<u16, Error> {
    take(bytes, at).map(u16::from_ne_bytes).ok_or(Error::Truncated { needed: at + 2, got: bytes.len() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&((HEADER + body.len()) as u32).to_ne_bytes());
        out.extend_from_slice(&kind.to_ne_bytes());
        out.extend_from_slice(&flags.to_ne_bytes());
        out.extend_from_slice(&7_u32.to_ne_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(body);
        out.resize(out.len().next_multiple_of(4), 0);
        out
    }

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut out = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
        out.extend_from_slice(&kind.to_ne_bytes());
        out.extend_from_slice(value);
        out.resize(out.len().next_multiple_of(4), 0);
        out
    }

    /// A socket of either family, as the kernel would write it.
    fn body(family: u8, local: &[u8], peer: &[u8]) -> Vec<u8> {
        let mut out = vec![0; SOCKET];
        out[..4].copy_from_slice(&[family, 1, 0, 0]);
        out[4..8].copy_from_slice(&[0x9c, 0x40, 0x01, 0xbb]);
        out[8..8 + local.len()].copy_from_slice(local);
        out[24..24 + peer.len()].copy_from_slice(peer);
        for (at, value) in [(40, 3_u32), (44, 0x0403_0201), (48, 0x0807_0605), (56, 10), (60, 20), (64, 1000), (68, 99)]
        {
            out[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        out
    }

    #[test]
    fn a_request_says_what_is_wanted() {
        let octets = request(Family::V6, States::NONE.with(TcpState::Established), 7);
        assert_eq!(octets[..4], 72_u32.to_ne_bytes());
        assert_eq!(octets[8..12], 7_u32.to_ne_bytes());
        // IPv6, TCP, INFO and CONG.
        assert_eq!(octets[16..20], [10, 6, 0b1010, 0]);
        assert_eq!(octets[20..24], 2_u32.to_ne_bytes());
        assert!(States::CONNECTED.has(TcpState::CloseWait) && !States::CONNECTED.has(TcpState::TimeWait));
        assert!(!States::CONNECTED.has(TcpState::Listen));
    }

    #[test]
    fn a_socket_is_read_with_its_attributes() {
        let mut info = [0; 104];
        info[0] = 1;
        info[80..84].copy_from_slice(&33_u32.to_ne_bytes());
        let mut bytes = body(AF_INET, &[127, 0, 0, 1], &[192, 0, 2, 9]);
        bytes.extend(attribute(8, &[0]));
        bytes.extend(attribute(INET_DIAG_INFO, &info));
        bytes.extend(attribute(INET_DIAG_CONG, b"cubic\0"));
        let datagram = [message(SOCK_DIAG_BY_FAMILY, 2, &bytes), message(NLMSG_DONE, 2 | NLM_F_DUMP_INTR, &[0; 4])];
        let read: Vec<Message> = Messages::new(&datagram.concat()).map(|read| read.expect("well formed")).collect();
        let [Message { sequence: 7, interrupted: false, answer: Answer::Socket(socket) }, done] = read[..] else {
            panic!("{read:?}")
        };
        assert_eq!(done, Message { sequence: 7, interrupted: true, answer: Answer::Done });
        assert_eq!(socket.local, SocketAddr::from(([127, 0, 0, 1], 40_000)));
        assert_eq!(socket.peer, SocketAddr::from(([192, 0, 2, 9], 443)));
        assert_eq!((socket.cookie, socket.interface), (0x0807_0605_0403_0201, 3));
        assert_eq!((socket.uid, socket.inode), (1000, 99));
        assert_eq!((socket.receive_queue, socket.send_queue), (Bytes::new(10), Bytes::new(20)));
        assert_eq!(socket.congestion_control.as_str(), "cubic");
        assert_eq!(socket.info.map(|info| info.cwnd), Some(33));
    }

    #[test]
    fn ipv4_over_an_ipv6_socket_is_ipv4() {
        let mapped = Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped().octets();
        let bytes = body(AF_INET6, &mapped, &Ipv6Addr::LOCALHOST.octets());
        let socket = socket(&bytes).expect("well formed");
        assert_eq!(socket.local.ip(), IpAddr::from([192, 0, 2, 1]));
        assert_eq!(socket.peer.ip(), IpAddr::V6(Ipv6Addr::LOCALHOST));
        assert_eq!((socket.info, socket.congestion_control.as_str()), (None, ""));
    }

    #[test]
    fn refusals_and_broken_messages_are_told() {
        let refused = message(NLMSG_ERROR, 0, &(-13_i32).to_ne_bytes());
        let read: Vec<_> = Messages::new(&refused).collect();
        assert!(matches!(read[..], [Ok(Message { answer: Answer::Refused(13), .. })]), "{read:?}");
        let whole = message(SOCK_DIAG_BY_FAMILY, 2, &body(AF_INET, &[0; 4], &[0; 4]));
        for cut in 1..whole.len() {
            let read: Vec<_> = Messages::new(&whole[..cut]).collect();
            assert!(matches!(read[..], [Err(_)]), "{cut} octets: {read:?}");
        }
        let strange = message(SOCK_DIAG_BY_FAMILY, 2, &body(1, &[0; 4], &[0; 4]));
        let datagram = [strange, whole].concat();
        let mut read = Messages::new(&datagram);
        assert_eq!(read.next(), Some(Err(Error::Unknown { what: "address family", value: 1 })));
        assert!(matches!(read.next(), Some(Ok(Message { answer: Answer::Socket(_), .. }))));
    }

    #[test]
    fn a_name_is_cut_where_it_cannot_go_on() {
        for (name, wanted) in
            [(&b"bbr\0junk"[..], "bbr"), (b"a-name-too-long-for-it", "a-name-too-long"), (b"x\xffy", "x"), (b"", "")]
        {
            assert_eq!(CongestionControl::new(name).as_str(), wanted);
        }
    }

    proptest! {
        #[test]
        fn any_octets_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let messages = Messages::new(&bytes).count();
            prop_assert!(messages <= bytes.len() / HEADER + 1);
            // The same octets where a socket's attributes would be.
            let socket = [body(AF_INET6, &[1; 16], &[2; 16]), bytes].concat();
            let datagram = message(SOCK_DIAG_BY_FAMILY, 2, &socket);
            prop_assert_eq!(Messages::new(&datagram).count(), 1);
        }
    }
}
