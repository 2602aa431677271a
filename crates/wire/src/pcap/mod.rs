//! Capture files: pcap and pcapng.
//! Source:     draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng; the library pcap-parser takes records and blocks apart.
//! Deviations: packets without a time (simple packet blocks) are counted, not given. pcap's "modified" format is read in little
//!             endian only. A file that ends within a packet is read to there, and says so.
//! Checked by: tests::*, tests/integration/monitor_props.rs, the laws' tests/integration/aggregation_captures.rs, fuzz target `pcap`
//!
//! A pcap file has one link type; a pcapng file has interfaces, each with a link type and a clock of its own. Here a pcap file has
//! one interface.

mod classic;
mod ng;
#[cfg(test)]
mod tests;

use crate::{Error, take};
use classic::Classic;
use lasthop_units::Time;
use ng::Ng;
use std::ops::Range;

/// Link type of frames with a radiotap header.
pub const LINK_RADIOTAP: u32 = 127;
/// Link type of Ethernet.
pub const LINK_ETHERNET: u32 = 1;

/// A capture that comes in pieces: out of a pipe, or of a file that shall not be in memory whole.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// What has been given from some packet on.
    bytes: Vec<u8>,
    /// Octets of it that have been read.
    at: usize,
    format: Option<Format>,
    interfaces: Vec<Interface>,
    packets: u64,
    untimed: u64,
}

/// What packets were captured on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// The link type of its packets.
    pub link: u32,
    /// Octets that were captured of a packet at most.
    pub snap: u32,
    /// What it was called, if the file says.
    pub name: Option<String>,
    clock: Clock,
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
    /// Where it was captured: the interface's number in the file, from 0.
    pub interface: usize,
    /// What the file says of that interface.
    pub on: &'a Interface,
    /// True if the file's format has several interfaces: pcapng's.
    pub of_many: bool,
}

#[derive(Clone, Debug)]
enum Format {
    Classic(Classic),
    Ng(Ng),
}

/// An interface's way of telling the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Clock {
    /// Ticks a second.
    ticks: u64,
    /// Seconds from 1970 to its zero.
    offset: i64,
}

/// Where a packet lies in the octets that were given to a format.
struct Found {
    at: Time,
    place: Range<usize>,
    original: u32,
    interface: usize,
}

/// What a format makes of the next octets.
enum Step {
    /// They are the beginning of something.
    Short,
    /// As many octets of something else than a packet.
    Passed(usize),
    /// As many octets of a packet without a time.
    Untimed(usize),
    /// As many octets, with a packet among them.
    Packet(usize, Found),
}

impl Stream {
    /// Nothing yet.
    pub fn new() -> Stream {
        Stream::default()
    }

    /// A capture that is in memory whole.
    pub fn of(bytes: &[u8]) -> Stream {
        Stream { bytes: bytes.to_vec(), ..Stream::default() }
    }

    /// The next octets of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.at));
        self.bytes.extend_from_slice(bytes);
    }

    /// The interfaces that the file has described up to here, by number. None at all before its header has come whole.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// How many packets without a time there were; they are not given.
    pub fn untimed(&self) -> u64 {
        self.untimed
    }

    /// The next packet; `None` if it has not come whole yet.
    ///
    /// # Errors
    /// [`Error::PcapMagic`], [`Error::PcapLength`], [`Error::PcapngBlock`], [`Error::PcapngInterface`]; after one nothing can be read any
    /// more.
    pub fn packet(&mut self) -> Result<Option<Packet<'_>>, Error> {
        let found = loop {
            let rest = &self.bytes[self.at..];
            let (interfaces, next) = (&mut self.interfaces, self.packets + 1);
            let step = match &mut self.format {
                None => match Format::read(rest, interfaces)? {
                    Some((format, len)) => {
                        self.format = Some(format);
                        Step::Passed(len)
                    }
                    None => Step::Short,
                },
                Some(Format::Classic(classic)) => classic.step(rest, next)?,
                Some(Format::Ng(ng)) => ng.step(rest, interfaces, next)?,
            };
            match step {
                Step::Short => return Ok(None),
                Step::Passed(len) => self.at += len,
                Step::Untimed(len) => (self.at, self.untimed) = (self.at + len, self.untimed + 1),
                Step::Packet(len, found) => {
                    let start = self.at;
                    (self.at, self.packets) = (start + len, self.packets + 1);
                    break Found { place: start + found.place.start..start + found.place.end, ..found };
                }
            }
        };
        let Found { at, place, original, interface } = found;
        let on = &self.interfaces[interface];
        let of_many = matches!(self.format, Some(Format::Ng(_)));
        Ok(Some(Packet { at, bytes: &self.bytes[place], original, interface, on, of_many }))
    }

    /// There is no more. True if the end lies within a packet.
    ///
    /// # Errors
    /// [`Error::Truncated`], if not even the header has come; [`Error::PcapngEmpty`].
    pub fn finish(&self) -> Result<bool, Error> {
        match self.format {
            None => Err(Error::Truncated { needed: classic::HEADER, got: self.bytes.len() }),
            Some(Format::Ng(_)) if self.interfaces.is_empty() => Err(Error::PcapngEmpty),
            Some(_) => Ok(self.at < self.bytes.len()),
        }
    }
}

impl Format {
    /// What a file is that begins with `bytes`, and how many octets its header has; `None` if there are too few to tell.
    fn read(bytes: &[u8], interfaces: &mut Vec<Interface>) -> Result<Option<(Format, usize)>, Error> {
        let Some(magic) = take(bytes, 0).map(u32::from_be_bytes) else { return Ok(None) };
        if magic == ng::SECTION {
            // The section header is a block like any other.
            return Ok(Some((Format::Ng(Ng::default()), 0)));
        }
        let Some((classic, interface)) = Classic::read(bytes)? else { return Ok(None) };
        interfaces.push(interface);
        Ok(Some((Format::Classic(classic), classic::HEADER)))
    }
}

impl Clock {
    /// When it shows `ticks`; what lies beyond the range of [`Time`] is at its end.
    fn time(self, ticks: u64) -> Time {
        let seconds = i128::from(self.offset) + i128::from(ticks / self.ticks);
        let part = u128::from(ticks % self.ticks) * NANOS / u128::from(self.ticks);
        let ns = seconds * NANOS as i128 + part as i128;
        Time::from_nanos(u64::try_from(ns.max(0)).unwrap_or(u64::MAX))
    }
}

/// Nanoseconds in a second.
const NANOS: u128 = 1_000_000_000;
/// libpcap's largest snap length; more in a record header means that it is not one.
const MAX_PACKET: usize = 262_144;
