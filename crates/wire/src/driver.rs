//! Driver records: what the driver of an access point, or of a mesh's node, tells an agent, as bytes on a Unix socket.
//!
//! The driver side listens on a Unix socket of type `SOCK_SEQPACKET` and sends every connected reader one record a
//! message, 250 a second by default, without waiting for readers: a reader that does not keep up misses records and
//! loses nothing, since all counters are cumulative. Readers send nothing. The end of the connection means that the
//! driver has gone.
//!
//! All integers are little-endian, times and lengths of time in nanoseconds, moments on `CLOCK_MONOTONIC`. A message
//! holds exactly one record. One of an access point, header first:
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 4 | magic `0x5244_484c` (octets `LHDR`) |
//! | 4 | 1 | version, 3 |
//! | 5 | 1 | kind: 1 = hop report |
//! | 6 | 2 | number of stations that follow, at most 1024 |
//! | 8 | 8 | when the counters were read |
//! | 16 | 8 | channel: time on it |
//! | 24 | 8 | channel: time busy |
//! | 32 | 8 | channel: time receiving |
//! | 40 | 8 | channel: time transmitting |
//! | 48 | 128 each | stations, in the order of their numbers |
//!
//! A station:
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 2 | station number |
//! | 2 | 2 | zero |
//! | 4 | 4 | backlog, packets |
//! | 8 | 8 | backlog, octets |
//! | 16 | 8 | wait of the oldest packet |
//! | 24 | 8 | queue drops |
//! | 32 | 8 | transmission attempts |
//! | 40 | 8 | retries |
//! | 48 | 8 | packets given up |
//! | 56 | 8 | packets delivered |
//! | 64 | 8 | octets delivered |
//! | 72 | 8 | packets received |
//! | 80 | 8 | octets received |
//! | 88 | 8 | airtime towards it |
//! | 96 | 8 | airtime from it |
//! | 104 | 8 | PPDUs sent to it |
//! | 112 | 8 | PHY rate towards it, bit/s |
//! | 120 | 6 | its MAC address on the air, zeros if the driver does not know it |
//! | 126 | 2 | zero |
//!
//! A record of the delay of a mesh's node ([`NodeRecord`]), which a relay reads; it stands alone:
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 4 | magic, as above |
//! | 4 | 1 | version, 3 |
//! | 5 | 1 | kind: 2 = node delays |
//! | 6 | 2 | node number |
//! | 8 | 8 | when this was so |
//! | 16 | 8 | Q: from the queue to the head of the line, averaged |
//! | 24 | 8 | T: from there to the acknowledgement, averaged |
//! | 32 | 8 | when the node was done with its last packet, or what waits came to an empty queue, if that is later; all ones before the first |
//! | 40 | 4 | packets that wait or are being sent |
//! | 44 | 4 | zero |
//!
//! What the fields count is said at [`HopReport`], [`StationReport`] and [`NodeDelay`]. Writers set the zero fields to zero, readers
//! ignore them. Of the channel times but the first, of the airtimes and of the PPDUs a driver writes all ones
//! (`0xffff_ffff_ffff_ffff`) where it does not count them: a zero would say that nothing was counted. A change of this layout, or
//! of what it means, is a new version number; version 2 had no way to leave counters out and is read all the same, version 1 had no
//! MAC addresses and is not. Kinds are added without one: a reader refuses those that it does not know. Node delays came with version 3.

use crate::{Error, take};
use lasthop_signals::{ChannelTime, HopReport, Node, NodeDelay, StationReport};
use lasthop_units::{Bytes, Rate, Span, Time};
use std::collections::BTreeMap;

/// Stations that fit into one record. Keeps a message below Linux's default socket buffer.
pub const MAX_STATIONS: usize = 1024;
/// Octets of the longest record.
pub const MAX_LEN: usize = HEADER_LEN + MAX_STATIONS * STATION_LEN;

const MAGIC: u32 = u32::from_le_bytes(*b"LHDR");
const VERSION: u8 = 3;
/// Could not say that a counter is lacking; the same otherwise.
const VERSION_WITHOUT_GAPS: u8 = 2;
/// The kind of records of an access point.
pub const KIND_HOP: u8 = 1;
/// The kind of records of a node's delay.
pub const KIND_NODE: u8 = 2;
const HEADER_LEN: usize = 48;
const STATION_LEN: usize = 128;
/// No station's address: what a driver writes that does not know it.
const UNKNOWN: [u8; 6] = [0; 6];
/// What stands in place of a counter that the driver does not have.
const LACKING: u64 = u64::MAX;

