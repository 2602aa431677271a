//! IPv6 (RFC 8200).

use super::{Ecn, HOP_LIMIT, IpHeader};
use crate::{Error, be16, take};
use std::net::{IpAddr, Ipv6Addr};

/// Extension headers that are looked through. The eBPF program unrolls as many.
pub const MAX_EXTENSIONS: usize = 4;

const FIXED_LEN: usize = 40;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;

pub(super) fn parse(packet: &[u8]) -> Result<IpHeader, Error> {
    let fixed: [u8; FIXED_LEN] = take(packet, 0).ok_or(Error::Truncated { needed: FIXED_LEN, got: packet.len() })?;
    let total = FIXED_LEN + usize::from(be16(&fixed, 4)?);
    if total > packet.len() {
        return Err(Error::Truncated { needed: total, got: packet.len() });
    }
    let (protocol, payload_at, fragment) = behind_extensions(packet, fixed[6])?;
    if payload_at > total {
        return Err(Error::Length { field: "payload length", value: total - FIXED_LEN });
    }
    let address = |at| take::<16>(&fixed, at).map_or(Ipv6Addr::UNSPECIFIED, Ipv6Addr::from);
    let class = fixed[0] << 4 | fixed[1] >> 4;
    Ok(IpHeader {
        source: IpAddr::V6(address(8)),
        destination: IpAddr::V6(address(24)),
        protocol,
        dscp: class >> 2,
        ecn: Ecn::from_bits(class),
        hop_limit: fixed[7],
        fragment,
        payload_at,
        payload_len: total - payload_at,
    })
}

/// The first header that is no extension, where it begins, and whether a fragment header stood before it.
///
/// Authentication headers are not looked through: what they protect must not be rewritten, and to a reader of flows
/// the packet is then simply of protocol 51.
fn behind_extensions(packet: &[u8], first: u8) -> Result<(u8, usize, bool), Error> {
    let (mut next, mut at) = (first, FIXED_LEN);
    for _ in 0..=MAX_EXTENSIONS {
        if next == FRAGMENT {
            // What follows belongs to the fragmentable part; only its first fragment holds a transport header.
            let [protocol, ..]: [u8; 8] =
                take(packet, at).ok_or(Error::Truncated { needed: at + 8, got: packet.len() })?;
            return Ok((protocol, at + 8, true));
        }
        if !matches!(next, HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS) {
            return Ok((next, at, false));
        }
        let [after, units]: [u8; 2] = take(packet, at).ok_or(Error::Truncated { needed: at + 2, got: packet.len() })?;
        next = after;
        at += (usize::from(units) + 1) * 8;
    }
    Err(Error::TooDeep(MAX_EXTENSIONS))
}

pub(super) fn write(
    out: &mut Vec<u8>,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    protocol: u8,
    ecn: Ecn,
    payload_len: usize,
) -> Result<(), Error> {
    let len = u16::try_from(payload_len).map_err(|_| Error::TooLong(payload_len))?;
    let mut header = [0; FIXED_LEN];
    header[0] = 0x60;
    header[1] = ecn.bits() << 4;
    header[4..6].copy_from_slice(&len.to_be_bytes());
    header[6] = protocol;
    header[7] = HOP_LIMIT;
    header[8..24].copy_from_slice(&source.octets());
    header[24..40].copy_from_slice(&destination.octets());
    out.extend_from_slice(&header);
    Ok(())
}
