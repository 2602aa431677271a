//! Frames: what a packet of the tunnel says.
//!
//! A frame is one octet of kind, and then
//!
//! | kind | name | fields (octets) |
//! | --- | --- | --- |
//! | 0 | padding | none |
//! | 1 | ping | none |
//! | 2 | acknowledgement | largest packet number (8), µs since it arrived (4), packets right below it that arrived too (4), number of further ranges (1, at most 32), and each: packets missing below (4), packets that arrived below those (4) |
//! | 3, 4 | data, data with the end of the stream | stream (4), offset (8), age of the first octet in µs (4), length (2), data |
//! | 5 | open | stream (4), port (2), length of host (1), host: a name or an address as text |
//! | 6 | opened | stream (4), result (1) |
//! | 7 | window | stream (4), offset up to which data may be sent (8) |
//! | 8 | reset | stream (4), octets of it that its sender had sent (8) |
//! | 9 | feedback | one control slot of a station: [`super::FEEDBACK_LEN`] octets, see `feedback.rs` |
//! | 10 | close | none: the session ends |
//! | 11 | budget | octets of all streams together up to which data may be sent (8) |
//! | 12 | path challenge | octets that nobody can guess (8), to be sent back at once |
//! | 13 | path answer | the octets of a path challenge (8) |
//! | 14 | probe | none: asks for a path delay at once |
//! | 15 | path delay | D_avg in µs (4), µs to the next one (4) |
//! | 16 | cell | what a terminal's cell has: [`super::CELL_LEN`] octets, see `cell.rs` |
//!
//! Streams that the station opens have odd numbers, those of the proxy even ones. The *age* of data is how long its
//! first octet has been on its way when the packet was sealed: in the proxy, and an estimate of its time on the wire
//! from the server.
//!
//! Probe and path delay are ATP's, and stand only in packets that have a [`crate::datagram::preamble`] before them: no end of the plain
//! tunnel sends or gets one, so that they are no other version. Neither is a cell: a station sends it that was told to read a log of one.

use super::{cell, feedback};
use crate::{Error, be16, be32, take};
use lasthop_signals::{CellCapacity, StationFeedback};
use lasthop_units::Span;

/// Ranges beyond the first in one acknowledgement.
pub const MAX_ACK_RANGES: usize = 32;
/// Octets of the longest host name.
pub const MAX_HOST: usize = 255;

const PADDING: u8 = 0;
const PING: u8 = 1;
const ACK: u8 = 2;
const DATA: u8 = 3;
const DATA_END: u8 = 4;
const OPEN: u8 = 5;
const OPENED: u8 = 6;
const WINDOW: u8 = 7;
const RESET: u8 = 8;
const FEEDBACK: u8 = 9;
const CLOSE: u8 = 10;
const BUDGET: u8 = 11;
const PATH_CHALLENGE: u8 = 12;
const PATH_ANSWER: u8 = 13;
const PROBE: u8 = 14;
const PATH_DELAY: u8 = 15;
const CELL: u8 = 16;

/// What a path challenge holds.
pub type PathData = [u8; 8];

/// One frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame<'a> {
    /// Asks for an acknowledgement.
    Ping,
    /// What arrived: numbers from high to low.
    Ack {
        /// How long the largest had been there when this was sent.
        delay: Span,
        /// Ranges of packet numbers, the highest first, disjoint and not touching.
        ranges: Vec<AckRange>,
    },
    /// Part of a stream.
    Data(Data<'a>),
    /// Opens a stream to a host.
    Open {
        /// Its number.
        stream: u32,
        /// Name or address of the host.
        host: &'a str,
        /// TCP port.
        port: u16,
    },
    /// Answers an opening.
    Opened {
        /// Which stream.
        stream: u32,
        /// How it went.
        result: OpenResult,
    },
    /// Lets the other side send more.
    Window {
        /// Which stream.
        stream: u32,
        /// First offset that may not be sent.
        limit: u64,
    },
    /// Ends a stream in both directions; what is under way is lost.
    Reset {
        /// Which stream.
        stream: u32,
        /// Octets that the resetting end had sent of it: so much of the budget it has used.
        sent: u64,
    },
    /// Lets the other side send more of all streams together.
    Budget {
        /// First octet that may not be sent, all streams counted from their beginnings.
        limit: u64,
    },
    /// A station's account of a control slot.
    Feedback(StationFeedback),
    /// What a station in a cell can have of it; unlike the account of a slot it goes with acknowledgements.
    Cell(CellCapacity),
    /// Asks whether the other end is where this was sent to.
    PathChallenge(PathData),
    /// Says so.
    PathAnswer(PathData),
    /// Asks for a path delay at once.
    Probe,
    /// How long a packet takes at the slowest hop of the way on which the other end's come.
    PathDelay {
        /// The average of D, to a microsecond.
        average: Span,
        /// Time to the next such frame, to a microsecond.
        epoch: Span,
    },
    /// Ends the session.
    Close,
}