/// What one message says.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Record {
    /// When the counters were read, on `CLOCK_MONOTONIC`.
    pub at: Time,
    /// The counters.
    pub report: HopReport,
    /// MAC addresses of stations, as far as the driver knows them; of those in the report only.
    pub addresses: BTreeMap<Node, [u8; 6]>,
}

/// What one message says of a mesh's node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NodeRecord {
    /// When this was so, on `CLOCK_MONOTONIC`.
    pub at: Time,
    /// Which node, as the driver numbers them.
    pub node: u16,
    /// Its averages.
    pub delay: NodeDelay,
}

/// What was read, or nothing where it is of another kind that is known: a socket may carry both.
///
/// # Errors
/// What was wrong otherwise.
pub fn other_kind<T>(read: Result<T, Error>, other: u8) -> Result<Option<T>, Error> {
    match read {
        Err(Error::RecordKind { version: VERSION, kind }) if kind == other => Ok(None),
        read => read.map(Some),
    }
}

/// A node's record as a message.
pub fn encode_node(record: &NodeRecord) -> [u8; HEADER_LEN] {
    let NodeRecord { at, node, delay } = record;
    let last = delay.last.map_or(LACKING, Time::as_nanos);
    let words = [at.as_nanos(), delay.queueing.as_nanos(), delay.service.as_nanos(), last];
    let mut out = [0; HEADER_LEN];
    out[..4].copy_from_slice(&MAGIC.to_le_bytes());
    out[4..6].copy_from_slice(&[VERSION, KIND_NODE]);
    out[6..8].copy_from_slice(&node.to_le_bytes());
    for (place, word) in out[8..40].chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    out[40..44].copy_from_slice(&delay.waiting.to_le_bytes());
    out
}

/// What a message says of a node.
///
/// # Errors
/// [`Error::Magic`], [`Error::RecordKind`], and [`Error::Truncated`] or [`Error::Length`] if the message is shorter or longer than the record.
pub fn decode_node(message: &[u8]) -> Result<NodeRecord, Error> {
    let record: [u8; HEADER_LEN] =
        take(message, 0).ok_or(Error::Truncated { needed: HEADER_LEN, got: message.len() })?;
    let mut fields = Fields(&record);
    let magic = u32::from_le_bytes(fields.array());
    if magic != MAGIC {
        return Err(Error::Magic(magic));
    }
    let [version, kind] = fields.array();
    if (version, kind) != (VERSION, KIND_NODE) {
        return Err(Error::RecordKind { version, kind });
    }
    if message.len() > HEADER_LEN {
        return Err(Error::Length { field: "length of a record of a node", value: message.len() });
    }
    let node = u16::from_le_bytes(fields.array());
    let at = Time::from_nanos(fields.u64());
    let (queueing, service) = (fields.span(), fields.span());
    let last = fields.counted().map(Time::from_nanos);
    let waiting = u32::from_le_bytes(fields.array());
    Ok(NodeRecord { at, node, delay: NodeDelay { queueing, service, last, waiting } })
}

/// A record as a message.
///
/// # Errors
/// [`Error::TooManyStations`].
pub fn encode(record: &Record) -> Result<Vec<u8>, Error> {
    let Record { at, report, addresses } = record;
    let count = report.stations.len();
    let stations = u16::try_from(count).ok().filter(|_| count <= MAX_STATIONS).ok_or(Error::TooManyStations(count))?;
    let mut out = Vec::with_capacity(HEADER_LEN + count * STATION_LEN);
    out.extend_from_slice(&MAGIC.to_le_bytes());
    out.extend_from_slice(&[VERSION, KIND_HOP]);
    out.extend_from_slice(&stations.to_le_bytes());
    let ChannelTime { active, busy, rx, tx } = report.channel;
    for word in [at.as_nanos(), active.as_nanos(), span_or_gap(busy), span_or_gap(rx), span_or_gap(tx)] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    for station in &report.stations {
        encode_station(&mut out, station, addresses.get(&station.station).unwrap_or(&UNKNOWN));
    }
    Ok(out)
}

