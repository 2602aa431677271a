//! The header of ATP, which follows that of UDP.
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 1 | version, 1, in the upper four bits; kind in the lower |
//! | 1 | 1 | number of SACK blocks, 0 to 20 |
//! | 2 | 2 | window: packets from the next expected one on that the receiver takes |
//! | 4 | 4 | D: the largest delay of a hop so far, microseconds; relays raise it |
//! | 8 | 4 | D_avg: what the receiver has averaged, microseconds; all ones in a report that tells of packets alone |
//! | 12 | 4 | how often the receiver tells, microseconds |
//! | 16 | 4 | connection |
//! | 20 | 4 | data: number of the packet; otherwise: the next one expected |
//! | 24 | 4 | data: serial number of the transmission; otherwise: the highest that has come |
//! | 28 | 8 each | SACK blocks: first number, and the one after the last |
//!
//! Numbers are in network order. D stands at a fixed place, so that a relay raises it without reading the rest ([`raise_delay`]).

use crate::{Error, be16, be32, take};
use lasthop_units::Span;

/// Octets without SACK blocks.
pub const HEADER_LEN: usize = 28;
/// D_avg of a report that tells of packets alone.
pub const NOT_TOLD: Span = Span::from_micros(u32::MAX as u64);
/// SACK blocks that a header holds.
pub const BLOCKS: usize = 20;

const VERSION: u8 = 1;
const DELAY_AT: usize = 4;

/// What a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The sender asks for the path's delay, and for a connection.
    Probe,
    /// The receiver answers.
    Answer,
    /// Payload.
    Data,
    /// The last of the payload.
    Last,
    /// What has come.
    Ack,
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::Probe, Kind::Answer, Kind::Data, Kind::Last, Kind::Ack];
}

/// SACK blocks: numbers of packets from the first to before the second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blocks {
    blocks: [(u32, u32); BLOCKS],
    len: u8,
}

impl Default for Blocks {
    fn default() -> Blocks {
        Blocks { blocks: [(0, 0); BLOCKS], len: 0 }
    }
}

impl Blocks {
    /// As many of these as fit.
    pub fn of(all: impl IntoIterator<Item = (u32, u32)>) -> Blocks {
        let mut blocks = Blocks::default();
        for (place, block) in blocks.blocks.iter_mut().zip(all) {
            *place = block;
            blocks.len += 1;
        }
        blocks
    }

    /// The blocks.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.len)]
    }
}

/// A header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// What the packet is.
    pub kind: Kind,
    /// Packets from `number` on that the receiver takes.
    pub window: u16,
    /// The largest delay of a hop on the way so far, whole microseconds; at most 2^32 - 1 of them.
    pub delay: Span,
    /// What the receiver has averaged.
    pub average: Span,
    /// How often the receiver tells.
    pub epoch: Span,
    /// Which connection, as its sender has numbered it.
    pub connection: u32,
    /// Of data: which packet, from 0. Otherwise the next one expected.
    pub number: u32,
    /// Of data: how many transmissions there were before it. Otherwise the highest that has come.
    pub serial: u32,
    /// Packets beyond the next one expected that have come.
    pub blocks: Blocks,
}

impl Header {
    /// Octets on the wire, without payload.
    pub fn len(&self) -> usize {
        HEADER_LEN + 8 * self.blocks.as_slice().len()
    }

    /// Never: a header has octets.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Appends the octets. Times beyond 2^32 - 1 us become that.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let kind = Kind::ALL.iter().position(|kind| *kind == self.kind).unwrap_or(0) as u8;
        out.extend_from_slice(&[VERSION << 4 | kind, self.blocks.len]);
        out.extend_from_slice(&self.window.to_be_bytes());
        [self.delay, self.average, self.epoch]
            .map(micros)
            .iter()
            .for_each(|us| out.extend_from_slice(&us.to_be_bytes()));
        let words = [self.connection, self.number, self.serial];
        let blocks = self.blocks.as_slice().iter().flat_map(|(from, to)| [*from, *to]);
        words.into_iter().chain(blocks).for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
    }

    /// The header at the beginning of a datagram, and its payload.
    ///
    /// # Errors
    /// If the octets end before the header does, are of another version or kind, promise more blocks than a header holds, or a block is empty.
    pub fn decode(bytes: &[u8]) -> Result<(Header, &[u8]), Error> {
        let [first, count] = take(bytes, 0).ok_or(Error::Truncated { needed: HEADER_LEN, got: bytes.len() })?;
        if first >> 4 != VERSION {
            return Err(Error::Unknown { what: "version of ATP", value: u64::from(first >> 4) });
        }
        let unknown = Error::Unknown { what: "kind of an ATP packet", value: u64::from(first & 15) };
        let kind = *Kind::ALL.get(usize::from(first & 15)).ok_or(unknown)?;
        let count = usize::from(count);
        if count > BLOCKS {
            return Err(Error::Length { field: "number of SACK blocks", value: count });
        }
        let len = HEADER_LEN + 8 * count;
        let payload = bytes.get(len..).ok_or(Error::Truncated { needed: len, got: bytes.len() })?;
        let time = |at| be32(bytes, at).map(|us| Span::from_micros(us.into()));
        let mut blocks = Blocks { len: count as u8, ..Blocks::default() };
        for (place, block) in blocks.blocks.iter_mut().take(count).enumerate() {
            let at = HEADER_LEN + 8 * place;
            *block = (be32(bytes, at)?, be32(bytes, at + 4)?);
            if block.0 == block.1 {
                return Err(Error::Length { field: "length of a SACK block", value: 0 });
            }
        }
        let header = Header {
            kind,
            window: be16(bytes, 2)?,
            delay: time(DELAY_AT)?,
            average: time(8)?,
            epoch: time(12)?,
            connection: be32(bytes, 16)?,
            number: be32(bytes, 20)?,
            serial: be32(bytes, 24)?,
            blocks,
        };
        Ok((header, payload))
    }
}