/// Packet numbers `first..=last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckRange {
    /// Lowest number.
    pub first: u64,
    /// Highest number.
    pub last: u64,
}

/// Part of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    /// Which stream.
    pub stream: u32,
    /// Where in it the data stands.
    pub offset: u64,
    /// How long the first octet had been on its way when it was sent, to a microsecond.
    pub age: Span,
    /// True if the stream ends behind this data.
    pub end: bool,
    /// The data.
    pub bytes: &'a [u8],
}

/// How opening a stream went: in the order of the numbers of SOCKS5's reply field (RFC 1928 section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenResult {
    /// Connected.
    Connected,
    /// Something failed that has no number of its own.
    Failed,
    /// The other side's rules forbid it.
    Forbidden,
    /// No way to the network.
    NetworkUnreachable,
    /// The host does not answer, or has no address.
    HostUnreachable,
    /// The host refused.
    Refused,
    /// The host did not answer in time.
    TimedOut,
}

impl OpenResult {
    /// The number that stands for it.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// What a number stands for.
    pub fn of(code: u8) -> Option<OpenResult> {
        use OpenResult::*;
        let all = [Connected, Failed, Forbidden, NetworkUnreachable, HostUnreachable, Refused, TimedOut];
        all.get(usize::from(code)).copied()
    }
}

/// Octets of a data frame before its data.
pub const fn data_header() -> usize {
    1 + 4 + 8 + 4 + 2
}

/// Octets of an acknowledgement of so many ranges.
pub const fn ack_len(ranges: usize) -> usize {
    let more = ranges.saturating_sub(1);
    1 + 8 + 4 + 4 + 1 + 8 * if more < MAX_ACK_RANGES { more } else { MAX_ACK_RANGES }
}

/// Writes the part of a data frame that stands before its `len` octets of data; the caller appends those.
pub fn put_data_header(out: &mut Vec<u8>, data: &Data<'_>, len: u16) {
    out.push(if data.end { DATA_END } else { DATA });
    out.extend_from_slice(&data.stream.to_be_bytes());
    out.extend_from_slice(&data.offset.to_be_bytes());
    out.extend_from_slice(&micros(data.age).to_be_bytes());
    out.extend_from_slice(&len.to_be_bytes());
}

