//! Packets and the headers of messages (RFC 3626, section 3.3).

use super::{Sequence, Validity};
use crate::{Error, be16, take};
use std::net::Ipv4Addr;

/// Octets of a packet without messages.
pub const PACKET_HEADER_LEN: usize = 4;
/// Octets of a message without contents.
pub const MESSAGE_HEADER_LEN: usize = 12;

/// Types of messages. There may be others, which are forwarded unread.
pub mod kind {
    /// What a node hears: [`Hello`](super::super::Hello).
    pub const HELLO: u8 = 1;
    /// The nodes that a node forwards for: [`TopologyControl`](super::super::TopologyControl).
    pub const TC: u8 = 2;
    /// A node's other addresses: [`Aliases`](super::super::Aliases).
    pub const MID: u8 = 3;
    /// Networks behind a node: [`Networks`](super::super::Networks).
    pub const HNA: u8 = 4;
}

/// A packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// Its number, of the interface that sent it.
    pub sequence: Sequence,
    /// What it holds, in order. There may be none: the RFC has such a packet ignored.
    pub messages: Vec<Message<'a>>,
}

/// A message, its contents as octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message<'a> {
    /// What all messages have.
    pub header: Header,
    /// What those of its type have.
    pub body: &'a [u8],
}

/// What all messages have.
///
/// | offset | size | field |
/// | --- | --- | --- |
/// | 0 | 1 | type |
/// | 1 | 1 | validity time |
/// | 2 | 2 | message size, octets, this header included |
/// | 4 | 4 | address of the originator |
/// | 8 | 1 | time to live, hops |
/// | 9 | 1 | hop count |
/// | 10 | 2 | message sequence number |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Its type: one of [`kind`], or another.
    pub kind: u8,
    /// How long what it tells is valid after it has come.
    pub validity: Validity,
    /// The main address of the node that made it.
    pub originator: Ipv4Addr,
    /// Hops that it may still go.
    pub ttl: u8,
    /// Hops that it has gone.
    pub hops: u8,
    /// Its number, of its originator.
    pub sequence: Sequence,
}

impl<'a> Packet<'a> {
    /// The packet of which `bytes`, a whole datagram, consist.
    ///
    /// # Errors
    /// If the length is not that of the datagram, or a message is shorter than its header or longer than the rest.
    pub fn decode(bytes: &'a [u8]) -> Result<Packet<'a>, Error> {
        let (len, sequence) = (be16(bytes, 0)?.into(), Sequence(be16(bytes, 2)?));
        if len > bytes.len() {
            return Err(Error::Truncated { needed: len, got: bytes.len() });
        }
        if len < bytes.len() {
            return Err(Error::Length { field: "packet length", value: len });
        }
        let mut rest = &bytes[PACKET_HEADER_LEN..];
        let mut messages = Vec::new();
        while !rest.is_empty() {
            let (message, after) = Message::decode(rest)?;
            messages.push(message);
            rest = after;
        }
        Ok(Packet { sequence, messages })
    }

    /// Octets on the wire.
    pub fn len(&self) -> usize {
        PACKET_HEADER_LEN + self.messages.iter().map(Message::len).sum::<usize>()
    }

    /// True if there is no message.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The octets.
    ///
    /// # Errors
    /// If they would be more than the length field can say.
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let len = u16::try_from(self.len()).map_err(|_| Error::TooLong(self.len()))?;
        let mut out = Vec::with_capacity(self.len());
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(&self.sequence.0.to_be_bytes());
        self.messages.iter().try_for_each(|message| message.encode(&mut out))?;
        Ok(out)
    }
}

