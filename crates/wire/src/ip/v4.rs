//! IPv4 (RFC 791).

use super::{Ecn, HOP_LIMIT, IpHeader};
use crate::{Error, be16, checksum::Sum, take};
use std::net::{IpAddr, Ipv4Addr};

const MIN_LEN: usize = 20;
/// "More fragments" and the fragment offset: either set makes the packet a fragment.
const FRAGMENT: u16 = 0x3fff;
/// "Don't fragment", as every TCP stack sets it (RFC 1191).
const DONT_FRAGMENT: u16 = 0x4000;

pub(super) fn parse(packet: &[u8]) -> Result<IpHeader, Error> {
    let fixed: [u8; MIN_LEN] = take(packet, 0).ok_or(Error::Truncated { needed: MIN_LEN, got: packet.len() })?;
    let payload_at = usize::from(fixed[0] & 0x0f) * 4;
    if payload_at < MIN_LEN {
        return Err(Error::Length { field: "IHL", value: payload_at });
    }
    let total = usize::from(be16(&fixed, 2)?);
    if total < payload_at {
        return Err(Error::Length { field: "total length", value: total });
    }
    if total > packet.len() {
        return Err(Error::Truncated { needed: total, got: packet.len() });
    }
    let address = |at| take::<4>(&fixed, at).map_or(Ipv4Addr::UNSPECIFIED, Ipv4Addr::from);
    Ok(IpHeader {
        source: IpAddr::V4(address(12)),
        destination: IpAddr::V4(address(16)),
        protocol: fixed[9],
        dscp: fixed[1] >> 2,
        ecn: Ecn::from_bits(fixed[1]),
        hop_limit: fixed[8],
        fragment: be16(&fixed, 6)? & FRAGMENT != 0,
        payload_at,
        payload_len: total - payload_at,
    })
}

pub(super) fn write(
    out: &mut Vec<u8>,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: u8,
    ecn: Ecn,
    payload_len: usize,
) -> Result<(), Error> {
    let total = u16::try_from(payload_len.saturating_add(MIN_LEN)).map_err(|_| Error::TooLong(payload_len))?;
    let mut header = [0; MIN_LEN];
    header[0] = 0x45;
    header[1] = ecn.bits();
    header[2..4].copy_from_slice(&total.to_be_bytes());
    header[6..8].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
    header[8] = HOP_LIMIT;
    header[9] = protocol;
    header[12..16].copy_from_slice(&source.octets());
    header[16..20].copy_from_slice(&destination.octets());
    let sum = Sum::default().bytes(&header).finish();
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    out.extend_from_slice(&header);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_less_than_twenty_octets_is_refused() {
        let (source, destination) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 9));
        let mut packet = Vec::new();
        write(&mut packet, source, destination, 6, Ecn::NotEct, 60).expect("short enough");
        packet.resize(80, 0);
        for words in 0..16 {
            packet[0] = 0x40 | words;
            let len = usize::from(words) * 4;
            match parse(&packet) {
                Ok(header) => assert!(len >= 20 && header.payload_at == len && header.payload_len == 80 - len, "{len}"),
                Err(error) => {
                    assert!(
                        len < 20 && matches!(error, Error::Length { field: "IHL", value } if value == len),
                        "{len}"
                    );
                }
            }
        }
    }
}
