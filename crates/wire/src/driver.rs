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
//! | 4 | 1 | version, 4 |
//! | 5 | 1 | kind: 1 = hop report |
//! | 6 | 2 | number of stations that follow, at most 1024 |
//! | 8 | 8 | when the counters were read |
//! | 16 | 8 | channel: time on it |
//! | 24 | 8 | channel: time busy |
//! | 32 | 8 | channel: time receiving |
//! | 40 | 8 | channel: time transmitting |
//! | 48 | 8 | channel: time scanning |
//! | 56 | 2 | channel: noise in dBm, two's complement; `0x7fff` if it is not known |
//! | 58 | 2 | number of the interface's queues that follow the stations, at most 64 |
//! | 60 | 4 | zero |
//! | 64 | 128 each | stations, in the order of their numbers |
//! | | 48 each | queues, in the order of their numbers |
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
//! A queue:
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 2 | its number |
//! | 2 | 2 | zero |
//! | 4 | 4 | backlog, packets |
//! | 8 | 8 | backlog, octets |
//! | 16 | 8 | drops |
//! | 24 | 8 | requeues |
//! | 32 | 8 | packets sent |
//! | 40 | 8 | octets sent |
//!
//! A record of the delay of a mesh's node ([`NodeRecord`]), which a relay reads; it stands alone:
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 4 | magic, as above |
//! | 4 | 1 | version, as above |
//! | 5 | 1 | kind: 2 = node delays |
//! | 6 | 2 | node number |
//! | 8 | 8 | when this was so |
//! | 16 | 8 | Q: from the queue to the head of the line, averaged |
//! | 24 | 8 | T: from there to the acknowledgement, averaged |
//! | 32 | 8 | when the node was done with its last packet, or what waits came to an empty queue, if that is later; all ones before the first |
//! | 40 | 4 | packets that wait or are being sent |
//! | 44 | 4 | zero |
//!
//! What the fields count is said at [`HopReport`], [`StationReport`], [`QueueReport`] and [`NodeDelay`]. Writers set the zero fields to
//! zero, readers ignore them. Of the channel times but the first, the wait of the oldest packet, attempts, retries, packets given up,
//! airtimes and PPDUs a driver writes all ones (`0xffff_ffff_ffff_ffff`) where it does not count them: a zero would say that nothing was
//! counted. A change of this layout, or of what it means, is a new version number. Version 3 had no scan time, noise nor queues (its
//! header ends at 48) and no gaps but in times, airtimes and PPDUs, version 2 had no gaps at all: both are read. Version 1 had no
//! MAC addresses and is not. Kinds are added without one: a reader refuses those that it does not know. Node delays came with version 3.

use crate::{Error, take};
use lasthop_signals::{ChannelTime, HopReport, Node, NodeDelay, QueueReport, StationReport};
use lasthop_units::{Bytes, Rate, Span, Time};
use std::collections::BTreeMap;

/// Stations that fit into one record. Keeps a message below Linux's default socket buffer.
pub const MAX_STATIONS: usize = 1024;
/// Queues of the interface that fit into one record: as many as a device with a queue a processor has.
pub const MAX_QUEUES: usize = 64;
/// Octets of the longest record.
pub const MAX_LEN: usize = HEADER_LEN + MAX_STATIONS * STATION_LEN + MAX_QUEUES * QUEUE_LEN;

const MAGIC: u32 = u32::from_le_bytes(*b"LHDR");
const VERSION: u8 = 4;
/// Had neither scan time, noise nor queues.
const VERSION_WITHOUT_QUEUES: u8 = 3;
/// Could not say that a counter is lacking, either.
const VERSION_WITHOUT_GAPS: u8 = 2;
/// The kind of records of an access point.
pub const KIND_HOP: u8 = 1;
/// The kind of records of a node's delay.
pub const KIND_NODE: u8 = 2;
const HEADER_LEN: usize = 64;
/// Of versions that had no queues.
const SHORT_HEADER_LEN: usize = 48;
const STATION_LEN: usize = 128;
const QUEUE_LEN: usize = 48;
const NODE_LEN: usize = 48;
/// No station's address: what a driver writes that does not know it.
const UNKNOWN: [u8; 6] = [0; 6];
/// What stands in place of a counter that the driver does not have.
const LACKING: u64 = u64::MAX;
/// What stands in place of a noise that it does not know.
const NO_NOISE: i16 = i16::MAX;

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
        Err(Error::RecordKind { version: VERSION | VERSION_WITHOUT_QUEUES, kind }) if kind == other => Ok(None),
        read => read.map(Some),
    }
}

