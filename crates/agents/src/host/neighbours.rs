//! Neighbours: other terminals that send through the same access point.
//!
//! Terminals tell each other by UDP, within the link, signed with the network's key; what is not, what was sent long ago
//! and what has been heard before has no influence. Notices have DSCP CS6, so that a Wi-Fi station's do not wait behind its own data.

use crate::service::poll::Poll;
use crate::service::{Error, clock, random, system};
use crate::tunnel::keys::Key;
use lasthop_signals::{MacAddress, Notice};
use lasthop_units::{Rate, Span, Time};
use lasthop_wire::notice::signed::{self, SIGNED_LEN, Signed, TAG_LEN};
use ring::hmac;
use serde::Serializer;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// The port of notices, unless another one is chosen: unassigned, and below those that the kernel gives out.
pub const NOTICE_PORT: u16 = 19_528;

/// The destination of notices. All kinds are heard.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Destination {
    /// To everybody on the link, over IPv4.
    #[default]
    Broadcast,
    /// To a multicast group over IPv4.
    Multicast,
    /// To a multicast group over IPv6.
    Multicast6,
}

/// Groups of the link: administratively scoped (RFC 2365), and transient with link-local scope (RFC 4291).
const GROUP4: Ipv4Addr = Ipv4Addr::new(239, 255, 76, 72);
const GROUP6: Ipv6Addr = Ipv6Addr::new(0xff12, 0, 0, 0, 0, 0, 0x4c48, 0x544e);
/// CS6 as an octet of the header.
const CS6: u32 = 48 << 2;
/// How far clocks of terminals may be apart.
const APART: Span = Span::from_secs(30);
/// A terminal is remembered for so long: what it has sent before is then too old.
const REMEMBERED: Span = Span::from_secs(120);
/// Terminals that are remembered. More than that do not send through one access point.
const MOST: usize = 1024;
/// Notices of one terminal that count in a second: more than it sends, since those that a queue has held up come together.
const PACE: u32 = 20;
/// Datagrams looked at in one go: whoever sends more does not keep the agent from its other work.
const BUDGET: u32 = 1000;
/// Hops that a notice may still go, as it is sent and as it must be when it comes: those of this link alone have so many (RFC 5082).
const HOPS: u8 = 255;

/// Tells neighbours, and hears them.
pub(super) struct Neighbours {
    sockets: Vec<(UdpSocket, Domain)>,
    to: (Domain, SocketAddr),
    key: hmac::Key,
    bssid: MacAddress,
    /// This terminal's number.
    own: u64,
    sequence: u32,
    known: BTreeMap<u64, Known>,
    /// When forgotten neighbours were last looked for.
    swept: Time,
    refused: Refused,
    told: u64,
    heard: u64,
}

/// What was heard last of a terminal: when it was sent, by its own clock, and its number; when that came; and how many have come
/// in the second that began then.
#[derive(Clone, Copy)]
struct Known {
    last: (u64, u32),
    came: Time,
    pace: (Time, u32),
}

/// Datagrams without influence.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Refused {
    /// No notices, or signed with another key.
    pub forged: u64,
    /// Heard before, or out of order.
    pub replayed: u64,
    /// Sent at another time than now, by the clocks of both.
    pub untimely: u64,
    /// More of one terminal, or of all, than is looked at.
    pub excess: u64,
}

impl Refused {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.forged + self.replayed + self.untimely + self.excess
    }

    pub(super) fn as_total<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(self.total())
    }
}

impl Neighbours {
    /// Begins to listen on an interface of this network namespace. `poll` is told under `token`.
    ///
    /// # Errors
    /// [`Error::Address`] if the port is taken; [`Error::System`].
    pub(super) fn open(
        iface: (&str, u32),
        (destination, port): (Destination, u16),
        (bssid, key): (MacAddress, &Key),
        (poll, token): (&Poll, u64),
    ) -> Result<Neighbours, Error> {
        let to = match destination {
            Destination::Broadcast => (Domain::IPV4, SocketAddr::from((Ipv4Addr::BROADCAST, port))),
            Destination::Multicast => (Domain::IPV4, SocketAddr::from((GROUP4, port))),
            Destination::Multicast6 => (Domain::IPV6, SocketAddr::from((GROUP6, port))),
        };
        let sockets = listen(iface, to, (poll, token))?;
        Ok(Neighbours {
            sockets,
            to,
            key: key_of_notices(key),
            bssid,
            own: u64::from_ne_bytes(random()?),
            sequence: 0,
            known: BTreeMap::new(),
            swept: Time::ZERO,
            refused: Refused::default(),
            told: 0,
            heard: 0,
        })
    }

