//! A whole packet with a TCP segment in it: found, read, and its window rewritten in place.

use crate::{Error, FlowKey, be16, checksum, ethernet, ip, tcp, tcp::TcpHeader};

/// What a packet's first octet belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Link {
    /// An Ethernet header (ARPHRD_ETHER).
    Ethernet,
    /// The IP header itself (ARPHRD_NONE: TUN and other layer-3 devices).
    Ip,
}

/// A TCP segment and where it stands in its packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpPacket {
    /// Its sender and its receiver.
    pub flow: FlowKey,
    /// Its header.
    pub header: TcpHeader,
    /// ECN field of its IP header.
    pub ecn: ip::Ecn,
    /// Offset of the IP header.
    pub ip_at: usize,
    /// Offset of the TCP header.
    pub tcp_at: usize,
    /// Offset of the end of the segment.
    pub end: usize,
}

impl TcpPacket {
    /// Finds the TCP segment of a packet; `None` if it holds none that may be looked at as a whole: another
    /// EtherType or protocol, or a fragment.
    ///
    /// # Errors
    /// [`Error`] if any header is cut short or contradicts itself.
    pub fn parse(bytes: &[u8], link: Link) -> Result<Option<TcpPacket>, Error> {
        let ip_at = match link {
            Link::Ip => 0,
            Link::Ethernet => {
                let frame = ethernet::parse(bytes)?;
                if !matches!(frame.ethertype, ethernet::IPV4 | ethernet::IPV6) {
                    return Ok(None);
                }
                frame.payload_at
            }
        };
        let packet = bytes.get(ip_at..).unwrap_or(&[]);
        let header = ip::parse(packet)?;
        if header.protocol != ip::TCP || header.fragment {
            return Ok(None);
        }
        let flow = FlowKey::of_header(&header, packet)?;
        let tcp_at = ip_at + header.payload_at;
        let (tcp, _) = tcp::parse(header.payload(packet))?;
        Ok(Some(TcpPacket { flow, header: tcp, ecn: header.ecn, ip_at, tcp_at, end: tcp_at + header.payload_len }))
    }

    /// Writes another window into the packet that this was parsed from and mends the checksum (RFC 1624). Does
    /// nothing to a buffer too short to be that packet.
    pub fn set_window(&self, bytes: &mut [u8], window: u16) {
        let Some(segment) = bytes.get_mut(self.tcp_at..self.end) else { return };
        let (Ok(old), Ok(sum)) = (be16(segment, tcp::WINDOW_AT), be16(segment, tcp::CHECKSUM_AT)) else { return };
        let sum = checksum::update(sum, old, window);
        segment[tcp::WINDOW_AT..tcp::WINDOW_AT + 2].copy_from_slice(&window.to_be_bytes());
        segment[tcp::CHECKSUM_AT..tcp::CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
    }

    /// True if the segment's checksum is right.
    pub fn checksum_is_valid(&self, bytes: &[u8]) -> bool {
        let segment = bytes.get(self.tcp_at..self.end).unwrap_or(&[]);
        checksum::transport(self.flow.source, self.flow.destination, ip::TCP, segment) == 0
    }
}

/// An IP packet with a TCP segment: `header` (its `payload_len` and ports are ignored in favour of `payload` and
/// `flow`), then `payload`, checksums filled in.
///
/// # Errors
/// [`Error::OptionSpace`], [`Error::MixedFamilies`], [`Error::TooLong`].
pub fn ip_tcp_packet(flow: &FlowKey, ecn: ip::Ecn, header: &TcpHeader, payload: &[u8]) -> Result<Vec<u8>, Error> {
    let header = TcpHeader { source_port: flow.source_port, destination_port: flow.destination_port, ..*header };
    let mut segment = Vec::with_capacity(60 + payload.len());
    tcp::write(&mut segment, &header)?;
    segment.extend_from_slice(payload);
    let sum = checksum::transport(flow.source, flow.destination, ip::TCP, &segment);
    segment[tcp::CHECKSUM_AT..tcp::CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
    let mut packet = Vec::with_capacity(40 + segment.len());
    ip::write(&mut packet, flow.source, flow.destination, ip::TCP, ecn, segment.len())?;
    packet.extend_from_slice(&segment);
    Ok(packet)
}
