//! Capture files in the classic pcap format.
//! Source:     draft-ietf-opsawg-pcap; libpcap `savefile.c` for the variants.
//! Deviations: pcapng is recognised and refused. A file that ends within a packet is read to there, and says so.
//! Checked by: tests::*, tests/monitor_props.rs, the laws' tests/aggregation_captures.rs, fuzz target `pcap`
//!
//! Both byte orders; microseconds (magic a1b2c3d4), nanoseconds (a1b23c4d), and the "modified" format of old Linux
//! distributions (a1b2cd34), whose record headers have eight octets more.

use crate::{Error, take};
use lasthop_units::{Span, Time};

/// Link type of frames with a radiotap header.
pub const LINK_RADIOTAP: u32 = 127;
/// Link type of Ethernet.
pub const LINK_ETHERNET: u32 = 1;

/// A capture in memory.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    head: Head,
    packets: u64,
    truncated: bool,
}

/// A capture that comes in pieces: out of a pipe, or of a file that shall not be in memory whole.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// What has been given from some packet on.
    bytes: Vec<u8>,
    /// Octets of it that have been read.
    at: usize,
    head: Option<Head>,
    packets: u64,
}

/// What the file's header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Head {
    format: Format,
    link: u32,
    snap: u32,
}

/// One packet of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// When it was captured, on a clock that counts from 1970.
    pub at: Time,
    /// What was captured of it.
    pub bytes: &'a [u8],
    /// Its length before the capture cut it.
    pub original: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Format {
    big_endian: bool,
    nanoseconds: bool,
    /// Octets of a record header.
    record: usize,
}

impl<'a> Reader<'a> {
    /// Reads the file's header.
    ///
    /// # Errors
    /// [`Error::Truncated`], [`Error::PcapMagic`], [`Error::Pcapng`].
    pub fn new(bytes: &'a [u8]) -> Result<Reader<'a>, Error> {
        Ok(Reader { bytes, at: HEADER, head: Head::read(bytes)?, packets: 0, truncated: false })
    }

    /// The link type of all packets.
    pub fn link(&self) -> u32 {
        self.head.link
    }

    /// Octets that were captured of a packet at most.
    pub fn snap(&self) -> u32 {
        self.head.snap
    }

    /// True once the end has been reached within a packet.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    fn packet(&mut self) -> Option<Result<Packet<'a>, Error>> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        match self.head.packet(rest, self.packets) {
            Ok(Some((packet, len))) => {
                (self.at, self.packets) = (self.at + len, self.packets + 1);
                Some(Ok(packet))
            }
            Ok(None) => {
                (self.truncated, self.at) = (true, self.bytes.len());
                None
            }
            Err(error) => {
                self.at = self.bytes.len();
                Some(Err(error))
            }
        }
    }
}

impl Stream {
    /// Nothing yet.
    pub fn new() -> Stream {
        Stream::default()
    }

    /// The next octets of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.at));
        self.bytes.extend_from_slice(bytes);
    }

    /// The link type of all packets; `None` if the header has not come whole yet.
    ///
    /// # Errors
    /// As [`Reader::new`], but for a header of which more may come.
    pub fn link(&mut self) -> Result<Option<u32>, Error> {
        if self.head.is_none() {
            match Head::read(&self.bytes) {
                Ok(head) => (self.head, self.at) = (Some(head), HEADER),
                Err(Error::Truncated { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(self.head.map(|head| head.link))
    }

    /// The next packet; `None` if it has not come whole yet.
    ///
    /// # Errors
    /// As [`Stream::link`]; [`Error::PcapLength`], after which nothing can be read any more.
    pub fn packet(&mut self) -> Result<Option<Packet<'_>>, Error> {
        self.link()?;
        let Some(head) = self.head else { return Ok(None) };
        let found = head.packet(&self.bytes[self.at..], self.packets)?;
        if let Some((_, len)) = found {
            (self.at, self.packets) = (self.at + len, self.packets + 1);
        }
        Ok(found.map(|(packet, _)| packet))
    }

    /// There is no more. True if the end lies within a packet.
    ///
    /// # Errors
    /// As [`Reader::new`], if not even the header has come.
    pub fn finish(&self) -> Result<bool, Error> {
        if self.head.is_none() {
            Head::read(&self.bytes)?;
        }
        Ok(self.at < self.bytes.len())
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Packet<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.packet()
    }
}

impl Head {
    fn read(bytes: &[u8]) -> Result<Head, Error> {
        let short = Error::Truncated { needed: HEADER, got: bytes.len() };
        let magic = take(bytes, 0).map(u32::from_be_bytes).ok_or(short)?;
        let (magic, big_endian) = match magic {
            PCAPNG => return Err(Error::Pcapng),
            MICROSECONDS | NANOSECONDS | MODIFIED => (magic, true),
            other => (other.swap_bytes(), false),
        };
        let format = match magic {
            MICROSECONDS => Format { big_endian, nanoseconds: false, record: RECORD },
            NANOSECONDS => Format { big_endian, nanoseconds: true, record: RECORD },
            MODIFIED => Format { big_endian, nanoseconds: false, record: MODIFIED_RECORD },
            _ => return Err(Error::PcapMagic(magic.swap_bytes())),
        };
        let word = |at| format.word(bytes, at).ok_or(short);
        // The upper half of the link type holds the length of the check sequence.
        let (snap, link) = (word(16)?, word(20)? & 0xffff);
        Ok(Head { format, link, snap })
    }

    /// The packet at the beginning of `bytes`, behind `before` others, and how many octets it and its header are; `None` if they are
    /// not all there.
    fn packet<'a>(&self, bytes: &'a [u8], before: u64) -> Result<Option<(Packet<'a>, usize)>, Error> {
        let word = |at| self.format.word(bytes, at);
        let (Some(seconds), Some(fraction), Some(len), Some(original)) = (word(0), word(4), word(8), word(12)) else {
            return Ok(None);
        };
        if len > MAX_PACKET {
            return Err(Error::PcapLength { packet: before + 1, len });
        }
        let start = self.format.record;
        let Some(bytes) = usize::try_from(len).ok().and_then(|len| bytes.get(start..start + len)) else {
            return Ok(None);
        };
        let unit = if self.format.nanoseconds { 1 } else { 1_000 };
        let at = Time::ZERO + Span::from_secs(u64::from(seconds)) + Span::from_nanos(u64::from(fraction) * unit);
        Ok(Some((Packet { at, bytes, original }, start + bytes.len())))
    }
}

impl Format {
    fn word(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let word = take(bytes, at)?;
        Some(if self.big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) })
    }
}

