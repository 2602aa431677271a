//! How a station and its proxy agree on keys: those of a new session, or other ones for one that goes on.
//! Source:     the Noise protocol framework, revision 34, pattern `NNpsk0`; ciphers from `ring`, X25519 from `curve25519-dalek`.
//! Deviations: none. The header of the initiation is the prologue; the payloads are a wish and a grant. A session is named by its
//!             first handshake's hash (section 11.2: channel binding).
//! Validity:   the pre-shared key is 32 random octets.     Checked by: tests::*

use super::{Key, Sealer};
use lasthop_signals::Node;
use lasthop_wire::tunnel::{
    CHALLENGE, Challenge, GRANT, Grant, SessionId, WISH, Wish, challenge_header, initiation_header, response_header,
};
use ring::hmac;
use snow::{Builder, HandshakeState};

const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";
/// Octets of a handshake message around its payload: ephemeral key and tag.
const AROUND: usize = 32 + 16;
/// Room for the payload of any message that is not far too long; what does not fit is an error.
const ROOM: usize = 128;

/// The station's half of a handshake.
pub struct Initiator {
    /// `None` once the handshake is over.
    state: Option<HandshakeState>,
    wish: Wish,
    proofs: hmac::Key,
    datagram: Vec<u8>,
}

/// What a handshake has led to.
pub struct Agreed {
    /// The keys.
    pub sealer: Sealer,
    /// The name of the session, if these are the keys of a new one.
    pub id: SessionId,
    /// They are other keys for the session that the station named.
    pub continued: bool,
}

/// The other end does not hold the key, or something was changed on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the other end does not hold the key of this station")]
pub struct WrongKey;

impl Initiator {
    /// Asks for what is wished.
    pub fn new(station: Node, key: &Key, wish: Wish) -> Initiator {
        let header = initiation_header(station);
        let mut state = builder(&header, key).build_initiator().expect("the pattern needs no more than this");
        let mut datagram = header.to_vec();
        datagram.resize(header.len() + AROUND + WISH, 0);
        state
            .write_message(&wish.encode(), &mut datagram[header.len()..])
            .expect("the first message is the initiator's");
        Initiator { state: Some(state), wish, proofs: proofs(key), datagram }
    }

    /// The datagram to send, again and again until there is an answer.
    pub fn datagram(&self) -> &[u8] {
        &self.datagram
    }

    /// What was asked for.
    pub fn wish(&self) -> &Wish {
        &self.wish
    }

    /// True if a challenge answers this initiation and comes from a holder of the key.
    pub fn is_challenged(&self, session: u32, challenge: &Challenge, proof: &[u8; CHALLENGE]) -> bool {
        let text = proof_text(session, challenge, &self.datagram);
        session == self.wish.number && hmac::verify(&self.proofs, &text, proof).is_ok()
    }

    /// Takes the response's message.
    ///
    /// # Errors
    /// [`WrongKey`]; another response may still be the right one.
    pub fn finish(&mut self, message: &[u8]) -> Result<Agreed, WrongKey> {
        let mut payload = [0; ROOM];
        let state = self.state.as_mut().ok_or(WrongKey)?;
        let len = state.read_message(message, &mut payload).map_err(|_| WrongKey)?;
        let state = self.state.take().ok_or(WrongKey)?;
        let grant = Grant::decode(payload.get(..len).unwrap_or(&[])).map_err(|_| WrongKey)?;
        agreed(state, grant.number, grant.continued && self.wish.continues.is_some())
    }
}

/// An initiation that was opened, which takes no exponentiation: the pattern's first message holds none.
pub struct Question {
    state: HandshakeState,
    wish: Wish,
}

impl Question {
    /// Opens an initiation's message.
    ///
    /// # Errors
    /// [`WrongKey`].
    pub fn hear(station: Node, key: &Key, message: &[u8]) -> Result<Question, WrongKey> {
        let header = initiation_header(station);
        let mut state = builder(&header, key).build_responder().expect("the pattern needs no more than this");
        let mut payload = [0; ROOM];
        let len = state.read_message(message, &mut payload).map_err(|_| WrongKey)?;
        let wish = Wish::decode(payload.get(..len).unwrap_or(&[])).map_err(|_| WrongKey)?;
        Ok(Question { state, wish })
    }

    /// What is asked for.
    pub fn wish(&self) -> &Wish {
        &self.wish
    }

