//! How a station and its proxy agree on the keys of a session.
//! Source:     the Noise protocol framework, revision 34, pattern `NNpsk0`; ciphers from `ring`, X25519 from `curve25519-dalek`.
//! Deviations: none. The header of the initiation is the prologue; each payload is the sender's number for the session.
//! Validity:   the pre-shared key is 32 random octets.     Checked by: tests::*

use super::{Key, Sealer};
use lasthop_signals::Node;
use lasthop_wire::tunnel::{initiation_header, response_header};
use snow::{Builder, HandshakeState, StatelessTransportState};

const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";
/// Octets of a handshake message with a payload of four: ephemeral key, payload, tag.
const MESSAGE: usize = 32 + 4 + 16;

/// The station's half of a handshake.
pub struct Initiator {
    /// `None` once the handshake is over.
    state: Option<HandshakeState>,
    session: u32,
    datagram: Vec<u8>,
}

/// The other end does not hold the key, or something was changed on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the other end does not hold the key of this station")]
pub struct WrongKey;

impl Initiator {
    /// Begins a session that this end numbers `session`.
    pub fn new(station: Node, key: &Key, session: u32) -> Initiator {
        let header = initiation_header(station);
        let mut state = builder(&header, key).build_initiator().expect("the pattern needs no more than this");
        let mut datagram = header.to_vec();
        datagram.resize(header.len() + MESSAGE, 0);
        state
            .write_message(&session.to_be_bytes(), &mut datagram[header.len()..])
            .expect("the first message is the initiator's");
        Initiator { state: Some(state), session, datagram }
    }

    /// The datagram to send, again and again until there is a response.
    pub fn datagram(&self) -> &[u8] {
        &self.datagram
    }

    /// This end's number for the session.
    pub fn session(&self) -> u32 {
        self.session
    }

    /// Takes the response's message.
    ///
    /// # Errors
    /// [`WrongKey`]; another response may still be the right one.
    pub fn finish(&mut self, message: &[u8]) -> Result<Sealer, WrongKey> {
        let mut payload = [0; 128];
        let state = self.state.as_mut().ok_or(WrongKey)?;
        let len = state.read_message(message, &mut payload).map_err(|_| WrongKey)?;
        let remote = payload.get(..len).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
        let state = self.state.take().ok_or(WrongKey)?;
        Ok(Sealer::new(transport(state)?, remote.ok_or(WrongKey)?))
    }
}

/// The proxy's half: the datagram that answers an initiation's message, and the session's keys.
///
/// # Errors
/// [`WrongKey`].
pub fn respond(station: Node, key: &Key, message: &[u8], session: u32) -> Result<(Vec<u8>, Sealer), WrongKey> {
    let header = initiation_header(station);
    let mut state = builder(&header, key).build_responder().expect("the pattern needs no more than this");
    let mut payload = [0; 128];
    let len = state.read_message(message, &mut payload).map_err(|_| WrongKey)?;
    let remote = payload.get(..len).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes).ok_or(WrongKey)?;
    let mut datagram = response_header(remote).to_vec();
    let at = datagram.len();
    datagram.resize(at + MESSAGE, 0);
    state.write_message(&session.to_be_bytes(), &mut datagram[at..]).map_err(|_| WrongKey)?;
    Ok((datagram, Sealer::new(transport(state)?, remote)))
}

fn transport(state: HandshakeState) -> Result<StatelessTransportState, WrongKey> {
    state.into_stateless_transport_mode().map_err(|_| WrongKey)
}

fn pattern() -> snow::params::NoiseParams {
    PATTERN.parse().expect("a pattern that the library knows")
}

fn builder<'a>(prologue: &'a [u8], key: &'a Key) -> Builder<'a> {
    let with_key = Builder::new(pattern()).psk(0, &key.0).and_then(|builder| builder.prologue(prologue));
    with_key.expect("each is set once")
}

#[cfg(test)]
mod tests {
    use super::super::sealer::Refused;
    use super::*;
    use lasthop_wire::tunnel::{Datagram, TAG};

