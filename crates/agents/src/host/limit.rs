//! What held a connection back between two looks at it.
//!
//! The kernel counts for how long a connection had something to send or to be acknowledged (*busy*), and of it, for how long the
//! receiver's window or the send buffer held it back. Between two looks, a time T apart, there are four times:
//!
//! | time | what held the connection back |
//! | --- | --- |
//! | T less busy | the application: there was nothing to send |
//! | in the receiver's window | the receiver's window |
//! | in the send buffer | the send buffer: the application would have written more |
//! | the rest of busy | decided by the state at the second look, see below |
//!
//! The longest of the four decides. If it is the rest:
//!
//! 1. The latest delivery sample is the application's (`app_limited`): the application.
//! 2. At least a full segment waits unsent, and less is in flight than the congestion window admits: pacing.
//! 3. Otherwise the network: the congestion window.
//!
//! A connection that was never busy is idle, or receives, if payload came in.
//!
//! Deviations: the kernel counts in ticks (1 to 10 ms), so that much of each time is uncertain. Rule 2 also holds for the moment in which a
//! segment waits for room in the queue of this host (TCP small queues), which paces too.

use lasthop_units::{Bytes, Span, named};
use lasthop_wire::tcp_info::TcpInfo;

named! {
    /// What held a connection back.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Limit {
        /// Nothing: it neither sent nor received.
        Idle = "idle",
        /// Nothing here: it received only.
        Receiving = "receiving",
        /// The application had nothing more to send.
        Application = "application",
        /// The receiver's window.
        ReceiverWindow = "receiver",
        /// The send buffer.
        SendBuffer = "send-buffer",
        /// Pacing.
        Pacing = "pacing",
        /// The network, by the congestion window.
        Network = "network",
    }
}

/// What held a connection back between two looks that were `interval` apart; `None` if the kernel does not count times (before Linux 4.10).
pub(super) fn between(before: &TcpInfo, now: &TcpInfo, interval: Span) -> Option<Limit> {
    let grown = |of: fn(&TcpInfo) -> Option<Span>| Some(of(now)?.saturating_sub(of(before)?));
    let busy = grown(|info| info.busy_time)?;
    let sent = now.bytes_sent > before.bytes_sent;
    if busy.is_zero() && !sent && now.unacked == 0 {
        let received = now.bytes_received > before.bytes_received;
        return Some(if received { Limit::Receiving } else { Limit::Idle });
    }
    let (receiver, buffer) = (grown(|info| info.rwnd_limited)?, grown(|info| info.sndbuf_limited)?);
    let rest = busy.saturating_sub(receiver).saturating_sub(buffer);
    let times = [
        (interval.saturating_sub(busy), Limit::Application),
        (receiver, Limit::ReceiverWindow),
        (buffer, Limit::SendBuffer),
        (rest, of_state(now)),
    ];
    // Of equal times the last one stands: it says more.
    times.into_iter().max_by_key(|(time, _)| *time).map(|(_, limit)| limit)
}

fn of_state(now: &TcpInfo) -> Limit {
    let waits = now.notsent.unwrap_or(Bytes::ZERO) >= now.mss && !now.mss.is_zero();
    match (now.app_limited, waits && now.in_flight() < now.cwnd) {
        (true, _) => Limit::Application,
        (false, true) => Limit::Pacing,
        (false, false) => Limit::Network,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(busy_ms: u64, receiver_ms: u64, buffer_ms: u64) -> TcpInfo {
        TcpInfo {
            mss: Bytes::new(1448),
            cwnd: 10,
            busy_time: Some(Span::from_millis(busy_ms)),
            rwnd_limited: Some(Span::from_millis(receiver_ms)),
            sndbuf_limited: Some(Span::from_millis(buffer_ms)),
            bytes_sent: Some(Bytes::new(busy_ms)),
            bytes_received: Some(Bytes::ZERO),
            notsent: Some(Bytes::ZERO),
            ..TcpInfo::default()
        }
    }

    fn limit(before: &TcpInfo, now: &TcpInfo) -> Option<Limit> {
        between(before, now, Span::from_millis(500))
    }

    #[test]
    fn the_longest_time_decides() {
        let before = info(1000, 200, 100);
        assert_eq!(limit(&before, &info(1100, 200, 100)), Some(Limit::Application));
        assert_eq!(limit(&before, &info(1500, 500, 250)), Some(Limit::ReceiverWindow));
        assert_eq!(limit(&before, &info(1500, 300, 500)), Some(Limit::SendBuffer));
        assert_eq!(limit(&before, &info(1500, 300, 200)), Some(Limit::Network));
    }

    #[test]
    fn the_rest_is_told_by_the_state() {
        let (before, now) = (info(1000, 0, 0), info(1500, 0, 0));
        assert_eq!(limit(&before, &TcpInfo { app_limited: true, ..now }), Some(Limit::Application));
        let waiting = TcpInfo { notsent: Some(Bytes::new(1448)), unacked: 9, ..now };
        assert_eq!(limit(&before, &waiting), Some(Limit::Pacing));
        assert_eq!(limit(&before, &TcpInfo { unacked: 10, ..waiting }), Some(Limit::Network));
        // Less than a segment waits for Nagle's algorithm, not for the pacer.
        assert_eq!(limit(&before, &TcpInfo { notsent: Some(Bytes::new(1447)), ..waiting }), Some(Limit::Network));
    }

    #[test]
    fn who_sends_nothing_is_idle_or_receives() {
        let before = info(1000, 0, 0);
        assert_eq!(limit(&before, &before), Some(Limit::Idle));
        let received = TcpInfo { bytes_received: Some(Bytes::new(1)), ..before };
        assert_eq!(limit(&before, &received), Some(Limit::Receiving));
        // What is in flight still waits for its acknowledgement.
        assert_eq!(limit(&before, &TcpInfo { unacked: 1, ..before }), Some(Limit::Application));
        assert_eq!(limit(&TcpInfo::default(), &TcpInfo::default()), None);
    }
}