    /// Tells the neighbours how this terminal's uploads go. What the link does not take now is lost.
    pub(super) fn tell(&mut self, flows: usize, rate: Rate, drains: bool) {
        let flows = u16::try_from(flows).unwrap_or(u16::MAX);
        let notice = Notice { bssid: self.bssid, terminal: self.own, sequence: self.sequence, flows, rate, drains };
        self.sequence = self.sequence.wrapping_add(1);
        let octets = signed::encode(&notice, wall_ms(), |covered| tag(&self.key, covered));
        let socket = self.sockets.iter().find(|(_, domain)| *domain == self.to.0);
        let sent = socket.is_some_and(|(socket, _)| socket.send_to(&octets, self.to.1).is_ok());
        self.told += u64::from(sent);
    }

    /// Goes on in another network, with other neighbours.
    /// What was heard stays remembered: it might be repeated. An interface that has come in the place of
    /// the old one is `to` be listened at.
    ///
    /// # Errors
    /// As [`Neighbours::open`].
    pub(super) fn move_to(
        &mut self,
        bssid: MacAddress,
        to: Option<(&str, u32)>,
        (poll, token): (&Poll, u64),
    ) -> Result<(), Error> {
        self.bssid = bssid;
        if let Some(iface) = to {
            self.sockets.iter().for_each(|(socket, _)| poll.remove(socket));
            self.sockets.clear();
            self.sockets = listen(iface, self.to, (poll, token))?;
        }
        Ok(())
    }

    /// Other terminals that were heard in the last second.
    pub(super) fn live(&self, now: Time) -> u32 {
        self.known.values().filter(|known| now.since(known.came) <= Span::from_secs(1)).count() as u32
    }

    /// Notices sent, notices of others that counted, and datagrams that did not.
    pub(super) fn account(&self) -> (u64, u64, Refused) {
        (self.told, self.heard, self.refused)
    }

    /// Notices that have come, of others in the same network.
    pub(super) fn hear(&mut self, now: Time) -> Vec<Notice> {
        let mut notices = Vec::new();
        if now.since(self.swept) >= Span::from_secs(1) {
            self.swept = now;
            self.known.retain(|_, known| now.since(known.came) < REMEMBERED);
        }
        for place in 0..self.sockets.len() {
            for _ in 0..BUDGET {
                // A longer datagram is cut, and refused for that.
                let mut room = [0; SIGNED_LEN + 1];
                let Ok(len) = self.sockets[place].0.recv(&mut room) else { break };
                notices.extend(self.admit(now, wall_ms(), &room[..len]));
            }
        }
        notices
    }

    /// The notice in a datagram, if it counts.
    fn admit(&mut self, now: Time, now_ms: u64, octets: &[u8]) -> Option<Notice> {
        let Ok(read) = signed::decode(octets) else {
            self.refused.forged += 1;
            return None;
        };
        let Signed { notice, sent_ms, .. } = read;
        if notice.bssid != self.bssid || notice.terminal == self.own {
            return None;
        }
        if !is_signed(&self.key, &read) {
            self.refused.forged += 1;
            return None;
        }
        if now_ms.abs_diff(sent_ms) > APART.as_nanos() / 1_000_000 {
            self.refused.untimely += 1;
            return None;
        }
        let this = (sent_ms, notice.sequence);
        let known = self.known.get(&notice.terminal);
        if known.is_some_and(|known| known.last >= this) {
            self.refused.replayed += 1;
            return None;
        }
        let pace = known.map(|known| known.pace).filter(|(began, _)| now.since(*began) < Span::from_secs(1));
        let pace = pace.map_or((now, 1), |(began, count)| (began, count + 1));
        if pace.1 > PACE || known.is_none() && self.known.len() >= MOST {
            self.refused.excess += 1;
            return None;
        }
        self.known.insert(notice.terminal, Known { last: this, came: now, pace });
        self.heard += 1;
        Some(notice)
    }
}

