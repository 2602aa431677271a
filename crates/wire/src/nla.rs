//! Attributes of netlink messages: a length, a kind and a value each (`struct nlattr`, linux/netlink.h), in this host's byte order.

use crate::{Error, take};

/// `nla_type` without its flags (nested, network byte order).
const KIND_MASK: u16 = 0x3fff;
const HEADER: usize = 4;
const ALIGNMENT: usize = 4;

/// One attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attribute<'a> {
    /// What it is.
    pub kind: u16,
    /// Its value; attributes for one that is nested.
    pub value: &'a [u8],
}

impl<'a> Attribute<'a> {
    /// The value as a number, if it is of that length; one of 4 octets is also read where 8 are asked for, since counters have grown.
    pub fn number(&self) -> Option<u64> {
        match self.value.len() {
            1 => self.value.first().map(|octet| u64::from(*octet)),
            2 => take(self.value, 0).map(|octets| u64::from(u16::from_ne_bytes(octets))),
            4 => take(self.value, 0).map(|octets| u64::from(u32::from_ne_bytes(octets))),
            8 => take(self.value, 0).map(u64::from_ne_bytes),
            _ => None,
        }
    }

    /// The attributes that are nested in it.
    pub fn nested(&self) -> Attributes<'a> {
        Attributes::new(self.value)
    }
}

/// The attributes in some octets. Where the octets do not make sense there is an error, and the iterator ends.
#[derive(Clone, Debug)]
pub struct Attributes<'a> {
    rest: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// The attributes in these octets.
    pub fn new(octets: &'a [u8]) -> Attributes<'a> {
        Attributes { rest: octets }
    }

    /// The first of a kind.
    ///
    /// # Errors
    /// If the octets before it make no sense.
    pub fn find(self, kind: u16) -> Result<Option<Attribute<'a>>, Error> {
        for attribute in self {
            let attribute = attribute?;
            if attribute.kind == kind {
                return Ok(Some(attribute));
            }
        }
        Ok(None)
    }

    fn read(&mut self) -> Result<Option<Attribute<'a>>, Error> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let short = |needed| Error::Truncated { needed, got: self.rest.len() };
        let half = |at| take(self.rest, at).map(u16::from_ne_bytes).ok_or(short(HEADER));
        let (len, kind) = (usize::from(half(0)?), half(2)? & KIND_MASK);
        if len < HEADER {
            return Err(Error::Length { field: "nla_len", value: len });
        }
        let value = self.rest.get(HEADER..len).ok_or(short(len))?;
        self.rest = self.rest.get(len.next_multiple_of(ALIGNMENT)..).unwrap_or(&[]);
        Ok(Some(Attribute { kind, value }))
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.read();
        if read.is_err() {
            self.rest = &[];
        }
        read.transpose()
    }
}

/// Appends an attribute, padded.
pub fn push(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let len = u16::try_from(HEADER + value.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&len.to_ne_bytes());
    out.extend_from_slice(&kind.to_ne_bytes());
    out.extend_from_slice(&value[..usize::from(len) - HEADER]);
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn attributes_survive_the_trip_and_no_octets_make_it_panic(
            attributes in prop::collection::vec((0u16..KIND_MASK, prop::collection::vec(any::<u8>(), 0..20)), 0..8),
            octets in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let mut out = Vec::new();
            attributes.iter().for_each(|(kind, value)| push(&mut out, *kind, value));
            let read: Result<Vec<_>, _> = Attributes::new(&out).collect();
            let expected = attributes.iter().map(|(kind, value)| Attribute { kind: *kind, value }).collect::<Vec<_>>();
            prop_assert_eq!(read, Ok(expected));
            prop_assert!(Attributes::new(&octets).count() <= octets.len());
        }
    }
}
