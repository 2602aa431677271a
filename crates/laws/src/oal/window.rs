//! The receive window that makes a flow take a given rate.
//! Source:     own; \[oal\] maps rates to windows and gives no formula.
//! Equations:  W = max{ x (RTT + q) / 8,  2 MSS }
//! Symbols:    x -> `rate`, RTT -> `round_trip`, q -> `slack`, MSS -> `mss`
//! Deviations: RTT is the sum of the smallest wired and wireless halves of the last 10 s, so that W does not legitimise
//!             a standing queue. The paper's rule takes the round trip as it is. x counts
//!             network-layer bits and W payload, so W is wide by the headers (52 of 1500 B): they are part of q.
//! Validity:   RTT known.
//! Checked by: tests::*

use lasthop_signals::FlowReport;
use lasthop_units::{Bytes, Rate, Span};

/// The unloaded round trip of a flow; `None` until both halves have been measured.
pub fn unloaded_round_trip(flow: &FlowReport) -> Option<Span> {
    Some(flow.wired_rtt? + flow.wireless_rtt?)
}

/// The round trip as it is: what is in flight behind the middle box takes `in_flight / rate` to be acknowledged.
pub fn loaded_round_trip(flow: &FlowReport, rate: Rate) -> Option<Span> {
    let wireless = rate.time_for(flow.in_flight).unwrap_or(Span::ZERO);
    Some(flow.wired_rtt? + wireless.max(flow.wireless_rtt?))
}

/// The window for `rate` over `round_trip`, with room for `slack`.
pub fn for_rate(rate: Rate, round_trip: Span, slack: Span, mss: Bytes) -> Bytes {
    rate.bytes_in(round_trip + slack).max(mss * 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifty_mbit_over_25_ms_need_156_kilobytes() {
        let w = for_rate(Rate::from_mbit(50), Span::from_millis(20), Span::from_millis(5), Bytes::new(1448));
        assert_eq!(w, Bytes::new(156_250));
    }

    #[test]
    fn two_segments_are_the_least() {
        let w = for_rate(Rate::from_bps(1), Span::from_millis(1), Span::ZERO, Bytes::new(1448));
        assert_eq!(w, Bytes::new(2_896));
    }
}