/// Sockets that hear neighbours at an interface; those by which they are told (`to`) must be among them.
fn listen(
    (iface, index): (&str, u32),
    to: (Domain, SocketAddr),
    (poll, token): (&Poll, u64),
) -> Result<Vec<(UdpSocket, Domain)>, Error> {
    let port = to.1.port();
    let any = [SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)), SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))];
    let mut sockets = Vec::new();
    for (domain, address) in [Domain::IPV4, Domain::IPV6].into_iter().zip(any) {
        match socket(domain, iface, index, address) {
            Ok(socket) => sockets.push((socket, domain)),
            // There are machines without the other.
            Err(_) if domain != to.0 => {}
            Err(source) => return Err(Error::Address { what: "cannot hear neighbours at", address, source }),
        }
    }
    for (socket, _) in &sockets {
        poll.add_level(socket, token).map_err(system("epoll"))?;
    }
    Ok(sockets)
}

/// A socket of one interface that sends to its link and hears its groups.
fn socket(domain: Domain, iface: &str, index: u32, any: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    socket.bind_device(Some(iface.as_bytes()))?;
    if domain == Domain::IPV4 {
        socket.set_broadcast(true)?;
        socket.set_tos_v4(CS6)?;
        socket.set_multicast_loop_v4(false)?;
        socket.set_multicast_ttl_v4(HOPS.into())?;
        socket.set_ttl_v4(HOPS.into())?;
        sockopt(&socket, libc::IPPROTO_IP, libc::IP_MINTTL, HOPS)?;
        socket.bind(&any.into())?;
        // An interface may have no address yet; broadcasts are heard without the group.
        let _ = socket.join_multicast_v4_n(&GROUP4, &InterfaceIndexOrAddress::Index(index));
    } else {
        socket.set_only_v6(true)?;
        socket.set_tclass_v6(CS6)?;
        socket.set_multicast_loop_v6(false)?;
        socket.set_multicast_hops_v6(HOPS.into())?;
        sockopt(&socket, libc::IPPROTO_IPV6, IPV6_MINHOPCOUNT, HOPS)?;
        socket.set_multicast_if_v6(index)?;
        socket.bind(&any.into())?;
        socket.join_multicast_v6(&GROUP6, index)?;
    }
    Ok(socket.into())
}

/// A key for nothing but notices, made of the network's.
fn key_of_notices(key: &Key) -> hmac::Key {
    let all = hmac::Key::new(hmac::HMAC_SHA256, &key.0);
    hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&all, b"lasthop notice 1").as_ref())
}

/// The first half of the code, as RFC 2104 section 5 allows.
fn tag(key: &hmac::Key, covered: &[u8]) -> [u8; TAG_LEN] {
    let mut half = [0; TAG_LEN];
    half.copy_from_slice(&hmac::sign(key, covered).as_ref()[..TAG_LEN]);
    half
}

