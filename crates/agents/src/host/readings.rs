//! Readings for tests.

use super::limit::Limit;
use super::{CaEntries, Reading, Recent};
use lasthop_units::{Bytes, Rate, Span, Time};
use lasthop_wire::sock_diag::{CongestionControl, Socket};
use lasthop_wire::tcp_info::{CaState, TcpInfo, TcpState};

/// A connection at the first look at it.
pub(crate) fn reading(local: &str, peer: &str) -> Reading {
    let [local, peer] = [local, peer].map(|end| end.parse().expect("an address with a port"));
    let info = TcpInfo {
        state: TcpState::Established,
        ca_state: CaState::Open,
        mss: Bytes::new(1448),
        cwnd: 10,
        rtt: Some(Span::from_millis(20)),
        min_rtt: Some(Span::from_millis(18)),
        ..TcpInfo::default()
    };
    let socket = Socket {
        cookie: 7,
        local,
        peer,
        interface: 0,
        state: info.state,
        uid: 1000,
        inode: 99,
        receive_queue: Bytes::ZERO,
        send_queue: Bytes::ZERO,
        congestion_control: CongestionControl::new(b"cubic"),
        info: Some(info),
    };
    Reading { at: Time::from_nanos(1), socket, info, entries: None, recent: None }
}

/// One that sends at 8 Mbit/s, of which everything is known.
pub(crate) fn sending(local: &str, peer: &str) -> Reading {
    let known = reading(local, peer);
    let some = Some(Bytes::new(2000));
    let info = TcpInfo {
        ssthresh: Some(20),
        unacked: 9,
        total_retrans: 3,
        pacing_rate: Some(Rate::from_mbit(12)),
        delivery_rate: Some(Rate::from_mbit(9)),
        bytes_acked: some,
        bytes_received: some,
        notsent: some,
        busy_time: Some(Span::from_secs(1)),
        rwnd_limited: Some(Span::ZERO),
        sndbuf_limited: Some(Span::ZERO),
        bytes_sent: some,
        bytes_retrans: some,
        snd_wnd: some,
        rcv_wnd: some,
        ..known.info
    };
    let recent = Recent {
        interval: Span::from_millis(500),
        sent: Rate::from_mbit(8),
        received: Rate::ZERO,
        retransmitted: 1,
        limit: Some(Limit::Network),
    };
    Reading { info, entries: Some(CaEntries::new([2, 3, 0, 2, 1])), recent: Some(recent), ..known }
}