/// Whole microseconds, as many as fit.
fn micros(span: Span) -> u32 {
    u32::try_from(span.as_nanos() / 1000).unwrap_or(u32::MAX)
}

/// What a relay does to a datagram: its own delay stands in the header if it is the larger one. Anything that is no ATP header stays as it is.
pub fn raise_delay(bytes: &mut [u8], own: Span) {
    if Header::decode(bytes).is_ok_and(|(header, _)| header.delay < own) {
        bytes[DELAY_AT..DELAY_AT + 4].copy_from_slice(&micros(own).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(blocks: usize) -> Header {
        let us = Span::from_micros;
        Header {
            kind: Kind::Ack,
            window: 0x0102,
            delay: us(0x0304_0506),
            average: us(7),
            epoch: us(8),
            connection: 9,
            number: 10,
            serial: 11,
            blocks: Blocks::of((0..blocks as u32).map(|n| (20 + 2 * n, 21 + 2 * n))),
        }
    }

    fn octets(header: &Header) -> Vec<u8> {
        let mut out = Vec::new();
        header.encode(&mut out);
        assert_eq!(out.len(), header.len());
        out
    }

    #[test]
    fn octets_stand_where_the_table_says() {
        let bytes = octets(&header(1));
        assert_eq!(bytes[..8], [0x14, 1, 1, 2, 3, 4, 5, 6]);
        assert_eq!(bytes[8..28], [0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0, 10, 0, 0, 0, 11]);
        assert_eq!(bytes[28..], [0, 0, 0, 20, 0, 0, 0, 21]);
    }

    #[test]
    fn twenty_isolated_holes_fit() {
        let full = header(25);
        assert_eq!(full.blocks.as_slice().len(), 20);
        let bytes = octets(&full);
        assert_eq!(Header::decode(&bytes), Ok((full, &[][..])));
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let bytes = octets(&header(2));
        for len in 0..bytes.len() {
            assert!(matches!(Header::decode(&bytes[..len]), Err(Error::Truncated { .. })), "{len} octets");
        }
        let with = |at: usize, octet: u8| {
            let mut other = bytes.clone();
            other[at] = octet;
            Header::decode(&other).map(|_| ())
        };
        assert!(matches!(with(0, 0x24), Err(Error::Unknown { what: "version of ATP", value: 2 })));
        assert!(matches!(with(0, 0x15), Err(Error::Unknown { what: "kind of an ATP packet", value: 5 })));
        assert!(matches!(with(1, 21), Err(Error::Length { value: 21, .. })));
        assert!(matches!(with(35, 20), Err(Error::Length { value: 0, .. })));
    }

    #[test]
    fn a_relay_raises_the_delay_and_never_lowers_it() {
        let mut bytes = octets(&Header { delay: Span::ZERO, ..header(0) });
        for (own, stands) in [(1, 1), (5, 5), (2, 5)] {
            raise_delay(&mut bytes, Span::from_millis(own));
            assert_eq!(Header::decode(&bytes).expect("whole").0.delay, Span::from_millis(stands));
        }
        let mut other = vec![0xff; 40];
        raise_delay(&mut other, Span::from_secs(1));
        assert_eq!(other, vec![0xff; 40]);
    }

    proptest! {
        #[test]
        fn any_octets_are_refused_or_are_those_of_what_was_read(bytes in prop::collection::vec(any::<u8>(), 0..260), valid: bool) {
            let mut bytes = bytes;
            if let (true, [first, count, ..]) = (valid, &mut bytes[..]) {
                (*first, *count) = (0x10 | (*first % 5), *count % 21);
            }
            if let Ok((header, payload)) = Header::decode(&bytes) {
                let again = [octets(&header), payload.to_vec()].concat();
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
