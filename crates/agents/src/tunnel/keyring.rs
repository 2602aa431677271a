//! The keys of a session, which are renewed while it lasts.
//! Source:     WireGuard (Donenfeld, 2017), sections 6.1 and 6.2: when keys are renewed, and when they are no longer used;
//!             RFC 9001 section 6.6 and appendix B.1: how many packets of at most 2^11 octets AES-GCM may seal.
//! Equations:  renew: age >= 120 s, or 2^26 packets sealed or opened;   of no use: age >= 180 s, or 2^28 packets sealed
//! Symbols:    age -> `now` less `Epoch::since`
//! Deviations: WireGuard's 2^60 packets are for ChaCha20-Poly1305. Packet numbers are the session's, and go on when keys are
//!             renewed: a number is sealed once, under whichever keys. The keys before are kept for what is under way, until they
//!             are too old or there are newer ones that the other end has used.
//! Validity:   the caller never seals a number twice.     Checked by: tests::*

use super::replay::Replay;
use super::sealer::{Refused, Sealer};
use lasthop_units::{Span, Time};
use lasthop_wire::tunnel::SessionId;

/// After so long keys are renewed.
pub const RENEW_AFTER: Span = Span::from_secs(120);
/// After so long they are of no use.
const REJECT_AFTER: Span = Span::from_secs(180);
/// After so many packets keys are renewed.
const RENEW_AFTER_PACKETS: u64 = 1 << 26;
/// After so many they seal nothing more.
const REJECT_AFTER_PACKETS: u64 = 1 << 28;

/// A session's name, keys, and which packets have been opened.
pub struct Keyring {
    id: SessionId,
    replay: Replay,
    current: Epoch,
    previous: Option<Epoch>,
}

/// Keys, and how far they have been used.
struct Epoch {
    /// Our number for them.
    number: u32,
    sealer: Sealer,
    since: Time,
    sealed: u64,
    opened: u64,
}

impl Keyring {
    /// A session begins with these keys, which we number so.
    pub fn new(now: Time, id: SessionId, number: u32, sealer: Sealer) -> Keyring {
        Keyring { id, replay: Replay::new(), current: Epoch::new(now, number, sealer), previous: None }
    }

    /// The session goes on with other keys.
    pub fn renew(&mut self, now: Time, number: u32, sealer: Sealer) {
        let before = std::mem::replace(&mut self.current, Epoch::new(now, number, sealer));
        // What the other end has never used it may not even have: it still seals with those before.
        if before.opened > 0 || self.previous.is_none() {
            self.previous = Some(before);
        }
    }

    /// The session's name.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Our numbers for the keys that may open something.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        [Some(&self.current), self.previous.as_ref()].into_iter().flatten().map(|epoch| epoch.number)
    }

    /// True if it is time for other keys, which is after `age` at the latest.
    pub fn wants_renewal(&self, now: Time, age: Span) -> bool {
        let used = self.current.sealed.max(self.current.opened);
        now.since(self.current.since) >= age || used >= RENEW_AFTER_PACKETS
    }

    /// When [`Keyring::wants_renewal`] comes true if nothing else makes it so.
    pub fn renewal(&self, age: Span) -> Time {
        self.current.since + age
    }

    /// Appends the datagram of packet `number` to `out`; false, and nothing is appended, if there are no keys for it.
    pub fn seal(&mut self, now: Time, number: u64, packet: &[u8], out: &mut Vec<u8>) -> bool {
        let epoch = &mut self.current;
        if epoch.is_too_old(now) || epoch.sealed >= REJECT_AFTER_PACKETS {
            return false;
        }
        epoch.sealed += 1;
        epoch.sealer.seal(number, packet, out);
        true
    }

    /// Opens packet `number`, sealed with the keys that we number `keys`, into `packet`; returns how long it is, and whether its
    /// number is the highest so far.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn open(
        &mut self,
        now: Time,
        keys: u32,
        number: u64,
        sealed: &[u8],
        packet: &mut [u8],
    ) -> Result<(usize, bool), Refused> {
        let all = [Some(&mut self.current), self.previous.as_mut()];
        let epoch = all.into_iter().flatten().find(|epoch| epoch.number == keys && !epoch.is_too_old(now));
        let epoch = epoch.ok_or(Refused::Unknown)?;
        if !self.replay.is_fresh(number) {
            return Err(Refused::Repeated);
        }
        let len = epoch.sealer.open(number, sealed, packet)?;
        epoch.opened += 1;
        let highest = self.replay.is_highest(number);
        self.replay.enter(number);
        Ok((len, highest))
    }
}

impl Epoch {
    fn new(now: Time, number: u32, sealer: Sealer) -> Epoch {
        Epoch { number, sealer, since: now, sealed: 0, opened: 0 }
    }