/// Appends a file header: nanoseconds, little endian.
pub fn write_header(out: &mut Vec<u8>, link: u32, snap: u32) {
    out.extend_from_slice(&NANOSECONDS.to_le_bytes());
    // Version 2.4, time zone, accuracy.
    out.extend_from_slice(&[2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.extend_from_slice(&snap.to_le_bytes());
    out.extend_from_slice(&link.to_le_bytes());
}

/// Appends a packet, for a file that [`write_header`] began. Of a packet longer than any capture takes (256 KiB) the
/// beginning is written.
pub fn write_packet(out: &mut Vec<u8>, packet: &Packet) {
    let ns = packet.at.as_nanos();
    let word = |value: u64| u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes();
    let bytes = &packet.bytes[..packet.bytes.len().min(MAX_PACKET as usize)];
    out.extend_from_slice(&word(ns / 1_000_000_000));
    out.extend_from_slice(&word(ns % 1_000_000_000));
    out.extend_from_slice(&word(bytes.len() as u64));
    out.extend_from_slice(&packet.original.to_le_bytes());
    out.extend_from_slice(bytes);
}

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const MODIFIED: u32 = 0xa1b2_cd34;
const PCAPNG: u32 = 0x0a0d_0d0a;
/// Octets of the file's header.
const HEADER: usize = 24;
const RECORD: usize = 16;
/// Interface, protocol, packet type and padding follow in the modified format.
const MODIFIED_RECORD: usize = 24;
/// libpcap's largest snap length; more in a record header means that it is not one.
const MAX_PACKET: u32 = 262_144;

#[cfg(test)]
mod tests {
    use super::*;

    fn file(magic: u32, big_endian: bool, extra: usize) -> Vec<u8> {
        let word = |value: u32| if big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
        let mut bytes = Vec::new();
        for value in [magic, 0x0002_0004, 0, 0, 128, LINK_RADIOTAP] {
            bytes.extend_from_slice(&word(value));
        }
        for n in 0..2u8 {
            for value in [5, 7, 3, 1_000] {
                bytes.extend_from_slice(&word(value));
            }
            bytes.extend(std::iter::repeat_n(0, extra));
            bytes.extend_from_slice(&[n, n, n]);
        }
        bytes
    }

    #[test]
    fn both_byte_orders_and_all_three_formats_are_read() {
        for (magic, extra, fraction) in [(MICROSECONDS, 0, 7_000), (NANOSECONDS, 0, 7), (MODIFIED, 8, 7_000)] {
            for big_endian in [false, true] {
                let bytes = file(magic, big_endian, extra);
                let reader = Reader::new(&bytes).expect("a pcap file");
                assert_eq!((reader.link(), reader.snap()), (LINK_RADIOTAP, 128));
                let packets: Vec<Packet> = reader.map(|packet| packet.expect("whole")).collect();
                let at = Time::from_nanos(5_000_000_000 + fraction);
                assert_eq!(packets[1], Packet { at, bytes: &[1, 1, 1], original: 1_000 });
                assert_eq!(packets.len(), 2);
            }
        }
    }

    #[test]
    fn a_cut_file_is_read_to_the_cut() {
        let bytes = file(MICROSECONDS, false, 0);
        for cut in [bytes.len() - 1, bytes.len() - 3, bytes.len() - 10] {
            let mut reader = Reader::new(&bytes[..cut]).expect("a pcap file");
            assert_eq!(reader.by_ref().filter(Result::is_ok).count(), 1);
            assert!(reader.truncated());
        }
        let mut whole = Reader::new(&bytes).expect("a pcap file");
        assert_eq!(whole.by_ref().count(), 2);
        assert!(!whole.truncated());
    }

    #[test]
    fn what_is_no_capture_is_named() {
        assert_eq!(Reader::new(&[0x0a, 0x0d, 0x0d, 0x0a]).err(), Some(Error::Pcapng));
        assert_eq!(Reader::new(b"#!/bin/sh").err(), Some(Error::PcapMagic(0x2321_2f62)));
        assert_eq!(Reader::new(&[1]).err(), Some(Error::Truncated { needed: 24, got: 1 }));
        let mut wild = file(MICROSECONDS, false, 0);
        wild[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
        let found: Vec<_> = Reader::new(&wild).expect("a pcap file").collect();
        assert_eq!(found, [Err(Error::PcapLength { packet: 1, len: u32::MAX })]);
    }
}
