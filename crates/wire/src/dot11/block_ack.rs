//! BlockAck and BlockAckReq: compressed variants (9.3.1.7.2, 9.3.1.8.2).

use crate::{Error, take};

/// A compressed BlockAck, behind its header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockAck {
    /// Traffic identifier.
    pub tid: u8,
    /// Sequence number of the bitmap's first bit.
    pub start: u16,
    /// One bit an MPDU, lowest first: 8 octets, or 32 with HE.
    pub bitmap: Vec<u8>,
}

/// A compressed BlockAckReq, behind its header: the receiver's window shall begin at `start`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockAckRequest {
    /// Traffic identifier.
    pub tid: u8,
    /// First sequence number of the new window.
    pub start: u16,
}

impl BlockAck {
    /// Reads the body of a BlockAck.
    ///
    /// # Errors
    /// [`Error::Truncated`], and [`Error::BlockAckVariant`] for a variant other than compressed.
    pub fn parse(body: &[u8]) -> Result<BlockAck, Error> {
        let (tid, start) = control_and_start(body)?;
        // 9.4: the fragment number's bits 1 to 3 tell the bitmap's length.
        let octets = match body.get(2).map(|low| low >> 1 & 0x07) {
            Some(2) => 32,
            _ => 8,
        };
        let short = Error::Truncated { needed: 4 + octets, got: body.len() };
        let bitmap = body.get(4..4 + octets).ok_or(short)?.to_vec();
        Ok(BlockAck { tid, start, bitmap })
    }

    /// MPDUs acknowledged.
    pub fn acknowledged(&self) -> u32 {
        self.bitmap.iter().map(|octet| octet.count_ones()).sum()
    }

    /// Appends the body of a BlockAck. A bitmap that is neither 8 nor 32 octets long is cut or filled up.
    pub fn write(&self, out: &mut Vec<u8>) {
        let (octets, size) = if self.bitmap.len() > 8 { (32, 2 << 1) } else { (8, 0) };
        write_control_and_start(out, self.tid, self.start, size);
        out.extend((0..octets).map(|at| self.bitmap.get(at).copied().unwrap_or(0)));
    }
}

impl BlockAckRequest {
    /// Reads the body of a BlockAckReq.
    ///
    /// # Errors
    /// As for [`BlockAck::parse`].
    pub fn parse(body: &[u8]) -> Result<BlockAckRequest, Error> {
        control_and_start(body).map(|(tid, start)| BlockAckRequest { tid, start })
    }

    /// Appends the body of a BlockAckReq.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_control_and_start(out, self.tid, self.start, 0);
    }
}

/// Kind 2 of tables 9-28 and 9-30: compressed.
const COMPRESSED: u16 = 2;

fn control_and_start(body: &[u8]) -> Result<(u8, u16), Error> {
    let short = Error::Truncated { needed: 4, got: body.len() };
    let control = take(body, 0).map(u16::from_le_bytes).ok_or(short)?;
    let start = take(body, 2).map(u16::from_le_bytes).ok_or(short)?;
    let variant = control >> 1 & 0x0f;
    if variant != COMPRESSED {
        return Err(Error::BlockAckVariant((variant & 0x0f) as u8));
    }
    Ok(((control >> 12) as u8, start >> 4))
}

fn write_control_and_start(out: &mut Vec<u8>, tid: u8, start: u16, fragment: u16) {
    out.extend_from_slice(&(u16::from(tid) << 12 | COMPRESSED << 1).to_le_bytes());
    out.extend_from_slice(&(start << 4 | fragment).to_le_bytes());
}
