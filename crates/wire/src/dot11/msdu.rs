//! What is inside a data frame: LLC/SNAP, and the subframes of an A-MSDU.

use super::{SNAP, SUBFRAME_HEAD as HEAD};
use crate::{be16, take};
use lasthop_signals::MacAddress;

/// One subframe of an A-MSDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Subframe<'a> {
    /// The MSDU's destination.
    pub destination: MacAddress,
    /// Its source.
    pub source: MacAddress,
    /// The MSDU, LLC/SNAP first; shorter than its length field says if the capture was cut.
    pub msdu: &'a [u8],
    /// Its length field.
    pub len: usize,
}

/// The subframes of an A-MSDU, as far as they were captured.
#[derive(Clone, Debug)]
pub struct Subframes<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> Subframes<'a> {
    /// The subframes of `body`, which begins behind the MAC header (and behind a cipher's, if there is one).
    pub fn new(body: &'a [u8]) -> Subframes<'a> {
        Subframes { body, at: 0 }
    }
}

impl<'a> Iterator for Subframes<'a> {
    type Item = Subframe<'a>;

    fn next(&mut self) -> Option<Subframe<'a>> {
        let destination = MacAddress(take(self.body, self.at)?);
        let source = MacAddress(take(self.body, self.at + 6)?);
        let len = usize::from(be16(self.body, self.at + 12).ok()?);
        let start = self.at + HEAD;
        // An MSDU has at least its LLC header; less means that these are not subframes.
        if len == 0 {
            return None;
        }
        let end = (start + len).min(self.body.len());
        self.at = (start + len).next_multiple_of(4);
        Some(Subframe { destination, source, msdu: self.body.get(start..end)?, len })
    }
}

/// How many MSDUs an A-MSDU of `len` octets has, of which the capture holds `body`; at least 1. If the capture was cut
/// before the last subframe's head, those not seen are taken to be as long as the last that was.
pub fn count_msdus(body: &[u8], len: usize) -> u16 {
    let (mut count, mut end, mut stride) = (0usize, 0usize, 0usize);
    for subframe in Subframes::new(body) {
        stride = HEAD + subframe.len;
        end = end.next_multiple_of(4) + stride;
        count += 1;
    }
    let unseen = len.saturating_sub(end);
    if stride > 0 && body.len() < len {
        count += unseen.div_ceil(stride.next_multiple_of(4));
    }
    u16::try_from(count.max(1)).unwrap_or(u16::MAX)
}

/// Appends a subframe. All but the last of an A-MSDU are padded to four octets, counted from `start`, where the A-MSDU
/// begins in `out`: padding goes in front of the next.
pub fn write_subframe(out: &mut Vec<u8>, start: usize, destination: MacAddress, source: MacAddress, msdu: &[u8]) {
    let padded = start + (out.len() - start).next_multiple_of(4);
    out.resize(padded, 0);
    out.extend_from_slice(&destination.0);
    out.extend_from_slice(&source.0);
    out.extend_from_slice(&u16::try_from(msdu.len()).unwrap_or(u16::MAX).to_be_bytes());
    out.extend_from_slice(msdu);
}

/// The EtherType of an LLC/SNAP header with the OUI of encapsulated Ethernet (RFC 1042); the packet begins [`SNAP`]
/// octets on.
pub fn snap_ethertype(msdu: &[u8]) -> Option<u16> {
    (msdu.get(..6)? == RFC_1042).then(|| be16(msdu, 6).ok())?
}

/// Appends an LLC/SNAP header.
pub fn write_snap(out: &mut Vec<u8>, ethertype: u16) {
    let mut head = [0; SNAP];
    head[..6].copy_from_slice(&RFC_1042);
    head[6..].copy_from_slice(&ethertype.to_be_bytes());
    out.extend_from_slice(&head);
}

const RFC_1042: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0];
