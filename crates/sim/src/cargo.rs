//! What packets carry in the simulator, and how long that makes them.

use lasthop_units::{Bytes, Time};
use lasthop_wire::tcp::{TcpHeader, TcpOptions};

/// The payload of a simulated packet.
#[derive(Clone, Debug)]
pub enum Cargo {
    /// A TCP segment of one connection. Its payload has a length but no content.
    Tcp {
        /// Which connection.
        connection: usize,
        /// Its header.
        header: TcpHeader,
    },
    /// A UDP packet of a probe stream.
    Probe {
        /// The source that sent it.
        source: usize,
        /// When it was sent.
        sent: Time,
    },
}

const IPV4_HEADER: u64 = 20;
const TCP_HEADER: u64 = 20;
const UDP_HEADER: u64 = 8;

/// Network-layer length of a segment in IPv4.
pub fn tcp_packet(header: &TcpHeader) -> Bytes {
    Bytes::new(IPV4_HEADER + TCP_HEADER + options(&header.options) + u64::from(header.payload_len))
}

/// Network-layer length of a UDP packet in IPv4.
pub fn udp_packet(payload: Bytes) -> Bytes {
    payload + Bytes::new(IPV4_HEADER + UDP_HEADER)
}

/// Length of the options as Linux lays them out: each padded to a multiple of four.
fn options(options: &TcpOptions) -> u64 {
    let mss = 4 * u64::from(options.mss.is_some());
    let scale = 4 * u64::from(options.window_scale.is_some());
    let timestamps = 12 * u64::from(options.timestamps.is_some());
    // SACK-permitted fills the padding that timestamps leave.
    let permitted = 4 * u64::from(options.sack_permitted && options.timestamps.is_none());
    let blocks = options.sack.as_slice().len() as u64;
    let sack = if blocks > 0 { 4 + 8 * blocks } else { 0 };
    mss + scale + timestamps + permitted + sack
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_wire::tcp::{Flags, SackBlock, Timestamps};

    fn header(options: TcpOptions, payload_len: u32) -> TcpHeader {
        let (source_port, destination_port, seq, ack, window) = (1, 2, 0, 0, 0);
        TcpHeader { source_port, destination_port, seq, ack, flags: Flags::ACK, window, options, payload_len }
    }

    #[test]
    fn lengths_are_those_that_linux_sends() {
        let timestamps = Some(Timestamps { val: 1, ecr: 2 });
        let data = header(TcpOptions { timestamps, ..TcpOptions::default() }, 1448);
        assert_eq!(tcp_packet(&data), Bytes::new(1500));
        let mut sack = TcpOptions { timestamps, ..TcpOptions::default() };
        sack.sack.push(SackBlock { left: 1, right: 2 });
        assert_eq!(tcp_packet(&header(sack, 0)), Bytes::new(64));
        let syn = TcpOptions {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps,
            ..Default::default()
        };
        assert_eq!(tcp_packet(&header(syn, 0)), Bytes::new(60));
    }
}
