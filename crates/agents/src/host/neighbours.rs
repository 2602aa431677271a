//! Neighbours: who else sends through the same access point.
//!
//! Terminals tell each other by UDP, within the link, signed with the network's key; what is not, what was sent long ago
//! and what has been heard before has no influence. Notices have DSCP CS6, so that a Wi-Fi station's do not wait behind its own data.

use super::config::Cast;
use crate::tunnel::Error;
use crate::tunnel::keys::Key;
use crate::tunnel::poll::Poll;
use lasthop_signals::{MacAddress, Notice};
use lasthop_units::{Rate, Span, Time};
use lasthop_wire::notice::signed::{self, SIGNED_LEN, Signed, TAG_LEN};
use ring::hmac;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// The port of notices, unless another one is chosen: unassigned, and below those that the kernel gives out.
pub const NOTICE_PORT: u16 = 19_528;

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
/// Datagrams looked at in one second: whoever sends more keeps nobody busy.
const BUDGET: u32 = 4000;

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
    /// Datagrams that may still be looked at in the second that began then.
    budget: (Time, u32),
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
}

impl Neighbours {
    /// Begins to listen on an interface of this network namespace. `poll` is told under `token`.
    ///
    /// # Errors
    /// [`Error::Address`] if the port is taken; [`Error::System`].
    pub(super) fn open(
        (iface, index): (&str, u32),
        (cast, port): (Cast, u16),
        (bssid, key): (MacAddress, &Key),
        (poll, token): (&Poll, u64),
    ) -> Result<Neighbours, Error> {
        let named = |domain: Domain| {
            let any = if domain == Domain::IPV4 {
                SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))
            } else {
                SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))
            };
            let failed = |source| Error::Address { what: "cannot hear neighbours at", address: any, source };
            socket(domain, iface, index, any).map_err(failed)
        };
        let mut sockets = vec![(named(Domain::IPV4)?, Domain::IPV4)];
        match named(Domain::IPV6) {
            Ok(socket) => sockets.push((socket, Domain::IPV6)),
            // There are machines without IPv6.
            Err(error) if cast == Cast::Multicast6 => return Err(error),
            Err(_) => {}
        }
        for (socket, _) in &sockets {
            poll.add_level(socket, token).map_err(Error::system("epoll"))?;
        }
        let to = match cast {
            Cast::Broadcast => (Domain::IPV4, SocketAddr::from((Ipv4Addr::BROADCAST, port))),
            Cast::Multicast => (Domain::IPV4, SocketAddr::from((GROUP4, port))),
            Cast::Multicast6 => (Domain::IPV6, SocketAddr::from((GROUP6, port))),
        };
        let mut own = [0; 8];
        ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut own)
            .map_err(|_| Error::System { what: "random numbers", source: io::ErrorKind::Other.into() })?;
        Ok(Neighbours {
            sockets,
            to,
            key: key_of_notices(key),
            bssid,
            own: u64::from_ne_bytes(own),
            sequence: 0,
            known: BTreeMap::new(),
            budget: (Time::ZERO, 0),
            refused: Refused::default(),
            told: 0,
            heard: 0,
        })
    }

    /// Tells the neighbours how this terminal's uploads go. What the link does not take now is lost.
    pub(super) fn tell(&mut self, now: Time, flows: usize, rate: Rate, drains: bool) {
        let flows = u16::try_from(flows).unwrap_or(u16::MAX);
        let notice = Notice { bssid: self.bssid, terminal: self.own, sequence: self.sequence, flows, rate, drains };
        self.sequence = self.sequence.wrapping_add(1);
        let octets = signed::encode(&notice, millis(now), |covered| tag(&self.key, covered));
        let socket = self.sockets.iter().find(|(_, domain)| *domain == self.to.0);
        let sent = socket.is_some_and(|(socket, _)| socket.send_to(&octets, self.to.1).is_ok());
        self.told += u64::from(sent);
    }

    /// Goes on in another network, whose neighbours are others.
    pub(super) fn move_to(&mut self, bssid: MacAddress) {
        self.bssid = bssid;
        // Their notices stay remembered: they might be repeated.
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
        if now.since(self.budget.0) >= Span::from_secs(1) {
            self.budget = (now, BUDGET);
            self.known.retain(|_, known| now.since(known.came) < REMEMBERED);
        }
        for place in 0..self.sockets.len() {
            loop {
                // A longer datagram is cut, and refused for that.
                let mut room = [0; SIGNED_LEN + 1];
                let Ok(len) = self.sockets[place].0.recv(&mut room) else { break };
                if self.budget.1 == 0 {
                    self.refused.excess += 1;
                    continue;
                }
                self.budget.1 -= 1;
                notices.extend(self.admit(now, &room[..len]));
            }
        }
        notices
    }

    /// The notice in a datagram, if it counts.
    fn admit(&mut self, now: Time, octets: &[u8]) -> Option<Notice> {
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
        let now_ms = millis(now);
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

/// A socket of one interface that sends to its link and hears its groups.
fn socket(domain: Domain, iface: &str, index: u32, any: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    socket.bind_device(Some(iface.as_bytes()))?;
    if domain == Domain::IPV4 {
        socket.set_broadcast(true)?;
        socket.set_tos_v4(CS6)?;
        socket.set_multicast_loop_v4(false)?;
        socket.set_multicast_ttl_v4(1)?;
        socket.bind(&any.into())?;
        // An interface may have no address yet; broadcasts are heard without the group.
        let _ = socket.join_multicast_v4_n(&GROUP4, &InterfaceIndexOrAddress::Index(index));
    } else {
        socket.set_only_v6(true)?;
        socket.set_tclass_v6(CS6)?;
        socket.set_multicast_loop_v6(false)?;
        socket.set_multicast_hops_v6(1)?;
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

fn millis(now: Time) -> u64 {
    now.as_nanos() / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_signals::MacAddress;

    const BSSID: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_secs(1_800_000_000) + Span::from_millis(ms)
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
            budget: (Time::ZERO, 0),
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
        signed::encode(&notice, millis(sent), |covered| tag(&key, covered))
    }

    #[test]
    fn a_notice_counts_once_and_what_is_forged_replayed_or_old_never() {
        let mut own = neighbours();
        let good = signed(7, at(0), notice(9, 3));
        assert_eq!(own.admit(at(10), &good), Some(notice(9, 3)));
        assert_eq!(own.admit(at(100), &good), None);
        assert_eq!(own.admit(at(100), &signed(7, at(0), notice(9, 2))), None, "out of order");
        assert_eq!(own.refused, Refused { replayed: 2, ..Refused::default() });
        assert_eq!(own.admit(at(200), &signed(8, at(200), notice(10, 0))), None, "another key");
        for octet in 0..SIGNED_LEN {
            let mut changed = signed(7, at(200), notice(10, 0));
            changed[octet] ^= 1;
            assert_eq!(own.admit(at(200), &changed), None, "octet {octet}");
        }
        assert_eq!(own.admit(at(200), b"LHTN"), None);
        let forged = own.refused.forged;
        assert!(forged >= SIGNED_LEN as u64 - 6, "all but those of other networks: {forged}");
        assert_eq!(own.admit(at(40_000), &signed(7, at(0), notice(11, 0))), None, "kept for 40 s by somebody");
        assert_eq!(own.refused.untimely, 1);
        assert_eq!(own.admit(at(300), &signed(7, at(300), notice(9, 4))), Some(notice(9, 4)));
        assert_eq!((own.heard, own.known.len()), (2, 1));
    }

    #[test]
    fn a_restarted_terminal_counts_anew_and_one_that_shouts_is_heard_at_its_pace() {
        let mut own = neighbours();
        assert!(own.admit(at(0), &signed(7, at(0), notice(9, 3))).is_some());
        assert!(own.admit(at(100), &signed(7, at(100), notice(9, 0))).is_some(), "by its time");
        let shouted = (0..100).filter(|n| own.admit(at(200), &signed(7, at(200), notice(9, *n))).is_some()).count();
        assert_eq!((shouted as u32, own.refused.excess), (PACE - 2, 100 - u64::from(PACE - 2)));
        assert!(own.admit(at(1500), &signed(7, at(1500), notice(9, 0))).is_some(), "another second");
    }

    #[test]
    fn another_network_and_its_own_echo_are_no_attack() {
        let mut own = neighbours();
        let other = Notice { bssid: MacAddress([2, 0, 0, 0, 0, 2]), ..notice(9, 0) };
        assert!(own.admit(at(0), &signed(7, at(0), other)).is_none());
        assert!(own.admit(at(0), &signed(7, at(0), notice(1, 0))).is_none());
        assert_eq!(own.refused, Refused::default());
    }

    #[test]
    fn no_more_terminals_are_remembered_than_there_can_be() {
        let mut own = neighbours();
        let heard = (0..2000).filter(|n| own.admit(at(0), &signed(7, at(0), notice(100 + n, 0))).is_some()).count();
        assert_eq!((heard, own.known.len()), (MOST, MOST));
    }
}
