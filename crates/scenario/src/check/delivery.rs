//! A hop that plays recorded traces.

use super::{LONGEST_DELAY, queues, span, without_radio};
use crate::raw;
use crate::read::Context;
use lasthop_radio::trace;
use lasthop_units::Span;

pub(super) fn hop(hop: &raw::TraceHop, raw: &raw::Scenario, cx: &mut Context) -> Option<trace::Plan> {
    without_radio(raw, ("a trace hop", "when it carries something says `hop.trace.downlink`"), cx);
    let delay = span(&hop.delay, (Span::ZERO, LONGEST_DELAY), "TCP gives up a connection on longer paths", cx);
    let queue = hop.queue.get().and_then(|queue| queues::discipline(&queue, cx));
    let uplink_queue = match hop.uplink_queue.given {
        true => hop.uplink_queue.get().and_then(|queue| queues::discipline(&queue, cx)),
        false => queue,
    };
    let (raw::DeliveryFile(down), raw::DeliveryFile(up)) = (hop.downlink.get()?, hop.uplink.get()?);
    let params = |trace, queue| trace::Params { trace, queue, delay: delay.unwrap_or_default(), shown: false };
    delay?;
    Some(trace::Plan { down: params(down, queue?), up: params(up, uplink_queue?) })
}
