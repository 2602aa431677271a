//! Hosts, cables and routes, as files have them.

use crate::bounds::{LONGEST_DELAY, packets, rate, span};
use crate::graph::Cable;
use crate::quantity::Packets;
use crate::read::{Context, Entry, Quantity, table};
use lasthop_radio::wired;
use lasthop_units::{Rate, Span, Time};

/// A cable that loses more is of no use.
const MOST_LOST: f64 = 0.9;

table! {
    /// A full-duplex wired link: each direction has a drop-tail queue, a serialiser and a
    /// propagation delay.
    Wire {
        /// Data rate in each direction, at first.
        required rate: Quantity<Rate>,
        /// Propagation delay in each direction.
        required delay: Quantity<Span>,
        /// Packets that may wait at each end, beside the one being sent.
        default("\"1000 packets\"") queue: Quantity<Packets>,
        /// What befalls it.
        flatten impaired: Impaired,
    }
}

table! {
    /// The link to the access point. In the simulator the edge proxy stands at its other end,
    /// without it at the access point.
    Backhaul {
        /// It is a cable.
        flatten cable: Line,
    }
}

table! {
    /// Keys of a cable that may be short.
    Line {
        /// Data rate in each direction, at first.
        required rate: Quantity<Rate>,
        /// Propagation delay in each direction.
        default("\"0 s\"") delay: Quantity<Span>,
        /// Packets that may wait at each end, beside the one being sent.
        default("\"1000 packets\"") queue: Quantity<Packets>,
        /// What befalls it.
        flatten impaired: Impaired,
    }
}

table! {
    /// What befalls a cable.
    Impaired {
        /// Its rate over time.
        default("[]") changes: Vec<RateStep>,
        /// Probability that a packet is damaged, each independently, in either direction.
        default("0.0") loss: f64,
        /// Largest delay added to a packet, drawn for each; order is kept.
        default("\"0 s\"") jitter: Quantity<Span>,
    }
}

table! {
    /// A host on cables, with a unique name. It forwards packets.
    Host {
        /// Unique among hosts.
        required name: String,
    }
}

table! {
    /// A cable between two hosts.
    Link {
        /// The two hosts: `[[host]]`s, stations, `"server"` or `"ap"`.
        required between: Vec<String>,
        /// It is a cable.
        flatten cable: Line,
    }
}

table! {
    /// `at` forwards packets for `to` to its neighbour `via`, in place of the path of fewest
    /// links.
    Route {
        /// The host that forwards.
        required at: String,
        /// The destination.
        required to: String,
        /// The neighbour of `at` that gets the packets.
        required via: String,
    }
}

table! {
    /// Rate in each direction from `at` on.
    RateStep {
        /// When, since the run began.
        required at: Quantity<Span>,
        /// Data rate in each direction from then on.
        required rate: Quantity<Rate>,
    }
}

/// The rates of a cable over time.
fn changes(entry: &Entry<Vec<RateStep>>, cx: &mut Context) -> Option<Vec<(Time, Rate)>> {
    let mut changes: Vec<(Time, Rate)> = Vec::new();
    for step in entry.get()? {
        let at = step.at.get().map(|at| Time::ZERO + at.0);
        let (Some(at), Some(rate)) = (at, rate(&step.rate, cx)) else { return None };
        if changes.last().is_some_and(|(before, _)| at <= *before) {
            cx.impossible(
                &step.at.at,
                "a change that is not after the one before it",
                "put the changes in order, one at each time",
            );
            return None;
        }
        changes.push((at, rate));
    }
    Some(changes)
}

impl Wire {
    pub fn cable(&self, cx: &mut Context) -> Option<Cable> {
        let line = line(&self.rate, &self.delay, &self.queue, cx);
        self.impaired.cable(line, cx)
    }
}

impl Line {
    pub fn cable(&self, cx: &mut Context) -> Option<Cable> {
        let line = line(&self.rate, &self.delay, &self.queue, cx);
        self.impaired.cable(line, cx)
    }
}

/// One direction of a cable.
pub(crate) fn line(
    rate: &Entry<Quantity<Rate>>,
    delay: &Entry<Quantity<Span>>,
    queue: &Entry<Quantity<Packets>>,
    cx: &mut Context,
) -> Option<wired::Params> {
    let rate = self::rate(rate, cx);
    let delay = span(delay, (Span::ZERO, LONGEST_DELAY), "TCP gives up a connection on longer paths", cx);
    let queue = packets(queue, cx);
    Some(wired::Params { rate: rate?, delay: delay?, queue_packets: queue? })
}

impl Impaired {
    /// A cable that is `line` in both directions.
    fn cable(&self, line: Option<wired::Params>, cx: &mut Context) -> Option<Cable> {
        let impairments = self.impairments(cx);
        line.zip(impairments).map(|(line, impairments)| Cable { lines: [line; 2], impairments })
    }

    pub fn impairments(&self, cx: &mut Context) -> Option<wired::Impairments> {
        let changes = changes(&self.changes, cx);
        let why = "a probability; a link that loses more is of no use";
        let loss = cx.within(&self.loss, (0.0, MOST_LOST), |p| p.to_string(), why);
        let jitter = span(&self.jitter, (Span::ZERO, LONGEST_DELAY), "TCP gives up a connection on longer paths", cx);
        Some(wired::Impairments { changes: changes?, loss: loss?, jitter: jitter? })
    }
}