    /// Grants it: the datagram that says so, and the keys. It takes the exponentiations of both halves of a key agreement.
    ///
    /// # Errors
    /// [`WrongKey`] if the station's ephemeral key is none.
    pub fn answer(mut self, grant: Grant) -> Result<(Vec<u8>, Agreed), WrongKey> {
        let mut datagram = response_header(self.wish.number).to_vec();
        let at = datagram.len();
        datagram.resize(at + AROUND + GRANT, 0);
        self.state.write_message(&grant.encode(), &mut datagram[at..]).map_err(|_| WrongKey)?;
        Ok((datagram, agreed(self.state, self.wish.number, grant.continued)?))
    }

    /// Asks the station to ask again with this challenge: the datagram that says so, shorter than the `initiation` was.
    pub fn challenge(&self, key: &Key, challenge: &Challenge, station: Node, message: &[u8]) -> Vec<u8> {
        let initiation = [&initiation_header(station)[..], message].concat();
        let proof = hmac::sign(&proofs(key), &proof_text(self.wish.number, challenge, &initiation));
        [&challenge_header(self.wish.number)[..], challenge, proof.as_ref()].concat()
    }
}

fn agreed(state: HandshakeState, remote: u32, continued: bool) -> Result<Agreed, WrongKey> {
    let hash = state.get_handshake_hash().first_chunk().copied().ok_or(WrongKey)?;
    // Zero stands for no session.
    let id = SessionId(u64::from_be_bytes(hash).max(1));
    let keys = state.into_stateless_transport_mode().map_err(|_| WrongKey)?;
    Ok(Agreed { sealer: Sealer::new(keys, remote), id, continued })
}

/// What proofs are made with. Noise uses the key as what is extracted from, not as the key of a MAC, and no text of its begins
/// like a proof's.
fn proofs(key: &Key) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, &key.0)
}

fn proof_text(session: u32, challenge: &Challenge, initiation: &[u8]) -> Vec<u8> {
    [b"lasthop challenge", &challenge_header(session)[..], challenge, initiation].concat()
}

fn pattern() -> snow::params::NoiseParams {
    PATTERN.parse().expect("a pattern that the library knows")
}

