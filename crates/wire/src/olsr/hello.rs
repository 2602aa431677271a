//! HELLO: what a node hears of its neighbours, and which it has chosen to forward for it (RFC 3626, section 6.1).
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 2 | reserved |
//! | 2 | 1 | time to the next HELLO, as a validity time |
//! | 3 | 1 | willingness |
//! | 4 | … | groups: link code, reserved octet, group's size (2 octets, these four included), addresses |

use super::{Validity, addresses, put};
use crate::{Error, be16, take};
use std::net::Ipv4Addr;

const LEN: usize = 4;
const GROUP_LEN: usize = 4;

/// The contents of a HELLO.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hello {
    /// Time from this HELLO to the next.
    pub interval: Validity,
    /// Whether the node would forward for others.
    pub willingness: Willingness,
    /// Addresses of neighbours' interfaces, with what the node says of each. A code may come more than once.
    pub groups: Vec<(LinkCode, Vec<Ipv4Addr>)>,
}

/// How willingly a node forwards, 0 to 7; the RFC says 8-bit number, and greater ones count as they are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Willingness(pub u8);

impl Willingness {
    /// It forwards for nobody.
    pub const NEVER: Willingness = Willingness(0);
    /// Rather not.
    pub const LOW: Willingness = Willingness(1);
    /// As any other.
    pub const DEFAULT: Willingness = Willingness(3);
    /// Rather than others.
    pub const HIGH: Willingness = Willingness(6);
    /// It is always chosen.
    pub const ALWAYS: Willingness = Willingness(7);
}

/// What a node says of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LinkType {
    /// Nothing.
    Unspecified,
    /// The neighbour is heard; that it hears is not known.
    Asymmetric,
    /// Both hear each other.
    Symmetric,
    /// The neighbour is heard no more.
    Lost,
}

/// What a node says of a neighbour, over whatever link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NeighbourType {
    /// There is no symmetric link with it.
    No,
    /// There is.
    Symmetric,
    /// There is, and it is chosen as multipoint relay (MPR).
    Relay,
}

impl LinkType {
    const ALL: [LinkType; 4] = [LinkType::Unspecified, LinkType::Asymmetric, LinkType::Symmetric, LinkType::Lost];
}

impl NeighbourType {
    const ALL: [NeighbourType; 3] = [NeighbourType::No, NeighbourType::Symmetric, NeighbourType::Relay];
}

/// What a HELLO says of an address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkCode {
    link: LinkType,
    neighbour: NeighbourType,
}

impl LinkCode {
    /// The code of both; `None` for a symmetric link with what is no neighbour, which contradicts itself.
    pub fn new(link: LinkType, neighbour: NeighbourType) -> Option<LinkCode> {
        let contradicts = link == LinkType::Symmetric && neighbour == NeighbourType::No;
        (!contradicts).then_some(LinkCode { link, neighbour })
    }

    /// What is said of the link.
    pub fn link(self) -> LinkType {
        self.link
    }

    /// What is said of the neighbour.
    pub fn neighbour(self) -> NeighbourType {
        self.neighbour
    }

    /// The code of an octet; `None` for those that the RFC has ignored (section 6.1.1).
    pub fn from_octet(octet: u8) -> Option<LinkCode> {
        let link = *LinkType::ALL.get(usize::from(octet & 3))?;
        LinkCode::new(link, *NeighbourType::ALL.get(usize::from(octet >> 2))?)
    }

    /// The octet.
    pub fn octet(self) -> u8 {
        let link = LinkType::ALL.iter().position(|link| *link == self.link).unwrap_or(0) as u8;
        let neighbour = NeighbourType::ALL.iter().position(|neighbour| *neighbour == self.neighbour).unwrap_or(0) as u8;
        neighbour << 2 | link
    }
}

