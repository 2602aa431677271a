//! The station's log: one JSON object for every slot.
//!
//! `hop_delay_…` are the packets' delays from leaving the proxy to being opened here; `data_delay_…` those of the data from
//! leaving its server to being handed to a local program: the wire (half the proxy's RTT to the server), the wait in the
//! proxy, the hop, and the wait for what was lost before it. Both compare the clocks of two hosts; `clock_ahead_us` is by how much
//! the proxy's is taken to be ahead, which they do not contain any more, and `clock_error_us` how far that may be from the truth
//! (half the least round trip, and what the clocks drift). Clocks that may agree are taken to agree.

use crate::tunnel::clock;
use crate::tunnel::log::Log;
use crate::tunnel::spread::Spread;
use lasthop_signals::{FrameSource, StationFeedback};
use lasthop_transport::tunnel::ClockOffset;
use lasthop_units::Time;
use serde_json::json;

pub(super) fn slot(
    log: &mut Log,
    now: Time,
    feedback: &StationFeedback,
    hop: &Spread,
    data: &Spread,
    clock: Option<ClockOffset>,
) {
    let micros = |spread: &Spread| {
        let us = |span: Option<lasthop_units::Span>| span.map(|span| span.as_nanos() as f64 / 1e3);
        json!({
            "count": spread.count(),
            "mean_us": us(spread.mean()),
            "p50_us": us(spread.quantile(0.5)),
            "p95_us": us(spread.quantile(0.95)),
            "p99_us": us(spread.quantile(0.99)),
            "max_us": us(spread.largest()),
        })
    };
    log.line(&json!({
        "t_ns": clock::monotonic(now).as_nanos(),
        "slot": feedback.slot,
        "station": feedback.station.0,
        "frames": feedback.frames,
        "packets": feedback.packets,
        "mean_packets": feedback.mean_packets(),
        "min_packets": feedback.min_packets,
        "max_packets": feedback.max_packets,
        "inverse_rate_sum": feedback.inverse_rate_sum,
        "source": match feedback.source {
            FrameSource::Radiotap => "radiotap",
            FrameSource::Timestamps => "timestamps",
        },
        "received": feedback.received,
        "lost": feedback.lost,
        "hop_delay": micros(hop),
        "data_delay": micros(data),
        "clock_ahead_us": clock.map(|clock| clock.ahead as f64 / 1e3),
        "clock_error_us": clock.map(|clock| clock.error.as_nanos() as f64 / 1e3),
    }));
}