fn builder<'a>(prologue: &'a [u8], key: &'a Key) -> Builder<'a> {
    let with_key = Builder::new(pattern()).psk(0, &key.0).and_then(|builder| builder.prologue(prologue));
    with_key.expect("each is set once")
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::sealer::Refused;
    use super::*;
    use lasthop_wire::tunnel::{Datagram, TAG};

    fn message(datagram: &[u8]) -> &[u8] {
        match Datagram::parse(datagram).expect("ours") {
            Datagram::Initiation { message, .. } | Datagram::Response { message, .. } => message,
            Datagram::Sealed { .. } | Datagram::Challenge { .. } => panic!("no handshake"),
        }
    }

    fn wish(number: u32) -> Wish {
        Wish { number, challenge: [5; CHALLENGE], continues: None }
    }

    fn respond(station: Node, key: &Key, message: &[u8], number: u32) -> Result<(Vec<u8>, Sealer), WrongKey> {
        let answered = Question::hear(station, key, message)?.answer(Grant { number, continued: false })?;
        Ok((answered.0, answered.1.sealer))
    }

    /// What a station gets, with the first number, and a proxy, with the second.
    pub(in super::super) fn agreed(station: u32, proxy: u32) -> (Agreed, Agreed) {
        let key = Key::new([7; 32]);
        let mut initiator = Initiator::new(Node(3), &key, wish(station));
        let question = Question::hear(Node(3), &key, message(initiator.datagram())).expect("the same key");
        assert_eq!(*question.wish(), wish(station));
        let grant = Grant { number: proxy, continued: false };
        let (response, at_proxy) = question.answer(grant).expect("a key");
        assert!(matches!(Datagram::parse(&response), Ok(Datagram::Response { session, .. }) if session == station));
        assert!(response.len() < initiator.datagram().len(), "nobody gets more than he gave");
        (initiator.finish(message(&response)).expect("the same key"), at_proxy)
    }

    fn session() -> (Sealer, Sealer) {
        let (station, proxy) = agreed(11, 22);
        (station.sealer, proxy.sealer)
    }

    fn sealed(datagram: &[u8]) -> (u64, &[u8]) {
        let Ok(Datagram::Sealed { number, sealed, .. }) = Datagram::parse(datagram) else { panic!("not sealed") };
        (number, sealed)
    }

    #[test]
    fn what_one_seals_the_other_opens() {
        let (station, proxy) = session();
        let (mut datagram, mut packet) = (Vec::new(), [0; 100]);
        station.seal(5, b"to the proxy", &mut datagram);
        assert_eq!(datagram.len(), Sealer::sealed_len(12));
        let (number, body) = sealed(&datagram);
        assert_eq!(proxy.open(number, body, &mut packet), Ok(12));
        assert_eq!(&packet[..12], b"to the proxy");
        assert_eq!(station.open(number, body, &mut packet), Err(Refused::Forged), "directions have their own keys");
        datagram.clear();
        proxy.seal(0, b"back home", &mut datagram);
        let (number, body) = sealed(&datagram);
        assert_eq!(station.open(number, body, &mut packet), Ok(9));
    }

    #[test]
    fn every_octet_and_the_number_are_protected() {
        let (station, proxy) = session();
        let (mut datagram, mut packet) = (Vec::new(), [0; 100]);
        station.seal(9, b"12345678", &mut datagram);
        let (number, body) = sealed(&datagram);
        for at in 0..body.len() {
            let mut changed = body.to_vec();
            changed[at] ^= 1;
            assert_eq!(proxy.open(number, &changed, &mut packet), Err(Refused::Forged));
        }
        assert_eq!(proxy.open(number + 1, body, &mut packet), Err(Refused::Forged));
        assert_eq!(proxy.open(number, &body[..TAG], &mut packet), Err(Refused::Forged));
        assert_eq!(proxy.open(number, body, &mut packet), Ok(8), "what was refused has used up nothing");
    }

    #[test]
    fn a_wrong_key_a_wrong_number_and_changes_are_refused() {
        let (right, wrong) = (Key::new([7; 32]), Key::new([8; 32]));
        let initiator = Initiator::new(Node(3), &right, wish(11));
        let first = message(initiator.datagram());
        assert!(respond(Node(3), &wrong, first, 1).is_err());
        assert!(respond(Node(4), &right, first, 1).is_err(), "the header is the prologue");
        for at in 0..first.len() {
            let mut changed = first.to_vec();
            changed[at] ^= 1;
            assert!(Question::hear(Node(3), &right, &changed).is_err(), "octet {at}");
        }
        assert!(respond(Node(3), &right, &[], 1).is_err());
    }

    #[test]
    fn an_initiation_sent_again_gives_keys_that_open_nothing() {
        let key = Key::new([7; 32]);
        let mut initiator = Initiator::new(Node(3), &key, wish(11));
        let first = initiator.datagram().to_vec();
        let (response, _) = respond(Node(3), &key, message(&first), 1).expect("the same key");
        let station = initiator.finish(message(&response)).expect("the same key").sealer;
        let (_, second) = respond(Node(3), &key, message(&first), 2).expect("the same message is as good again");
        let mut datagram = Vec::new();
        station.seal(0, b"12345678", &mut datagram);
        assert_eq!(second.open(0, sealed(&datagram).1, &mut [0; 64]), Err(Refused::Forged));
    }

    #[test]
    fn a_forged_response_does_not_end_the_handshake() {
        let key = Key::new([7; 32]);
        let mut initiator = Initiator::new(Node(3), &key, wish(11));
        assert!(initiator.finish(&[0; AROUND + GRANT]).is_err());
        let (response, _) = respond(Node(3), &key, message(initiator.datagram()), 1).expect("the same key");
        assert!(initiator.finish(message(&response)).is_ok());
    }

    #[test]
    fn only_a_key_holder_can_challenge_a_sent_initiation() {
        let (key, from_proxy) = (Key::new([7; 32]), [9; CHALLENGE]);
        let [initiator, other] = [11, 12].map(|number| Initiator::new(Node(3), &key, wish(number)));
        let asked = message(initiator.datagram());
        let question = Question::hear(Node(3), &key, asked).expect("the same key");
        let datagram = question.challenge(&key, &from_proxy, Node(3), asked);
        assert!(datagram.len() < initiator.datagram().len(), "nobody gets more than he gave");
        let Ok(Datagram::Challenge { session, challenge, proof }) = Datagram::parse(&datagram) else {
            panic!("a challenge")
        };
        assert_eq!((session, *challenge), (11, from_proxy));
        assert!(initiator.is_challenged(session, challenge, proof));
        assert!(!initiator.is_challenged(session, &[8; CHALLENGE], proof));
        assert!(!initiator.is_challenged(session, challenge, &[0; CHALLENGE]));
        assert!(!initiator.is_challenged(12, challenge, proof));
        assert!(!other.is_challenged(12, challenge, proof), "another initiation");
    }
}