    fn message(datagram: &[u8]) -> &[u8] {
        match Datagram::parse(datagram).expect("ours") {
            Datagram::Initiation { message, .. } | Datagram::Response { message, .. } => message,
            Datagram::Sealed { .. } => panic!("no handshake"),
        }
    }

    fn session() -> (Sealer, Sealer) {
        let key = Key::new([7; 32]);
        let mut initiator = Initiator::new(Node(3), &key, 11);
        let (response, proxy) = respond(Node(3), &key, message(initiator.datagram()), 22).expect("the same key");
        assert!(matches!(Datagram::parse(&response), Ok(Datagram::Response { session: 11, .. })));
        (initiator.finish(message(&response)).expect("the same key"), proxy)
    }

    fn sealed(datagram: &[u8]) -> (u64, &[u8]) {
        let Ok(Datagram::Sealed { number, sealed, .. }) = Datagram::parse(datagram) else { panic!("not sealed") };
        (number, sealed)
    }

    #[test]
    fn what_one_seals_the_other_opens_once() {
        let (mut station, mut proxy) = session();
        let (mut datagram, mut packet) = (Vec::new(), [0; 100]);
        station.seal(5, b"to the proxy", &mut datagram);
        assert_eq!(datagram.len(), Sealer::sealed_len(12));
        let (number, body) = sealed(&datagram);
        assert_eq!(proxy.open(number, body, &mut packet), Ok((12, true)));
        assert_eq!(&packet[..12], b"to the proxy");
        assert_eq!(proxy.open(number, body, &mut packet), Err(Refused::Repeated));
        assert_eq!(station.open(number, body, &mut packet), Err(Refused::Forged), "directions have their own keys");
        datagram.clear();
        proxy.seal(0, b"back home", &mut datagram);
        let (number, body) = sealed(&datagram);
        assert_eq!(station.open(number, body, &mut packet), Ok((9, true)));
    }

    #[test]
    fn every_octet_and_the_number_are_protected() {
        let (station, mut proxy) = session();
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
        assert_eq!(proxy.open(number, body, &mut packet), Ok((8, true)), "what was refused has used up nothing");
    }

    #[test]
    fn a_wrong_key_a_wrong_number_and_changes_are_refused() {
        let (right, wrong) = (Key::new([7; 32]), Key::new([8; 32]));
        let initiator = Initiator::new(Node(3), &right, 11);
        let first = message(initiator.datagram());
        assert!(respond(Node(3), &wrong, first, 1).is_err());
        assert!(respond(Node(4), &right, first, 1).is_err(), "the header is the prologue");
        for at in 0..first.len() {
            let mut changed = first.to_vec();
            changed[at] ^= 1;
            assert!(respond(Node(3), &right, &changed, 1).is_err(), "octet {at}");
        }
        assert!(respond(Node(3), &right, &[], 1).is_err());
    }

    #[test]
    fn an_initiation_sent_again_gives_keys_that_open_nothing() {
        let key = Key::new([7; 32]);
        let mut initiator = Initiator::new(Node(3), &key, 11);
        let first = initiator.datagram().to_vec();
        let (response, _) = respond(Node(3), &key, message(&first), 1).expect("the same key");
        let station = initiator.finish(message(&response)).expect("the same key");
        let (_, mut second) = respond(Node(3), &key, message(&first), 2).expect("the same message is as good again");
        let mut datagram = Vec::new();
        station.seal(0, b"12345678", &mut datagram);
        assert_eq!(second.open(0, sealed(&datagram).1, &mut [0; 64]), Err(Refused::Forged));
    }

    #[test]
    fn a_forged_response_does_not_end_the_handshake() {
        let key = Key::new([7; 32]);
        let mut initiator = Initiator::new(Node(3), &key, 11);
        assert!(initiator.finish(&[0; MESSAGE]).is_err());
        let (response, _) = respond(Node(3), &key, message(initiator.datagram()), 1).expect("the same key");
        assert!(initiator.finish(message(&response)).is_ok());
    }
}