impl Frame<'_> {
    /// Octets that [`Frame::encode`] appends.
    pub fn encoded_len(&self) -> usize {
        match self {
            Frame::Ping | Frame::Probe | Frame::Close => 1,
            Frame::PathDelay { .. } => 1 + 4 + 4,
            Frame::Ack { ranges, .. } => ack_len(ranges.len()),
            Frame::Data(data) => data_header() + data.bytes.len(),
            Frame::Open { host, .. } => 1 + 4 + 2 + 1 + host.len(),
            Frame::Opened { .. } => 1 + 4 + 1,
            Frame::Window { .. } => 1 + 4 + 8,
            Frame::Reset { .. } => 1 + 4 + 8,
            Frame::Budget { .. } | Frame::PathChallenge(_) | Frame::PathAnswer(_) => 1 + 8,
            Frame::Feedback(_) => 1 + feedback::FEEDBACK_LEN,
            Frame::Cell(_) => 1 + cell::CELL_LEN,
        }
    }

    /// Appends the frame. Of an acknowledgement only the highest ranges are written if there are too many, or if one
    /// spans more than 2^32 numbers.
    ///
    /// # Errors
    /// [`Error::Length`] if data or a host are too long for their length field, or an acknowledgement has no range.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        match self {
            Frame::Ping => out.push(PING),
            Frame::Close => out.push(CLOSE),
            Frame::Ack { delay, ranges } => return encode_ack(out, *delay, ranges),
            Frame::Data(data) => {
                let value = data.bytes.len();
                let len = u16::try_from(value).map_err(|_| Error::Length { field: "data", value })?;
                put_data_header(out, data, len);
                out.extend_from_slice(data.bytes);
            }
            Frame::Open { stream, host, port } => {
                let value = host.len();
                let len = u8::try_from(value).map_err(|_| Error::Length { field: "host", value })?;
                out.push(OPEN);
                out.extend_from_slice(&stream.to_be_bytes());
                out.extend_from_slice(&port.to_be_bytes());
                out.push(len);
                out.extend_from_slice(host.as_bytes());
            }
            Frame::Opened { stream, result } => {
                out.push(OPENED);
                out.extend_from_slice(&stream.to_be_bytes());
                out.push(result.code());
            }
            Frame::Window { stream, limit } => {
                out.push(WINDOW);
                out.extend_from_slice(&stream.to_be_bytes());
                out.extend_from_slice(&limit.to_be_bytes());
            }
            Frame::Reset { stream, sent } => {
                out.push(RESET);
                out.extend_from_slice(&stream.to_be_bytes());
                out.extend_from_slice(&sent.to_be_bytes());
            }
            Frame::Budget { limit } => {
                out.push(BUDGET);
                out.extend_from_slice(&limit.to_be_bytes());
            }
            Frame::PathChallenge(data) => {
                out.push(PATH_CHALLENGE);
                out.extend_from_slice(data);
            }
            Frame::PathAnswer(data) => {
                out.push(PATH_ANSWER);
                out.extend_from_slice(data);
            }
            Frame::Probe => out.push(PROBE),
            Frame::PathDelay { average, epoch } => {
                out.push(PATH_DELAY);
                out.extend_from_slice(&micros(*average).to_be_bytes());
                out.extend_from_slice(&micros(*epoch).to_be_bytes());
            }
            Frame::Feedback(feedback) => {
                out.push(FEEDBACK);
                feedback::encode(out, feedback);
            }
            Frame::Cell(told) => {
                out.push(CELL);
                cell::encode(out, told);
            }
        }
        Ok(())
    }
}

