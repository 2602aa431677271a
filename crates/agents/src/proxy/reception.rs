//! Stations that ask for keys, and keys that no packet has confirmed yet.
//!
//! The cost of an initiation is bounded. A sender without the station's key has its message opened, which takes no
//! exponentiation. A sender of a recorded initiation is sent a challenge besides. The station itself is answered
//! [`MOST_ASKED`] times in [`challenge::VALIDITY`]. Recorded initiations take no place from the station's own.

use crate::tunnel::challenge::{self, Challenger};
use crate::tunnel::keys::Key;
use crate::tunnel::{Question, Sealer};
use lasthop_signals::Node;
use lasthop_units::{Span, Time};
use lasthop_wire::tunnel::{Grant, SessionId};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Everything that is known of stations without a session.
pub(crate) struct Reception {
    keys: BTreeMap<Node, Key>,
    challenger: Challenger,
    /// What each station has asked not long ago, the oldest first.
    asked: BTreeMap<Node, Vec<Asked>>,
    /// The station that has asked for the keys with this number of ours.
    open: BTreeMap<u32, Node>,
    forgot: Time,
    next_number: u32,
    /// Initiations that were answered with keys.
    pub(crate) granted: u64,
    /// Initiations that were answered with a challenge.
    pub(crate) challenged: u64,
}

/// A question, and what was answered: the same question gets the same answer.
struct Asked {
    at: Time,
    /// Where it came from: the challenge that it holds was given there.
    from: SocketAddr,
    question: Vec<u8>,
    answer: Vec<u8>,
    /// Our number for the keys.
    number: u32,
    /// What the keys are for; `None` once they are in use.
    open: Option<Open>,
}

struct Open {
    sealer: Sealer,
    id: SessionId,
    continues: Option<u32>,
}

/// Keys with which a station has sealed a packet.
pub(crate) struct Confirmed {
    pub(crate) station: Node,
    /// Where the station was when it asked for them: what was sent there has reached it.
    pub(crate) at: SocketAddr,
    /// Our number for them.
    pub(crate) number: u32,
    pub(crate) sealer: Sealer,
    /// The session's name if it is a new one.
    pub(crate) id: SessionId,
    /// Our number for the session that goes on with them.
    pub(crate) continues: Option<u32>,
}

/// Why an initiation is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// There is no key for this station.
    Unknown,
    /// It was made with another key than the station's.
    WrongKey,
    /// It was answered, and its keys are in use; or the station has asked too much.
    Enough,
}

/// Answers for one station within [`challenge::VALIDITY`]. It asks anew every five seconds at most, and once when it starts.
const MOST_ASKED: usize = 8;

impl Reception {
    /// For stations that hold these keys. `first`: where our numbers begin.
    pub(crate) fn new(keys: BTreeMap<Node, Key>, secret: [u8; 32], first: u32) -> Reception {
        let challenger = Challenger::new(secret);
        Reception {
            keys,
            challenger,
            asked: BTreeMap::new(),
            open: BTreeMap::new(),
            forgot: Time::ZERO,
            next_number: first,
            granted: 0,
            challenged: 0,
        }
    }

