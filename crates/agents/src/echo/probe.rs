//! A probe and its answer as datagrams: 8 octets that say which, and a number.

use lasthop_units::Bytes;

/// Octets of a datagram of either kind.
pub(super) const LEN: usize = 16;
/// The same with its IP and UDP headers.
pub(super) const PACKET: Bytes = Bytes::new(LEN as u64 + 28);

const ASK: [u8; 8] = *b"LHecho1?";
const ANSWER: [u8; 8] = *b"LHecho1!";

/// What a datagram says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Probe {
    /// A question with this number.
    Ask(u64),
    /// The answer to it.
    Answer(u64),
}

impl Probe {
    /// What a datagram says; `None` if it is neither.
    pub(super) fn parse(bytes: &[u8]) -> Option<Probe> {
        let (kind, number) = <&[u8; LEN]>::try_from(bytes).ok()?.split_first_chunk()?;
        let number = u64::from_be_bytes(number.try_into().ok()?);
        match *kind {
            ASK => Some(Probe::Ask(number)),
            ANSWER => Some(Probe::Answer(number)),
            _ => None,
        }
    }

    /// The datagram.
    pub(super) fn bytes(self) -> [u8; LEN] {
        let (kind, number) = match self {
            Probe::Ask(number) => (ASK, number),
            Probe::Answer(number) => (ANSWER, number),
        };
        let mut bytes = [0; LEN];
        bytes[..8].copy_from_slice(&kind);
        bytes[8..].copy_from_slice(&number.to_be_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        for probe in [Probe::Ask(7), Probe::Answer(u64::MAX)] {
            let bytes = probe.bytes();
            assert_eq!(Probe::parse(&bytes), Some(probe));
            assert_eq!((Probe::parse(&bytes[1..]), Probe::parse(&[&bytes[..], &[0]].concat())), (None, None));
        }
        assert_eq!((Probe::parse(&[]), Probe::parse(&[0; LEN])), (None, None));
    }
}