/// What a message says.
///
/// # Errors
/// [`Error::Magic`], [`Error::RecordKind`], [`Error::TooManyStations`], and [`Error::Truncated`] or [`Error::Length`]
/// if the message is shorter or longer than its number of stations says.
pub fn decode(message: &[u8]) -> Result<Record, Error> {
    let short = |needed| Error::Truncated { needed, got: message.len() };
    let head: [u8; HEADER_LEN] = take(message, 0).ok_or(short(HEADER_LEN))?;
    let mut fields = Fields(&head);
    let magic = u32::from_le_bytes(fields.array());
    if magic != MAGIC {
        return Err(Error::Magic(magic));
    }
    let [version, kind] = fields.array();
    if !matches!((version, kind), (VERSION | VERSION_WITHOUT_GAPS, KIND_HOP)) {
        return Err(Error::RecordKind { version, kind });
    }
    let count = usize::from(u16::from_le_bytes(fields.array()));
    if count > MAX_STATIONS {
        return Err(Error::TooManyStations(count));
    }
    let needed = HEADER_LEN + count * STATION_LEN;
    if message.len() < needed {
        return Err(short(needed));
    }
    if message.len() > needed {
        return Err(Error::Length { field: "number of stations", value: count });
    }
    let at = Time::from_nanos(fields.u64());
    let channel = ChannelTime {
        active: fields.span(),
        busy: fields.counted_span(),
        rx: fields.counted_span(),
        tx: fields.counted_span(),
    };
    let mut addresses = BTreeMap::new();
    let mut stations = Vec::with_capacity(count);
    for bytes in message[HEADER_LEN..].chunks_exact(STATION_LEN) {
        let (station, address) = decode_station(bytes);
        if address != UNKNOWN {
            addresses.insert(station.station, address);
        }
        stations.push(station);
    }
    Ok(Record { at, report: HopReport { channel, stations }, addresses })
}

fn encode_station(out: &mut Vec<u8>, station: &StationReport, address: &[u8; 6]) {
    out.extend_from_slice(&station.station.0.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&station.backlog_packets.to_le_bytes());
    let words = [
        station.backlog_bytes.get(),
        station.head_wait.as_nanos(),
        station.queue_drops,
        station.tx_attempts,
        station.tx_retries,
        station.tx_failed,
        station.tx_packets,
        station.tx_bytes.get(),
        station.rx_packets,
        station.rx_bytes.get(),
        span_or_gap(station.tx_airtime),
        span_or_gap(station.rx_airtime),
        station.tx_ppdus.unwrap_or(LACKING),
        station.phy_rate.as_bps(),
    ];
    words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
    out.extend_from_slice(address);
    out.extend_from_slice(&[0; 2]);
}

fn decode_station(bytes: &[u8]) -> (StationReport, [u8; 6]) {
    let mut fields = Fields(bytes);
    let station = Node(u16::from_le_bytes(fields.array()));
    let _zero: [u8; 2] = fields.array();
    let report = StationReport {
        station,
        backlog_packets: u32::from_le_bytes(fields.array()),
        backlog_bytes: Bytes::new(fields.u64()),
        head_wait: fields.span(),
        queue_drops: fields.u64(),
        tx_attempts: fields.u64(),
        tx_retries: fields.u64(),
        tx_failed: fields.u64(),
        tx_packets: fields.u64(),
        tx_bytes: Bytes::new(fields.u64()),
        rx_packets: fields.u64(),
        rx_bytes: Bytes::new(fields.u64()),
        tx_airtime: fields.counted_span(),
        rx_airtime: fields.counted_span(),
        tx_ppdus: fields.counted(),
        phy_rate: Rate::from_bps(fields.u64()),
    };
    (report, fields.array())
}

fn span_or_gap(counted: Option<Span>) -> u64 {
    counted.map_or(LACKING, Span::as_nanos)
}

/// Reads fields one after the other; behind the end there are zeros, which no caller reaches: lengths are checked first.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn array<const N: usize>(&mut self) -> [u8; N] {
        let Some((field, rest)) = self.0.split_first_chunk::<N>() else { return [0; N] };
        self.0 = rest;
        *field
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    fn span(&mut self) -> Span {
        Span::from_nanos(self.u64())
    }

    /// A counter, if the driver has it.
    fn counted(&mut self) -> Option<u64> {
        Some(self.u64()).filter(|word| *word != LACKING)
    }

    fn counted_span(&mut self) -> Option<Span> {
        self.counted().map(Span::from_nanos)
    }
}
