//! Segment bytes to header.

use super::{Capacity, Flags, MIN_LEN, SackBlock, TcpHeader, TcpOptions, Timestamps, capacity, kind};
use crate::{Error, be16, be32, take};

/// Parses the header of a whole segment (as long as its IP header says) and gives the header's own length too.
///
/// Options of known kind but impossible length are skipped, as kernels do; an option that is longer than the rest of
/// the header is an error, as nothing behind it can be trusted.
///
/// # Errors
/// [`Error::Truncated`], and [`Error::Length`] for a data offset or option length that contradicts the segment.
pub fn parse(segment: &[u8]) -> Result<(TcpHeader, usize), Error> {
    let fixed: [u8; MIN_LEN] = take(segment, 0).ok_or(Error::Truncated { needed: MIN_LEN, got: segment.len() })?;
    let header_len = usize::from(fixed[12] >> 4) * 4;
    if header_len < MIN_LEN || header_len > segment.len() {
        return Err(Error::Length { field: "data offset", value: header_len });
    }
    let header = TcpHeader {
        source_port: be16(&fixed, 0)?,
        destination_port: be16(&fixed, 2)?,
        seq: be32(&fixed, 4)?,
        ack: be32(&fixed, 8)?,
        flags: Flags(fixed[13]),
        window: be16(&fixed, super::WINDOW_AT)?,
        options: options(&segment[MIN_LEN..header_len])?,
        payload_len: u32::try_from(segment.len() - header_len).map_err(|_| Error::TooLong(segment.len()))?,
    };
    Ok((header, header_len))
}

fn options(mut bytes: &[u8]) -> Result<TcpOptions, Error> {
    let mut options = TcpOptions::default();
    while let [first, rest @ ..] = bytes {
        match *first {
            kind::END => break,
            kind::NO_OPERATION => bytes = rest,
            kind => {
                let len = rest.first().map_or(0, |len| usize::from(*len));
                let Some((option, after)) = bytes.split_at_checked(len).filter(|_| len >= 2) else {
                    return Err(Error::Length { field: "option length", value: len });
                };
                note(&mut options, kind, &option[2..])?;
                bytes = after;
            }
        }
    }
    Ok(options)
}

fn note(options: &mut TcpOptions, kind: u8, value: &[u8]) -> Result<(), Error> {
    match (kind, value) {
        (kind::MSS, [high, low]) => options.mss = Some(u16::from_be_bytes([*high, *low])),
        (kind::WINDOW_SCALE, [shift]) => options.window_scale = Some(*shift),
        (kind::SACK_PERMITTED, []) => options.sack_permitted = true,
        (kind::TIMESTAMPS, value) if value.len() == 8 => {
            options.timestamps = Some(Timestamps { val: be32(value, 0)?, ecr: be32(value, 4)? });
        }
        (kind::SACK, value) if value.len().is_multiple_of(8) => {
            for block in value.chunks_exact(8) {
                options.sack.push(SackBlock { left: be32(block, 0)?, right: be32(block, 4)? });
            }
        }
        (kind::EXPERIMENT, [one, other, a, b, c, d]) if [*one, *other] == capacity::EXPERIMENT => {
            options.capacity = Some(Capacity::parse([*a, *b, *c, *d]));
        }
        (kind::MD5 | kind::AO | kind::MPTCP, _) => options.hands_off = true,
        _ => {}
    }
    Ok(())
}