/// True if the code is that of the network's key. How long it takes does not depend on how many octets are right.
fn is_signed(key: &hmac::Key, read: &Signed<'_>) -> bool {
    let wanted = tag(key, read.covered);
    wanted.iter().zip(read.tag).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// The wall clock, in milliseconds since 1970.
fn wall_ms() -> u64 {
    clock::wall().as_nanos() / 1_000_000
}

/// `IPV6_MINHOPCOUNT` of linux/in6.h.
const IPV6_MINHOPCOUNT: libc::c_int = 73;

fn sockopt(socket: &Socket, level: libc::c_int, option: libc::c_int, value: u8) -> io::Result<()> {
    let value = libc::c_int::from(value);
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` is an int that outlives the call.
    let failed = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, std::ptr::from_ref(&value).cast(), len) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_signals::MacAddress;

    const BSSID: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_secs(1_800_000_000) + Span::from_millis(ms)
    }

    fn ms(time: Time) -> u64 {
        time.as_nanos() / 1_000_000
    }

    impl Neighbours {
        /// At a moment at which both clocks say the same.
        fn admit_at(&mut self, now: Time, octets: &[u8]) -> Option<Notice> {
            self.admit(now, ms(now), octets)
        }
    }

    /// One that hears nobody by itself.
    fn neighbours() -> Neighbours {
        Neighbours {
            sockets: Vec::new(),
            to: (Domain::IPV4, SocketAddr::from((Ipv4Addr::BROADCAST, NOTICE_PORT))),
            key: key_of_notices(&Key::new([7; 32])),
            bssid: BSSID,
            own: 1,
            sequence: 0,
            known: BTreeMap::new(),
            swept: Time::ZERO,
            refused: Refused::default(),
            told: 0,
            heard: 0,
        }
    }

    fn notice(terminal: u64, sequence: u32) -> Notice {
        Notice { bssid: BSSID, terminal, sequence, flows: 1, rate: Rate::from_bps(1_000_000), drains: false }
    }

    fn signed(key: u8, sent: Time, notice: Notice) -> [u8; SIGNED_LEN] {
        let key = key_of_notices(&Key::new([key; 32]));
        signed::encode(&notice, ms(sent), |covered| tag(&key, covered))
    }

    #[test]
    fn a_notice_counts_once_and_never_if_forged_replayed_or_old() {
        let mut own = neighbours();
        let good = signed(7, at(0), notice(9, 3));
        assert_eq!(own.admit_at(at(10), &good), Some(notice(9, 3)));
        assert_eq!(own.admit_at(at(100), &good), None);
        assert_eq!(own.admit_at(at(100), &signed(7, at(0), notice(9, 2))), None, "out of order");
        assert_eq!(own.refused, Refused { replayed: 2, ..Refused::default() });
        assert_eq!(own.admit_at(at(200), &signed(8, at(200), notice(10, 0))), None, "another key");
        for octet in 0..SIGNED_LEN {
            let mut changed = signed(7, at(200), notice(10, 0));
            changed[octet] ^= 1;
            assert_eq!(own.admit_at(at(200), &changed), None, "octet {octet}");
        }
        assert_eq!(own.admit_at(at(200), b"LHTN"), None);
        let forged = own.refused.forged;
        assert!(forged >= SIGNED_LEN as u64 - 6, "all but those of other networks: {forged}");
        assert_eq!(own.admit_at(at(40_000), &signed(7, at(0), notice(11, 0))), None, "kept for 40 s by somebody");
        assert_eq!(own.refused.untimely, 1);
        assert_eq!(own.admit_at(at(300), &signed(7, at(300), notice(9, 4))), Some(notice(9, 4)));
        assert_eq!((own.heard, own.known.len()), (2, 1));
    }

    #[test]
    fn a_restarted_terminal_counts_anew_and_floods_are_limited() {
        let mut own = neighbours();
        assert!(own.admit_at(at(0), &signed(7, at(0), notice(9, 3))).is_some());
        assert!(own.admit_at(at(100), &signed(7, at(100), notice(9, 0))).is_some(), "by its time");
        let shouted = (0..100).filter(|n| own.admit_at(at(200), &signed(7, at(200), notice(9, *n))).is_some()).count();
        assert_eq!((shouted as u32, own.refused.excess), (PACE - 2, 100 - u64::from(PACE - 2)));
        assert!(own.admit_at(at(1500), &signed(7, at(1500), notice(9, 0))).is_some(), "another second");
    }

    #[test]
    fn another_network_and_its_own_echo_are_no_attack() {
        let mut own = neighbours();
        let other = Notice { bssid: MacAddress([2, 0, 0, 0, 0, 2]), ..notice(9, 0) };
        assert!(own.admit_at(at(0), &signed(7, at(0), other)).is_none());
        assert!(own.admit_at(at(0), &signed(7, at(0), notice(1, 0))).is_none());
        assert_eq!(own.refused, Refused::default());
    }

    #[test]
    fn no_more_terminals_are_remembered_than_there_can_be() {
        let mut own = neighbours();
        let heard = (0..2000).filter(|n| own.admit_at(at(0), &signed(7, at(0), notice(100 + n, 0))).is_some()).count();
        assert_eq!((heard, own.known.len()), (MOST, MOST));
    }
}