impl Hello {
    /// The contents of a message of type [`kind::HELLO`](super::kind::HELLO). Groups of codes that the RFC does not know are left out.
    ///
    /// # Errors
    /// If the octets end within a field, or a group's size contradicts its contents.
    pub fn decode(body: &[u8]) -> Result<Hello, Error> {
        let truncated = Error::Truncated { needed: LEN, got: body.len() };
        let [_, _, interval, willingness] = take(body, 0).ok_or(truncated)?;
        let (mut rest, mut groups) = (&body[LEN..], Vec::new());
        while !rest.is_empty() {
            let size = usize::from(be16(rest, 2)?);
            if size < GROUP_LEN {
                return Err(Error::Length { field: "link message size", value: size });
            }
            let group = rest.get(GROUP_LEN..size).ok_or(Error::Truncated { needed: size, got: rest.len() })?;
            let neighbours = addresses("link message size", group)?;
            if let Some(code) = LinkCode::from_octet(rest[0]) {
                groups.push((code, neighbours.collect()));
            }
            rest = &rest[size..];
        }
        Ok(Hello { interval: Validity(interval), willingness: Willingness(willingness), groups })
    }

    /// The octets.
    ///
    /// # Errors
    /// If a group has more addresses than its size can say.
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut out = vec![0, 0, self.interval.0, self.willingness.0];
        for (code, neighbours) in &self.groups {
            let size = GROUP_LEN + super::ADDRESS_LEN * neighbours.len();
            out.extend_from_slice(&[code.octet(), 0]);
            out.extend_from_slice(&u16::try_from(size).map_err(|_| Error::TooLong(size))?.to_be_bytes());
            put(neighbours, &mut out);
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_rfcs_octets_and_senseless_ones_are_none() {
        let code = |link, neighbour| LinkCode::new(link, neighbour).map(LinkCode::octet);
        assert_eq!(code(LinkType::Asymmetric, NeighbourType::No), Some(1));
        assert_eq!(code(LinkType::Symmetric, NeighbourType::Symmetric), Some(6));
        assert_eq!(code(LinkType::Symmetric, NeighbourType::Relay), Some(10));
        assert_eq!(code(LinkType::Symmetric, NeighbourType::No), None);
        let known = (0..=255).filter_map(LinkCode::from_octet).collect::<Vec<_>>();
        assert_eq!(known.len(), 11);
        assert!(known.iter().all(|code| LinkCode::from_octet(code.octet()) == Some(*code)));
    }

    #[test]
    fn groups_of_unknown_codes_are_left_out_and_others_stay() {
        let body = [0, 0, 5, 3, 0x42, 0, 0, 8, 10, 0, 0, 9, 6, 0, 0, 8, 10, 0, 0, 2];
        let hello = Hello::decode(&body).expect("a HELLO");
        assert_eq!(hello.willingness, Willingness::DEFAULT);
        let code = LinkCode::new(LinkType::Symmetric, NeighbourType::Symmetric).expect("a code");
        assert_eq!(hello.groups, [(code, vec![Ipv4Addr::new(10, 0, 0, 2)])]);
    }

    #[test]
    fn sizes_that_contradict_are_refused() {
        let of = |group: &[u8]| Hello::decode(&[&[0, 0, 5, 3][..], group].concat()).map(|_| ());
        let wrong = |value| Err(Error::Length { field: "link message size", value });
        assert_eq!(of(&[6, 0, 0, 3, 0, 0, 0, 0]), wrong(3));
        assert_eq!(of(&[6, 0, 0, 7, 10, 0, 0]), wrong(3));
        assert_eq!(of(&[6, 0, 0, 12, 10, 0, 0, 1]), Err(Error::Truncated { needed: 12, got: 8 }));
        assert_eq!(of(&[6, 0, 0]), Err(Error::Truncated { needed: 4, got: 3 }));
        assert_eq!(Hello::decode(&[0, 0, 5]), Err(Error::Truncated { needed: 4, got: 3 }));
        assert_eq!(of(&[]), Ok(()));
    }
}
