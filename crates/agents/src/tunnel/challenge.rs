//! Octets that tell an initiation of now from one that was recorded, without a clock that stations would have to share;
//! and others that only a host at an address can know.
//! Source:     the cookies of RFC 9000 section 8.1 and RFC 9147 section 5.1 (stateless, bound to address and time), inside the
//!             authenticated payload as a nonce, which makes them a proof of freshness as well.
//!             For paths: RFC 9000 section 8.2.
//! Equations:  c = HMAC-SHA256(s, use, station, address, port, floor(t / 10 s)), of which a path's are the first 8 octets
//! Symbols:    s -> `secret`, 32 random octets of this proxy process; t -> `now`, its steady clock; c -> [`Challenge`], [`PathData`]
//! Deviations: one round trip more for every handshake, not only under load (WireGuard, section 5.3): without it freshness
//!             would need a clock at the station that never goes back, and keeps its lead over restarts. Challenges of one path
//!             are alike in one turn (8.2.1 wants each to differ), so that nothing need be kept of addresses, and a session gives one a second
//!             at most; an answer is one only if it comes from the address that was asked (8.2.2 forbids to insist on that, for there the path of before must be
//!             shown anew, whoever passes the answer on; here it is kept without). They are not as long as a full packet (8.2.1):
//!             how long packets may be is asked of the kernel.
//! Validity:   `now` does not go back.     Checked by: tests::*

use lasthop_signals::Node;
use lasthop_units::{Span, Time};
use lasthop_wire::tunnel::{Challenge, PathData};
use ring::hmac;
use std::net::{IpAddr, SocketAddr};

/// Gives out challenges and knows them again. It keeps nothing of those that it gave.
pub struct Challenger {
    secret: hmac::Key,
}

/// Time for which challenges are the same. One is good in the turn in which it was given and in the next.
const TURN: Span = Span::from_secs(10);
/// After this no initiation is fresh that is now.
pub const VALIDITY: Span = Span::from_secs(2 * TURN.as_nanos() / 1_000_000_000);

impl Challenger {
    /// With a random secret of its own, so that nothing from before this process is fresh.
    pub fn new(secret: [u8; 32]) -> Challenger {
        Challenger { secret: hmac::Key::new(hmac::HMAC_SHA256, &secret) }
    }

    /// The challenge for a sender that claims to be `station` and to be at `from`.
    pub fn challenge(&self, now: Time, station: Node, from: SocketAddr) -> Challenge {
        let tag = hmac::sign(&self.secret, &text(Use::Initiation, turn(now), station, from));
        tag.as_ref().try_into().expect("SHA-256 has 32 octets")
    }

    /// What `station` must send back from `from` before anything else is sent there.
    pub fn path(&self, now: Time, station: Node, from: SocketAddr) -> PathData {
        self.path_in(turn(now), station, from)
    }

    /// True if that was asked of the station at that address not long ago.
    pub fn is_path(&self, now: Time, station: Node, from: SocketAddr, data: PathData) -> bool {
        let turn = turn(now);
        let asked_in = |turn| self.path_in(turn, station, from) == data;
        asked_in(turn) || turn.checked_sub(1).is_some_and(asked_in)
    }

    fn path_in(&self, turn: u64, station: Node, from: SocketAddr) -> PathData {
        let tag = hmac::sign(&self.secret, &text(Use::Path, turn, station, from));
        tag.as_ref()[..8].try_into().expect("SHA-256 has 32 octets")
    }

    /// True if this challenge was given to that station at that address not long ago.
    pub fn is_fresh(&self, now: Time, station: Node, from: SocketAddr, challenge: &Challenge) -> bool {
        let turn = turn(now);
        let given_in =
            |turn| hmac::verify(&self.secret, &text(Use::Initiation, turn, station, from), challenge).is_ok();
        given_in(turn) || turn.checked_sub(1).is_some_and(given_in)
    }
}

fn turn(now: Time) -> u64 {
    now.as_nanos() / TURN.as_nanos()
}

/// What a challenge is for. Those of initiations are seen by everybody on the way.
#[derive(Clone, Copy)]
enum Use {
    Initiation = 0,
    Path = 1,
}

/// What a challenge is made of: of one length, so that no two texts are alike.
fn text(used: Use, turn: u64, station: Node, from: SocketAddr) -> [u8; 29] {
    let mut text = [0; 29];
    text[28] = used as u8;
    let address = match from.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    text[..8].copy_from_slice(&turn.to_be_bytes());
    text[8..10].copy_from_slice(&station.0.to_be_bytes());
    text[10..12].copy_from_slice(&from.port().to_be_bytes());
    text[12..28].copy_from_slice(&address.octets());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Time {
        Time::from_nanos(s * 1_000_000_000)
    }

    #[test]
    fn a_challenge_is_good_for_its_turn_and_the_next() {
        let (challenger, from) = (Challenger::new([1; 32]), "192.0.2.7:5000".parse().expect("an address"));
        let challenge = challenger.challenge(at(109), Node(3), from);
        for (now, expected) in [(100, true), (109, true), (119, true), (120, false), (99, false), (1_000_000, false)] {
            assert_eq!(challenger.is_fresh(at(now), Node(3), from, &challenge), expected, "at {now} s");
        }
    }

    #[test]
    fn path_challenges_are_bound_to_time_address_and_purpose() {
        let (challenger, from) = (Challenger::new([1; 32]), "192.0.2.7:5000".parse().expect("an address"));
        let data = challenger.path(at(109), Node(3), from);
        for (now, expected) in [(100, true), (109, true), (119, true), (120, false), (99, false)] {
            assert_eq!(challenger.is_path(at(now), Node(3), from, data), expected, "at {now} s");
        }
        assert!(!challenger.is_path(at(109), Node(4), from, data));
        for other in ["192.0.2.7:5001", "192.0.2.8:5000"] {
            assert!(!challenger.is_path(at(109), Node(3), other.parse().expect("an address"), data), "{other}");
        }
        assert_ne!(challenger.challenge(at(109), Node(3), from)[..8], data);
    }

    #[test]
    fn it_is_good_for_nobody_else() {
        let (challenger, from) = (Challenger::new([1; 32]), "192.0.2.7:5000".parse().expect("an address"));
        let challenge = challenger.challenge(at(5), Node(3), from);
        assert!(!challenger.is_fresh(at(5), Node(4), from, &challenge));
        for other in ["192.0.2.7:5001", "192.0.2.8:5000", "[2001:db8::1]:5000"] {
            assert!(!challenger.is_fresh(at(5), Node(3), other.parse().expect("an address"), &challenge), "{other}");
        }
        assert!(!Challenger::new([2; 32]).is_fresh(at(5), Node(3), from, &challenge), "another process");
        assert!(!challenger.is_fresh(at(5), Node(3), from, &[0; 32]));
    }
}
