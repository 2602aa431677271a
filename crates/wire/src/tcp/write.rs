//! Header to segment bytes.

use super::{CAPACITY_LEN, TcpHeader, TcpOptions, capacity, kind};
use crate::Error;

/// Appends a header, checksum zero and urgent pointer zero. Options stand in the order in which Linux writes them,
/// padded to words with no-operations, the capacity last; `hands_off` is written as an MPTCP option without content.
///
/// # Errors
/// [`Error::OptionSpace`] if the options need more than 40 octets.
pub fn write(out: &mut Vec<u8>, header: &TcpHeader) -> Result<(), Error> {
    let options = option_bytes(&header.options);
    if options.len() > 40 {
        return Err(Error::OptionSpace(options.len()));
    }
    let words = 5 + options.len() / 4;
    out.extend_from_slice(&header.source_port.to_be_bytes());
    out.extend_from_slice(&header.destination_port.to_be_bytes());
    out.extend_from_slice(&header.seq.to_be_bytes());
    out.extend_from_slice(&header.ack.to_be_bytes());
    out.extend_from_slice(&[(words as u8) << 4, header.flags.0]);
    out.extend_from_slice(&header.window.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&options);
    Ok(())
}

/// The options, a whole number of words.
fn option_bytes(options: &TcpOptions) -> Vec<u8> {
    let mut out = Vec::with_capacity(40);
    if let Some(mss) = options.mss {
        out.extend_from_slice(&[kind::MSS, 4]);
        out.extend_from_slice(&mss.to_be_bytes());
    }
    if options.sack_permitted {
        out.extend_from_slice(&[kind::SACK_PERMITTED, 2]);
    }
    if let Some(timestamps) = options.timestamps {
        pad(&mut out, 2);
        out.extend_from_slice(&[kind::TIMESTAMPS, 10]);
        out.extend_from_slice(&timestamps.val.to_be_bytes());
        out.extend_from_slice(&timestamps.ecr.to_be_bytes());
    }
    if let Some(shift) = options.window_scale {
        out.extend_from_slice(&[kind::WINDOW_SCALE, 3, shift]);
    }
    if options.hands_off {
        out.extend_from_slice(&[kind::MPTCP, 4, 0, 0]);
    }
    let blocks = options.sack.as_slice();
    if !blocks.is_empty() {
        pad(&mut out, 2);
        out.extend_from_slice(&[kind::SACK, 2 + 8 * blocks.len() as u8]);
        for block in blocks {
            out.extend_from_slice(&block.left.to_be_bytes());
            out.extend_from_slice(&block.right.to_be_bytes());
        }
    }
    pad(&mut out, 0);
    if let Some(told) = options.capacity {
        out.extend_from_slice(&[kind::EXPERIMENT, CAPACITY_LEN as u8]);
        out.extend_from_slice(&capacity::EXPERIMENT);
        out.extend_from_slice(&told.to_bytes());
    }
    out
}

/// Adds no-operations until the length is `over` octets past a word.
fn pad(out: &mut Vec<u8>, over: usize) {
    while out.len() % 4 != over {
        out.push(kind::NO_OPERATION);
    }
}