    fn is_too_old(&self, now: Time) -> bool {
        now.since(self.since) >= REJECT_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::super::handshake::tests::agreed;
    use super::*;
    use lasthop_wire::tunnel::Datagram;

    fn at(s: u64) -> Time {
        Time::from_nanos((1000 + s) * 1_000_000_000)
    }

    /// Both ends' keyrings. They number their first keys 1 (station) and 2.
    fn pair() -> (Keyring, Keyring) {
        let (station, proxy) = agreed(1, 2);
        assert_eq!(station.id, proxy.id, "both know the session by one name");
        let ring = |number, end: super::super::handshake::Agreed| Keyring::new(at(0), end.id, number, end.sealer);
        (ring(1, station), ring(2, proxy))
    }

    fn pass(now: Time, from: &mut Keyring, to: &mut Keyring, number: u64) -> Result<bool, Refused> {
        let (mut datagram, mut packet) = (Vec::new(), [0; 100]);
        if !from.seal(now, number, b"12345678", &mut datagram) {
            return Err(Refused::Unknown);
        }
        let Ok(Datagram::Sealed { session, number, sealed }) = Datagram::parse(&datagram) else {
            panic!("a sealed packet")
        };
        let (len, highest) = to.open(now, session, number, sealed, &mut packet)?;
        assert_eq!(&packet[..len], b"12345678");
        Ok(highest)
    }

    #[test]
    fn packet_numbers_continue_over_renewal_and_open_once() {
        let (mut station, mut proxy) = pair();
        assert_eq!(pass(at(1), &mut station, &mut proxy, 0), Ok(true));
        let mut late = Vec::new();
        assert!(station.seal(at(1), 1, b"12345678", &mut late));
        let (s, p) = agreed(3, 4);
        // The station has the new keys first; the proxy goes on with the old ones until a packet comes under the new.
        station.renew(at(2), 3, s.sealer);
        assert_eq!(pass(at(2), &mut proxy, &mut station, 0), Ok(true));
        proxy.renew(at(2), 4, p.sealer);
        assert_eq!(pass(at(2), &mut station, &mut proxy, 2), Ok(true));
        assert_eq!(pass(at(2), &mut proxy, &mut station, 1), Ok(true));
        let Ok(Datagram::Sealed { session, number, sealed }) = Datagram::parse(&late) else { panic!("sealed") };
        let mut packet = [0; 100];
        assert_eq!(proxy.open(at(3), session, number, sealed, &mut packet), Ok((8, false)), "late, under the old keys");
        assert_eq!(proxy.open(at(3), session, number, sealed, &mut packet), Err(Refused::Repeated));
        assert_eq!(pass(at(3), &mut station, &mut proxy, 2), Err(Refused::Repeated), "a number is the session's");
        assert_eq!(proxy.numbers().collect::<Vec<_>>(), [4, 2]);
    }

    #[test]
    fn unused_keys_do_not_replace_keys_in_use() {
        let (mut station, mut proxy) = pair();
        assert_eq!(pass(at(1), &mut proxy, &mut station, 0), Ok(true));
        for number in [11, 12, 13] {
            station.renew(at(2), number, agreed(number, 9).0.sealer);
            // This end's own use of them says nothing of the other's.
            assert!(station.seal(at(2), number.into(), b"12345678", &mut Vec::new()));
        }
        assert_eq!(station.numbers().collect::<Vec<_>>(), [13, 1]);
        assert_eq!(pass(at(3), &mut proxy, &mut station, 1), Ok(true));
    }

    #[test]
    fn old_keys_want_to_be_renewed_and_then_are_of_no_use() {
        let (mut station, mut proxy) = pair();
        assert!(!station.wants_renewal(at(119), RENEW_AFTER) && station.wants_renewal(at(120), RENEW_AFTER));
        assert_eq!(station.renewal(RENEW_AFTER), at(120));
        assert_eq!(pass(at(179), &mut station, &mut proxy, 7), Ok(true));
        let mut last = Vec::new();
        assert!(station.seal(at(179), 8, b"12345678", &mut last));
        assert_eq!(pass(at(180), &mut station, &mut proxy, 9), Err(Refused::Unknown), "not sealed any more");
        let Ok(Datagram::Sealed { session, number, sealed }) = Datagram::parse(&last) else { panic!("sealed") };
        assert_eq!(proxy.open(at(180), session, number, sealed, &mut [0; 100]), Err(Refused::Unknown));
    }

    #[test]
    fn many_packets_wear_keys_out() {
        let (mut station, mut proxy) = pair();
        station.current.sealed = RENEW_AFTER_PACKETS;
        proxy.current.opened = RENEW_AFTER_PACKETS;
        assert!(station.wants_renewal(at(1), RENEW_AFTER) && proxy.wants_renewal(at(1), RENEW_AFTER));
        station.current.sealed = REJECT_AFTER_PACKETS - 1;
        assert_eq!(pass(at(1), &mut station, &mut proxy, 1), Ok(true));
        assert_eq!(pass(at(1), &mut station, &mut proxy, 2), Err(Refused::Unknown));
    }
}