/// A node's record as a message.
pub fn encode_node(record: &NodeRecord) -> [u8; NODE_LEN] {
    let NodeRecord { at, node, delay } = record;
    let last = delay.last.map_or(LACKING, Time::as_nanos);
    let words = [at.as_nanos(), delay.queueing.as_nanos(), delay.service.as_nanos(), last];
    let mut out = [0; NODE_LEN];
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
    let record: [u8; NODE_LEN] = take(message, 0).ok_or(Error::Truncated { needed: NODE_LEN, got: message.len() })?;
    let mut fields = Fields(&record);
    let magic = u32::from_le_bytes(fields.array());
    if magic != MAGIC {
        return Err(Error::Magic(magic));
    }
    let [version, kind] = fields.array();
    if !matches!((version, kind), (VERSION | VERSION_WITHOUT_QUEUES, KIND_NODE)) {
        return Err(Error::RecordKind { version, kind });
    }
    if message.len() > NODE_LEN {
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
/// [`Error::TooManyStations`], [`Error::TooManyQueues`].
pub fn encode(record: &Record) -> Result<Vec<u8>, Error> {
    let Record { at, report, addresses } = record;
    let (stations, queues) = (report.stations.len(), report.queues.len());
    let count = |count: usize, most: usize| u16::try_from(count).ok().filter(|_| count <= most);
    let stations = count(stations, MAX_STATIONS).ok_or(Error::TooManyStations(stations))?;
    let queues = count(queues, MAX_QUEUES).ok_or(Error::TooManyQueues(queues))?;
    let len = HEADER_LEN + report.stations.len() * STATION_LEN + report.queues.len() * QUEUE_LEN;
    let mut out = Vec::with_capacity(len);
    out.extend_from_slice(&MAGIC.to_le_bytes());
    out.extend_from_slice(&[VERSION, KIND_HOP]);
    out.extend_from_slice(&stations.to_le_bytes());
    let ChannelTime { active, busy, rx, tx, scan, noise } = report.channel;
    let times = [busy, rx, tx, scan].map(span_or_gap);
    for word in [at.as_nanos(), active.as_nanos()].into_iter().chain(times) {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(&noise.map_or(NO_NOISE, i16::from).to_le_bytes());
    out.extend_from_slice(&queues.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    for station in &report.stations {
        encode_station(&mut out, station, addresses.get(&station.station).unwrap_or(&UNKNOWN));
    }
    report.queues.iter().for_each(|queue| encode_queue(&mut out, queue));
    Ok(out)
}

/// What a message says.
///
/// # Errors
/// [`Error::Magic`], [`Error::RecordKind`], [`Error::TooManyStations`], [`Error::TooManyQueues`], and [`Error::Truncated`] or
/// [`Error::Length`] if the message is shorter or longer than its numbers of stations and queues say.
pub fn decode(message: &[u8]) -> Result<Record, Error> {
    let short = |needed| Error::Truncated { needed, got: message.len() };
    let head: [u8; SHORT_HEADER_LEN] = take(message, 0).ok_or(short(SHORT_HEADER_LEN))?;
    let mut fields = Fields(&head);
    let magic = u32::from_le_bytes(fields.array());
    if magic != MAGIC {
        return Err(Error::Magic(magic));
    }
    let [version, kind] = fields.array();
    let header_len = match (version, kind) {
        (VERSION, KIND_HOP) => HEADER_LEN,
        (VERSION_WITHOUT_QUEUES | VERSION_WITHOUT_GAPS, KIND_HOP) => SHORT_HEADER_LEN,
        _ => return Err(Error::RecordKind { version, kind }),
    };
    let count = usize::from(u16::from_le_bytes(fields.array()));
    if count > MAX_STATIONS {
        return Err(Error::TooManyStations(count));
    }
    let head = message.get(..header_len).ok_or(short(header_len))?;
    let mut more = Fields(&head[SHORT_HEADER_LEN..]);
    let (scan, noise, queues) = if header_len == HEADER_LEN {
        let (scan, noise) = (more.counted_span(), i16::from_le_bytes(more.array()));
        (scan, i8::try_from(noise).ok(), usize::from(u16::from_le_bytes(more.array())))
    } else {
        (None, None, 0)
    };
    if queues > MAX_QUEUES {
        return Err(Error::TooManyQueues(queues));
    }
    let behind_stations = header_len + count * STATION_LEN;
    let needed = behind_stations + queues * QUEUE_LEN;
    if message.len() < needed {
        return Err(short(needed));
    }
    if message.len() > needed {
        return Err(Error::Length { field: "number of stations and queues", value: count + queues });
    }
    let at = Time::from_nanos(fields.u64());
    let channel = ChannelTime {
        active: fields.span(),
        busy: fields.counted_span(),
        rx: fields.counted_span(),
        tx: fields.counted_span(),
        scan,
        noise,
    };
    let mut addresses = BTreeMap::new();
    let mut stations = Vec::with_capacity(count);
    for bytes in message[header_len..behind_stations].chunks_exact(STATION_LEN) {
        let (station, address) = decode_station(bytes);
        if address != UNKNOWN {
            addresses.insert(station.station, address);
        }
        stations.push(station);
    }
    let queues = message[behind_stations..].chunks_exact(QUEUE_LEN).map(decode_queue).collect();
    Ok(Record { at, report: HopReport { channel, stations, queues }, addresses })
}

fn encode_queue(out: &mut Vec<u8>, queue: &QueueReport) {
    out.extend_from_slice(&queue.queue.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&queue.backlog_packets.to_le_bytes());
    let words = [queue.backlog_bytes.get(), queue.drops, queue.requeues, queue.tx_packets, queue.tx_bytes.get()];
    words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

fn decode_queue(bytes: &[u8]) -> QueueReport {
    let mut fields = Fields(bytes);
    let queue = u16::from_le_bytes(fields.array());
    let _zero: [u8; 2] = fields.array();
    QueueReport {
        queue,
        backlog_packets: u32::from_le_bytes(fields.array()),
        backlog_bytes: Bytes::new(fields.u64()),
        drops: fields.u64(),
        requeues: fields.u64(),
        tx_packets: fields.u64(),
        tx_bytes: Bytes::new(fields.u64()),
    }
}

fn encode_station(out: &mut Vec<u8>, station: &StationReport, address: &[u8; 6]) {
    out.extend_from_slice(&station.station.0.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&station.backlog_packets.to_le_bytes());
    let words = [
        station.backlog_bytes.get(),
        span_or_gap(station.head_wait),
        station.queue_drops,
        station.tx_attempts.unwrap_or(LACKING),
        station.tx_retries.unwrap_or(LACKING),
        station.tx_failed.unwrap_or(LACKING),
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
        head_wait: fields.counted_span(),
        queue_drops: fields.u64(),
        tx_attempts: fields.counted(),
        tx_retries: fields.counted(),
        tx_failed: fields.counted(),
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