impl<'a> Message<'a> {
    /// The message at the beginning, and what follows it.
    fn decode(bytes: &'a [u8]) -> Result<(Message<'a>, &'a [u8]), Error> {
        let truncated = Error::Truncated { needed: MESSAGE_HEADER_LEN, got: bytes.len() };
        let octets: [u8; MESSAGE_HEADER_LEN] = take(bytes, 0).ok_or(truncated)?;
        let [kind, validity, high, low, a, b, c, d, ttl, hops, first, second] = octets;
        let size = usize::from(u16::from_be_bytes([high, low]));
        if size < MESSAGE_HEADER_LEN {
            return Err(Error::Length { field: "message size", value: size });
        }
        let body = bytes.get(MESSAGE_HEADER_LEN..size).ok_or(Error::Truncated { needed: size, got: bytes.len() })?;
        let header = Header {
            kind,
            validity: Validity(validity),
            originator: Ipv4Addr::new(a, b, c, d),
            ttl,
            hops,
            sequence: Sequence(u16::from_be_bytes([first, second])),
        };
        Ok((Message { header, body }, &bytes[size..]))
    }

    /// Octets on the wire.
    pub fn len(&self) -> usize {
        MESSAGE_HEADER_LEN + self.body.len()
    }

    /// Never: a message has a header.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Appends the octets.
    ///
    /// # Errors
    /// If they are more than the size field can say.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let size = u16::try_from(self.len()).map_err(|_| Error::TooLong(self.len()))?;
        let Header { kind, validity, originator, ttl, hops, sequence } = self.header;
        out.extend_from_slice(&[kind, validity.0]);
        out.extend_from_slice(&size.to_be_bytes());
        out.extend_from_slice(&originator.octets());
        out.extend_from_slice(&[ttl, hops]);
        out.extend_from_slice(&sequence.0.to_be_bytes());
        out.extend_from_slice(self.body);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet that holds a message of two octets and type 9, which nobody knows.
    const BYTES: [u8; 18] = [0, 18, 1, 2, 9, 0x86, 0, 14, 10, 0, 0, 1, 255, 0, 0, 7, 0xab, 0xcd];

    #[test]
    fn a_packet_written_by_hand_is_read_and_written_again() {
        let header = Header {
            kind: 9,
            validity: Validity(0x86),
            originator: Ipv4Addr::new(10, 0, 0, 1),
            ttl: 255,
            hops: 0,
            sequence: Sequence(7),
        };
        let packet = Packet { sequence: Sequence(0x0102), messages: vec![Message { header, body: &[0xab, 0xcd] }] };
        assert_eq!(Packet::decode(&BYTES), Ok(packet.clone()));
        assert_eq!(packet.encode(), Ok(BYTES.to_vec()));
    }

    #[test]
    fn lengths_that_contradict_are_refused() {
        let with = |at: usize, octet: u8| {
            let mut bytes = BYTES;
            bytes[at] = octet;
            Packet::decode(&bytes).map(|_| ())
        };
        assert_eq!(with(1, 17), Err(Error::Length { field: "packet length", value: 17 }));
        assert_eq!(with(1, 19), Err(Error::Truncated { needed: 19, got: 18 }));
        assert_eq!(with(7, 11), Err(Error::Length { field: "message size", value: 11 }));
        assert_eq!(with(7, 15), Err(Error::Truncated { needed: 15, got: 14 }));
        // Two octets are left, which are no message.
        assert_eq!(with(7, 12), Err(Error::Truncated { needed: 12, got: 2 }));
        assert_eq!(Packet::decode(&[0, 4, 0]), Err(Error::Truncated { needed: 4, got: 3 }));
        assert!(Packet::decode(&[0, 4, 0, 0]).expect("a packet").is_empty());
        assert_eq!(Packet::decode(&[0, 3, 0, 0]), Err(Error::Length { field: "packet length", value: 3 }));
    }

    #[test]
    fn what_no_length_field_can_say_is_not_written() {
        let header = Packet::decode(&BYTES).expect("a packet").messages[0].header;
        let body = vec![0; 40_000];
        let packet = Packet { sequence: Sequence(0), messages: vec![Message { header, body: &body }; 2] };
        assert_eq!(packet.encode(), Err(Error::TooLong(80_028)));
    }
}
