//! A station's account of a control slot, as octets.
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 1 | version, 1 |
//! | 1 | 1 | how frames were told apart: 0 = radiotap, 1 = arrival times |
//! | 2 | 2 | station number |
//! | 4 | 4 | slot number |
//! | 8 | 8 | when the slot began |
//! | 16 | 8 | when it ended |
//! | 24 | 4 | frames |
//! | 28 | 2 | fewest packets in a frame |
//! | 30 | 2 | most packets in a frame |
//! | 32 | 8 | sum of packets a frame (ΣN) |
//! | 40 | 8 | sum of their squares (ΣN²) |
//! | 48 | 8 | sum of 1/R, seconds a bit, as an IEEE 754 double |
//! | 56 | 8 | packets of the tunnel received |
//! | 64 | 8 | highest packet number |
//! | 72 | 8 | packets lost |
//! | 80 | 8 | mean one-way delay; all ones: not known |
//! | 88 | 8 | largest one-way delay; all ones: not known |
//!
//! Times are the station's clock; one-way delays contain what the station does not know of the offset between the
//! clocks. The fields are explained at [`StationFeedback`].

use crate::{Error, be16, be32, take};
use lasthop_signals::{FrameSource, Node, StationFeedback};
use lasthop_units::{Span, Time};

/// Octets of the account.
pub const FEEDBACK_LEN: usize = 96;

const VERSION: u8 = 1;
const UNKNOWN: u64 = u64::MAX;

pub(super) fn encode(out: &mut Vec<u8>, feedback: &StationFeedback) {
    let source = match feedback.source {
        FrameSource::Radiotap => 0,
        FrameSource::Timestamps => 1,
    };
    out.extend_from_slice(&[VERSION, source]);
    out.extend_from_slice(&feedback.station.0.to_be_bytes());
    out.extend_from_slice(&feedback.slot.to_be_bytes());
    put(out, [feedback.start.as_nanos(), feedback.end.as_nanos()]);
    out.extend_from_slice(&feedback.frames.to_be_bytes());
    out.extend_from_slice(&feedback.min_packets.to_be_bytes());
    out.extend_from_slice(&feedback.max_packets.to_be_bytes());
    let delay = |span: Option<Span>| span.map_or(UNKNOWN, Span::as_nanos);
    put(
        out,
        [
            feedback.packets,
            feedback.packets_squared,
            feedback.inverse_rate_sum.to_bits(),
            feedback.received,
            feedback.highest_sequence,
            feedback.lost,
            delay(feedback.delay_mean),
            delay(feedback.delay_max),
        ],
    );
}

fn put<const N: usize>(out: &mut Vec<u8>, words: [u64; N]) {
    words.iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
}

/// The account in exactly [`FEEDBACK_LEN`] octets.
pub(super) fn decode(bytes: &[u8]) -> Result<StationFeedback, Error> {
    let word = |at| {
        let short = Error::Truncated { needed: at + 8, got: bytes.len() };
        take(bytes, at).map(u64::from_be_bytes).ok_or(short)
    };
    let [version, source] = take(bytes, 0).ok_or(Error::Truncated { needed: FEEDBACK_LEN, got: bytes.len() })?;
    if version != VERSION {
        return Err(Error::Unknown { what: "version of feedback", value: version.into() });
    }
    let source = match source {
        0 => FrameSource::Radiotap,
        1 => FrameSource::Timestamps,
        other => return Err(Error::Unknown { what: "source of frames", value: other.into() }),
    };
    let inverse_rate_sum = f64::from_bits(word(48)?);
    // Not a number, and infinities, would spread through every sum that they enter.
    if !(inverse_rate_sum.is_finite() && inverse_rate_sum >= 0.0) {
        return Err(Error::Unknown { what: "sum of inverse rates", value: inverse_rate_sum.to_bits() });
    }
    let delay = |word: u64| (word != UNKNOWN).then(|| Span::from_nanos(word));
    Ok(StationFeedback {
        station: Node(be16(bytes, 2)?),
        slot: be32(bytes, 4)?,
        start: Time::from_nanos(word(8)?),
        end: Time::from_nanos(word(16)?),
        frames: be32(bytes, 24)?,
        packets: word(32)?,
        packets_squared: word(40)?,
        min_packets: be16(bytes, 28)?,
        max_packets: be16(bytes, 30)?,
        inverse_rate_sum,
        received: word(56)?,
        highest_sequence: word(64)?,
        lost: word(72)?,
        delay_mean: delay(word(80)?),
        delay_max: delay(word(88)?),
        source,
    })
}