/// The frames of a packet, from first to last. After an error there is nothing more.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Frames<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Frames<'a> {
        Frames { bytes, at: 0 }
    }

    fn frame(&mut self, kind: u8) -> Result<Frame<'a>, Error> {
        match kind {
            PING => Ok(Frame::Ping),
            CLOSE => Ok(Frame::Close),
            ACK => self.ack(),
            DATA | DATA_END => {
                let (stream, offset, age) = (self.u32()?, self.u64()?, self.u32()?);
                let len = self.u16()?;
                let bytes = self.slice(len.into())?;
                // Offsets beyond this would overflow where they are added up.
                if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > MAX_OFFSET) {
                    return Err(Error::Unknown { what: "offset in a stream", value: offset });
                }
                let age = Span::from_micros(age.into());
                Ok(Frame::Data(Data { stream, offset, age, end: kind == DATA_END, bytes }))
            }
            OPEN => {
                let (stream, port) = (self.u32()?, self.u16()?);
                let [len] = self.array()?;
                let host = std::str::from_utf8(self.slice(len.into())?);
                let host =
                    host.map_err(|error| Error::Length { field: "UTF-8 of host", value: error.valid_up_to() })?;
                Ok(Frame::Open { stream, host, port })
            }
            OPENED => {
                let stream = self.u32()?;
                let [code] = self.array()?;
                let result = OpenResult::of(code).ok_or(Error::Unknown { what: "result", value: code.into() })?;
                Ok(Frame::Opened { stream, result })
            }
            WINDOW => Ok(Frame::Window { stream: self.u32()?, limit: self.u64()? }),
            RESET => {
                let (stream, sent) = (self.u32()?, self.u64()?);
                if sent > MAX_OFFSET {
                    return Err(Error::Unknown { what: "offset in a stream", value: sent });
                }
                Ok(Frame::Reset { stream, sent })
            }
            BUDGET => Ok(Frame::Budget { limit: self.u64()? }),
            PATH_CHALLENGE => self.array().map(Frame::PathChallenge),
            PATH_ANSWER => self.array().map(Frame::PathAnswer),
            PROBE => Ok(Frame::Probe),
            PATH_DELAY => {
                let [average, epoch] = [self.u32()?, self.u32()?].map(|us| Span::from_micros(us.into()));
                Ok(Frame::PathDelay { average, epoch })
            }
            FEEDBACK => feedback::decode(self.slice(feedback::FEEDBACK_LEN)?).map(Frame::Feedback),
            CELL => cell::decode(self.slice(cell::CELL_LEN)?).map(Frame::Cell),
            kind => Err(Error::Unknown { what: "kind of frame", value: kind.into() }),
        }
    }

    fn ack(&mut self) -> Result<Frame<'a>, Error> {
        let last = self.u64()?;
        let delay = Span::from_micros(self.u32()?.into());
        let below = u64::from(self.u32()?);
        let [count] = self.array()?;
        if usize::from(count) > MAX_ACK_RANGES {
            return Err(Error::Length { field: "number of ranges", value: count.into() });
        }
        let wrong = Error::Length { field: "range of packet numbers", value: usize::from(count) };
        let mut first = last.checked_sub(below).ok_or(wrong)?;
        let mut ranges = Vec::with_capacity(1 + usize::from(count));
        ranges.push(AckRange { first, last });
        for _ in 0..count {
            let (missing, arrived) = (u64::from(self.u32()?), u64::from(self.u32()?));
            if missing == 0 || arrived == 0 {
                return Err(wrong);
            }
            let last = first.checked_sub(missing + 1).ok_or(wrong)?;
            first = last.checked_sub(arrived - 1).ok_or(wrong)?;
            ranges.push(AckRange { first, last });
        }
        Ok(Frame::Ack { delay, ranges })
    }

    fn slice(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let needed = self.at.saturating_add(len);
        let slice = self.bytes.get(self.at..needed).ok_or(Error::Truncated { needed, got: self.bytes.len() })?;
        self.at = needed;
        Ok(slice)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let slice = self.slice(N)?;
        Ok(take(slice, 0).expect("as long as was asked for"))
    }

    fn u16(&mut self) -> Result<u16, Error> {
        self.slice(2).and_then(|bytes| be16(bytes, 0))
    }

    fn u32(&mut self) -> Result<u32, Error> {
        self.slice(4).and_then(|bytes| be32(bytes, 0))
    }

    fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_be_bytes)
    }
}

/// Streams end here: far beyond what any stream carries, and far below where sums overflow.
const MAX_OFFSET: u64 = 1 << 62;

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let kind = *self.bytes.get(self.at)?;
            self.at += 1;
            if kind == PADDING {
                continue;
            }
            let frame = self.frame(kind);
            if frame.is_err() {
                self.at = self.bytes.len();
            }
            return Some(frame);
        }
    }
}

fn encode_ack(out: &mut Vec<u8>, delay: Span, ranges: &[AckRange]) -> Result<(), Error> {
    let none = Error::Length { field: "number of ranges", value: 0 };
    let (top, rest) = ranges.split_first().ok_or(none)?;
    out.push(ACK);
    out.extend_from_slice(&top.last.to_be_bytes());
    out.extend_from_slice(&micros(delay).to_be_bytes());
    let below = u32::try_from(top.last.saturating_sub(top.first));
    out.extend_from_slice(&below.unwrap_or(u32::MAX).to_be_bytes());
    let count_at = out.len();
    out.push(0);
    // A range that was cut short is the last that can be told.
    let (mut lowest, mut count) = (top.first, 0u8);
    for range in rest.iter().take(if below.is_ok() { MAX_ACK_RANGES } else { 0 }) {
        let missing = u32::try_from(lowest.saturating_sub(range.last).saturating_sub(1));
        let arrived = u32::try_from(range.last.saturating_sub(range.first).saturating_add(1));
        let (Ok(missing), Ok(arrived)) = (missing, arrived) else { break };
        if missing == 0 {
            break;
        }
        out.extend_from_slice(&missing.to_be_bytes());
        out.extend_from_slice(&arrived.to_be_bytes());
        lowest = range.first;
        count += 1;
    }
    out[count_at] = count;
    Ok(())
}

/// Whole microseconds, at most what the field holds (71 minutes).
fn micros(span: Span) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}
