//! Ethernet II framing, with 802.1Q tags.

use crate::{Error, be16, take};

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;
/// Tag protocol identifier of 802.1Q.
pub const VLAN: u16 = 0x8100;
/// Tag protocol identifier of 802.1ad, the outer tag of two.
pub const SERVICE_VLAN: u16 = 0x88a8;
/// Tags that are looked through: 802.1ad allows two.
pub const MAX_TAGS: usize = 2;

/// A frame's header, tags looked through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Receiver.
    pub destination: [u8; 6],
    /// Transmitter.
    pub source: [u8; 6],
    /// EtherType of the payload, behind any tags.
    pub ethertype: u16,
    /// Where the payload begins.
    pub payload_at: usize,
}

/// Parses a frame's header.
///
/// # Errors
/// [`Error::Truncated`], and [`Error::TooDeep`] for more than two tags.
pub fn parse(bytes: &[u8]) -> Result<Frame, Error> {
    let short = Error::Truncated { needed: 14, got: bytes.len() };
    let destination = take(bytes, 0).ok_or(short)?;
    let source = take(bytes, 6).ok_or(short)?;
    let mut at = 12;
    for _ in 0..=MAX_TAGS {
        let ethertype = be16(bytes, at)?;
        if ethertype != VLAN && ethertype != SERVICE_VLAN {
            return Ok(Frame { destination, source, ethertype, payload_at: at + 2 });
        }
        at += 4;
    }
    Err(Error::TooDeep(MAX_TAGS))
}

/// Writes an untagged header.
pub fn write(out: &mut Vec<u8>, destination: [u8; 6], source: [u8; 6], ethertype: u16) {
    out.extend_from_slice(&destination);
    out.extend_from_slice(&source);
    out.extend_from_slice(&ethertype.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_and_two_tags_are_looked_through_and_three_are_refused() {
        let frame = |tags: &[u16]| {
            let mut bytes = vec![0; 12];
            for tag in tags {
                bytes.extend_from_slice(&tag.to_be_bytes());
                bytes.extend_from_slice(&[0, 5]);
            }
            bytes.extend_from_slice(&IPV6.to_be_bytes());
            parse(&bytes)
        };
        assert_eq!(frame(&[]).map(|f| (f.ethertype, f.payload_at)), Ok((IPV6, 14)));
        assert_eq!(frame(&[VLAN]).map(|f| (f.ethertype, f.payload_at)), Ok((IPV6, 18)));
        assert_eq!(frame(&[SERVICE_VLAN, VLAN]).map(|f| (f.ethertype, f.payload_at)), Ok((IPV6, 22)));
        assert_eq!(frame(&[VLAN, VLAN, VLAN]), Err(Error::TooDeep(2)));
    }
}