    /// Answers an initiation. `session`: the station's session, if it has that name.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub(crate) fn greet(
        &mut self,
        now: Time,
        from: SocketAddr,
        station: Node,
        message: &[u8],
        session: impl FnOnce(SessionId) -> Option<u32>,
    ) -> Result<Vec<u8>, Unanswered> {
        let key = self.keys.get(&station).ok_or(Unanswered::Unknown)?;
        let asked = self.asked.entry(station).or_default();
        if let Some(again) = asked.iter().find(|asked| asked.question == message) {
            // A station that has used the keys has had the answer.
            return again.open.as_ref().map(|_| again.answer.clone()).ok_or(Unanswered::Enough);
        }
        let question = Question::hear(station, key, message).map_err(|_| Unanswered::WrongKey)?;
        let wish = *question.wish();
        if !self.challenger.is_fresh(now, station, from, &wish.challenge) {
            self.challenged += 1;
            let challenge = self.challenger.challenge(now, station, from);
            return Ok(question.challenge(key, &challenge, station, message));
        }
        asked.retain(|asked| now.since(asked.at) < challenge::VALIDITY);
        if asked.len() >= MOST_ASKED {
            return Err(Unanswered::Enough);
        }
        let number = self.next_number;
        let continues = wish.continues.and_then(session);
        let grant = Grant { number, continued: continues.is_some() };
        let (answer, agreed) = question.answer(grant).map_err(|_| Unanswered::WrongKey)?;
        self.next_number = self.next_number.wrapping_add(1) & (u32::MAX >> 1);
        self.granted += 1;
        let open = Some(Open { sealer: agreed.sealer, id: agreed.id, continues });
        self.open.insert(number, station);
        asked.push(Asked { at: now, from, question: message.to_vec(), answer: answer.clone(), number, open });
        Ok(answer)
    }

    /// Takes out the keys that we number so if this packet was sealed with them. Nothing else uses up keys.
    pub(crate) fn confirm(&mut self, number: u32, packet: u64, sealed: &[u8]) -> Option<Confirmed> {
        let station = *self.open.get(&number)?;
        let asked = self.asked.get_mut(&station)?.iter_mut().find(|asked| asked.number == number)?;
        let mut trial = [0; 2048];
        let open = asked.open.take_if(|open| open.sealer.open(packet, sealed, &mut trial).is_ok())?;
        let at = asked.from;
        self.open.remove(&number);
        let Open { sealer, id, continues } = open;
        Some(Confirmed { station, at, number, sealer, id, continues })
    }

    /// What path challenges are made with.
    pub(crate) fn challenger(&self) -> &Challenger {
        &self.challenger
    }

    /// Stations that are known.
    pub(crate) fn stations(&self) -> usize {
        self.keys.len()
    }

    /// From now on these keys are right; returns the stations with a changed or removed key. What these have been
    /// answered is void.
    pub(crate) fn rekey(&mut self, keys: BTreeMap<Node, Key>) -> Vec<Node> {
        let before = std::mem::replace(&mut self.keys, keys);
        let changed = |(station, key): (Node, Key)| (self.keys.get(&station) != Some(&key)).then_some(station);
        let changed: Vec<Node> = before.into_iter().filter_map(changed).collect();
        self.asked.retain(|station, _| !changed.contains(station));
        self.open.retain(|_, station| !changed.contains(station));
        changed
    }

    /// Forgets what has become old.
    pub(crate) fn forget(&mut self, now: Time) {
        if now.since(self.forgot) < Span::from_secs(1) {
            return;
        }
        self.forgot = now;
        self.asked.retain(|_, all| {
            all.retain(|asked| now.since(asked.at) < challenge::VALIDITY);
            !all.is_empty()
        });
        let asked = &self.asked;
        let of = |station: &Node| asked.get(station).into_iter().flatten();
        self.open.retain(|number, station| of(station).any(|asked| asked.number == *number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::{Agreed, Initiator};
    use lasthop_wire::tunnel::{CHALLENGE, Challenge, Datagram, Wish};

    const STATION: Node = Node(3);

    fn at(s: u64) -> Time {
        Time::from_nanos((1_000 + s) * 1_000_000_000)
    }

    fn home() -> SocketAddr {
        "192.0.2.9:4000".parse().expect("an address")
    }

    fn key() -> Key {
        Key::new([7; 32])
    }

    fn reception() -> Reception {
        Reception::new([(STATION, key())].into(), [1; 32], 100)
    }

    fn ask(number: u32, challenge: Challenge) -> Initiator {
        Initiator::new(STATION, &key(), Wish { number, challenge, continues: None })
    }

    fn message(datagram: &[u8]) -> &[u8] {
        let Ok(Datagram::Initiation { message, .. }) = Datagram::parse(datagram) else { panic!("an initiation") };
        message
    }

    fn say(reception: &mut Reception, now: Time, from: SocketAddr, datagram: &[u8]) -> Option<Vec<u8>> {
        reception.greet(now, from, STATION, message(datagram), |_| None).ok()
    }

    #[test]
    fn a_changed_key_shuts_out_the_station_and_voids_answers() {
        let mut reception = reception();
        let challenge = challenge(&mut reception, at(0));
        let initiator = ask(9, challenge);
        assert!(say(&mut reception, at(0), home(), initiator.datagram()).is_some());
        assert_eq!(reception.rekey([(STATION, key()), (Node(4), key())].into()), [], "it has the key that it had");
        assert!(say(&mut reception, at(0), home(), initiator.datagram()).is_some());
        assert_eq!(reception.rekey([(STATION, Key::new([8; 32])), (Node(4), key())].into()), [STATION]);
        assert!(say(&mut reception, at(0), home(), initiator.datagram()).is_none());
        assert!(reception.open.is_empty());
        assert_eq!(reception.rekey([(STATION, Key::new([8; 32]))].into()), [Node(4)]);
        assert_eq!(reception.stations(), 1);
    }

    /// What the proxy wants in an initiation of now.
    fn challenge(reception: &mut Reception, now: Time) -> Challenge {
        let initiator = ask(9, [0; CHALLENGE]);
        let answer = say(reception, now, home(), initiator.datagram()).expect("an answer");
        let Ok(Datagram::Challenge { session, challenge, proof }) = Datagram::parse(&answer) else {
            panic!("a challenge")
        };
        assert!(initiator.is_challenged(session, challenge, proof));
        *challenge
    }

    fn take(initiator: &mut Initiator, answer: &[u8]) -> Agreed {
        let Ok(Datagram::Response { message, .. }) = Datagram::parse(answer) else { panic!("a response") };
        initiator.finish(message).expect("the same key")
    }

    /// True if keys come into use with the first packet sealed with them.
    fn confirms(reception: &mut Reception, agreed: &Agreed) -> bool {
        let mut datagram = Vec::new();
        agreed.sealer.seal(0, b"12345678", &mut datagram);
        let Ok(Datagram::Sealed { session, number, sealed }) = Datagram::parse(&datagram) else { panic!("sealed") };
        reception.confirm(session, number, sealed).is_some_and(|confirmed| confirmed.id == agreed.id)
    }

    #[test]
    fn each_initiation_is_challenged_then_answered_once() {
        let mut reception = reception();
        let challenge = challenge(&mut reception, at(0));
        let mut initiator = ask(1, challenge);
        let answer = say(&mut reception, at(1), home(), initiator.datagram()).expect("an answer");
        assert_eq!(say(&mut reception, at(1), home(), initiator.datagram()), Some(answer.clone()));
        assert_eq!((reception.granted, reception.challenged), (1, 1));
        let agreed = take(&mut initiator, &answer);
        assert!(confirms(&mut reception, &agreed));
        assert!(!confirms(&mut reception, &agreed), "keys come into use once");
        assert_eq!(say(&mut reception, at(2), home(), initiator.datagram()), None, "a repetition, too late");
        assert_eq!(reception.granted, 1);
    }

    #[test]
    fn replayed_initiations_cost_no_exponentiation_or_session() {
        let mut reception = reception();
        // A day's worth of genuine initiations.
        let mut recorded = Vec::new();
        for hour in 0..24 {
            let challenge = challenge(&mut reception, at(hour * 3600));
            let mut initiator = ask(1, challenge);
            let answer = say(&mut reception, at(hour * 3600), home(), initiator.datagram()).expect("an answer");
            let agreed = take(&mut initiator, &answer);
            assert!(confirms(&mut reception, &agreed));
            recorded.push(initiator.datagram().to_vec());
        }
        let granted = reception.granted;
        let (now, elsewhere) = (at(24 * 3600), "203.0.113.1:9".parse().expect("an address"));
        let replay = |reception: &mut Reception, now: Time| {
            for datagram in &recorded {
                for from in [home(), elsewhere] {
                    say(reception, now, from, datagram);
                }
            }
        };
        // Between every two steps of the station's handshake everything is sent again.
        replay(&mut reception, now);
        let challenge = challenge(&mut reception, now);
        replay(&mut reception, now);
        let mut initiator = ask(2, challenge);
        let answer = say(&mut reception, now, home(), initiator.datagram()).expect("an answer");
        replay(&mut reception, now + Span::from_millis(1));
        assert_eq!(say(&mut reception, now, elsewhere, initiator.datagram()), Some(answer.clone()), "the same again");
        let agreed = take(&mut initiator, &answer);
        assert!(confirms(&mut reception, &agreed));
        assert_eq!(reception.granted, granted + 1);
        assert_eq!(reception.asked[&STATION].len(), 1);
        // Not even what is in time still helps somebody else: to him it is not addressed.
        let late = ask(4, challenge);
        let answer = say(&mut reception, now, elsewhere, late.datagram()).expect("a challenge");
        assert!(matches!(Datagram::parse(&answer), Ok(Datagram::Challenge { .. })));
    }

    #[test]
    fn a_proxy_that_was_started_again_takes_nothing_from_before() {
        let mut before = reception();
        let challenge = challenge(&mut before, at(0));
        let recorded = ask(1, challenge);
        assert!(say(&mut before, at(0), home(), recorded.datagram()).is_some());
        let mut after = Reception::new([(STATION, key())].into(), [2; 32], 100);
        say(&mut after, at(1), home(), recorded.datagram());
        assert_eq!((after.granted, after.challenged), (0, 1));
    }

    #[test]
    fn the_stations_clock_has_no_part_in_it() {
        // Two starts of a station, its clock set back by years in between: there is nothing in which they differ.
        let mut reception = reception();
        for number in [u32::MAX, 0] {
            let challenge = challenge(&mut reception, at(0));
            let mut initiator = ask(number, challenge);
            let answer = say(&mut reception, at(0), home(), initiator.datagram()).expect("an answer");
            let agreed = take(&mut initiator, &answer);
            assert!(confirms(&mut reception, &agreed));
        }
    }

    #[test]
    fn a_station_that_asks_and_asks_is_answered_a_few_times() {
        let mut reception = reception();
        for round in 0..3 {
            let now = at(100 * round);
            let challenge = challenge(&mut reception, now);
            let answered = (0..1000)
                .filter(|number| say(&mut reception, now, home(), ask(*number, challenge).datagram()).is_some());
            assert_eq!(answered.count(), MOST_ASKED);
        }
        reception.forget(at(1000));
        assert!(reception.asked.is_empty() && reception.open.is_empty());
    }

    #[test]
    fn who_does_not_hold_the_key_hears_nothing() {
        let mut reception = reception();
        let wrong = Initiator::new(STATION, &Key::new([8; 32]), *ask(1, [0; CHALLENGE]).wish());
        let mut greet = |station| reception.greet(at(0), home(), station, message(wrong.datagram()), |_| None);
        assert_eq!([greet(STATION), greet(Node(4))], [Err(Unanswered::WrongKey), Err(Unanswered::Unknown)]);
        assert_eq!(reception.confirm(100, 0, &[0; 64]).map(|confirmed| confirmed.number), None);
    }
}
