//! The classic format: one header, then records.

use super::{Clock, Found, Interface, MAX_PACKET, Step};
use crate::{Error, take};
use lasthop_units::Time;
use pcap_parser::nom::{Err as Nom, IResult, Needed};
use pcap_parser::{
    LegacyPcapBlock, PcapError, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified, parse_pcap_header,
};

/// Octets of the file's header.
pub(super) const HEADER: usize = 24;

type Parse = fn(&[u8]) -> IResult<&[u8], LegacyPcapBlock<'_>, PcapError<&[u8]>>;

/// What the file's header says of its records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Classic {
    parse: Parse,
    /// Octets before a record's data.
    header: usize,
    clock: Clock,
}

impl Classic {
    /// Reads the file's header; `None` if it is not there whole.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<(Classic, Interface)>, Error> {
        let head = match parse_pcap_header(bytes) {
            Ok((_, head)) => head,
            Err(Nom::Incomplete(_)) => return Ok(None),
            Err(_) => return Err(Error::PcapMagic(take(bytes, 0).map_or(0, u32::from_be_bytes))),
        };
        let (parse, header): (Parse, usize) = match (head.is_modified_format(), head.is_bigendian()) {
            (true, _) => (parse_pcap_frame_modified, MODIFIED_RECORD),
            (false, true) => (parse_pcap_frame_be, RECORD),
            (false, false) => (parse_pcap_frame, RECORD),
        };
        let clock = Clock { ticks: if head.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 }, offset: 0 };
        // The upper half of the link type holds the length of the check sequence.
        let link = u32::from(head.network.0 as u16);
        Ok(Some((Classic { parse, header, clock }, Interface { link, snap: head.snaplen, name: None, clock })))
    }

    /// Reads a record; `next` is its number.
    pub(super) fn step(&self, bytes: &[u8], next: u64) -> Result<Step, Error> {
        let damaged = |len: usize| Error::PcapLength { packet: next, len: u32::try_from(len).unwrap_or(u32::MAX) };
        match (self.parse)(bytes) {
            Ok((_, record)) if record.data.len() > MAX_PACKET => Err(damaged(record.data.len())),
            Ok((rest, record)) => {
                let len = bytes.len() - rest.len();
                // The fraction of a second that a damaged file claims may be longer than one.
                let at = Time::from_nanos(u64::from(record.ts_sec) * 1_000_000_000)
                    + self.clock.time(u64::from(record.ts_usec)).since(Time::ZERO);
                Ok(Step::Packet(len, Found { at, place: self.header..len, original: record.origlen, interface: 0 }))
            }
            // Octets are missing: it is known how many as soon as the record's header is there.
            Err(Nom::Incomplete(Needed::Size(missing))) if bytes.len() >= self.header => {
                match bytes.len() - self.header + missing.get() {
                    len if len > MAX_PACKET => Err(damaged(len)),
                    _ => Ok(Step::Short),
                }
            }
            Err(_) => Ok(Step::Short),
        }
    }
}

const RECORD: usize = 16;
/// Interface, protocol, packet type and padding follow in the modified format.
const MODIFIED_RECORD: usize = 24;
